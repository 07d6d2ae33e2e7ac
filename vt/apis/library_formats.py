"""Convert weights to the names and order of the same network in timm or torchvision.

The mapping is found by loading consecutive numbers, one for each value of the library's model, into ours.
"""

import json
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from mmengine.config import Config
from mmengine.model import BaseModel
from torch import Tensor, nn

from vt.checkpoints.files import write_atomically
from vt.checkpoints.formats.recognise import to_own_names
from vt.checkpoints.publishing import as_safetensors
from vt.checkpoints.reading import SUFFIX, content_digits
from vt.checkpoints.rules import COMPUTED
from vt.engine.checks.channels import preprocessor_of
from vt.errors import UserError
from vt.inference.inputs import input_shape, takes_bgr
from vt.untrusted_text import printable

from .folders import plain_steps
from .model_zoo import Source, get_model

TOLERANCE = 1e-4  # of the largest logit, in float64


def publish_as(library: str, name: str, config: Source, checkpoint: str | PathLike, out: Path) -> Path:
    """Write a classifier's weights for another library, after a comparison of the logits of both models.

    Args:
        library: ``'timm'`` or ``'torchvision'`` for a file that its model of this name loads strictly, or
            ``'huggingface'`` for a folder in timm's format, loaded by ``timm.create_model('local-dir:FOLDER',
            pretrained=True)``, or ``'hf-hub:OWNER/NAME'`` after an upload.
        name: name of the model in the library, such as ``'swin_tiny_patch4_window7_224'``; timm's name for the hub.
        config: config or name of our model.
        checkpoint: checkpoint of our model.
        out: path of the safetensors file, or of the folder.

    Returns:
        The path; a hash of the content is added to the name of a file.

    Raises:
        UserError: the library is not installed, has no such model, or its network differs from ours; or timm cannot
            prepare images as the test pipeline does.
    """
    if library != 'huggingface' and out.suffix != SUFFIX:
        raise UserError(f'{out}: the name of a published checkpoint ends with {SUFFIX}')
    model = get_model(config, str(checkpoint))
    theirs = _build(library, name, model)
    theirs.load_state_dict(translate(model, theirs, name))
    is_bgr = takes_bgr(model.cfg)
    if is_bgr:  # the libraries give their models RGB
        stem = next(part for part in theirs.modules() if isinstance(part, (nn.Conv2d, nn.Conv3d)))
        stem.weight.data = stem.weight.data.flip(1)
    content = as_safetensors(theirs.state_dict(), dict(format='pt', library=library, model=name))
    described = json.dumps(_describe(name, model, theirs), indent=1) if library == 'huggingface' else ''
    _compare(model.double(), theirs.double(), name, is_bgr)
    if library != 'huggingface':
        path = out.with_name(f'{out.stem}-{content_digits(content)}{SUFFIX}')
        write_atomically(path, content)
        return path
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / 'model.safetensors', content)
    write_atomically(out / 'config.json', described.encode())
    return out


def translate(model: BaseModel, theirs: nn.Module, name: str) -> dict[str, Tensor]:
    """Return the state dict of a library's model with the weights of ours.

    Raises:
        UserError: a tensor of one model has no counterpart in the other.
    """
    state, numbers, first = theirs.state_dict(), {}, 0
    for key, tensor in state.items():
        if not COMPUTED.search(key):
            numbers[key] = torch.arange(first, first + tensor.numel(), dtype=torch.float64).view(tensor.shape)
            first += tensor.numel()
    own = {key: tensor for key, tensor in model.state_dict().items() if not COMPUTED.search(key)}
    _, places, _ = to_own_names(model, numbers)
    fixed = dict(model.named_buffers()).keys() - {key for key in own if key.endswith(('running_mean', 'running_var'))}
    sizes = {key: [tensors[key].numel() for tensors in (own, places) if key in tensors] for key in {**own, **places}}
    wrong = sorted(key for key, found in sizes.items() if key not in fixed and found != found[:1] * 2)
    values = torch.full((first,), torch.nan, dtype=torch.float64)
    for key in own.keys() & places.keys() if not wrong else ():
        values[places[key].flatten().long()] = own[key].flatten().double()
    result = {key: values[number.flatten().long()].view(number.shape) for key, number in numbers.items()}
    wrong += [key for key, tensor in result.items() if tensor.isnan().any()]
    if wrong:
        what = f'the first of {len(wrong)} tensors without a counterpart of equal size is {printable(wrong[0], 200)}'
        raise UserError(f'{name} is another network than this model: {what}')
    return state | {key: tensor.to(state[key].dtype) for key, tensor in result.items()}


