"""The script beside an exported model: written if its predictions equal those of the model."""

import ast
import json
import tempfile
from collections.abc import Iterable, Iterator
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from mmengine.dataset import pseudo_collate
from mmpretrain.models import MultiLabelClsHead
from PIL import Image

from vt.apis import predict_exported
from vt.apis.exporting import Run, run_onnx
from vt.apis.folders import plain_steps
from vt.apis.inferencers import inferencer_of
from vt.checkpoints.files import write_atomically
from vt.engine.errors import describe, in_one_line
from vt.errors import UserError
from vt.inference.inputs import input_shape, takes_bgr

# Name, height and width relative to the input, and mode of the images that the script is tried on.
EXAMPLES = (('colour', 1, 1, 'RGB'), ('transparent', 0.7, 0.7, 'LA'), ('grey', 1.3, 2.6, 'L'))


def write_script(model: Any, about: dict[str, Any], onnx: bytes, folder: Path) -> dict[str, Any]:
    """Write ``predict.py``, which needs no PyTorch, if its predictions equal the model's; else print why not.

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
        known = json.loads(json.dumps(about | more))
        with tempfile.TemporaryDirectory() as trial:
            check_script(model, known, run_onnx(onnx), write_examples(Path(trial), *about['input'][2:]))
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


def describe_inputs(model: Any, shape: torch.Size, open_size: bool) -> dict[str, Any]:
    """Describe the inputs ``(3, H, W)`` or ``(3, T, H, W)`` and the classes of an exported file."""
    numbers = {name: getattr(model.data_preprocessor, name, None) for name in ('mean', 'std')}
    return dict(
        input=['batch', *shape],
        open_size=open_size,
        channels='BGR' if takes_bgr(model.cfg) else 'RGB',
        **{name: None if values is None else values.flatten().tolist() for name, values in numbers.items()},
        classes=model.dataset_meta.get('classes'),
    )


def describe_preparation(model: Any) -> dict[str, Any]:
    """Return the steps of the test pipeline, padding and postprocessing; or raise a UserError."""
    preprocessor, steps, read = model.data_preprocessor, [], None
    for step in plain_steps(model.cfg):
        kind = step.pop('type').rpartition('.')[2]
        if kind == 'LoadImageFromFile':
            read = step
        elif kind in ('Resize', 'ResizeEdge', 'CenterCrop'):
            steps.append(step)
        elif not kind.startswith('Pack'):
            raise UserError(f'the script does not support {kind}')
    if read is None:  # as vt.inference.inputs.Images for test sets in memory
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
        read=read or {},
        steps=steps,
        pad_divisor=padding.get('size_divisor') or 1,
        pad_value=getattr(preprocessor, 'pad_val', 0) if is_segmentor else preprocessor.pad_value,
    )


def write_examples(folder: Path, height: int, width: int) -> Iterator[Path]:
    """Write smooth random images of several sizes and channels, and yield their paths."""
    random = np.random.default_rng(0)
    for name, tall, wide, mode in EXAMPLES:
        size = max(1, round(wide * width)), max(1, round(tall * height))
        pixels = cv2.resize(random.integers(0, 256, (6, 7, 3), np.uint8), size, interpolation=cv2.INTER_CUBIC)
        Image.fromarray(pixels).convert(mode).save(folder / f'{name}.png')
        yield folder / f'{name}.png'


@torch.no_grad()
def check_script(model: Any, about: dict[str, Any], run: Run, files: Iterable[Path]) -> None:
    """Compare inputs and predictions of the script with the model's own.

    Raises:
        UserError: they differ for a file, or no file becomes an input of the fixed size.
    """
    inferencer, compared = inferencer_of(model), 0
    for file in files:
        batch = pseudo_collate([inferencer.pipeline(file)])
        inputs, found = (
            model.data_preprocessor(batch, False)['inputs'].numpy(),
            predict_exported.prepare(file, about)[0],
        )
        if found.shape != inputs.shape or np.abs(found - inputs).max() > 1e-4 * np.abs(inputs).max():
            raise UserError(f'inputs of the script differ from those of the test pipeline for {file.name}')
        if about['open_size'] or [*inputs.shape[1:]] == about['input'][1:]:
            (own,) = inferencer.forward(batch)
            made = predict_exported.predict(lambda x: run(torch.from_numpy(x)), about, file)
            if about['task'] == 'segmentation':
                is_equal = np.mean(made == own.pred_sem_seg.data[0].numpy()) > 0.999
            else:
                is_equal = np.abs(made - own.pred_score.numpy()).max() < 1e-3
            if not is_equal:
                raise UserError(f'predictions of the script differ from those of the model for {file.name}')
            compared += 1
    if not compared:
        raise UserError(f'no example becomes an input of the fixed size {about["input"][2:]}')
