"""The script beside an exported model: written if its predictions equal those of the model."""

import ast
import json
import runpy
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from importlib.util import find_spec, resolve_name
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
from vt.engine.preparation import preparation_of
from vt.engine.reporting import describe, in_one_line
from vt.errors import UserError
from vt.files import write_atomically
from vt.image_bounds import EXTENSIONS
from vt.inference.image_files import encode_mask, find_files, mask_paths
from vt.inference.inputs import input_shape

# Name, height and width relative to the input, and mode of the images that the script is tried on.
EXAMPLES = (
    ('image.png', 1, 1, 'RGB'),
    ('image.tif', 1, 1, 'RGB'),
    ('transparent/image.png', 0.7, 0.7, 'LA'),
    ('grey.png', 1.3, 2.6, 'L'),
)


def write_script(model: Any, about: dict[str, Any], onnx: bytes, folder: Path) -> dict[str, Any]:
    """Write ``predict.py``, which needs no PyTorch, if what it writes equals what the model gives; else print why not.

    Returns:
        What the script reads besides ``about``: preprocessing and postprocessing.
    """
    try:
        path = folder / 'predict.py'
        if path.exists() and not path.read_bytes().startswith(script_text().partition('\n')[0].encode()):
            raise UserError(f'{path} is another script, which is kept')
        if len(about['input']) != 4:
            raise UserError('the script does not support videos')
        more = describe_preparation(model)
        with tempfile.TemporaryDirectory() as made:
            trial = Path(made)
            write_atomically(trial / 'predict.py', script_text())
            write_atomically(trial / 'model.onnx', onnx)
            write_atomically(trial / 'model.json', json.dumps(about | more))
            write_examples(trial / 'images', *about['input'][2:])
            check_script(model, trial)
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
    lines = Path(find_spec(name).origin).read_text(encoding='utf-8').splitlines()
    for node in ast.parse('\n'.join(lines)).body:
        if not isinstance(node, ast.ImportFrom):
            continue
        source = resolve_name(f'{"." * node.level}{node.module}', name.rpartition('.')[0])
        if source.startswith('vt.'):
            yield from _with_imports(source, done) if source not in done else ()
            for number in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                lines[number - 1] = ''
    yield from (f'\n# {name}', *lines)


def describe_inputs(model: Any, shape: torch.Size, open_size: bool) -> dict[str, Any]:
    """Describe the inputs ``(3, H, W)`` or ``(3, T, H, W)`` and the classes of an exported file."""
    numbers = {name: getattr(model.data_preprocessor, name, None) for name in ('mean', 'std')}  # also its own defaults
    return dict(
        input=['batch', *shape],
        open_size=open_size,
        channels='BGR' if preparation_of(model.cfg).takes_bgr else 'RGB',
        **{name: None if values is None else values.flatten().tolist() for name, values in numbers.items()},
        classes=model.dataset_meta.get('classes'),
    )


def describe_preparation(model: Any) -> dict[str, Any]:
    """Return the steps of the test pipeline, padding and postprocessing; or raise a UserError."""
    preprocessor, steps, in_memory = model.data_preprocessor, [], True
    for step in map(dict, preparation_of(model.cfg).steps):
        kind = step.pop('type').rpartition('.')[2]
        if kind == 'LoadImageFromFile' and step.get('imdecode_backend', 'cv2') == 'cv2':
            in_memory = False
        elif kind in ('Resize', 'ResizeEdge', 'CenterCrop'):
            steps.append(step)
        elif not kind.startswith('Pack'):
            raise UserError(f'the script does not support {kind} {step}')
    if in_memory:  # as vt.inference.inputs.Samples
        steps.insert(0, dict(scale=input_shape(model.cfg)[:0:-1], interpolation='area'))
    is_segmentor = 'decode_head' in model.cfg.model
    if is_segmentor and model.test_cfg.mode != 'whole':
        raise UserError('the script does not support sliding windows')
    inferencer: Any = inferencer_of(model)  # it sets missing colours
    padding = (preprocessor.test_cfg or {}) if is_segmentor else dict(size_divisor=preprocessor.pad_size_divisor)
    return dict(
        task='segmentation' if is_segmentor else 'classification',
        scores='sigmoid' if isinstance(getattr(model, 'head', None), MultiLabelClsHead) else 'softmax',
        threshold=model.decode_head.threshold if is_segmentor else None,
        palette=inferencer.model.dataset_meta['palette'] if is_segmentor else None,
        steps=steps,
        pad_divisor=padding.get('size_divisor') or 1,
        pad_value=getattr(preprocessor, 'pad_val', 0) if is_segmentor else preprocessor.pad_value,
    )


