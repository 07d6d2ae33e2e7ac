"""Predict with an exported ONNX model: ``python predict.py MODEL.onnx IMAGES_OR_FOLDERS [--masks FOLDER]``.

It needs onnxruntime, numpy, opencv-python-headless and pillow, and prints one line of JSON per image.
"""

import argparse
import json
import sys
from pathlib import Path

import cv2
import numpy as np
from PIL import Image, ImageOps

FLAGS = dict(nearest=0, bilinear=1, bicubic=2, area=3, lanczos=4)  # cv2.INTER_NEAREST, ...


def resize(image, size, interpolation='bilinear', backend='cv2'):
    """Resize an image to ``(width, height)``."""
    if backend == 'pillow':
        return np.asarray(Image.fromarray(image).resize(size, Image.Resampling[interpolation.upper()]))
    return cv2.resize(image, size, interpolation=FLAGS[interpolation])


def find_size(width, height, scale, edge=None, keep_ratio=False):
    """Return the ``(width, height)`` to which a step of the test pipeline resizes an image."""
    if edge:
        by_width = dict(short=width < height, long=width > height).get(edge, edge == 'width')
        return (scale, int(scale * height / width)) if by_width else (int(scale * width / height), scale)
    pair = [scale, scale] if isinstance(scale, int) else scale
    factor = min(max(pair) / max(width, height), min(pair) / min(width, height))
    return (int(width * factor + 0.5), int(height * factor + 0.5)) if keep_ratio else tuple(pair)


def prepare(file, about):
    """Return the network's input ``(1, 3, H, W)`` for an image file, the size of the file, and that before padding."""
    by_pillow = about['read'].get('imdecode_backend') == 'pillow'
    image = np.asarray(ImageOps.exif_transpose(Image.open(file)).convert('RGB')) if by_pillow else cv2.imread(str(file))
    if image is None:
        raise ValueError('no image that can be read')
    image, own_size = image[..., ::-1] if by_pillow else image, image.shape[:2]  # blue first
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
    x = (image[..., ::-1] if about['channels'] == 'RGB' else image).astype(np.float32)
    if about['mean']:
        x = (x - np.float32(about['mean'])) / np.float32(about['std'])
    pads = [(0, -side % about['pad_divisor']) for side in image.shape[:2]]
    padded = np.pad(x, (*pads, (0, 0)), constant_values=about['pad_value']).transpose(2, 0, 1)[None]
    return np.ascontiguousarray(padded), own_size, x.shape  # compiled libraries take no other strides


def predict(run, about, file):
    """Return the scores of the classes, ``(classes,)``, or the class of each pixel, ``(height, width)``."""
    x, own_size, size = prepare(file, about)
    (output,) = run(x)[0]
    if about['task'] == 'segmentation':
        planes = [resize(plane, x.shape[:1:-1])[: size[0], : size[1]] for plane in output]
        return np.argmax([resize(plane, own_size[::-1]) for plane in planes], axis=0)
    powers = np.exp(output - output.max())
    return powers / powers.sum() if about['scores'] == 'softmax' else 1 / (1 + np.exp(-output))


if __name__ == '__main__':
    import onnxruntime

    parser = argparse.ArgumentParser(description='Predict with an exported ONNX model.')
    parser.add_argument('model', type=Path, help='path of the .onnx file, beside its .json')
    parser.add_argument('images', type=Path, nargs='+', help='images, or folders of images')
    parser.add_argument('--masks', type=Path, help='folder for PNGs of class numbers of a segmentation model')
    args = parser.parse_args()
    about = args.model.with_name(args.model.name.removesuffix('.onnx').removesuffix('.int8') + '.json')
    about, session = json.loads(about.read_text()), onnxruntime.InferenceSession(args.model)
    is_mask, skipped = about['task'] == 'segmentation', 0
    if args.masks and not is_mask:
        parser.error('--masks needs a segmentation model')
    for given in args.images:
        found = [file for file in sorted(given.rglob('*')) if file.is_file() and cv2.haveImageReader(str(file))]
        if given.is_dir() and not found:
            raise SystemExit(f'error: {given} contains no image')
        for file in found if given.is_dir() else [given]:
            try:
                result = predict(lambda x: session.run(None, {session.get_inputs()[0].name: x}), about, file)
            except (OSError, ValueError) as error:
                print(f'error: {file}: {error}', file=sys.stderr)
                skipped += 1
                continue
            if args.masks:
                path = args.masks / f'{file.relative_to(given) if given.is_dir() else file.name}.png'
                path.parent.mkdir(parents=True, exist_ok=True)
                cv2.imwrite(str(path), result.astype(np.uint8))
            scores = np.bincount(result.ravel()) / result.size if is_mask else result
            names = about['classes'] or [str(i) for i in range(len(scores))]
            best = [dict(name=names[i], score=float(scores[i])) for i in np.argsort(-scores)[:5]]
            print(json.dumps(dict(file=str(file), predictions=best)))
    sys.exit(min(skipped, 1))
