"""One ``data_root`` is that of every data set of a config."""

import pytest
from tool_runner import ROOT

from vt.engine.config_files import leaves, read_config

LOADERS = ('train_dataloader', 'val_dataloader', 'test_dataloader')


def data_roots(config, **options):
    path = next((ROOT / 'configs').rglob(f'{config}.py'))
    cfg = read_config(str(path), options, quietly=True)
    return {leaf.data_root for loader in LOADERS for leaf in leaves(cfg[loader].dataset)}


@pytest.mark.parametrize(
    ('config', 'root'),
    [
        ('vt-resnet18_8xb32-90e_in1k', 'data/imagenet'),
        ('vt-resnet18_1xb128-90e_cifar100', 'data/cifar100'),
        ('vt-fpn_r50_4xb4-160k_ade20k-512x512', 'data/ade/ADEChallengeData2016'),
        ('mvit-base24-32x3_k600', 'data/kinetics600'),
        ('vt-resnet18_1xb32-90e_image-folder', 'data/images'),
        ('vt-resnet18_1xb32-90e_hugging-face', 'data/images'),
        ('vt-fpn_r50_1xb4-80k_hugging-face-512x512', 'data/scenes'),
    ],
)
def test_one_data_root_is_every_splits(config, root):
    assert data_roots(config) == {root}
    assert data_roots(config, data_root='elsewhere') == {'elsewhere'}
    own = {'train_dataloader.dataset.data_root': 'own', 'data_root': 'elsewhere'}
    assert data_roots(config, **own) == {'own', 'elsewhere'}