def _build(library: str, name: str, model: BaseModel) -> nn.Module:
    """Build the library's model with our numbers of classes and channels and our image size."""
    package = 'torchvision' if library == 'torchvision' else 'timm'
    try:
        module = import_module(package if package == 'timm' else 'torchvision.models')
    except ImportError as error:
        raise UserError(f'--format {library} needs {package}: pip install {package}') from error
    channels, *_, height, width = input_shape(model.cfg)
    classes = dict(num_classes=model.head.num_classes)
    try:
        with torch.random.fork_rng(devices=[]):
            if package == 'torchvision':
                return module.get_model(name, weights=None, **classes).eval()
            sizes = timm_size(module, name, (height, width))
            return module.create_model(name, pretrained=False, in_chans=channels, **classes, **sizes).eval()
    except Exception as error:  # of a library, of any type
        reason = printable(' '.join(str(error).split()), 160)
        raise UserError(f'{package} cannot build {printable(name, 80)} like this model: {reason}') from error


def timm_size(timm: Any, name: str, size: tuple[int, int]) -> dict[str, Any]:
    """Return the option of a timm model for another image size than its own, if it needs one."""
    cfg = timm.get_pretrained_cfg(name)
    own = tuple(cfg.input_size[-2:]) if cfg else size
    return {} if own == size or not (cfg and cfg.fixed_input_size) else dict(img_size=size)


@torch.no_grad()
def _compare(model: BaseModel, theirs: nn.Module, name: str, is_bgr: bool) -> None:
    images = torch.randn(2, *input_shape(model.cfg), generator=torch.Generator().manual_seed(0)).double()
    ours, other = model(images, mode='tensor'), theirs(images.flip(1) if is_bgr else images)
    ours = torch.stack(ours).mean(dim=0) if isinstance(ours, (list, tuple)) else ours  # of a distilled one
    difference = (ours - other).abs().max() / ours.abs().max().clamp(min=1e-12)
    if ours.shape != other.shape or not difference <= TOLERANCE:
        raise UserError(f'{name} gives other logits with these weights: they differ by {difference:.1e}')


def _describe_steps(cfg: Config, size: tuple[int, ...]) -> dict[str, Any]:
    """Return timm's settings for the test pipeline: the share of the crop, its kind, and the interpolation.

    Raises:
        UserError: timm has no settings for these steps.
    """
    steps = {step.pop('type').rpartition('.')[2]: step for step in plain_steps(cfg)}
    edge, resize, crop = (steps.get(kind, {}) for kind in ('ResizeEdge', 'Resize', 'CenterCrop'))
    others = steps.keys() - {'LoadImageFromFile', 'LoadBands', 'ResizeEdge', 'Resize', 'CenterCrop', 'PackInputs'}
    by_edge = edge and not resize and edge.get('edge', 'short') == 'short'
    if others or not (by_edge or (resize and not crop) or not (edge or resize or crop)) or resize.get('keep_ratio'):
        raise UserError(f'timm cannot prepare images as the test pipeline does ({", ".join(steps)}): use --format timm')
    sides = crop.get('crop_size', size)
    side = sides if isinstance(sides, int) else min(sides)
    how = dict(crop_pct=side / edge['scale'], crop_mode='center') if by_edge else dict(crop_pct=1.0, crop_mode='squash')
    return how | dict(interpolation=(edge or resize).get('interpolation', 'bilinear'))


def _describe(name: str, model: BaseModel, theirs: nn.Module) -> dict[str, Any]:
    """Return timm's config: the model and the preprocessing of its images."""
    shape, preprocessor = input_shape(model.cfg), preprocessor_of(model.cfg)
    given = {key: preprocessor.get(key) or [none] * shape[0] for key, none in (('mean', 0), ('std', 255))}
    scaled = {key: [value / 255 for value in values] for key, values in given.items()}
    if takes_bgr(model.cfg):
        scaled = {key: values[::-1] for key, values in scaled.items()}
    scaled |= _describe_steps(model.cfg, shape[-2:])
    own = {**theirs.pretrained_cfg, **scaled, 'input_size': shape, 'num_classes': model.head.num_classes}
    for key in ('url', 'hf_hub_id', 'file', 'source'):
        own.pop(key, None)
    described = dict(architecture=name, num_classes=model.head.num_classes, pretrained_cfg=own)
    return described | dict(model_args=dict(in_chans=shape[0], **timm_size(import_module('timm'), name, shape[-2:])))
