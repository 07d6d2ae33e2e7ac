"""The script beside an exported model: written if all that it prints and writes equals what the model predicts."""

import ast
import json
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from importlib.util import find_spec, module_from_spec, resolve_name, spec_from_file_location
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from mmengine.dataset import pseudo_collate
from mmpretrain.models import MultiLabelClsHead
from PIL import Image

from vt.apis import predict_exported
from vt.apis.inferencers import inferencer_of
from vt.apis.saved_inputs import describe_inputs as describe_steps
from vt.checkpoints.files import write_atomically
from vt.engine.errors import describe, in_one_line
from vt.errors import UserError
from vt.image_bounds import EXTENSIONS
from vt.inference.image_files import find_files
from vt.inference.mask_files import encode_mask, mask_paths

from .outputs import write_json

ORIENTATION, TURNED = 274, 6  # EXIF's tag, and its value for an image that is shown turned by 90 degrees
# Name, height and width relative to the input, and mode of the images that the script is tried on.
EXAMPLES = (('a/same.png', 1, 1, 'RGB'), ('b/same.png', 0.7, 0.7, 'LA'), ('b/é 2.png', 1.3, 2.6, 'L'))


def write_script(model: Any, about: dict[str, Any], onnx: bytes, name: str, folder: Path) -> dict[str, Any]:
    """Write ``predict.py``, which needs no PyTorch, if its results equal the model's; else print why not.

    Returns:
        What the script reads from ``NAME.json`` beside ``about``: preprocessing and postprocessing.
    """
    try:
        path = folder / 'predict.py'
        if path.exists() and not path.read_bytes().startswith(script_text().partition('\n')[0].encode()):
            raise UserError(f'{path} is another script, which is kept')
        if len(about['input']) != 4:
            raise UserError('the script does not support videos')
        more = describe_preparation(model)
        with tempfile.TemporaryDirectory() as trial:
            write_atomically(Path(trial, 'predict.py'), script_text())
            write_atomically(Path(trial, f'{name}.onnx'), onnx)
            write_json(about | more, Path(trial, f'{name}.json'))
            write_examples(Path(trial, 'images'), *about['input'][2:])
            check_script(model, Path(trial), name)
    except Exception as error:  # of a library, of any type, if a step differs from the script's
        print(f'predict.py is not written: {describe(error) or in_one_line(error)}')
        return {}
    write_atomically(path, script_text())
    return more


def script_text() -> str:
    """Return the script as one file: the module, preceded by the modules of this package that it imports."""
    return '\n'.join([f'"""{predict_exported.__doc__}"""', *_with_imports(predict_exported.__name__, set())])


def _with_imports(name: str, done: set[str]) -> Iterator[str]:
    """Yield the lines of a module after those of the modules of this package that it imports, each once."""
    done.add(name)
    lines = Path(find_spec(name).origin).read_text().splitlines()
    for node in ast.parse('\n'.join(lines)).body:
        if not isinstance(node, ast.ImportFrom):
            continue
        source = resolve_name(f'{"." * node.level}{node.module}', name.rpartition('.')[0])
        if source.startswith('vt.'):
            yield from _with_imports(source, done) if source not in done else ()
            for number in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                lines[number - 1] = ''
    yield from (f'\n# {name}', *lines)


def describe_preparation(model: Any) -> dict[str, Any]:
    """Return the steps of the test pipeline, padding and postprocessing; or raise a UserError."""
    preprocessor, steps = model.data_preprocessor, describe_steps(model.cfg)
    read = steps.pop('read', {})
    if 'shape' in steps:  # as vt.inference.inputs.Images for test sets in memory
        steps = dict(shape=dict(scale=steps.pop('shape')[:0:-1], interpolation='area')) | steps
    unknown = {*steps} - {'shape', 'resize_edge', 'resize', 'crop'}
    is_segmentor = 'decode_head' in model.cfg.model
    if unknown or (is_segmentor and model.test_cfg.mode != 'whole'):
        raise UserError(f'the script does not support {", ".join(unknown) or "sliding windows"}')
    inferencer: Any = inferencer_of(model)  # it sets missing colours
    padding = (preprocessor.test_cfg or {}) if is_segmentor else dict(size_divisor=preprocessor.pad_size_divisor)
    return dict(
        task='segmentation' if is_segmentor else 'classification',
        scores='sigmoid' if isinstance(getattr(model, 'head', None), MultiLabelClsHead) else 'softmax',
        threshold=model.decode_head.threshold if is_segmentor else None,
        palette=inferencer.model.dataset_meta['palette'] if is_segmentor else None,
        read=read,
        steps=[*steps.values()],
        pad_divisor=padding.get('size_divisor') or 1,
        pad_value=getattr(preprocessor, 'pad_val', 0) if is_segmentor else preprocessor.pad_value,
    )