def write_examples(folder: Path, height: int, width: int) -> None:
    """Write smooth random images of several sizes, formats, channels and names, some of them equal."""
    random = np.random.default_rng(0)
    for name, tall, wide, mode in EXAMPLES:
        size = max(1, round(wide * width)), max(1, round(tall * height))
        pixels = cv2.resize(random.integers(0, 256, (6, 7, 3), np.uint8), size, interpolation=cv2.INTER_CUBIC)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).convert(mode).save(folder / name)


@torch.no_grad()
def check_script(model: Any, folder: Path) -> None:
    """Run the script in a folder on its images, and compare inputs, printed scores and written masks with the model's.

    Raises:
        UserError: they differ for a file, or no file becomes an input of the fixed size.
    """
    script = runpy.run_path(str(folder / 'predict.py'), run_name='predict')
    about = json.loads((folder / 'model.json').read_text(encoding='utf-8'))
    files = find_files([str(folder / 'images')], EXTENSIONS)
    paths, scores, masks, inferencer = mask_paths(files, None), {}, {}, inferencer_of(model)
    for file in files:
        batch = pseudo_collate([inferencer.pipeline(file)])
        inputs, found = model.data_preprocessor(batch, False)['inputs'].numpy(), script['prepare'](file, about)[0]
        if found.shape != inputs.shape or np.abs(found - inputs).max() > 1e-4 * np.abs(inputs).max():
            raise UserError(f'inputs of the script differ from those of the test pipeline for {files[file]}')
        if not about['open_size'] and [*inputs.shape[1:]] != about['input'][1:]:
            continue  # skipped by the script
        (own,) = inferencer.forward(batch)
        rows = inferencer.describe(own)['predictions']
        scores[file] = {row['name']: row['score'] if 'score' in row else row['share'] for row in rows}
        if about['task'] == 'segmentation':
            suffix, content = encode_mask(own.pred_sem_seg.data[0].numpy(), about['palette'], file)
            masks[paths[file].with_suffix(suffix)] = content
    if not scores:
        raise UserError(f'no example becomes an input of the fixed size {about["input"][2:]}')
    printed, errors, written = StringIO(), StringIO(), folder / 'masks'
    with redirect_stdout(printed), redirect_stderr(errors):
        options = ['--masks', str(written)] if masks else []
        script['main']([str(folder / 'model.onnx'), str(folder / 'images'), *options])
    rows = {row['file']: row['predictions'] for row in map(json.loads, printed.getvalue().splitlines())}
    if rows.keys() != scores.keys():
        raise UserError(f'the script predicts {len(rows)} of {len(scores)} images: {errors.getvalue()}')
    for file, own in scores.items():
        if any(abs(row['score'] - own.get(row['name'], 0)) > 1e-3 for row in rows[file]):
            raise UserError(f'predictions of the script differ from those of the model for {files[file]}')
    names = {path.relative_to(written) for path in written.rglob('*.*')}
    if names != {*masks} or not all(are_alike(written / path, content) for path, content in masks.items()):
        raise UserError('masks of the script differ from those of tools/predict.py')


def are_alike(mask: Path, expected: bytes) -> bool:
    """Return whether two masks have the same size, mode and colours, and the same class in 99.9 % of the pixels."""
    with Image.open(mask) as one, Image.open(BytesIO(expected)) as two:
        same = (one.size, one.mode, one.getpalette()) == (two.size, two.mode, two.getpalette())
        return same and np.mean(np.asarray(one) == np.asarray(two)) > 0.999
