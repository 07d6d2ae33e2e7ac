"""How far the survey's models are from timm's models of the same name: logits of the same random weights."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import timm
import torch
from mmengine.config import Config
from mmpretrain.registry import MODELS as CLASSIFIERS
from torch import Tensor, nn

from vt.models.backbones.checkpoint_format import to_own_names

# TNT's, whose backbone is MMPretrain's.
TNT = (
    (r'^blocks\.', 'layers.'),
    (r'\.(attn|mlp)_in\.', r'.inner_block.\1.'),
    (r'\.norm_in\.', '.inner_block.norm_attn.'),
    (r'\.norm_mlp_in\.', '.inner_block.norm_ffn.'),
    (r'\.attn_out\.', '.outer_block.attn.'),
    (r'\.norm_out\.', '.outer_block.norm_attn.'),
    (r'\.norm_mlp\.', '.outer_block.norm_ffn.'),
    (r'(\d)\.mlp\.', r'\1.outer_block.mlp.'),
    (r'\.norm1_proj\.', '.norm_proj.'),
    (r'\.attn\.proj\.', '.attn.attn.out_proj.'),
    (r'\.mlp\.fc1', '.ffn.layers.0.0'),
    (r'\.mlp\.fc2', '.ffn.layers.1'),
    (r'(^|\d\.)proj\.', r'\1projection.'),
    (r'^head\.', 'head.fc.'),
)


@torch.no_grad()
def measure_difference(config: Config, reference: str, image_size: int = 224) -> float:
    """The largest difference of logits of a random image, in parts of the largest logit; both in float32.

    Every weight is random, and goes to ours through a file, as a public checkpoint does.

    Args:
        config: of ours.
        reference: timm's name of the same.
        image_size: height and width.
    """
    torch.manual_seed(0)
    public = timm.create_model(reference).eval()
    for parameter in public.parameters():
        parameter.add_(0.02 * torch.randn_like(parameter))  # away from zeros and ones, which hide what they multiply
    model = _load(config, public.state_dict())
    image = torch.randn(1, 3, image_size, image_size)
    expected, found = public(image), model(image, mode='tensor')
    return ((found - expected).abs().max() / expected.abs().max()).item()


def _load(config: Config, state: dict[str, Tensor]) -> nn.Module:
    """Ours with the weights of timm's; teachers are left out."""
    parts = {key: config.model[key].to_dict() for key in ('backbone', 'neck', 'head') if key in config.model}
    if config.model.backbone.type == 'TNT':
        model = CLASSIFIERS.build(dict(type='ImageClassifier', **parts))
        renamed = _rename_tnt(state)
        model.backbone.load_state_dict({key: value for key, value in renamed.items() if not key.startswith('head.')})
    else:
        with TemporaryDirectory() as folder:
            path = Path(folder, 'public.pth')
            torch.save(state, path)
            parts['backbone']['init_cfg'] = dict(type='Pretrained', checkpoint=str(path))
            model = CLASSIFIERS.build(dict(type='ImageClassifier', **parts))
            model.backbone.init_weights()
        renamed = to_own_names(state, model.backbone.checkpoint_format)
    heads = {key.removeprefix('head.'): value for key, value in renamed.items() if key.startswith('head.')}
    model.head.load_state_dict(heads)
    model.eval()
    return model


def _rename_tnt(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Queries, keys and values are one matrix there."""
    renamed = {}
    for name, tensor in state.items():
        if name.endswith('.qk.weight'):
            tensor = torch.cat([tensor, state[name.replace('.qk.', '.v.')]])
        for pattern, replacement in (*TNT, (r'\.qk\.weight', '.attn.in_proj_weight')):
            name = re.sub(pattern, replacement, name)
        renamed[name] = tensor
    return {name: tensor for name, tensor in renamed.items() if not name.endswith('.v.weight')}
