"""Convert weights to the names and order of the same network in timm.

The mapping is found by loading consecutive numbers, one for each value of timm's model, into ours.
"""

from pathlib import Path
from typing import Any

import torch
from mmengine.model import BaseModel
from torch import Tensor, nn

from vt.checkpoints.formats.recognise import to_own_names
from vt.checkpoints.publish import write_published
from vt.checkpoints.weights import COMPUTED
from vt.errors import UserError
from vt.inference.inputs import Samples
from vt.untrusted_text import printable

TOLERANCE = 1e-4  # of the largest logit, in float64


def publish_for_timm(name: str, model: BaseModel, out: Path) -> Path:
    """Write a classifier's weights for timm, after a comparison of the logits of both models.

    Args:
        name: name of the model in timm, such as ``'swin_tiny_patch4_window7_224'``, which loads the file strictly.
        model: our model, as of :func:`vt.apis.get_model`.
        out: path of the safetensors file.

    Returns:
        The path, with a hash of the content in the name.

    Raises:
        UserError: timm is not installed, has no such model, or its network differs from ours.
    """
    samples = Samples(model.cfg)
    theirs = _build(name, model, samples.input_shape)
    theirs.load_state_dict(translate(model, theirs, name))
    if samples.prepared.takes_bgr:  # timm gives its models RGB
        stem = next(part for part in theirs.modules() if isinstance(part, (nn.Conv2d, nn.Conv3d)))
        stem.weight.data = stem.weight.data.flip(1)
    _compare(model.double(), theirs.double(), name, samples)
    return write_published(out, theirs.float().state_dict(), dict(library='timm', model=name))


def translate(model: BaseModel, theirs: nn.Module, name: str) -> dict[str, Tensor]:
    """Return the state dict of timm's model with the weights of ours.

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
        raise UserError(f'{name} has another architecture than this model: {what}')
    return state | {key: tensor.to(state[key].dtype) for key, tensor in result.items()}


def _build(name: str, model: Any, shape: tuple[int, ...]) -> nn.Module:
    """Build timm's model with our numbers of classes and channels and our image size."""
    try:
        import timm
    except ImportError as error:
        raise UserError('--format timm requires timm: pip install timm') from error
    channels, *_, height, width = shape
    options: dict[str, Any] = dict(num_classes=model.head.num_classes, in_chans=channels)
    try:
        known = timm.get_pretrained_cfg(name)
        if known and known.fixed_input_size and known.input_size[-2:] != (height, width):
            options['img_size'] = (height, width)
        with torch.random.fork_rng(devices=[]):
            return timm.create_model(name, pretrained=False, **options).eval()
    except Exception as error:  # of timm, of any type
        reason = printable(' '.join(str(error).split()), 160)
        raise UserError(f'timm cannot build {printable(name, 80)} like this model: {reason}') from error


@torch.no_grad()
def _compare(model: BaseModel, theirs: nn.Module, name: str, samples: Samples) -> None:
    images = torch.randn(2, *samples.input_shape, generator=torch.Generator().manual_seed(0)).double()
    ours, other = model(images, mode='tensor'), theirs(images.flip(1) if samples.prepared.takes_bgr else images)
    ours = torch.stack(ours).mean(dim=0) if isinstance(ours, (list, tuple)) else ours  # of a distilled one
    difference = (ours - other).abs().max() / ours.abs().max().clamp(min=1e-12)
    if ours.shape != other.shape or not difference <= TOLERANCE:
        raise UserError(f'{name} in timm gives other logits with these weights: they differ by {difference:.1e}')
