"""A saved model predicts what it did; nothing that is no data or no part gets in."""

import copy
import json
import shutil
import sys

import numpy as np
import pytest
import torch
from apis.small_models import SMALL, make
from mmengine.config import Config
from mmengine.dataset import pseudo_collate

from vt import apis
from vt.apis.folders import describe, read_folder
from vt.apis.model_zoo import resolve_config
from vt.errors import MissingFileError, UserError

CLASSIFIER = 'vt-resnet18-half_digits'


@pytest.fixture(scope='module')
def saved(tmp_path_factory):
    """Of each small model its config, itself, a sample of its test set, and the folder that it was saved to."""
    folder, models = tmp_path_factory.mktemp('some models'), {}
    for name in SMALL:
        config, _, model, sample = make(folder, name)
        apis.save_model(model, folder / 'saved' / name)
        models[name] = config, model, sample, folder / 'saved' / name
    return models


def scores(prediction):
    return prediction.pred_score if 'pred_score' in prediction else prediction.seg_logits.data


@torch.no_grad()
def predict(model, sample):
    return scores(model.test_step(pseudo_collate([sample]))[0])


@pytest.mark.parametrize('name', SMALL)
def test_a_saved_model_predicts_the_same_bits(name, saved):
    config, model, sample, folder = saved[name]
    assert {path.name for path in folder.iterdir()} == {'config.json', 'model.safetensors'}
    assert describe(read_folder(folder)) == describe(model.cfg)  # tuples are tuples
    for again in (
        apis.get_model(str(folder), pretrained=True),
        apis.get_model(config, pretrained=folder),
    ):
        assert not again.training
        assert torch.equal(predict(again, sample), predict(model, sample))
        assert list(again.dataset_meta['classes']) == list(model.dataset_meta['classes'])
    assert not torch.equal(predict(apis.get_model(folder, pretrained=False), sample), predict(model, sample))


def test_the_config_of_a_folder_finds_its_weights_anywhere_and_takes_options(saved, tmp_path, monkeypatch):
    _, model, sample, folder = saved[CLASSIFIER]
    monkeypatch.chdir(folder.parent)
    cfg = resolve_config(f'./{folder.name}', {'test_cfg.fp16': True})
    assert cfg.test_cfg == dict(fp16=True)
    with pytest.raises(UserError, match=r'^--cfg-options test_dataloader.*7.a=8: the config has no such key'):
        resolve_config(cfg, {'test_dataloader.dataset.pipeline.7.a': 8})
    monkeypatch.chdir(tmp_path)
    assert torch.equal(predict(apis.get_model(cfg), sample), predict(model, sample))


@pytest.mark.parametrize('name', list(SMALL)[:2])
def test_inferencers_take_a_folder(name, saved):
    _, model, _, folder = saved[name]
    image = np.random.default_rng(0).integers(0, 256, (50, 70, 3), np.uint8)
    results = []
    for inferencer in (apis.inferencer_of(model), apis.inferencer_of(folder)):
        (batch,) = inferencer.preprocess([image])
        results.append((scores(inferencer.forward(batch)[0]), [*inferencer.classes]))
    assert torch.equal(results[0][0], results[1][0])
    assert results[0][1] == results[1][1]


def test_data_sets_and_paths_of_this_machine_are_not_saved(saved, tmp_path):
    _, model, *_ = saved[CLASSIFIER]
    cfg = Config(model.cfg.to_dict())
    load = dict(type='LoadImageFromFile', backend_args=dict(backend='local'))
    resize = dict(type='ResizeEdge', scale=36, interpolation='bicubic')
    cfg.test_dataloader.dataset = dict(
        type='CustomDataset',
        data_root=str(tmp_path / 'own data'),
        pipeline=[load, resize, dict(type='CenterCrop', crop_size=32), dict(type='PackInputs')],
    )
    cfg.model.init_cfg = dict(type='Pretrained', checkpoint=str(tmp_path / 'some.pth'))
    apis.save_model(model, tmp_path / 'saved', cfg)
    text = (tmp_path / 'saved/config.json').read_text()
    assert str(tmp_path) not in text
    assert json.loads(text)['pipeline'] == [dict(type='LoadImageFromFile'), *cfg.test_dataloader.dataset.pipeline[1:]]
    image = np.random.default_rng(0).integers(0, 256, (50, 70, 3), np.uint8)
    again = copy.copy(model)
    again.cfg = cfg
    samples = [apis.inferencer_of(source).pipeline(image) for source in (again, tmp_path / 'saved')]
    assert torch.equal(samples[0]['inputs'], samples[1]['inputs'])


def spoil(content, change):
    """The text of a config of a saved model with a setting of it changed."""
    *way, last = change[0].split('.')
    place = content = json.loads(content)
    for key in way:
        place = place[key]
    place[last] = change[1]
    return json.dumps(content)