def write_examples(folder: Path, height: int, width: int) -> None:
    """Write smooth random images of several sizes, formats, channels and names, some of them equal."""
    random, exif = np.random.default_rng(0), Image.Exif()
    exif[ORIENTATION] = TURNED
    for name, tall, wide, mode in EXAMPLES:
        size = max(1, round(wide * width)), max(1, round(tall * height))
        pixels = cv2.resize(random.integers(0, 256, (6, 7, 3), np.uint8), size, interpolation=cv2.INTER_CUBIC)
        image = Image.fromarray(pixels).convert(mode)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        image.save(folder / name)
        turned = image.convert('RGB').transpose(Image.Transpose.ROTATE_90)
        turned.save((folder / name).with_suffix('.tif'), exif=exif)


@torch.no_grad()
def check_script(model: Any, folder: Path, name: str) -> None:
    """Run the script in a folder on its images, and compare what it prints and writes with the model's own.

    Images whose input has another size than a fixed one must be skipped.

    Raises:
        UserError: inputs, files, predictions or masks differ.
    """
    spec = spec_from_file_location('predict', folder / 'predict.py')
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    about = json.loads((folder / f'{name}.json').read_text())
    inferencer = inferencer_of(model)
    files = find_files([str(folder / 'images')], EXTENSIONS)
    places, expected, masks = mask_paths(files, None), {}, {}
    for file in files:
        batch = pseudo_collate([inferencer.pipeline(file)])
        inputs, found = model.data_preprocessor(batch, False)['inputs'].numpy(), script.prepare(file, about)[0]
        if found.shape != inputs.shape or np.abs(found - inputs).max() > 1e-4 * np.abs(inputs).max():
            raise UserError(f'inputs of the script differ from those of the test pipeline for {Path(file).name}')
        if about['open_size'] or [*inputs.shape[1:]] == about['input'][1:]:
            (prediction,) = inferencer.forward(batch)
            rows = inferencer.describe(prediction)['predictions']
            expected[file] = {row['name']: row.get('score', row.get('share')) for row in rows}
            if about['task'] == 'segmentation':
                suffix, content = encode_mask(prediction.pred_sem_seg.data[0].numpy(), about['palette'], file)
                masks[places[file].with_suffix(suffix)] = content
    if not expected:
        raise UserError(f'no example becomes an input of the fixed size {about["input"][2:]}')
    printed, errors, written = StringIO(), StringIO(), folder / 'masks'
    with redirect_stdout(printed), redirect_stderr(errors):
        options = ['--masks', str(written)] if masks else []
        code = script.main([str(folder / f'{name}.onnx'), str(folder / 'images'), *options])
    rows = {row['file']: row['predictions'] for row in map(json.loads, printed.getvalue().splitlines())}
    if code != int(len(expected) < len(files)) or rows.keys() != expected.keys():
        raise UserError(f'the script predicts {len(rows)} of {len(expected)} images: {errors.getvalue()}')
    for file, own in expected.items():
        if any(abs(entry['score'] - own.get(entry['name'], 0)) > 1e-3 for entry in rows[file]):
            raise UserError('predictions of the script differ from those of the model')
    names = {path.relative_to(written) for path in written.rglob('*.*')}
    if names != {*masks} or not all(are_alike(BytesIO(content), written / path) for path, content in masks.items()):
        raise UserError('masks of the script differ from those of tools/predict.py')


def are_alike(mask: BytesIO, other: Path) -> bool:
    """Return whether two masks have the same size, mode and colours, and the same class in 99.9 % of the pixels."""
    with Image.open(mask) as one, Image.open(other) as two:
        same = (one.size, one.mode, one.getpalette()) == (two.size, two.mode, two.getpalette())
        return same and np.mean(np.asarray(one) == np.asarray(two)) > 0.999
