"""Predict with an exported ONNX model: ``python predict.py MODEL.onnx IMAGES_OR_FOLDERS [--masks FOLDER]``.

It needs onnxruntime, numpy, opencv-python-headless and pillow, and prints one line of JSON per image.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from PIL import Image

from vt.errors import UserError
from vt.files import parse_errors, read_json, write_atomically
from vt.image_bounds import EXTENSIONS, check_scores
from vt.inference.image_files import encode_mask, read_image
from vt.paths import find_files, mask_paths
from vt.untrusted_text import check_class_names, printable

FLAGS = dict(nearest=0, bilinear=1, bicubic=2, area=3, lanczos=4)  # cv2.INTER_NEAREST, ...
KEYS = ('input', 'open_size', 'channels', 'mean', 'std', 'classes')  # of all exports
KEYS += ('task', 'scores', 'threshold', 'palette', 'steps', 'pad_divisor', 'pad_value')  # with a script
HINT = 'export the model again'
TOP = 5  # classes that are printed


def resize(image: np.ndarray, size: Sequence[int], interpolation: str = 'bilinear', backend: str = 'cv2') -> np.ndarray:
    """Resize an image to ``(width, height)``."""
    if backend == 'pillow':
        return np.asarray(Image.fromarray(image).resize(size, Image.Resampling[interpolation.upper()]))
    return cv2.resize(image, size, interpolation=FLAGS[interpolation])


def find_size(
    width: int, height: int, scale: Any, edge: str | None = None, keep_ratio: bool = False
) -> tuple[int, ...]:
    """Return the ``(width, height)`` to which a step of the test pipeline resizes an image."""
    if edge:
        by_width = dict(short=width < height, long=width > height).get(edge, edge == 'width')
        return (scale, int(scale * height / width)) if by_width else (int(scale * width / height), scale)
    pair = [scale, scale] if isinstance(scale, int) else scale
    factor = min(max(pair) / max(width, height), min(pair) / min(width, height))
    return (int(width * factor + 0.5), int(height * factor + 0.5)) if keep_ratio else tuple(pair)


def prepare(file: str | Path, about: dict[str, Any]) -> tuple[np.ndarray, tuple[int, ...], tuple[int, ...]]:
    """Return the network's input ``(1, 3, H, W)`` for an image file, the size of the file, and that before padding."""
    image = read_image(file)
    own_size = image.shape[:2]
    for step in about['steps']:
        height, width = image.shape[:2]
        if crop := step.get('crop_size'):
            crop = [crop, crop] if isinstance(crop, int) else crop[::-1]
            top, left = (max(0, round((side - own) / 2)) for side, own in zip((height, width), crop))
            image = image[top : top + crop[0], left : left + crop[1]]
        else:
            how = {key: step[key] for key in ('interpolation', 'backend') if key in step}
            sizes = {key: value for key, value in step.items() if key not in how}
            image = resize(image, find_size(width, height, **sizes), **how)
    x = dict(RGB=image[..., ::-1], BGR=image)[about['channels']].astype(np.float32)
    if about['mean'] is not None:
        x = (x - np.float32(about['mean'])) / np.float32(about['std'])
    pads = [(0, -side % about['pad_divisor']) for side in image.shape[:2]]
    padded = np.pad(x, (*pads, (0, 0)), constant_values=about['pad_value']).transpose(2, 0, 1)[None]
    return np.ascontiguousarray(padded), own_size, image.shape[:2]  # compiled libraries take no other strides


def predict(run: Callable[[np.ndarray], Sequence[np.ndarray]], about: dict[str, Any], file: str | Path) -> np.ndarray:
    """Return the scores of the classes, ``(classes,)``, or the class of each pixel, ``(height, width)``.

    Raises:
        UserError: the file cannot be read, or becomes an input of a size that the exported model does not take.
    """
    x, own_size, size = prepare(file, about)
    if not about['open_size'] and [*x.shape[1:]] != about['input'][1:]:
        given, needed = ('x'.join(map(str, sides)) for sides in (x.shape[2:], about['input'][2:]))
        raise UserError(f'{file} is preprocessed to {given} pixels, but this exported model requires {needed}')
    (output,) = run(x)[0]
    if about['task'] == 'segmentation':
        check_scores(own_size, len(output), str(file), 'make it smaller')
        planes = [resize(plane, x.shape[:1:-1])[: size[0], : size[1]] for plane in output]
        planes = [resize(plane, own_size[::-1]) for plane in planes]
        return np.argmax(planes, axis=0) if len(planes) > 1 else (sigmoid(planes[0]) > about['threshold']).astype(int)
    powers = np.exp(output - output.max())
    return powers / powers.sum() if about['scores'] == 'softmax' else sigmoid(output)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Return the logistic function of each number."""
    return (1 + np.tanh(x / 2)) / 2  # without overflow


def predict_files(args: argparse.Namespace) -> int:
    """Print the predictions of all files, and write their masks on request.

    Returns:
        The exit code: 1 if files were skipped.

    Raises:
        UserError: the model, its description or all of a folder cannot be used; a mask cannot be written.
    """
    os.environ.setdefault('ORT_DISABLE_TELEMETRY', '1')  # reports to Microsoft, from its import on
    import onnxruntime

    stem = args.model.name.removesuffix('.onnx').removesuffix('.int8')
    about = read_json(args.model.with_name(f'{stem}.json'), HINT, keys=KEYS)
    is_segmentor = about['task'] == 'segmentation'
    if args.masks and not is_segmentor:
        raise UserError('--masks requires a segmentation model: remove --masks')
    onnxruntime.set_default_logger_severity(4)  # errors are in the exceptions
    with parse_errors(args.model, HINT):
        session = onnxruntime.InferenceSession(args.model)
        (given,), (made, *_) = session.get_inputs(), session.get_outputs()
    number = made.shape[1] if made.shape[1] != 1 or not is_segmentor else 2  # one output is the second of two classes
    names = check_class_names(about['classes'] or [*map(str, range(number))], f'classes beside {args.model}', number)
    files = find_files(args.images, EXTENSIONS)
    masks, skipped = mask_paths(files, args.masks), 0
    for file in files:
        try:
            result = predict(lambda x: session.run(None, {given.name: x}), about, file)
            mask = encode_mask(result, about['palette'], file) if args.masks else None
        except Exception as error:  # of any type: other files may be predicted
            reason = str(error) if isinstance(error, UserError) else f'{type(error).__name__}: {error}'
            print(printable(f'skipped: {reason if file in reason else f"{file}: {reason}"}'), file=sys.stderr)
            skipped += 1
            continue
        if mask:
            write_atomically((args.masks / masks[file]).with_suffix(mask[0]), mask[1])
        scores = np.bincount(result.ravel(), minlength=number) / result.size if is_segmentor else result
        best = [dict(name=names[i], score=float(scores[i])) for i in np.argsort(-scores)[:TOP]]
        print(json.dumps(dict(file=file, predictions=best)), flush=True)
    return min(skipped, 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(description='Predict with an exported ONNX model.')
    parser.add_argument('model', type=Path, help='path of the .onnx file, beside its .json')
    parser.add_argument('images', nargs='+', help='images, or folders of images')
    parser.add_argument('--masks', type=Path, help='folder for PNGs of class numbers of a segmentation model')
    try:
        return predict_files(parser.parse_args(arguments))
    except (UserError, OSError) as error:
        print(printable(f'error: {error}'), file=sys.stderr)
        return 1


if __name__ == '__main__':
    sys.exit(main())
