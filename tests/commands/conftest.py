"""A folder with a config, and weights of its model."""

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import DefaultScope

from vt.engine.run.launch import build_model


@pytest.fixture
def work(tmp_path):
    """A function that writes a config and weights of its model."""

    def work(config):
        (tmp_path / 'config.py').write_text(config)
        torch.manual_seed(0)
        with DefaultScope.overwrite_default_scope('mmpretrain'):
            model = build_model(Config.fromfile(tmp_path / 'config.py'))
        if hasattr(model, 'head'):  # predictions that differ
            (features,) = model.eval().extract_feat(0.6 * torch.randn(8, 3, 32, 40) - 1)
            model.head.fc.weight.data *= 300
            model.head.fc.bias.data = -(model.head.fc.weight @ features.mean(dim=0)).data
        torch.save(dict(state_dict=model.state_dict(), meta={}), tmp_path / 'weights.pth')
        return tmp_path

    return work
