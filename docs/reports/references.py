"""How far the survey's models are from timm's models of the same name: logits of the same random weights."""

from pathlib import Path
from tempfile import TemporaryDirectory

import timm
import torch
from mmengine.config import Config
from mmpretrain.registry import MODELS as CLASSIFIERS
from torch import Tensor, nn

from vt.checkpoints.weights import load_weights


@torch.no_grad()
def measure_difference(config: Config, reference: str, image_size: int = 224, **options: int) -> float:
    """The largest difference of logits of a random image, in parts of the largest logit; both in float32.

    Every weight is random, and goes to ours through a file, as a public checkpoint does.

    Args:
        config: of ours.
        reference: timm's name of the same.
        image_size: height and width.
        **options: of timm's, such as another depth than it has.
    """
    torch.manual_seed(0)
    public = timm.create_model(reference, **options).eval()
    for parameter in public.parameters():
        parameter.add_(0.02 * torch.randn_like(parameter))  # away from zeros and ones, which hide what they multiply
    model = _load(config, public.state_dict())
    image = torch.randn(1, 3, image_size, image_size)
    expected, found = public(image), model(image, mode='tensor')
    return ((found - expected).abs().max() / expected.abs().max()).item()


def _load(config: Config, state: dict[str, Tensor]) -> nn.Module:
    """Ours with the weights of timm's; teachers are left out."""
    parts = {key: config.model[key].to_dict() for key in ('backbone', 'neck', 'head') if key in config.model}
    model = CLASSIFIERS.build(dict(type='ImageClassifier', **parts))
    with TemporaryDirectory() as folder:
        torch.save(state, path := Path(folder, 'public.pth'))
        load_weights(model, path)
    return model.eval()
