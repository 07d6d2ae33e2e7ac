"""Models by name: listed, built, loaded, and known to MMPretrain's own functions once it is asked for."""

import mmpretrain
import numpy as np
import pytest
import torch
from apis.small_models import make
from mmengine.config import Config
from mmpretrain.apis import ModelHub
from tool_runner import ROOT

import vt
from vt import apis
from vt.apis import model_zoo
from vt.errors import UserError
from vt.models.optimize import Linear, optimize_for
from vt.models.visual_transformers.fused_levels import FusedVTFPN


def test_every_config_has_one_name_and_is_found_by_it():
    paths = [path for path in (ROOT / 'configs').rglob('*.py') if '_base_' not in path.parts]
    assert apis.list_models(ablations=True) == sorted(path.stem for path in paths)
    assert apis.list_models() == sorted(path.stem for path in paths if 'ablations' not in path.parts)
    assert 'table11_none_k400' in set(apis.list_models(ablations=True)) - set(apis.list_models())
    assert {apis.find_config(path.stem.upper()) for path in paths} == set(paths)
    assert apis.list_models('vt-resnet*_digits') == apis.list_models('VT-ResNet*_digits')
    assert 'vt-resnet18_digits' in apis.list_models('vt-resnet18')
    assert apis.list_models('no-such') == []


@pytest.mark.parametrize(
    ('arguments', 'overrides', 'message'),
    [
        (['vt-resnet18_digit'], {}, "there is no model 'vt-resnet18_digit': did you mean vt-resnet18_digits or "),
        (['qqqq'], {}, "there is no model 'qqqq': `vt models` lists all"),
        (['vt-resnet18_digits', True], {}, 'there are no published weights for vt-resnet18_digits: train it, and give'),
        (['vt-resnet18_digits', 'nowhere.pth'], {}, 'there is no checkpoint nowhere.pth'),
        (['vt-resnet18_digits'], dict(backbone=dict(depht=34)), "model.backbone: VTResNet has no argument 'depht'"),
        (['vt-resnet18_digits'], dict(backbone=dict(groups=3)), 'in_channels=256 is not divisible by groups=3'),
    ],
)
def test_what_is_no_model_is_one_line(arguments, overrides, message):
    with pytest.raises(UserError) as error:
        apis.get_model(*arguments, **overrides)
    assert message in str(error.value)
    assert '\n' not in str(error.value)


@pytest.mark.parametrize(
    ('public', 'own', 'libraries'),
    [
        ('swin_tiny_patch4_window7_224.ms_in1k', 'swin-tiny_16xb64-300e_in1k', 'weights=timm or weights=torchvision'),
        ('facebook/deit-small-patch16-224', 'deit-small_16xb64-300e_in1k', 'weights=timm'),
        ('mvit_v2_s', 'mvitv2-small-16x4_k400', 'weights=torchvision'),
    ],
)
def test_a_public_name_is_answered_with_the_model_that_loads_its_weights(public, own, libraries):
    with pytest.raises(UserError) as error:
        apis.find_config(public)
    advice = f'{libraries} loads those published for {own}; '
    assert f'there is no model {public!r}: did you mean {own}' in str(error.value)
    assert f'? {advice}' in str(error.value)


def test_a_model_has_its_checkpoint_its_config_and_its_classes(tmp_path):
    config, checkpoint, model, _ = make(tmp_path, 'vt-resnet18-half_digits')
    images = torch.rand(2, 3, 32, 32)
    for source in (config, str(config), Config.fromfile(config)):
        loaded = apis.get_model(source, checkpoint, 'cpu')
        assert not loaded.training
        assert torch.equal(loaded(images), model(images))
        assert loaded.cfg.model.backbone.num_tokens == 4
        assert loaded.dataset_meta['classes'] == tuple('0123456789')
    assert apis.get_model('vt-resnet18-half_digits', head=dict(num_classes=3)).head.fc.out_features == 3
    with pytest.raises(UserError, match='does not fit the model: '):
        apis.get_model('vt-resnet18-half_digits', checkpoint)


@pytest.mark.parametrize('library', ['blas', 'onednn'])
@pytest.mark.parametrize('name', ['deit-small_16xb64-300e_in1k', 'vt-fpn_r18_digit-scenes'])
def test_a_model_has_the_implementations_of_predictions(name, library, monkeypatch):
    monkeypatch.setenv('VT_TOKEN_PRODUCTS', library)
    model = apis.get_model(name)
    kinds = [(type(part), len(part._forward_hooks)) for part in model.modules()]
    assert any(kind is Linear for kind, _ in kinds) == (library == 'onednn' and name.startswith('deit'))
    assert any(kind is FusedVTFPN for kind, _ in kinds) == name.startswith('vt-fpn')
    assert all(each.is_contiguous(memory_format=torch.channels_last) for each in model.parameters() if each.dim() == 4)
    assert model_zoo.resolve_model(model, None, None) is model
    assert [(type(part), len(part._forward_hooks)) for part in model.modules()] == kinds
    optimize_for(model, token_products='blas')
    assert not any(type(part) is Linear for part in model.modules())


def test_mmpretrains_functions_know_the_names_when_they_are_told(monkeypatch):
    assert mmpretrain.list_models('vt-') == []
    monkeypatch.setattr(ModelHub, '_models_dict', dict(ModelHub._models_dict))
    monkeypatch.setattr(model_zoo, 'MODULE2PACKAGE', {})
    for _ in range(2):
        apis.register_models()
    assert model_zoo.MODULE2PACKAGE == {'vt': 'vt'}  # for mmengine's ``_base_ = 'vt::...'``
    assert mmpretrain.list_models('vt-resnet') == apis.list_models('vt-resnet', ablations=True)
    model = mmpretrain.get_model('vt-resnet18_8xb32-90e_in1k', head=dict(num_classes=10))
    assert type(model.backbone) is vt.VTResNet
    result = mmpretrain.inference_model('vt-resnet18-half_digits', np.full((32, 32, 3), 200, np.uint8))
    assert result['pred_class'] in tuple('0123456789')


def test_a_model_is_initialised_without_reading_files_or_building_data(tmp_path):
    weights = "dict(type='Pretrained', checkpoint='https://nowhere.invalid/a.pth')"
    (tmp_path / 'a.py').write_text(
        f'_base_ = {str(apis.find_config("vt-resnet18-half_digits"))!r}\n'
        f"model = dict(backbone=dict(init_cfg={weights}))\ntest_dataloader = dict(dataset=dict(split='nowhere'))"
    )
    model = apis.get_model(tmp_path / 'a.py')
    assert model.dataset_meta['classes'] == tuple('0123456789')
    assert model.head.fc.weight.std().item() == pytest.approx(0.01, rel=0.2)  # as the head's init_cfg says
    assert model.backbone.init_cfg['checkpoint'].endswith('a.pth')  # for init_weights
    first = model.head.fc.weight.clone()
    model.backbone.init_cfg = None
    model.init_weights()
    assert not torch.equal(first, model.head.fc.weight)
    with pytest.raises(UserError, match=r'there is no checkpoint none\.pth'):
        apis.get_model(tmp_path / 'a.py', backbone=dict(init_cfg=dict(type='Pretrained', checkpoint='none.pth')))
