"""The script beside an exported model: written if its predictions equal those of the model."""

import re
import tempfile
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from mmengine.dataset import pseudo_collate
from mmpretrain.models import MultiLabelClsHead

from vt.apis import predict_exported
from vt.apis.exporting import Forward
from vt.apis.inferencers import inferencer_of
from vt.engine.config_parts import preparation_of
from vt.engine.reporting import describe, in_one_line
from vt.errors import UserError
from vt.files import PACKAGE, write_atomically

# Modules that the script consists of, each behind those that it imports.
IMPORTED = ('errors', 'untrusted_text', 'files', 'paths', 'image_bounds', 'inference/image_files')


def write_script(model: Any, about: dict[str, Any], run: Forward, folder: Path) -> dict[str, Any]:
    """Write ``predict.py``, which needs no PyTorch, if it predicts what the model does; else print why not.

    Return what the script reads besides ``about``: preprocessing and postprocessing.
    """
    path, text = folder / 'predict.py', script_text()
    try:
        if path.exists() and not path.read_bytes().startswith(text.partition('\n')[0].encode()):
            raise UserError(f'{path} is another script, which is kept')
        if len(about['input']) != 4:
            raise UserError('the script does not support videos')
        inferencer = inferencer_of(model)  # it sets missing colours
        more = describe_preparation(inferencer)
        check_predictions(inferencer, about | more, run)
    except Exception as error:  # of a library, of any type, if a step differs from the script's
        print(f'predict.py is not written: {describe(error) or in_one_line(error)}')
        return {}
    write_atomically(path, text)
    return more


@torch.no_grad()
def check_predictions(inferencer: Any, about: dict[str, Any], run: Forward) -> None:
    """Raise a UserError if the script's input or prediction for an image of the input's size is not the model's."""
    pixels = np.random.default_rng(0).integers(0, 256, (6, 7, 3), np.uint8)
    pixels = cv2.resize(pixels, about['input'][:1:-1], interpolation=cv2.INTER_CUBIC)
    with tempfile.TemporaryDirectory() as folder:
        file = f'{folder}/image.png'
        write_atomically(file, cv2.imencode('.png', pixels)[1].tobytes())
        batch, found = pseudo_collate([inferencer.pipeline(file)]), predict_exported.prepare(file, about)[0]
        inputs = inferencer.model.data_preprocessor(batch, False)['inputs'].numpy()
        if found.shape != inputs.shape or np.abs(found - inputs).max() > 1e-4 * np.abs(inputs).max():
            raise UserError('inputs of the script differ from those of the test pipeline')
        found = predict_exported.predict(lambda x: run(torch.from_numpy(x)), about, file)
    (own,) = inferencer.forward(batch)
    if about['task'] == 'segmentation':
        differs = np.mean(found != own.pred_sem_seg.data[0].numpy()) > 1e-3
    else:
        differs = np.abs(found - own.pred_score.numpy()).max() > 1e-3 * found.max()
    if differs:
        raise UserError('predictions of the script differ from those of the model')


def script_text() -> str:
    """Return the script as one file: the module, preceded by the modules of this package that it imports."""
    texts = [(PACKAGE / f'{name}.py').read_text(encoding='utf-8') for name in (*IMPORTED, 'apis/predict_exported')]
    own = re.compile(r'^from (vt|\.).* import .+\n', re.MULTILINE)
    return '\n'.join([f'"""{predict_exported.__doc__}"""', *(own.sub('', text) for text in texts)])


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


def describe_preparation(inferencer: Any) -> dict[str, Any]:
    """Return the steps of the test pipeline, padding and postprocessing; or raise a UserError."""
    model, samples, steps = inferencer.model, inferencer.pipeline, []
    if samples.shape:  # of a data set in memory
        steps.append(dict(scale=samples.shape[:0:-1], interpolation='area'))
    for step in map(dict, samples.prepared.steps):
        kind = step.pop('type').rpartition('.')[2]
        if kind in ('Resize', 'ResizeEdge', 'CenterCrop'):
            steps.append(step)
        elif not (
            kind.startswith('Pack') or (kind, step.get('imdecode_backend', 'cv2')) == ('LoadImageFromFile', 'cv2')
        ):
            raise UserError(f'the script does not support {kind} {step}')
    preprocessor, is_segmentor = model.data_preprocessor, inferencer.predicts_maps
    if is_segmentor and model.test_cfg.mode != 'whole':
        raise UserError('the script does not support sliding windows')
    padding = (preprocessor.test_cfg or {}) if is_segmentor else dict(size_divisor=preprocessor.pad_size_divisor)
    return dict(
        task='segmentation' if is_segmentor else 'classification',
        scores='sigmoid' if isinstance(getattr(model, 'head', None), MultiLabelClsHead) else 'softmax',
        threshold=model.decode_head.threshold if is_segmentor else None,
        palette=model.dataset_meta['palette'] if is_segmentor else None,
        steps=steps,
        pad_divisor=padding.get('size_divisor') or 1,
        pad_value=getattr(preprocessor, 'pad_val', 0) if is_segmentor else preprocessor.pad_value,
    )
