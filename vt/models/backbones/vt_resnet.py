"""VT-ResNet: a ResNet whose last stage is a stack of Visual Transformer modules (paper, section 4.1)."""

from collections.abc import Sequence

import torch
import torch.utils.checkpoint
from mmengine.logging import print_log
from mmpretrain.models.backbones import ResNet
from torch import Tensor, nn

from vt.errors import UserError
from vt.registry import MODELS

from ..vt_module import VTModule
from .map_scale import predict_rms, scale_output
from .pretrained import load_resnet_stages

# Modules that replace stage 5, a row for each depth (paper, section 4.1).
NUM_MODULES = {18: 2, 34: 3, 50: 3, 101: 3}
# The published model: every part as its equation says.
FIRST_TOKENIZER = dict(type='vt.FilterTokenizer')
LATER_TOKENIZER = dict(type='vt.RecurrentTokenizer')
RELATION = dict(type='vt.TokenTransformer')
PROJECTOR = dict(type='vt.Projector')
# Stem and stages halve the input five times up to stage 5; the map must still hold a few pixels.
MIN_INPUT_SIZE = 32
MAP_RMS = 0.25 * 0.5**0.5  # root mean square of the stage-4 map at the start: a quarter of a fresh ResNet's
VT_STAGE = 3  # index of the stage that the modules stand for, where ResNet's is its layer4


