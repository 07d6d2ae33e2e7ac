"""A saved model predicts what it did; what a folder cannot hold is refused when it is saved."""

import copy
import json

import numpy as np
import pytest
import torch
from apis.small_models import SMALL
from mmengine.config import Config
from mmengine.dataset import pseudo_collate

from vt import apis
from vt.apis.model_zoo import resolve_config
from vt.errors import UserError
from vt.serialization.model_folder import describe, read_folder

CLASSIFIER = 'vt-resnet18-half_digits'
SOLARIZE, PACK = dict(type='Solarize', thr=128), dict(type='PackInputs')


def scores(prediction):
    return prediction.pred_score if 'pred_score' in prediction else prediction.seg_logits.data


@torch.no_grad()
def predict(model, sample):
    return scores(model.test_step(pseudo_collate([sample]))[0])


@pytest.mark.parametrize('name', SMALL)
def test_a_saved_model_predicts_the_same_bits(name, small_model, saved):
    (config, _, model, sample), folder = small_model(name), saved[name]
    assert {path.name for path in folder.iterdir()} == {'config.json', 'model.safetensors'}
    assert describe(read_folder(folder)) == describe(model.cfg)  # tuples are tuples
    for again in (apis.get_model(str(folder), pretrained=True), apis.get_model(config, pretrained=folder)):
        assert not again.training
        assert torch.equal(predict(again, sample), predict(model, sample))
        assert list(again.dataset_meta['classes']) == list(model.dataset_meta['classes'])
    assert not torch.equal(predict(apis.get_model(folder, pretrained=False), sample), predict(model, sample))


def test_the_config_of_a_folder_finds_its_weights_anywhere_and_takes_options(small_model, saved, tmp_path, monkeypatch):
    (_, _, model, sample), folder = small_model(CLASSIFIER), saved[CLASSIFIER]
    monkeypatch.chdir(folder.parent)
    cfg = resolve_config(f'./{folder.name}', {'test_cfg.fp16': True})
    assert cfg.test_cfg == dict(fp16=True)
    monkeypatch.chdir(tmp_path)
    assert torch.equal(predict(apis.get_model(cfg), sample), predict(model, sample))


def test_data_sets_and_paths_of_this_machine_are_not_saved(small_model, tmp_path):
    model = small_model(CLASSIFIER)[2]
    cfg = Config(model.cfg.to_dict())
    load = dict(type='LoadImageFromFile', backend_args=dict(backend='local'))
    steps = [dict(type='ResizeEdge', scale=36, interpolation='bicubic'), dict(type='CenterCrop', crop_size=32), PACK]
    dataset = dict(type='CustomDataset', data_root=str(tmp_path / 'own data'), pipeline=[load, *steps])
    cfg.test_dataloader.dataset = dataset
    cfg.model.init_cfg = dict(type='Pretrained', checkpoint=str(tmp_path / 'some.pth'))
    apis.save_model(model, tmp_path / 'saved', cfg)
    text = (tmp_path / 'saved/config.json').read_text()
    assert str(tmp_path) not in text
    assert json.loads(text)['pipeline'] == [dict(type='LoadImageFromFile'), *steps]
    image = np.random.default_rng(0).integers(0, 256, (50, 70, 3), np.uint8)
    again = copy.copy(model)
    again.cfg = cfg
    samples = [apis.inferencer_of(source).pipeline(image) for source in (again, tmp_path / 'saved')]
    assert torch.equal(samples[0]['inputs'], samples[1]['inputs'])


def test_a_distilled_model_is_saved_without_its_teacher():
    model = describe(resolve_config('vt-resnet18-advanced_digits'))['model']
    assert model['type'] == 'ImageClassifier'
    assert not {'teacher', 'teacher_checkpoint', 'distillation_weight', 'train_cfg'} & model.keys()


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'model.head.loss.type': torch.nn.CrossEntropyLoss}, r'model\.head\.loss\.type=.* is'),
        ({'model.backbone': dict(type='TIMMBackbone', _delete_=True)}, r"model\.backbone\.type='TIMMBackbone' is"),
        ({'test_dataloader.dataset.pipeline': [SOLARIZE, PACK]}, r"^pipeline\.0\.type='Solarize' is"),
    ],
)
def test_what_a_folder_can_not_hold_is_named(change, message, small_model, tmp_path):
    model = small_model(CLASSIFIER)[2]
    cfg = Config(model.cfg.to_dict())
    cfg.merge_from_dict(change)
    with pytest.raises(UserError, match=rf'{message} not allowed .* \(python -m vt publish\) and a config$'):
        apis.save_model(model, tmp_path, cfg)
    assert not [*tmp_path.iterdir()]
