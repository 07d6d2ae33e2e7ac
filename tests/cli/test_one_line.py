"""One line trains, tests, predicts and exports, in the shell and in Python, with the same errors."""

import json
import shutil

import mmcv
import numpy as np
import pytest
from tool_runner import SMALL_CLASSIFIER, assert_one_line, call, succeed

import vt
from vt.apis import find_config
from vt.engine.config.compose import short_models
from vt.engine.config.short_names import SHORT_NAMES
from vt.engine.config.steps import RunOptions, prepare, read_config
from vt.errors import UserError

SMALL = ['image_size=32', 'batch_size=4', 'workers=0', *SMALL_CLASSIFIER]


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """A folder with images of two classes, without splits, and masks beside images."""
    folder = tmp_path_factory.mktemp('one line')
    for index in range(12):
        image = np.random.default_rng(index).integers(0, 256, (40, 48, 3), np.uint8)
        mmcv.imwrite(image, str(folder / f'my photos/{"cat" if index % 2 else "dog"}/{index}.png'))
        mmcv.imwrite(image, str(folder / f'scenes/images/{index}.png'))
        mmcv.imwrite(image[..., 0] % 2, str(folder / f'scenes/masks/{index}.png'))
    return folder


@pytest.fixture(scope='module')
def run_folder(folder):
    """The folder of a run of one epoch, trained by the command line."""
    result = succeed(call('train.py', 'vt-resnet18', 'data=my photos', 'epochs=1', *SMALL, cwd=folder))
    assert 'batch_size=4 with lr=0.004: the rate of the recipe is for batches of 32' in result.stdout
    return folder / 'work_dirs/vt-resnet18_my-photos'


def test_a_run_is_a_model_for_every_command(run_folder, folder):
    name, photo = str(run_folder.relative_to(folder)), 'my photos/cat/1.png'
    result = succeed(call('test.py', name, '--out', 'scores.json', cwd=folder))
    assert 'the best checkpoint, best_accuracy_top1_epoch_1.pth' in result.stdout
    tested = json.loads((folder / 'scores.json').read_text())
    trained = json.loads((run_folder / 'training.json').read_text())['metrics']
    assert tested['accuracy/top1'] == pytest.approx(trained['accuracy/top1'])
    found = []
    for words in ([name], [f'{name}/epoch_1.pth'], [f'{name}/vt-resnet18_my-photos.py', f'{name}/epoch_1.pth']):
        succeed(call('predict.py', *words, photo, '--out', 'found.json', cwd=folder))
        found.append(json.loads((folder / 'found.json').read_text()))
    succeed(call('predict.py', name, photo, f'weights={name}', '--out', 'found.json', cwd=folder))
    assert found == [json.loads((folder / 'found.json').read_text())] * 3
    succeed(call('export.py', name, 'program', cwd=folder))
    assert list(folder.glob('exported/*.pt2'))
    assert_one_line(call('export.py', name, 'onxx', cwd=folder), 'onxx is not a format: choose program, onnx, int8')


def test_python_does_what_the_command_does(run_folder, folder, tmp_path, monkeypatch):
    """The same weights to the bit, the same record, scores and predictions."""
    monkeypatch.chdir(folder)
    settings = dict(setting.split('=') for setting in SMALL_CLASSIFIER)
    settings = {key: int(value) if value.isdecimal() else value for key, value in settings.items()}
    options = dict(image_size=32, batch_size=4, workers=0, **settings)
    run = vt.train('vt-resnet18', data='my photos', epochs=1, work_dir=tmp_path / 'again', **options)
    one, other = (json.loads((path / 'training.json').read_text()) for path in (run_folder, run.folder))
    assert one['weights'] == other['weights']
    assert run.scores == one['metrics'] == vt.open_run(run_folder).scores
    scores = run.test()
    assert scores['accuracy/top1'] == pytest.approx(run.scores['accuracy/top1'])
    assert {type(score) for score in scores.values()} == {float}
    (found,) = run.predict('my photos/cat/1.png')
    assert found['predictions'][0]['name'] in ('cat', 'dog')
    assert [path.suffix for path in run.export('program', out_dir=tmp_path)] == ['.pt2']
    assert run.model().dataset_meta['classes'] == ('cat', 'dog')


