"""VT-ResNet: a ResNet whose last stage is replaced by Visual Transformer modules (paper, section 4.1).

Letters: N batch, L tokens, C_T token channels, C_i, H_i and W_i channels and size of a stage's map.
"""

import math
from collections.abc import Iterable, Sequence

import torch
from mmcv.cnn.bricks import DropPath
from mmengine.logging import print_log
from mmpretrain.models.backbones import ResNet
from mmpretrain.models.backbones.resnet import ResLayer
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from vt.checkpoints.weights import load_init_cfg
from vt.errors import UserError
from vt.registry import MODELS

from ..recomputation import recompute
from .map_scale import scale_stage
from .vt_stage import FIRST_TOKENIZER, LATER_TOKENIZER, MAP_RMS, PROJECTOR, RELATION, VTStage, require_out_type

# Number of modules that replace stage 5, by depth (paper, section 4.1).
NUM_MODULES = {18: 2, 34: 3, 50: 3, 101: 3}
SMALLEST_MAP = 2  # pixels on a side of stage 4's map


class ResNetStage(ResLayer):
    """MMPretrain's stage; ``with_cp`` recomputes its blocks without counting their batches twice."""

    def __init__(self, *args, with_cp: bool = False, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.with_cp = with_cp

    def forward(self, x: Tensor) -> Tensor:
        """Map of the previous stage to that of this one."""
        for part in self:
            own = self.with_cp and x.requires_grad and not isinstance(part, VTStage)  # which has its own
            x = recompute(part, x) if own else part(x)
        return x


@MODELS.register_module()
class VTResNet(ResNet):
    """MMPretrain's ResNet up to stage 4 of the paper, then VT modules on its map (stride 16).

    The modules are ``layer4``, the name of ResNet's last stage, so ``frozen_stages`` counts as in ResNet.

    The paper gives no initialisation. Convolutional stages start like MMPretrain's ResNet or from a ResNet's weights;
    the VT parts as their docstrings say. The token attention is cubic in the scale of the map, and training diverges at
    that of a ResNet's map, so the output of stage 4 is rescaled to a root mean square of 0.18, a quarter of that of
    an untrained one. All four depths then train with their ResNet's recipe, clipped to a norm of 1 under SGD.

    Args:
        depth: 18, 34, 50 or 101.
        num_tokens, token_channels, groups, tokenizer, later_tokenizer, relation, projector: options of the modules, as
            in :class:`vt.models.backbones.vt_stage.VTStage`.
        out_type: ``'tokens'`` for classifiers, or ``'featmap'`` for dense prediction.
        out_indices: for ``'featmap'``, indices of the returned maps: 0 to 3 for ``layer1`` to ``layer4``. Without 3 no
            module is built.
        num_modules: number of modules; 2 for depth 18 and 3 for the others by default.
        frozen_stages: -1 trains everything, 0 freezes the stem, 1 to 3 also the stages up to it, 4 also the modules.
        drop_path_rate: stochastic depth rate of the last module; rates grow linearly from 0 over blocks and modules.
        with_cp: recompute blocks and modules in the backward pass to save memory.
        init_cfg: as in mmengine; ``Pretrained`` takes a checkpoint of a ResNet, for its stages, or of a VT-ResNet.
        **resnet: other options of :class:`mmpretrain.models.ResNet`, such as ``style``, ``norm_cfg``, ``deep_stem``.

    Raises:
        UserError: an unknown depth, output type or stage; sizes that are not divisible; in the forward pass, an image
            smaller than 32x32.
    """

    stem_stride = 4

    def __init__(
        self,
        depth: int,
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
        check_options(type(self).__name__, depth, num_modules, out_type, out_indices)
        if frozen_stages > 4:
            raise UserError(f'{type(self).__name__}: frozen_stages={frozen_stages} does not exist; the last is 4')
        out_indices = (3,) if out_type == 'tokens' else tuple(sorted(set(out_indices)))
        stages = dict(num_stages=3, strides=strides[:3], dilations=dilations[:3])  # 1 to 4 of the paper
        stages |= dict(out_indices=sorted({*out_indices, 2} - {3}), frozen_stages=min(frozen_stages, 3))
        super().__init__(depth, with_cp=with_cp, **stages, **resnet)
        blocks = [block for layer in self.res_layers for block in getattr(self, layer)]
        num_modules = (num_modules or NUM_MODULES[depth]) if 3 in out_indices else 0
        rates = torch.linspace(0, drop_path_rate, len(blocks) + num_modules).tolist()
        for block, rate in zip(blocks, rates):
            block.drop_path = DropPath(rate) if rate else nn.Identity()
        # Modules, in place of stage 5.
        options = dict(num_tokens=num_tokens, token_channels=token_channels, groups=groups, with_cp=with_cp)
        options |= dict(tokenizer=tokenizer, later_tokenizer=later_tokenizer, relation=relation, projector=projector)
        self.layer4 = VTStage(blocks[-1].out_channels, rates[len(blocks) :], out_type=out_type, **options)
        self.res_layers.append('layer4')
        self.out_type, self.token_channels, self.out_indices = out_type, token_channels, out_indices
        self.vt_stages = {'layer4': 'layer4'}  # position of each stage of modules: its module name
        self.frozen_stages = frozen_stages
        self._freeze_stages()
        self._start_untrained()

    def _start_untrained(self) -> None:
        """Rescale the maps for training without :meth:`init_weights`, which draws other weights and rescales again."""
        for position in self._new_modules():
            self.start(position)
        for norm in self.modules():
            if isinstance(norm, _BatchNorm):
                norm.reset_running_stats()

    def make_res_layer(self, **kwargs) -> ResNetStage:
        """Build a stage of blocks."""
        return ResNetStage(**kwargs)

    def init_weights(self) -> None:
        """Initialise or load the convolutional stages; VT parts are initialised when they are constructed."""
        pretrained = isinstance(self.init_cfg, dict) and self.init_cfg['type'] == 'Pretrained'
        loaded = load_init_cfg(self, self.init_cfg) if pretrained else super().init_weights() or set()
        self.is_init = True
        for position in self._new_modules(loaded):
            print_log(f'{position}: {self.start(position)}', 'current')

    def _new_modules(self, loaded: Iterable[str] = ()) -> list[str]:
        """Return the positions of modules that have no parameter among the ``loaded`` ones."""
        stages = [(position, name) for position, name in self.vt_stages.items() if len(self.get_submodule(name))]
        return [position for position, name in stages if not any(key.startswith(f'{name}.') for key in loaded)]

    @property
    def new_by_design(self) -> tuple[str, ...]:
        """Names of the parts that the checkpoint of a ResNet does not have."""
        return tuple(self.vt_stages.values())

    def start(self, position: str) -> str:
        """Rescale the map below new modules to the root mean square at which they start; return a line for the log."""
        return scale_stage(self.layer3, MAP_RMS)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Compute tokens or maps.

        Args:
            x: images, ``(N, 3, height, width)``, at least 32x32 pixels with the default strides.

        Returns:
            A tuple: for ``'tokens'`` the tokens of the last module, ``(N, L, C_T)``; for ``'featmap'`` the maps of
            ``out_indices``, ``(N, C_i, H_i, W_i)`` at strides 4, 8, 16 and 16.

        Raises:
            UserError: the images are too small.
        """
        smallest = SMALLEST_MAP * self.stem_stride * math.prod(self.strides[:3])
        if min(x.shape[-2:]) < smallest:
            size = f'{x.shape[-2]}x{x.shape[-1]}'
            least = f'must be at least {smallest}x{smallest}: add a Resize to the pipeline'
            raise UserError(f'VTResNet: an image of {size} pixels is too small for the stem and stages; it {least}')
        return super().forward(x)

    def get_layer_depth(self, param_name: str, prefix: str = '') -> tuple[int, int]:
        """Depth of a parameter and number of layers, for MMPretrain's layer-wise learning-rate decay: the stem is layer
        0, each block and each module one layer, all after the backbone the last one.
        """
        layers = [f'{layer}.{index}.' for layer in self.res_layers for index in range(len(getattr(self, layer)))]
        own = [index for index, layer in enumerate(layers, 1) if param_name.startswith(prefix + layer)]
        elsewhere = 0 if param_name.startswith(prefix) else len(layers) + 1
        return (own[0] if own else elsewhere), len(layers) + 2

    def train(self, mode: bool = True) -> 'VTResNet':
        """Switch modes; frozen stages stay in evaluation mode."""
        super().train(mode)
        return self


def check_options(name: str, depth: int, num_modules: int | None, out_type: str, out_indices: Sequence[int]) -> None:
    """Raise ``UserError`` for an unknown depth, an unknown output or a number of modules below 1."""
    if depth not in NUM_MODULES:
        raise UserError(f'{name}: depth={depth} is not one of {", ".join(map(str, NUM_MODULES))}')
    require_out_type(name, out_type)
    if not set(out_indices) <= set(range(4)) or not out_indices:
        raise UserError(f'{name}: out_indices={tuple(out_indices)} must be stages from 0 to 3')
    if num_modules is not None and num_modules < 1:
        raise UserError(f'{name}: num_modules={num_modules} must be 1 or more; without modules use a ResNet')
