"""Random weights where the libraries keep what they fetched, as they write them: nothing is downloaded."""

from pathlib import Path

import timm
import torch
import torchvision

COMMIT = 40 * '0'


def randomise(model):
    """Every parameter away from its start, which hides what zeros and ones multiply."""
    for parameter in model.parameters():
        parameter.data.add_(0.02 * torch.randn_like(parameter))
    return model.eval()


def put_in_hub(cache, name):
    """timm's model of random weights, as timm publishes it, in the cache of Hugging Face's hub."""
    torch.manual_seed(0)
    model = randomise(timm.create_model(name))
    repository = Path(cache, f'models--timm--{name}')
    (repository / 'refs').mkdir(parents=True)
    (repository / 'refs/main').write_text(COMMIT)
    timm.models.save_for_hf(model, repository / 'snapshots' / COMMIT, safe_serialization=True)
    return model


def put_in_torch_home(home, name):
    """torchvision's model of random weights, under the name of its file, in PyTorch's cache."""
    torch.manual_seed(0)
    weights = torchvision.models.get_weight(name)
    model = randomise(torchvision.models.get_model(type(weights).__name__.removesuffix('_Weights').lower()))
    folder = Path(home, 'hub/checkpoints')
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), folder / Path(weights.url).name)
    return model