BAD = {
    'another kind': ('{"architectures": ["ResNet"]}', 'lacks library, format, scope, model, pipeline'),
    'a word': ('"library, format, scope, model, pipeline"', 'config.json contains a str, not a dict; give a folder'),
    'no JSON': ('model = dict()', 'is damaged: JSONDecodeError: Expecting value'),
    'too deep': ('[' * 200_000, 'is damaged: RecursionError: '),
    'no bytes': ('', 'config.json is damaged: JSONDecodeError'),
    'a tuple': ('{"tuple": []}', 'lacks library, format'),
    'a number of many digits': ('{"format": ' + '1' * 5000 + '}', 'is damaged: ValueError: '),
    'tuples in tuples': (
        ('model.backbone.num_tokens', {'tuple': [{'tuple': []}]}),
        'model.backbone.num_tokens=((),) must be of type int',
    ),
    'no number': (
        ('model.backbone.num_tokens', float('nan')),
        'num_tokens=nan is not a string, or a number up to 131,072',
    ),
    'half a letter': (('model.backbone.type', '\ud800'), "type='\\ud800' is none of the types of saved models"),
    'another format': (('format', 1), 'is not a model of visual-transformers in format 4'),
    'no model': (('model', []), 'model has no type'),
    'a key of its own': (('test_dataloader', {}), 'test_dataloader is not in the config of a saved model'),
    'a function': (
        ('model.neck.type', 'os.system'),
        "model.neck.type='os.system' is none of the types of saved models",
    ),
    'no name': (('model.neck.type', ['vt.TokenAverage']), 'is none of the types of saved models'),
    'another scope': (('scope', 'os'), "scope='os' is none of mmpretrain, mmseg"),
    'unknown option': (('model.backbone.depht', 18), "VTResNet has no argument 'depht'"),
    'weights to begin from': (
        ('model.init_cfg', dict(type='Pretrained')),
        "model has the key 'init_cfg', which is not allowed",
    ),
    'a wrong number': (
        ('model.backbone.depth', 'eighteen'),
        "model.backbone.depth='eighteen' is not allowed in a saved model",
    ),
    'another number': (('model.backbone.depth', 19), 'bad, in model.backbone (vt.VTResNet): KeyError'),
    'a list as a part': (('model.backbone', [1]), 'bad, in ImageClassifier: TypeError'),
    'a size of another kind': (('model.head.in_channels', [64]), 'in model.head (LinearClsHead): TypeError: '),
    'a file': (('model.head.loss.class_weight', 'weights.pkl'), "class_weight='weights.pkl' is not allowed in a saved"),
    'a step': (('pipeline', [dict(type='os.abort')]), "pipeline.0.type='os.abort' is none of the types"),
    'an expression': (('pipeline', [dict(type='Resize', interpolation='1+1')]), "0.interpolation='1+1' is not allowed"),
    'an unknown option of a step': (
        ('pipeline', [dict(type='CenterCrop', crop=1)]),
        "CenterCrop has no argument 'crop'",
    ),
    'a step of another size': (('pipeline', [dict(type='CenterCrop', crop_size=-1)]), 'is damaged: AssertionError'),
    'a shape of text': (('shape', ['3', 32, 32]), "shape=['3', 32, 32] is not the shape of an input"),
    'names beside the weights': (('classes', ['a']), 'classes is not in the config of a saved model'),
    'weights of another model': (('model.head.num_classes', 3), "is not the model's: head.fc.weight is (10, 64)"),
}


@pytest.mark.parametrize('kind', BAD)
def test_a_bad_config_is_one_line_and_nothing_of_it_is_run(kind, saved, tmp_path):
    *_, folder = saved[CLASSIFIER]
    content, message = BAD[kind]
    shutil.copytree(folder, tmp_path / 'bad')
    config = tmp_path / 'bad/config.json'
    config.write_text(content if isinstance(content, str) else spoil(config.read_text(), content))
    for read in (apis.get_model, apis.inferencer_of):
        with pytest.raises(UserError) as error:
            read(tmp_path / 'bad')
        assert message in str(error.value)
        assert '\n' not in str(error.value)
        assert str(tmp_path / 'bad') in str(error.value)
    assert 'antigravity' not in sys.modules


@pytest.mark.parametrize('name', ['config.json', 'model.safetensors'])
def test_a_folder_without_a_file_is_one_line(name, saved, tmp_path):
    shutil.copytree(saved[CLASSIFIER][3], tmp_path / 'bad')
    (tmp_path / 'bad' / name).unlink()
    for read in (apis.get_model, apis.inferencer_of):
        with pytest.raises(MissingFileError, match=rf'there is no .*bad/{name}'):
            read(tmp_path / 'bad')


def test_what_can_not_be_saved_is_one_line(saved, tmp_path):
    _, model, *_ = saved[CLASSIFIER]
    with pytest.raises(UserError, match='Linear has no attribute cfg: give cfg'):
        apis.save_model(torch.nn.Linear(1, 1), tmp_path)
    cfg = Config(model.cfg.to_dict())
    cfg.model.head.loss = dict(type=torch.nn.CrossEntropyLoss)
    with pytest.raises(UserError, match=r'model\.head\.loss\.type=.* is none of the types'):
        apis.save_model(model, tmp_path, cfg)
