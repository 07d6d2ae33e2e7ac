"""Models of a few weights with their checkpoints, as a training run would leave them."""

import cv2
import torch
from mmengine.config import Config
from mmengine.registry import DATASETS, DefaultScope
from tool_runner import ROOT

from vt import apis

SMALL = {
    'vt-resnet18-half_digits': (
        'model = dict(backbone=dict(num_tokens=4, token_channels=64), head=dict(in_channels=64))'
    ),
    'vt-fpn_r18_digit-scenes': 'model = dict(neck=dict(num_tokens=3, token_channels=64))',
    'mvit-tiny_moving-digits': '',
}


def make(folder, name, options=''):
    """The path of a small config, that of a checkpoint of it, the model, and a sample of its test set."""
    config, checkpoint = folder / f'{name}.py', folder / f'{name}.pth'
    (base,) = (ROOT / 'configs').rglob(f'{name}.py')
    config.write_text(f'_base_ = {str(base)!r}\n{SMALL.get(name, "")}\n{options}\n')
    torch.manual_seed(0)
    model = apis.get_model(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1 + 0.3 * torch.randn_like(parameter))
    torch.save(dict(state_dict=model.state_dict()), checkpoint)
    cfg = Config.fromfile(config)
    with DefaultScope.overwrite_default_scope(cfg.default_scope):
        sample = DATASETS.build(cfg.test_dataloader.dataset)[3]
    return config, checkpoint, model, sample


def sharpen(checkpoint):
    """Let the visual tokens of a checkpoint look, relate and be read unevenly; arbitrary weights hardly do."""
    weights = torch.load(checkpoint)['state_dict']
    factors = {'tokenizer.weight': 200, 'value.weight': 10, 'relation.key.weight': 200, 'projector.key.weight': 2000}
    for part, factor in factors.items():
        for name in weights:
            if name.endswith(part):
                weights[name] *= factor
    torch.save(dict(state_dict=weights), checkpoint)


def write_image(path, image):
    """An image ``(3, H, W)``, blue first, as a file that loses nothing."""
    assert cv2.imwrite(str(path), image.permute(1, 2, 0).numpy())
    return path
