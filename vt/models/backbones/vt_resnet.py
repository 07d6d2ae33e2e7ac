"""VT-ResNet: a ResNet with stages of Visual Transformer modules, as published in its last one's place (section 4.1)."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import torch
from mmcv.cnn import build_conv_layer, build_norm_layer
from mmcv.cnn.bricks import DropPath
from mmengine.logging import print_log
from mmpretrain.models.backbones import ResNet
from torch import Tensor, nn

from vt.errors import UserError
from vt.registry import MODELS

from .map_scale import predict_rms, scale_output
from .pretrained import load_resnet_stages
from .vt_stage import FIRST_TOKENIZER, LATER_TOKENIZER, MAP_RMS, PROJECTOR, RELATION, VTStage, require_out_type

# Modules that replace stage 5, a row for each depth (paper, section 4.1).
NUM_MODULES = {18: 2, 34: 3, 50: 3, 101: 3}
STEM_STRIDE = 4
SMALLEST_MAP = 2  # pixels on a side of stage 4's map
LAYERS = ('layer1', 'layer2', 'layer3', 'layer4')  # ResNet's names for its stages 2 to 5
PLACES = (*LAYERS, *(f'after_{layer}' for layer in LAYERS))


@MODELS.register_module()
class VTResNet(ResNet):
    """MMPretrain's ResNet up to stage 4, then VT modules on the stage-4 map (stride 16).

    The first module's tokenizer has learned filters, the later ones make theirs from the tokens before. The modules
    are ``layer4``, where ResNet keeps its last stage, so that freezing counts stages as it does there.

    ``places`` puts modules elsewhere. In the place of an earlier stage they stand on the map that the stage would make:
    a 1x1 convolution and a normalisation, as of ResNet's shortcuts, give it the stage's width and stride. Behind a
    stage they follow its blocks and count as one more of them. In ``layer4``, behind other modules, they stand on a
    normalised map.

    The paper gives no initialisation. Convolutional stages start as MMPretrain's ResNet does (He's for ReLU, the last
    normalisation of a block at zero) or with a ResNet's weights, the VT parts as their docstrings say. Between the two
    no normalisation stands: tokens inherit the stage-4 map's size, attention is cubic in it, and a step of SGD moves
    what a token-side matrix puts out by its square. On a map as large as a ResNet's the first module's keys and queries
    grow, and some iterations later everything on the token side. So the stage below modules is scaled, wherever its
    weights are from: its map begins at a quarter of what a fresh ResNet's stage 4 has, a root mean square of 0.18, and
    the stage computes the same as before otherwise. So started, all four depths train from scratch with the recipe of
    their ResNet, and depths 18 and 34 from weights with statistics like ImageNet's. At four times its learning rate
    ResNet-34's three modules still diverge with SGD (ResNet-18's two don't); a gradient clipped to a norm of 1 holds
    them, so SGD's recipes clip.

    Args:
        depth: 18, 34, 50 or 101.
        num_tokens: L, visual tokens.
        token_channels: C_T, channels of a token.
        groups: channel groups of every token-side matrix; a part's own config wins, here and in the next one.
        step: how far an optimizer moves the token-side matrices, see :class:`vt.models.grouped_linear.GroupedLinear`.
        tokenizer: config of the first module's tokenizer; in this and the next three a missing ``type`` is the default.
        later_tokenizer: config of the tokenizers of the modules after it.
        relation: config of the relation; None for none.
        projector: config of the projector; None for none. The last module has none where only its tokens are read.
        out_type: ``'tokens'``, for a classifier, which needs modules at the end, or ``'featmap'``, for dense prediction
            and where a convolutional stage comes last.
        out_indices: for ``'featmap'``, the stages whose maps are returned: 0 to 3 for ``layer1`` to ``layer4``. Without
            3 no module is built in its place.
        places: where modules stand, any of ``'layer1'`` to ``'layer4'``, in the place of that stage, and
            ``'after_layer1'`` to ``'after_layer4'``, behind it.
        num_modules: how many stand in each; by default 2 for depth 18, 3 for the others.
        frozen_stages: stages that are not trained: 0 the stem, 1 to 3 the stages too, 4 the modules too; -1 none.
        drop_path_rate: stochastic depth of the last block; rates grow linearly from 0 over blocks and modules.
        with_cp: recompute blocks and modules in the backward pass to save memory.
        init_cfg: as in mmengine. ``dict(type='Pretrained', checkpoint=...)`` loads the convolutional stages from a
            ResNet in torchvision's or MMPretrain's format, and scales stages as above, or all of this backbone from a
            VT-ResNet, as it is.
        **resnet: other options of :class:`mmpretrain.models.ResNet`, such as ``style``, ``norm_cfg``, ``deep_stem``.

    Raises:
        UserError: an unknown depth, place, output type or stage; tokens asked for where a convolutional stage comes
            last; sizes that don't divide; in the forward pass, an input smaller than 32x32.
    """

    def __init__(
        self,
        depth: int,
        num_tokens: int = 16,
        token_channels: int = 1024,
        groups: int = 1,
        step: float = 1.0,
        tokenizer: dict = FIRST_TOKENIZER,
        later_tokenizer: dict = LATER_TOKENIZER,
        relation: dict | None = RELATION,
        projector: dict | None = PROJECTOR,
        out_type: str = 'tokens',
        out_indices: Sequence[int] = (3,),
        places: Sequence[str] = ('layer4',),
        num_modules: int | None = None,
        frozen_stages: int = -1,
        drop_path_rate: float = 0.0,
        with_cp: bool = False,
        strides: Sequence[int] = (1, 2, 2, 2),
        dilations: Sequence[int] = (1, 1, 1, 1),
        **resnet,
    ) -> None:
        _check(depth, places, num_modules, out_type, out_indices)
        out_indices = (3,) if out_type == 'tokens' else out_indices
        num_convolutional = 3 if 'layer4' in places else 4
        super().__init__(
            depth,
            num_stages=num_convolutional,
            strides=(*strides, 2)[:num_convolutional],
            dilations=(*dilations, 1)[:num_convolutional],
            out_indices=sorted({*out_indices, num_convolutional - 1} - {num_convolutional}),
            frozen_stages=min(frozen_stages, num_convolutional),
            with_cp=with_cp,
            **resnet,
        )
        self.out_type = out_type
        self.token_channels = token_channels
        self.vt_stages: dict[str, str] = {}  # the place of each, and its name
        options = dict(
            num_tokens=num_tokens,
            token_channels=token_channels,
            groups=groups,
            step=step,
            tokenizer=tokenizer,
            later_tokenizer=later_tokenizer,
            relation=relation,
            projector=projector,
            with_cp=with_cp,
        )
        self._place_modules(places, num_modules or NUM_MODULES[depth], drop_path_rate, options, set(out_indices))
        self.out_indices = tuple(sorted(set(out_indices)))
        self.frozen_stages = frozen_stages
        self._freeze_stages()

    def _place_modules(
        self, places: Sequence[str], num_modules: int, drop_path_rate: float, options: dict, read: set[int]
    ) -> None:
        """Put a stage of modules at each place, in the order of the network."""
        widths = [getattr(self, layer)[-1].out_channels for layer in self.res_layers]
        in_channels, numbers = self.stem_channels, []  # of blocks or modules, up to each place
        ordered = sorted(places, key=lambda place: (place[-6:], place.startswith('after')))
        last = ordered[-1] if ordered and ordered[-1].endswith('layer4') else None
        for layer, blocks in zip(LAYERS, (*self.stage_blocks, 0)):
            own = [place for place in ordered if place.endswith(layer)]
            numbers += [(layer, blocks)] * (layer not in own)  # ResNet's own
            numbers += [(place, 0 if place == 'layer4' and 3 not in read else num_modules) for place in own]
        rates = torch.linspace(0, drop_path_rate, sum(number for _, number in numbers)).tolist()
        for place, number in numbers:
            own_rates, rates = rates[:number], rates[number:]
            if place not in places:
                for block, rate in zip(getattr(self, place, ()), own_rates):
                    block.drop_path = DropPath(rate) if rate else nn.Identity()
                continue
            index = int(place[-1]) - 1
            channels = widths[min(index, len(widths) - 1)]
            stage = VTStage(channels, own_rates, out_type=self.out_type if place == last else 'featmap', **options)
            self._insert(place, stage, widths[index - 1] if index else in_channels, channels)

    def _insert(self, place: str, stage: VTStage, in_channels: int, channels: int) -> None:
        layer = place[-6:]
        if place == 'layer4':
            follows = {'layer3', 'after_layer3'} & set(self.vt_stages)  # other modules, which make the map larger
            self.layer4 = nn.Sequential(build_norm_layer(self.norm_cfg, channels)[1], stage) if follows else stage
            self.res_layers.append(layer)
            self.vt_stages[place] = layer
        elif place.startswith('after'):
            blocks = getattr(self, layer)
            blocks.append(stage)
            self.vt_stages[place] = f'{layer}.{len(blocks) - 1}'
        else:
            stride = self.strides[int(layer[-1]) - 1]
            convolve = build_conv_layer(self.conv_cfg, in_channels, channels, 1, stride=stride, bias=False)
            setattr(self, layer, nn.Sequential(convolve, build_norm_layer(self.norm_cfg, channels)[1], stage))
            self.vt_stages[place] = layer

    def init_weights(self) -> None:
        """Initialise the convolutional stages, or load them; the VT parts were initialised when they were made."""
        loaded = set()
        if isinstance(self.init_cfg, dict) and self.init_cfg['type'] == 'Pretrained':
            loaded = load_resnet_stages(self, **{key: value for key, value in self.init_cfg.items() if key != 'type'})
            self.is_init = True
        else:
            super().init_weights()
        for place, name in self.vt_stages.items():
            if not any(found.startswith(f'{name}.') for found in loaded):
                self._start(place)

    def _start(self, place: str) -> None:
        """Give the map below new modules the size that they start on."""
        layer = getattr(self, place[-6:])
        if place in LAYERS and isinstance(layer, nn.Sequential):
            nn.init.constant_(layer[-2].weight, MAP_RMS)  # its own normalisation
            return
        if place == 'layer4' and not layer:
            return  # no modules
        blocks = list(self.layer3) if place == 'layer4' else list(layer)[:-1]
        found = predict_rms(blocks)
        scale_output(blocks, MAP_RMS / found, self._readers(place))
        stage = int(place[-1]) + (place != 'layer4')
        print_log(f'stage {stage}: its map is scaled from {found:.2f} to {MAP_RMS:.2f} (root mean square)', 'current')

    def _readers(self, place: str) -> Iterator[nn.Module]:
        """The normalisations behind the convolutions that read the map of modules which follow a stage."""
        following = dict(pairwise(LAYERS)).get(place[-6:])
        if following in self.res_layers and following not in self.vt_stages:
            block = getattr(self, following)[0]
            yield block.norm1
            if block.downsample is not None:
                yield block.downsample[-1]

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Images to tokens or maps.

        Args:
            x: images, ``(N, 3, height, width)``, at least 32x32 pixels at the published strides.

        Returns:
            For ``'tokens'`` a tuple of one, the last module's tokens ``(N, L, C_T)``; for ``'featmap'`` the maps of
            ``out_indices``, ``(N, C_i, H_i, W_i)`` at strides 4, 8, 16 and 16, or 32 where stage 5 is convolutional.
        """
        smallest = SMALLEST_MAP * STEM_STRIDE * math.prod(self.strides[:3])
        if min(x.shape[-2:]) < smallest:
            height, width = x.shape[-2:]
            raise UserError(
                f'VTResNet: an input of {height}x{width} pixels is too small for the stem and stages; '
                f'give at least {smallest}x{smallest}, for example by a Resize in the pipeline'
            )
        return super().forward(x)

    def get_layer_depth(self, param_name: str, prefix: str = '') -> tuple[int, int]:
        """Depth of a parameter and number of layers, for MMPretrain's layer-wise learning-rate decay.

        The stem is layer 0, each block and each module one more, in the order of the network; what a module's place
        has before it counts as the first module. What comes behind the backbone is the last layer.
        """
        layers = [name for layer in self.res_layers for name in _layers_of(layer, getattr(self, layer))]
        num_layers = len(layers) + 2
        if not param_name.startswith(prefix):
            return num_layers - 1, num_layers
        name = param_name.removeprefix(prefix)
        own = [index for index, layer in enumerate(layers, 1) if name.startswith(f'{layer}.')]
        stage = [index for index, layer in enumerate(layers, 1) if layer.split('.')[0] == name.split('.')[0]]
        return next(iter(own or stage), 0), num_layers

    def train(self, mode: bool = True) -> 'VTResNet':
        """Switch modes; frozen stages stay in evaluation mode."""
        super().train(mode)
        return self