@MODELS.register_module()
class VTResNet(ResNet):
    """MMPretrain's ResNet up to stage 4, then VT modules on the stage-4 map (stride 16).

    The first module's tokenizer has learned filters, the later ones make theirs from the tokens before. The modules
    are ``layer4``, where ResNet keeps its last stage, so that freezing and layer-wise rates count stages as they do
    there.

    The paper gives no initialisation. Convolutional stages start as MMPretrain's ResNet does (He's for ReLU, the last
    normalisation of a block at zero) or with a ResNet's weights, the VT parts as their docstrings say. Between the two
    no normalisation stands: tokens inherit the stage-4 map's size, attention is cubic in it, and a step of SGD moves
    what a token-side matrix puts out by its square. On a map as large as a ResNet's the first module's keys and queries
    grow, and some iterations later everything on the token side. So stage 4 is scaled, wherever its weights are from:
    its map begins at a quarter of what a fresh ResNet's has, a root mean square of 0.18, and the stage computes the
    same as before otherwise. So started, all four depths train from scratch with the recipe of their ResNet, and depths
    18 and 34 from weights with statistics like ImageNet's. At four times its learning rate ResNet-34's three modules
    still diverge with SGD (ResNet-18's two don't); a gradient clipped to a norm of 1 holds them, so SGD's recipes clip.

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
        out_type: ``'tokens'``, for a classifier, or ``'featmap'``, for dense prediction.
        out_indices: for ``'featmap'``, the stages whose maps are returned: 0 to 2 for ``layer1`` to ``layer3``, 3 for
            the map that the last module refined. Without 3 no module is built.
        frozen_stages: stages that are not trained: 0 the stem, 1 to 3 the stages too, 4 the modules too; -1 none.
        drop_path_rate: stochastic depth of the last block; rates grow linearly from 0 over blocks and modules. Modules
            pass their rate to a relation and a projector whose config names no ``drop_path``.
        with_cp: recompute blocks and modules in the backward pass to save memory.
        init_cfg: as in mmengine. ``dict(type='Pretrained', checkpoint=...)`` loads the convolutional stages from a
            ResNet in torchvision's or MMPretrain's format, and scales stage 4 as above, or all of this backbone from a
            VT-ResNet, as it is.
        **resnet: other options of :class:`mmpretrain.models.ResNet`, such as ``style``, ``norm_cfg``, ``deep_stem``.

    Raises:
        UserError: an unknown depth, output type or stage; sizes that don't divide; in the forward pass, an input
            smaller than 32x32.
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
        out_indices: Sequence[int] = (VT_STAGE,),
        frozen_stages: int = -1,
        drop_path_rate: float = 0.0,
        with_cp: bool = False,
        **resnet,
    ) -> None:
        if depth not in NUM_MODULES:
            raise UserError(f'VTResNet: depth={depth} is not one of {", ".join(map(str, NUM_MODULES))}')
        if out_type not in ('tokens', 'featmap'):
            raise UserError(f"VTResNet: out_type={out_type!r} is neither 'tokens' nor 'featmap'")
        if not set(out_indices) <= set(range(VT_STAGE + 1)) or not out_indices:
            raise UserError(f'VTResNet: out_indices={tuple(out_indices)} names stages other than 0 to {VT_STAGE}')
        resnet = dict(strides=(1, 2, 2), dilations=(1, 1, 1)) | resnet
        super().__init__(
            depth,
            num_stages=VT_STAGE,
            out_indices=sorted({*out_indices, VT_STAGE - 1} - {VT_STAGE}),  # the last map is always needed
            frozen_stages=min(frozen_stages, VT_STAGE),
            drop_path_rate=drop_path_rate,
            with_cp=with_cp,
            **resnet,
        )
        self.out_type = out_type
        self.map_indices = tuple(sorted(set(out_indices)))
        self.token_channels = token_channels

        shared = {name: value for name, value in dict(groups=groups, step=step).items() if value != 1}
        self.layer4 = self._make_vt_stage(
            FIRST_TOKENIZER | dict(num_tokens=num_tokens) | shared | tokenizer,
            LATER_TOKENIZER | dict(num_tokens=num_tokens) | shared | later_tokenizer,
            relation and RELATION | shared | relation,
            projector and PROJECTOR | shared | projector,
            drop_path_rate,
        )
        self.frozen_stages = frozen_stages
        self._freeze_stages()

    def _make_vt_stage(
        self, first: dict, later: dict, relation: dict | None, projector: dict | None, drop_path_rate: float
    ) -> nn.ModuleList:
        reads_map = self.out_type == 'featmap'
        num_modules = 0 if reads_map and VT_STAGE not in self.map_indices else NUM_MODULES[self.depth]
        num_blocks = sum(self.stage_blocks) + num_modules
        drop_paths = torch.linspace(0, drop_path_rate, num_blocks)[num_blocks - num_modules :].tolist()
        modules = nn.ModuleList()
        for index, rate in enumerate(drop_paths):
            dropped = dict(drop_path=rate) if rate else {}
            keeps_projector = reads_map or index < num_modules - 1
            module = VTModule(
                self.feat_dim,
                self.token_channels,
                tokenizer=later if index else first,
                relation=relation and dropped | relation,
                projector=dropped | projector if projector and keeps_projector else None,
            )
            modules.append(module)
        return modules

    def init_weights(self) -> None:
        """Initialise the convolutional stages, or load them; the VT parts were initialised when they were made."""
        new_modules = bool(self.layer4)
        if isinstance(self.init_cfg, dict) and self.init_cfg['type'] == 'Pretrained':
            loaded = load_resnet_stages(self, **{key: value for key, value in self.init_cfg.items() if key != 'type'})
            new_modules &= not any(name.startswith('layer4.') for name in loaded)
            self.is_init = True
        else:
            super().init_weights()
        if new_modules:
            found = predict_rms(self.layer3)
            scale_output(self.layer3, MAP_RMS / found)
            print_log(f'stage 4: its map is scaled from {found:.2f} to {MAP_RMS:.2f} (root mean square)', 'current')

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Images to tokens or maps.

        Args:
            x: images, ``(N, 3, height, width)``, at least 32x32 pixels.

        Returns:
            For ``'tokens'`` a tuple of one, the last module's tokens ``(N, L, C_T)``; for ``'featmap'`` the maps of
            ``out_indices``, ``(N, C_i, H_i, W_i)`` at strides 4, 8, 16 and 16.
        """
        if min(x.shape[-2:]) < MIN_INPUT_SIZE:
            height, width = x.shape[-2:]
            raise UserError(
                f'VTResNet: an input of {height}x{width} pixels is too small for the stem and stages; '
                f'give at least {MIN_INPUT_SIZE}x{MIN_INPUT_SIZE}, for example by a Resize in the pipeline'
            )
        maps = super().forward(x)
        x, tokens = maps[-1], None
        for module in self.layer4:
            x, tokens = self._run(module, x, tokens)
        if self.out_type == 'tokens':
            return (tokens,)
        by_stage = dict(zip(self.out_indices, maps)) | {VT_STAGE: x}
        return tuple(by_stage[index] for index in self.map_indices)

    def _run(self, module: VTModule, x: Tensor, tokens: Tensor | None) -> tuple[Tensor, Tensor]:
        if self.with_cp and x.requires_grad:
            return torch.utils.checkpoint.checkpoint(module, x, tokens, use_reentrant=False)
        return module(x, tokens)

    def train(self, mode: bool = True) -> 'VTResNet':
        """Switch modes; frozen stages stay in evaluation mode."""
        super().train(mode)
        return self
