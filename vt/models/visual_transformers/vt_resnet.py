"""VT-ResNet: a ResNet with Visual Transformer modules, in place of its last stage (paper, section 4.1) or elsewhere.

Letters: N batch, L tokens, C_T token channels, C_i, H_i and W_i channels and size of a stage's map.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import torch
from mmcv.cnn import build_conv_layer, build_norm_layer
from mmcv.cnn.bricks import DropPath
from mmpretrain.models.backbones import ResNet, ResNet_CIFAR
from mmpretrain.models.backbones.resnet import ResLayer
from torch import Tensor, nn

from vt.checkpoints.weights import load_init_cfg
from vt.errors import UserError
from vt.models.checks import require_positive
from vt.models.recomputation import recompute
from vt.models.staged_backbone import StagedBackbone
from vt.registry import MODELS

from .map_scale import scale_stage
from .vt_stage import MAP_RMS, HasVTStages, VTStage, require_out_type

# Number of modules that replace stage 5, by depth (paper, section 4.1). Those of depth 50 and 101 have the FLOPs and
# parameters of the paper's tables with groups=2, which are not in its equations.
NUM_MODULES = {18: 2, 34: 3, 50: 3, 101: 3}
LAYERS = ('layer1', 'layer2', 'layer3', 'layer4')  # ResNet's names for its stages 2 to 5
POSITIONS = (*LAYERS, *(f'after_{layer}' for layer in LAYERS))
SMALLEST_MAP = 2  # pixels on a side of stage 4's map; in a map of one pixel all tokens are equal


class ResNetStage(ResLayer):
    """MMPretrain's stage; ``with_cp`` recomputes its blocks without counting their batches twice."""

    def __init__(self, *args, with_cp: bool = False, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.with_cp = with_cp

    def forward(self, input: Tensor) -> Tensor:
        """Map of the previous stage to that of this one."""
        x = input
        for part in self:
            own = self.with_cp and x.requires_grad and not isinstance(part, VTStage)  # which recomputes its modules
            x = recompute(part, x) if own else part(x)
        return x


@MODELS.register_module(name=['VTResNet', 'VTResNetAnywhere'])  # the second is in earlier configs and records
class VTResNet(HasVTStages, StagedBackbone, ResNet):
    """MMPretrain's ResNet up to stage 4 of the paper, then VT modules on its map (stride 16), or modules elsewhere.

    The modules are ``layer4``, the name of ResNet's last stage, so ``frozen_stages`` counts as in ResNet. In place of
    an earlier stage, a 1x1 convolution and a normalisation, like those of ResNet's shortcuts, first bring the map to
    the width and stride of that stage. After a stage, the modules follow its blocks, as one more block. In ``layer4``,
    after other modules, the map is normalised first.

    The paper gives no initialisation. Convolutional stages start like MMPretrain's ResNet or from a ResNet's weights;
    the VT parts as their docstrings say. The token attention is cubic in the scale of the map, and training diverges at
    that of a ResNet's map, so the output of the stage below modules is rescaled to a root mean square of 0.18, a
    quarter of that of an untrained stage 4. The attention of new modules is then not saturated, at all four depths.

    Args:
        depth: 18, 34, 50 or 101.
        out_type: ``'tokens'`` for classifiers, if modules come last, or ``'featmap'`` for dense prediction. With
            ``'tokens'`` the last module has no projector, because nothing reads its map.
        out_indices: for ``'featmap'``, indices of the returned maps: 0 to 3 for ``layer1`` to ``layer4``. Without 3 no
            module is built in place of ``layer4``.
        num_modules: number of modules at each position; 2 for depth 18 and 3 for the others by default.
        frozen_stages: -1 trains everything, 0 freezes the stem, 1 to 4 also the stages up to it with their modules.
        drop_path_rate: stochastic depth rate of the last module; rates grow linearly from 0 over blocks and modules.
        with_cp: recompute blocks and modules in the backward pass to save memory.
        strides, dilations: of stages 2 to 5, as in ResNet; in ``layer4`` modules have none.
        positions: positions of the modules: ``'layer1'`` to ``'layer4'``, in place of that stage, or
            ``'after_layer1'`` to ``'after_layer4'``, after it.
        init_cfg: as in mmengine; ``Pretrained`` takes a checkpoint of a ResNet, for its stages, or of a VT-ResNet.
        num_tokens: L, number of visual tokens.
        token_channels: C_T, channels of a token.
        groups: channel groups of every token-side matrix; the config of a part overrides it.
        **options: ``tokenizer`` and ``later_tokenizer`` (of the first and of later modules), ``relation`` and
            ``projector``, configs of parts; and other options of :class:`mmpretrain.models.ResNet`, such as ``style``,
            ``norm_cfg``, ``deep_stem``.

    Raises:
        UserError: an unknown output type, frozen stage or position; sizes that are not divisible; in the forward pass,
            an image smaller than 32x32.
    """

    stem_stride = 4

    def __init__(
        self,
        depth: int,
        out_type: str = 'tokens',
        out_indices: Sequence[int] = (3,),
        num_modules: int | None = None,
        frozen_stages: int = -1,
        drop_path_rate: float = 0.0,
        with_cp: bool = False,
        strides: Sequence[int] = (1, 2, 2, 2),
        dilations: Sequence[int] = (1, 1, 1, 1),
        positions: Sequence[str] = ('layer4',),
        *,
        num_tokens: int = 16,
        token_channels: int = 1024,
        groups: int = 1,
        **options,
    ) -> None:
        require_out_type(type(self).__name__, out_type)
        check_positions(type(self).__name__, positions)
        out_indices = (3,) if out_type == 'tokens' else tuple(sorted(set(out_indices)))
        num_stages = 3 if 'layer4' in positions else 4  # of convolutions
        stages: dict[str, Any] = dict(num_stages=num_stages, strides=(*strides, 2)[:num_stages])
        stages |= dict(dilations=(*dilations, 1)[:num_stages])
        # ResNet checks the indices against its own stages; the last one stands for that of the modules.
        stages |= dict(out_indices=sorted({*out_indices, num_stages - 1} - {num_stages}))
        tokens = dict(num_tokens=num_tokens, token_channels=token_channels, groups=groups)
        super().__init__(depth=depth, with_cp=with_cp, **tokens, **stages, **options)
        self.out_type, self.out_indices = out_type, out_indices
        self.vt_stages = {}  # position of each stage of modules: its module name
        self._add_modules(positions, NUM_MODULES[depth] if num_modules is None else num_modules, drop_path_rate)
        self.freeze(frozen_stages)
        self._start_untrained()

    def _add_modules(self, positions: Sequence[str], num_modules: int, drop_path_rate: float) -> None:
        """Put a stage of modules at each position, in the order of the network."""
        require_positive(self, num_modules=num_modules)
        widths = [getattr(self, layer)[-1].out_channels for layer in self.res_layers]
        in_channels = self.stem_channels
        ordered = sorted(positions, key=lambda position: (layer_of(position), position.startswith('after')))
        last = ordered[-1] if ordered and layer_of(ordered[-1]) == 'layer4' else None
        counts = []  # of blocks or modules, by their positions
        for layer, blocks in zip(LAYERS, (*self.stage_blocks, 0)):
            own = [position for position in ordered if layer_of(position) == layer]
            if layer not in own:
                counts.append((layer, blocks))
            for position in own:
                is_unread = position == 'layer4' and 3 not in self.out_indices
                counts.append((position, 0 if is_unread else num_modules))
        rates = torch.linspace(0, drop_path_rate, sum(number for _, number in counts)).tolist()
        for position, number in counts:
            own_rates, rates = rates[:number], rates[number:]
            if position not in positions:
                for block, rate in zip(getattr(self, position, ()), own_rates):
                    block.drop_path = DropPath(rate) if rate else nn.Identity()
                continue
            index = LAYERS.index(layer_of(position))
            channels = widths[min(index, len(widths) - 1)]
            out_type = self.out_type if position == last else 'featmap'
            stage = self.build_stage(channels, own_rates, out_type, self.with_cp)
            self._insert(position, stage, widths[index - 1] if index else in_channels, channels)

    def _insert(self, position: str, stage: VTStage, in_channels: int, channels: int) -> None:
        layer = layer_of(position)
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
            stride = self.strides[LAYERS.index(layer)]
            convolve = build_conv_layer(self.conv_cfg, in_channels, channels, 1, stride=stride, bias=False)
            setattr(self, layer, nn.Sequential(convolve, build_norm_layer(self.norm_cfg, channels)[1], stage))
            self.vt_stages[position] = layer

    def _start_untrained(self) -> None:
        """Rescale the maps for training without :meth:`init_weights`, which draws other weights and rescales again."""
        for position in self._new_modules():
            self.start(position)
        for norm in self.modules():
            if reset := getattr(norm, 'reset_running_stats', None):
                reset()

    def make_res_layer(self, **kwargs) -> ResNetStage:
        """Build a stage of blocks."""
        return ResNetStage(**kwargs)

    loads_itself = True  # the file in init_cfg, in init_weights

    def init_weights(self) -> None:
        """Initialise or load the convolutional stages; VT parts are initialised when they are constructed."""
        pretrained = isinstance(self.init_cfg, dict) and self.init_cfg['type'] == 'Pretrained'
        loaded = load_init_cfg(self, self.init_cfg) if pretrained else super().init_weights() or set()
        self.is_init = True
        for position in self._new_modules(loaded):
            self.start(position)

    def _new_modules(self, loaded: Iterable[str] = ()) -> list[str]:
        """Return the positions of modules that have no parameter among the ``loaded`` ones."""
        stages = [(position, name) for position, name in self.vt_stages.items() if len(self.get_submodule(name))]
        return [position for position, name in stages if not any(key.startswith(f'{name}.') for key in loaded)]

    @property
    def new_by_design(self) -> tuple[str, ...]:
        """Names of the parts that the checkpoint of a ResNet does not have."""
        return tuple(self.vt_stages.values())

    def start(self, position: str) -> None:
        """Rescale the map below new modules to the root mean square at which they start."""
        layer = getattr(self, layer_of(position))
        if position in LAYERS and isinstance(layer, nn.Sequential):
            nn.init.constant_(layer[-2].weight, MAP_RMS)  # the normalisation before the modules
            return
        blocks = list(self.layer3) if position == 'layer4' else list(layer)[:-1]
        scale_stage(blocks, MAP_RMS, self._readers(position))

    def _readers(self, position: str) -> Iterator[nn.Module]:
        """Yield the normalisations of the next stage whose convolutions read the output of modules after a stage."""
        following = dict(pairwise(LAYERS)).get(layer_of(position))
        if following in self.res_layers and following not in self.vt_stages:
            block = getattr(self, following)[0]
            yield block.norm1
            if block.downsample is not None:
                yield block.downsample[-1]

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Compute tokens or maps.

        Args:
            x: images, ``(N, 3, height, width)``, at least 32x32 pixels with the default strides.

        Returns:
            A tuple: for ``'tokens'`` the tokens of the last module, ``(N, L, C_T)``; for ``'featmap'`` the maps of
            ``out_indices``, ``(N, C_i, H_i, W_i)`` at strides 4, 8, 16 and, of modules in ``layer4``, 16.

        Raises:
            UserError: the images are too small.
        """
        smallest = SMALLEST_MAP * self.stem_stride * math.prod(self.strides[:3])
        if min(x.shape[-2:]) < smallest:
            size = f'{x.shape[-2]}x{x.shape[-1]}'
            least = f'at least {smallest}x{smallest} are required: set image_size, or add a Resize to the pipeline'
            raise UserError(f'VTResNet: an image of {size} pixels is too small for the stem and stages; {least}')
        return super().forward(x)

    def layer_starts(self) -> dict[str, int]:
        """Blocks and modules, after the stem; what is before the modules of a position belongs to the first of them."""
        layers = {'': 0}
        for layer in self.res_layers:
            own, first = layers_of(layer, getattr(self, layer)), max(layers.values()) + 1
            layers |= {f'{name}.': first + index for index, name in enumerate(own)}
            if own:
                layers[f'{layer}.'] = first
        return layers

    def stage_parts(self) -> list[tuple[nn.Module, ...]]:
        stem = (self.stem,) if self.deep_stem else (self.conv1, self.norm1)
        return [stem, *((getattr(self, layer),) for layer in self.res_layers)]


@MODELS.register_module()
class VTResNetCIFAR(VTResNet, ResNet_CIFAR):
    """:class:`VTResNet` for small images, with the stem of :class:`mmpretrain.models.ResNet_CIFAR`.

    The stem is one 3x3 convolution without stride or pooling.

    Args:
        depth: 18, 34, 50 or 101.
        *args, **kwargs: other options of :class:`VTResNet`, such as out_type, num_modules, num_tokens, token_channels;
            not ``deep_stem``.
    """

    stem_stride = 1


def check_positions(name: str, positions: Sequence[str]) -> None:
    """Raise ``UserError`` unless positions are known and distinct."""
    unknown = [position for position in positions if position not in POSITIONS]
    if unknown or isinstance(positions, str) or len(set(positions)) < len(positions):
        known = ', '.join(POSITIONS)
        raise UserError(f'{name}: positions={positions!r} must be a list of distinct names from {known}')


def layer_of(position: str) -> str:
    """Return ResNet's layer of a position: ``'after_layer3'`` and ``'layer3'`` give ``'layer3'``."""
    return position.removeprefix('after_')


def layers_of(name: str, stage: nn.Module) -> list[str]:
    """Names of a stage's blocks and modules, in order."""
    names = []
    for index, part in enumerate(stage):
        if isinstance(part, VTStage):
            names += layers_of(f'{name}.{index}', part)
        elif any(part.children()):  # skips the convolution and normalisation before modules
            names.append(f'{name}.{index}')
    return names