BAD = {
    'a misspelt name': (['vt-resnet18', 'data=my photos', 'epoch=2'], "no setting 'epoch'; did you mean epochs"),
    'a name of elsewhere': (['vt-resnet18', 'data=my photos', 'learning_rate=1'], 'did you mean lr'),
    'a value of another type': (['vt-resnet18', 'data=my photos', 'epochs=two'], 'epochs=two must be a whole number'),
    'two values': (
        ['vt-resnet18', 'data=my photos', 'epochs=2', 'train_cfg.max_epochs=3'],
        'epochs=2 and train_cfg.max_epochs=3 are one setting',
    ),
    'a model of another task': (
        ['vt-resnet18', 'data=scenes'],
        'for segmentation, but the model is for classification',
    ),
    'images for a segmentor': (
        ['vt-fpn_r18', 'data=my photos'],
        'for classification, but the model is for segmentation',
    ),
    'no data there': (['vt-resnet18', 'data=none'], 'there is no none'),
    'no model': (['resnet-vt', 'data=my photos'], "there is no model 'resnet-vt': did you mean"),
    'a part that is not there': (
        ['vt-resnet18', 'data=my photos', 'freeze=stem', 'epochs=1'],
        'freeze=stem: the model has',
    ),
    'a number of a device': (['vt-resnet18', 'data=my photos', 'device=gpu'], 'device=gpu must be cpu, cuda'),
    'a size of images': (
        ['pvt-small', 'data=my photos', 'image_size=20', 'batch_size=4'],
        'image_size=32 is the nearest to 20 that the model takes',
    ),
    'data in memory': (['vt-resnet18_digits', 'data=my photos'], 'reads no files'),
}


@pytest.mark.parametrize('case', BAD)
def test_an_error_is_the_same_line_in_the_shell_and_in_python(case, folder, tmp_path, monkeypatch):
    words, message = BAD[case]
    result = call('train.py', *words, f'work_dir={tmp_path}/run', 'workers=0', cwd=folder)
    assert_one_line(result, message)
    monkeypatch.chdir(folder)
    model, *settings = words
    given = dict(setting.split('=') for setting in settings)
    given = {key: int(value) if value.isdecimal() else value for key, value in given.items()}
    with pytest.raises(UserError) as error:
        vt.train(model, **given, work_dir=f'{tmp_path}/run', workers=0)
    assert f': {error.value}' in result.stderr


def test_folders_that_are_no_model_are_one_line(run_folder, folder, tmp_path):
    shutil.copy(run_folder / 'epoch_1.pth', tmp_path)
    assert_one_line(call('test.py', tmp_path / 'epoch_1.pth', cwd=folder), 'has no config beside it')
    (tmp_path / 'epoch_1.pth').unlink()
    shutil.copy(run_folder / 'vt-resnet18_my-photos.py', tmp_path)
    assert_one_line(call('test.py', tmp_path, cwd=folder), 'has no checkpoint: the run has not saved one yet')
    assert_one_line(call('test.py', 'vt-resnet18', 'data=my photos', cwd=folder), 'needs weights')
    with pytest.raises(UserError, match='is not the folder of a run'):
        vt.open_run(folder)


def test_weights_of_a_config_are_left_out_on_request():
    segmentor = str(find_config('vt-fpn_r50_4xb4-160k-mmseg_ade20k-512x512'))
    assert read_config(segmentor).model.backbone.init_cfg.type == 'Pretrained'
    assert read_config(segmentor, dict(weights='none')).model.backbone.init_cfg is None
    fine_tuned, plain = (read_config(str(short_models()['resnet18']), dict(weights=each)) for each in ('timm', 'none'))
    assert (fine_tuned.train_cfg.max_epochs, plain.train_cfg.max_epochs) == (30, 90)
    assert plain.get('load_from') is None


def test_a_classifier_of_timm_takes_settings_as_others_do(folder):
    options = dict(data=str(folder / 'my photos'), weights='none', drop_path=0.1)
    cfg = prepare('timm:resnet18', RunOptions(options)).cfg
    assert cfg.model.backbone.options == dict(drop_path_rate=0.1)
    assert cfg.get('load_from') is None
    assert cfg.config_name == 'timm-resnet18_my-photos'


def test_a_config_may_set_short_names_and_have_variables_of_their_name(folder, monkeypatch):
    monkeypatch.chdir(folder)
    base = "_base_ = 'vt::_base_/recipes/fine_tune_image-folder.py'\n"
    text = f'{base}epochs = 7\nlr = 0.5\nbatch_size = 3\ntrain_dataloader = dict(batch_size=2 * batch_size)\n'
    (folder / 'own.py').write_text(
        text + "model = dict(backbone=dict(type='ResNet', depth=18), head=dict(in_channels=512))"
    )
    cfg = read_config('own.py', dict(workers=0))
    assert cfg.train_cfg.max_epochs == 7
    assert cfg.optim_wrapper.optimizer.lr == 0.5
    assert cfg.train_dataloader.batch_size == 6  # a variable there
    assert cfg.train_dataloader.num_workers == cfg.val_dataloader.num_workers == 0
    assert not {*SHORT_NAMES} & {'epochs', 'lr'} & cfg.keys()