def _layers_of(name: str, stage: nn.Module) -> list[str]:
    """Names of a stage's blocks and modules, in their order."""
    names = []
    for index, part in enumerate(stage):
        if isinstance(part, VTStage):
            names += _layers_of(f'{name}.{index}', part)
        elif any(part.children()):  # no convolution or normalisation before modules
            names.append(f'{name}.{index}')
    return names


def _check(
    depth: int, places: Sequence[str], num_modules: int | None, out_type: str, out_indices: Sequence[int]
) -> None:
    if depth not in NUM_MODULES:
        raise UserError(f'VTResNet: depth={depth} is not one of {", ".join(map(str, NUM_MODULES))}')
    require_out_type('VTResNet', out_type)
    if not set(out_indices) <= set(range(len(LAYERS))) or not out_indices:
        raise UserError(f'VTResNet: out_indices={tuple(out_indices)} names stages other than 0 to {len(LAYERS) - 1}')
    unknown = [place for place in places if place not in PLACES]
    if unknown or isinstance(places, str) or len(set(places)) < len(places):
        raise UserError(f'VTResNet: places={places!r} must be a list of some of {", ".join(PLACES)}, each once')
    if num_modules is not None and num_modules < 1:
        raise UserError(f'VTResNet: num_modules={num_modules} must be 1 or more; for none take a ResNet')
    if 'after_layer1' in places and depth in (18, 34):
        raise UserError(
            f"VTResNet: stage 2 of depth {depth} has no shortcut to scale: use 'layer2' instead of 'after_layer1'"
        )
    for layer in LAYERS:
        if {layer, f'after_{layer}'} <= set(places):
            raise UserError(
                f'VTResNet: places={places!r} has {layer} and after_{layer}; set num_modules for more modules'
            )
    if out_type == 'tokens' and not {'layer4', 'after_layer4'} & set(places):
        raise UserError(
            f"VTResNet: out_type='tokens', but of places={tuple(places)} none comes last; set out_type='featmap' and a "
            'neck for maps, such as GlobalAveragePooling'
        )
