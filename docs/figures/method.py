"""Draw the method on one image: ``python docs/figures/method.py`` writes ``docs/figures/method.jpg``.

The image is a test scene of the embedded handwritten digits. The maps are those of VT-FPN's finest level, trained by
the config ``vt-fpn_r18_digit-scenes``:

    python tools/train.py configs/vt_fpn/vt-fpn_r18_digit-scenes.py
    python docs/figures/method.py work_dirs/vt-fpn_r18_digit-scenes/iter_1200.pth

Letters: N images, H and W size of the map, L tokens of a level, C_T channels of a token.
"""

import sys
from pathlib import Path

import cv2
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import vt
from vt import apis
from vt.analysis.figures import save_figure

OUT = Path(__file__).with_suffix('.jpg')
CONFIG, INDEX, TOKENS = 'vt-fpn_r18_digit-scenes', 2, 4
CHANNELS = 48  # of a token, drawn


def overlay(axes: Axes, image: np.ndarray, values: np.ndarray) -> None:
    """An image and, over it, where the values of a smaller map are high."""
    height, width = image.shape[:2]
    mask = cv2.resize(values / values.max(), (width, height), interpolation=cv2.INTER_CUBIC).clip(0, 1)
    axes.imshow(image.mean(axis=2), cmap='gray', vmin=0, vmax=255)
    axes.imshow(np.full_like(mask, 0.75), cmap='autumn', vmin=0, vmax=1, alpha=0.85 * mask)


def draw(image: np.ndarray, made: apis.Tokens) -> Figure:
    """The figure of one image, (height, width, 3) in RGB, and of what the model made of it."""
    tokenizer = made.attention['neck.tokenizers.0'][0, 0]  # L, H, W
    projector = made.attention['neck.projectors.0'][0, 0]  # L, H, W
    tokens = made.tokens['neck.tokenizers.0'][0]  # L, C_T
    relation = made.attention['neck.relation'][0, 0]  # tokens of all levels, twice
    figure = Figure(figsize=(12.6, 3.3), layout='constrained')
    parts = figure.subfigures(1, 5, width_ratios=[1.25, 1.6, 1, 1.25, 1.6])
    titles = [
        'image, with\nfeature map $X$',
        'tokenizer: where each token looks\n$T = \\mathrm{softmax}_{HW}(XW_A)^\\top X$',
        f'{len(tokens)} visual tokens $T$',
        'transformer: tokens of\nall levels are related',
        'projector: what each pixel reads\n$X + \\mathrm{softmax}_{L}((XW_Q)(TW_K)^\\top)\\,T$',
    ]
    for part, title in zip(parts, titles):
        part.suptitle(title, fontsize=10)
    parts[0].subplots().imshow(image)
    for part, maps in ((parts[1], tokenizer), (parts[4], projector)):
        for number, (axes, values) in enumerate(
            zip(part.subplots(2, TOKENS // 2).flat, maps[:TOKENS].numpy()), start=1
        ):
            overlay(axes, image, values)
            axes.set_ylabel(f'token {number}', fontsize=7, labelpad=2)
    parts[2].subplots().imshow(tokens[:, :CHANNELS], cmap='coolwarm', aspect='auto')
    parts[3].subplots().imshow(relation.sqrt(), cmap='viridis')
    for axes in figure.axes:
        axes.set_xticks([])
        axes.set_yticks([])
    return figure


def main(checkpoint: str = f'work_dirs/{CONFIG}/iter_1200.pth') -> None:
    model = apis.get_model(CONFIG, checkpoint)
    image = vt.DigitScenes('test', num_scenes=INDEX + 1)[INDEX]['img']  # BGR
    save_figure(draw(image[..., ::-1], apis.extract_tokens(model, [image])), OUT, dpi=110)
    print(f'written to {OUT}')


if __name__ == '__main__':
    main(*sys.argv[1:])
