"""ResNet weights for the convolutional stages, in torchvision's or MMPretrain's format."""

from mmengine.runner.checkpoint import CheckpointLoader
from torch import Tensor, nn

from vt.checkpoints.loading import state_of


def load_resnet_stages(
    backbone: nn.Module, checkpoint: str, prefix: str | None = None, map_location: str = 'cpu'
) -> None:
    """Load what a checkpoint holds for ``backbone``: all of its stem and stages, and its VT modules if they are there.

    torchvision's files hold plain names; MMPretrain's hold them below ``backbone.``. A ResNet's own last stage and
    classifier are passed over.

    Args:
        backbone: a VT-ResNet.
        checkpoint: path or address of the file.
        prefix: prefix of the backbone's names; found by itself if None.
        map_location: device to load to.

    Raises:
        ValueError: the file lacks a tensor of the convolutional stages or holds one of another shape.
    """
    loaded = CheckpointLoader.load_checkpoint(checkpoint, map_location)
    state = backbone_state(state_of(loaded, checkpoint), prefix)
    own = backbone.state_dict()
    missing = [name for name in own if name not in state and not name.startswith('layer4.')]
    missing = [name for name in missing if not name.endswith('num_batches_tracked')]  # absent from old files
    if missing:
        raise ValueError(
            f'{checkpoint} holds no {missing[0]} and {len(missing) - 1} more tensors of the ResNet-{backbone.depth} '
            'stages: give a ResNet of the same depth, and a prefix where its names have another one than "backbone."'
        )
    matching = {name: state[name] for name in own if name in state}
    for name, tensor in matching.items():
        if tensor.shape != own[name].shape:
            raise ValueError(f'{checkpoint}: {name} is {tuple(tensor.shape)}, the model needs {tuple(own[name].shape)}')
    backbone.load_state_dict(matching, strict=False)


def backbone_state(state: dict[str, Tensor], prefix: str | None) -> dict[str, Tensor]:
    """The backbone's tensors by plain name."""
    if prefix is None:
        prefix = 'backbone.' if any(name.startswith('backbone.') for name in state) else ''
    prefix = prefix if not prefix or prefix.endswith('.') else f'{prefix}.'
    return {name.removeprefix(prefix): tensor for name, tensor in state.items() if name.startswith(prefix)}
