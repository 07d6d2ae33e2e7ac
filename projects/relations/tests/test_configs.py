"""Every config of this project takes a training step on its own data, and each ablation is that of ImageNet."""

from pathlib import Path

import pytest
from mmengine.dataset import pseudo_collate
from mmengine.registry import DATASETS, init_default_scope
from tool_runner import ROOT

from docs.reports.paper import ABLATIONS
from vt.apis import list_models
from vt.engine.config.check_settings import check_config
from vt.engine.config.steps import read_config
from vt.engine.run.launch import build_model

CONFIGS = sorted((Path(__file__).parents[1] / 'configs').glob('*.py'))
VARIANTS = [(table.key, name) for table in ABLATIONS.values() for name in table.variants.values() if name]


@pytest.mark.parametrize('path', CONFIGS, ids=lambda path: path.stem)
def test_a_config_takes_a_step(path):
    cfg = read_config(str(path))
    check_config(cfg)
    init_default_scope(cfg.default_scope)
    dataset = cfg.train_dataloader.dataset
    dataset['num_scenes' if 'num_scenes' in dataset or 'scenes' in path.stem else 'num_images'] = 2
    samples = DATASETS.build(dataset)
    if 'decode_head' in cfg.model:
        cfg.model.backbone.init_cfg = None
    model = build_model(cfg)
    data = model.data_preprocessor(pseudo_collate([samples[0], samples[1]]), True)
    loss, _ = model.parse_losses(model(**data, mode='loss'))
    loss.backward()
    unused = [name for name, value in model.named_parameters() if value.requires_grad and value.grad is None]
    assert not unused


def settings(path):
    """The lines of a config that set something, but for the inherited one."""
    lines = (line.strip() for line in path.read_text().splitlines())
    return [line for line in lines if line and not line.startswith('#')][1:]


@pytest.mark.parametrize(('table', 'variant'), VARIANTS)
def test_a_variant_is_the_same_change_as_on_imagenet(table, variant):
    own = CONFIGS[0].with_name(f'vt-resnet18-half_{variant}_twin-digits.py')
    assert settings(own) == settings(ROOT / f'configs/ablations/{table}/vt-resnet18_{variant}_8xb32-90e_in1k.py')


def test_they_are_none_of_the_models_that_are_listed():
    assert not {path.stem for path in CONFIGS} & {*list_models()}
