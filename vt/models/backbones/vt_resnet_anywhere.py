"""VT modules at any stages of a ResNet, in place of a stage or after it."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import torch
from mmcv.cnn import build_conv_layer, build_norm_layer
from mmcv.cnn.bricks import DropPath
from torch import nn

from vt.errors import UserError
from vt.registry import MODELS

from .map_scale import scale_stage
from .vt_resnet import NUM_MODULES, VTResNet, check_options
from .vt_stage import FIRST_TOKENIZER, LATER_TOKENIZER, MAP_RMS, PROJECTOR, RELATION, VTStage

LAYERS = ('layer1', 'layer2', 'layer3', 'layer4')  # ResNet's names for its stages 2 to 5
POSITIONS = (*LAYERS, *(f'after_{layer}' for layer in LAYERS))


@MODELS.register_module()
class VTResNetAnywhere(VTResNet):
    """A VT-ResNet with VT modules at any stages.

    In place of an earlier stage, a 1x1 convolution and a normalisation, like those of ResNet's shortcuts, first bring
    the map to the width and stride of that stage. After a stage, the modules follow its blocks, as one more block. In
    ``layer4``, after other modules, the map is normalised first. The stage below the modules is always rescaled as in
    :class:`VTResNet`.

    Args:
        depth, others: as in :class:`VTResNet`.
        positions: positions of the modules: ``'layer1'`` to ``'layer4'``, in place of that stage, or
            ``'after_layer1'`` to ``'after_layer4'``, after it.
        num_modules: number of modules at each position.
        out_type: ``'tokens'`` requires that modules come last; ``'featmap'`` also works after a convolutional stage.

    Raises:
        UserError: as in :class:`VTResNet`; an unknown position; ``'tokens'`` if a convolutional stage comes last.
    """

    def __init__(
        self,
        depth: int,
        positions: Sequence[str] = ('layer4',),
        num_tokens: int = 16,
        token_channels: int = 1024,
        groups: int = 1,
        tokenizer: dict = FIRST_TOKENIZER,
        later_tokenizer: dict = LATER_TOKENIZER,
        relation: dict | None = RELATION,
        projector: dict | None = PROJECTOR,
        out_type: str = 'tokens',
        out_indices: Sequence[int] = (3,),
        num_modules: int | None = None,
        frozen_stages: int = -1,
        drop_path_rate: float = 0.0,
        with_cp: bool = False,
        strides: Sequence[int] = (1, 2, 2, 2),
        dilations: Sequence[int] = (1, 1, 1, 1),
        **resnet,
    ) -> None:
        check_options('VTResNetAnywhere', depth, num_modules, out_type, out_indices)
        _check_positions(depth, positions, out_type)
        out_indices = (3,) if out_type == 'tokens' else tuple(sorted(set(out_indices)))
        number = 3 if 'layer4' in positions else 4  # of convolutional stages
        stages = dict(num_stages=number, strides=(*strides, 2)[:number], dilations=(*dilations, 1)[:number])
        stages |= dict(out_indices=sorted({*out_indices, number - 1} - {number}))
        super(VTResNet, self).__init__(
            depth, frozen_stages=min(frozen_stages, number), with_cp=with_cp, **stages, **resnet
        )
        self.out_type, self.token_channels, self.out_indices = out_type, token_channels, out_indices
        self.vt_stages = {}
        options = dict(num_tokens=num_tokens, token_channels=token_channels, groups=groups, with_cp=with_cp)
        options |= dict(tokenizer=tokenizer, later_tokenizer=later_tokenizer, relation=relation, projector=projector)
        self._add_modules(positions, num_modules or NUM_MODULES[depth], drop_path_rate, options, set(out_indices))
        self.frozen_stages = frozen_stages
        self._freeze_stages()
        self._start_untrained()

    def _add_modules(
        self, positions: Sequence[str], num_modules: int, drop_path_rate: float, options: dict, read: set[int]
    ) -> None:
        """Put a stage of modules at each position, in the order of the network."""
        widths = [getattr(self, layer)[-1].out_channels for layer in self.res_layers]
        in_channels, numbers = self.stem_channels, []  # of blocks or modules, up to each position
        ordered = sorted(positions, key=lambda position: (position[-6:], position.startswith('after')))
        last = ordered[-1] if ordered and ordered[-1].endswith('layer4') else None
        for layer, blocks in zip(LAYERS, (*self.stage_blocks, 0)):
            own = [position for position in ordered if position.endswith(layer)]
            numbers += [(layer, blocks)] * (layer not in own)  # blocks of ResNet
            numbers += [(position, 0 if position == 'layer4' and 3 not in read else num_modules) for position in own]
        rates = torch.linspace(0, drop_path_rate, sum(number for _, number in numbers)).tolist()
        for position, number in numbers:
            own_rates, rates = rates[:number], rates[number:]
            if position not in positions:
                for block, rate in zip(getattr(self, position, ()), own_rates):
                    block.drop_path = DropPath(rate) if rate else nn.Identity()
                continue
            index = int(position[-1]) - 1
            channels = widths[min(index, len(widths) - 1)]
            stage = VTStage(channels, own_rates, out_type=self.out_type if position == last else 'featmap', **options)
            self._insert(position, stage, widths[index - 1] if index else in_channels, channels)

    def _insert(self, position: str, stage: VTStage, in_channels: int, channels: int) -> None:
        layer = position[-6:]
        if position == 'layer4':
            follows = {'layer3', 'after_layer3'} & set(self.vt_stages)  # other modules, which increase the map's scale
            self.layer4 = nn.Sequential(build_norm_layer(self.norm_cfg, channels)[1], stage) if follows else stage
            self.res_layers.append(layer)
            self.vt_stages[position] = layer
        elif position.startswith('after'):
            blocks = getattr(self, layer)
            blocks.append(stage)
            self.vt_stages[position] = f'{layer}.{len(blocks) - 1}'
        else:
            stride = self.strides[int(layer[-1]) - 1]
            convolve = build_conv_layer(self.conv_cfg, in_channels, channels, 1, stride=stride, bias=False)
            setattr(self, layer, nn.Sequential(convolve, build_norm_layer(self.norm_cfg, channels)[1], stage))
            self.vt_stages[position] = layer

    def start(self, position: str) -> str:
        layer = getattr(self, position[-6:])
        if position in LAYERS and isinstance(layer, nn.Sequential):
            nn.init.constant_(layer[-2].weight, MAP_RMS)  # the normalisation before the modules
            return f'its input is normalised to {MAP_RMS:.2f} (root mean square)'
        blocks = list(self.layer3) if position == 'layer4' else list(layer)[:-1]
        return scale_stage(blocks, MAP_RMS, self._readers(position))

    def _readers(self, position: str) -> Iterator[nn.Module]:
        """Yield the normalisations of the next stage whose convolutions read the output of modules after a stage."""
        following = dict(pairwise(LAYERS)).get(position[-6:])
        if following in self.res_layers and following not in self.vt_stages:
            block = getattr(self, following)[0]
            yield block.norm1
            if block.downsample is not None:
                yield block.downsample[-1]

    def get_layer_depth(self, param_name: str, prefix: str = '') -> tuple[int, int]:
        """As in :class:`VTResNet`; layers before the modules of a position belong to the layer of the first module."""
        layers = [name for layer in self.res_layers for name in _layers_of(layer, getattr(self, layer))]
        num_layers = len(layers) + 2
        if not param_name.startswith(prefix):
            return num_layers - 1, num_layers
        name = param_name.removeprefix(prefix)
        own = [index for index, layer in enumerate(layers, 1) if name.startswith(f'{layer}.')]
        stage = [index for index, layer in enumerate(layers, 1) if layer.split('.')[0] == name.split('.')[0]]
        return next(iter(own or stage), 0), num_layers


def _layers_of(name: str, stage: nn.Module) -> list[str]:
    """Names of a stage's blocks and modules, in order."""
    names = []
    for index, part in enumerate(stage):
        if isinstance(part, VTStage):
            names += _layers_of(f'{name}.{index}', part)
        elif any(part.children()):  # skips the convolution and normalisation before modules
            names.append(f'{name}.{index}')
    return names


def _check_positions(depth: int, positions: Sequence[str], out_type: str) -> None:
    unknown = [position for position in positions if position not in POSITIONS]
    if unknown or isinstance(positions, str) or len(set(positions)) < len(positions):
        known = ', '.join(POSITIONS)
        raise UserError(f'VTResNetAnywhere: positions={positions!r} must be a list of distinct names from {known}')
    if 'after_layer1' in positions and depth in (18, 34):
        raise UserError(
            f'VTResNetAnywhere: the first stage of depth {depth} has no shortcut to rescale: use '
            "'layer2' instead of 'after_layer1'"
        )
    for layer in LAYERS:
        if {layer, f'after_{layer}'} <= set(positions):
            raise UserError(
                f'VTResNetAnywhere: positions={positions!r} has both {layer} and after_{layer}: use one of them, and '
                'set num_modules for more modules'
            )
    if out_type == 'tokens' and not {'layer4', 'after_layer4'} & set(positions):
        raise UserError(
            f"VTResNetAnywhere: out_type='tokens' needs modules in or after layer4, positions={tuple(positions)}; set "
            "out_type='featmap' and a neck for maps, such as GlobalAveragePooling"
        )
