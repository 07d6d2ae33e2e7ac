"""Pictures that cost as much to read as ImageNet's, where ImageNet itself is not at hand."""

from pathlib import Path

import cv2
import numpy as np

# ImageNet-1k's most frequent size, and about the mean size of its files in bytes.
HEIGHT, WIDTH = 375, 500
FILE_SIZE = 110_000


def write_jpegs(folder: Path, number: int, num_classes: int = 2, seed: int = 0) -> int:
    """Write pictures into ``folder/class_<k>/<i>.jpg``.

    Args:
        folder: where the folders of classes are made.
        number: of pictures.
        num_classes: number of classes, taken in turn.
        seed: of the pictures.

    Returns:
        Their mean size in bytes.
    """
    generator = np.random.default_rng(seed)
    sizes = []
    for index in range(number):
        path = folder / f'class_{index % num_classes}' / f'{index}.jpg'
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode(draw_picture(generator)))
        sizes.append(path.stat().st_size)
    return int(np.mean(sizes))


def draw_picture(generator: np.random.Generator) -> np.ndarray:
    """Noise at every scale, the more of it the coarser the scale, as in photographs: ``(HEIGHT, WIDTH, 3)``, uint8."""
    picture = np.full((HEIGHT, WIDTH, 3), 128, np.float32)
    for scale in 2 ** np.arange(8):
        grid = generator.standard_normal((-(-HEIGHT // scale), -(-WIDTH // scale), 3), np.float32)
        grid = 0.7 * grid.mean(axis=2, keepdims=True) + 0.3 * grid  # channels of photographs are alike
        picture += 14 * scale**0.3 * cv2.resize(grid, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)
    return np.clip(picture, 0, 255).astype(np.uint8)


def encode(picture: np.ndarray) -> bytes:
    """The picture as JPEG at the quality whose file is nearest to ImageNet's mean size."""
    files = [cv2.imencode('.jpg', picture, [cv2.IMWRITE_JPEG_QUALITY, quality])[1] for quality in range(60, 100, 3)]
    return min(files, key=lambda file: abs(len(file) - FILE_SIZE)).tobytes()
