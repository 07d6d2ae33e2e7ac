"""Backbones of Hugging Face's transformers, and any backbone without training.

Letters: N batch, C_i, H_i and W_i channels and size of a map.
"""

from collections.abc import Sequence

from mmengine.model import BaseModule
from torch import Tensor, nn

from vt.checkpoints.weight_sources import fetching, require_hub
from vt.errors import UserError
from vt.registry import MODELS

from .staged_backbone import StagedBackbone

MAPS, VECTOR = 'featmap', 'vector'


@MODELS.register_module()
class HuggingFaceBackbone(BaseModule):
    """A vision model of Hugging Face's transformers, such as DINOv2 and DINOv3, by its name.

    ::

        backbone=dict(type='vt.HuggingFaceBackbone', pretrained='facebook/dinov2-small', out_indices=(12,))

    Args:
        pretrained: name of a model of the Hub, or a folder that transformers wrote, whose weights ``init_weights``
            loads, so that training begins with them; transformers reports those that a file has not. None for
            arbitrary ones.
        config: options of transformers' config. With a ``model_type``, such as ``dict(model_type='dinov2',
            hidden_size=384, num_attention_heads=6)``, they say all: nothing is fetched to build the model.
            Without, they win over those of ``pretrained``, whose config is fetched whenever the model is built.
        out_type: ``'featmap'``, the maps of transformers' ``AutoBackbone``; or ``'vector'``, the ``pooler_output`` of
            its ``AutoModel``: of DINOv2 and DINOv3 the normalised class token.
        out_indices: layers whose map is returned, as transformers counts them: 0 is the embedding, so 12 is the last
            block of a ViT of 12; -1 the last.
        in_channels: of an image.
        init_cfg: as in mmengine; it wins over ``pretrained``.

    Raises:
        UserError: transformers has no such model or layer; the model cannot be fetched; in the forward pass, an image
            whose sides are not divisible by the patch size, so that a map would cover only a part of it.
    """

    def __init__(
        self,
        pretrained: str | None = None,
        config: dict | None = None,
        out_type: str = MAPS,
        out_indices: Sequence[int] = (-1,),
        in_channels: int = 3,
        init_cfg: dict | Sequence[dict] | None = None,
    ) -> None:
        super().__init__(init_cfg)
        import transformers  # optional: pip install transformers

        if out_type == VECTOR and tuple(out_indices) != (-1,):
            raise UserError(f"HuggingFaceBackbone: out_indices={tuple(out_indices)} has no effect on '{VECTOR}'")
        options, self.pretrained, self.out_type = dict(config or {}), pretrained, out_type
        kind = options.get('model_type')
        if not (pretrained or kind) or kind == 'timm_backbone':
            known = "pretrained to the name of a model, or config.model_type, such as 'dinov2'"
            raise UserError(f'HuggingFaceBackbone: set {known}; for models of timm use mmpretrain.TIMMBackbone')
        library = transformers.AutoBackbone if out_type == MAPS else transformers.AutoModel
        try:
            if kind:
                self.config = transformers.AutoConfig.for_model(**options)
            else:
                require_hub(pretrained)
                self.config = transformers.AutoConfig.from_pretrained(pretrained, trust_remote_code=False, **options)
            self.config.num_channels = in_channels
            if out_type == MAPS:
                self.config.out_indices = [*out_indices]
            self.model = library.from_config(self.config, trust_remote_code=False)
        except (ValueError, OSError) as error:
            line = ' '.join(str(error).split())[:160]  # transformers names all the models that it has
            raise UserError(f'HuggingFaceBackbone: {pretrained or kind}: {line}') from error
        for name, parameter in self.model.named_parameters():
            parameter.requires_grad = not name.endswith('mask_token')  # it serves transformers' own training alone

    def init_weights(self) -> None:
        """Load the weights of ``pretrained``, or as ``init_cfg`` says; without, they stay as transformers drew them."""
        if self.pretrained and not self.init_cfg:
            with fetching(self.pretrained):
                require_hub(self.pretrained)
                loaded = type(self.model).from_pretrained(self.pretrained, config=self.config)
            self.model.load_state_dict(loaded.state_dict())
            self.is_init = True
        else:
            super().init_weights()

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Images ``(N, in_channels, height, width)`` to maps ``(N, C_i, H_i, W_i)``, or a tuple of one ``(N, C)``."""
        patch = getattr(self.config, 'patch_size', 1)
        output = self.model(x)
        if self.out_type == VECTOR:
            return (output.pooler_output,)
        for side, cells in zip(x.shape[2:], output.feature_maps[0].shape[2:]):
            if isinstance(patch, int) and cells == side // patch != side / patch:
                near = side // patch * patch
                raise UserError(
                    f'HuggingFaceBackbone: an image of {x.shape[2]}x{x.shape[3]} is not divisible by the patch size '
                    f'{patch}: resize, crop or pad it, for example {side} to {near} or {near + patch}'
                )
        return tuple(output.feature_maps)


@MODELS.register_module()
class FrozenBackbone(StagedBackbone):
    """Any backbone, with its weights as they are: nothing of it is trained, dropped or counted in training.

    Args:
        backbone: config of the backbone.
        init_cfg: as in mmengine, for all of it.
    """

    def __init__(self, backbone: dict, init_cfg: dict | Sequence[dict] | None = None) -> None:
        super().__init__(init_cfg)
        self.backbone = MODELS.build(backbone)
        self.freeze(0)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Images ``(N, 3, height, width)`` to what the backbone gives."""
        return tuple(self.backbone(x))

    def stage_parts(self) -> list[tuple[nn.Module, ...]]:
        return [(self.backbone,)]
