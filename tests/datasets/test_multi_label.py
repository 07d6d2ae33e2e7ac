"""Images with several labels: tables and folders are read as they say, and what does not fit is named by its line."""

import json

import numpy as np
import pytest
import torch
from apis.small_models import make, write_image
from mmpretrain.datasets import MultiLabelDataset
from mmpretrain.models import LinearClsHead, MultiLabelLinearClsHead
from PIL import Image
from torch import nn

from vt import apis
from vt.analysis.evaluation import ClassScores
from vt.commands.predict import read_thresholds
from vt.datasets import MultiLabelImages
from vt.engine.hooks.num_classes import check_classes
from vt.errors import UserError
from vt.inference.test_set import name_class, spread_over_classes

EXPECTED = {'a.png': ['cat', 'dog'], 'b.png': [], 'more/c.png': ['cow']}


def image(path, colour=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new('RGB', (4, 4), (colour, 0, 0)).save(path)


@pytest.fixture
def root(tmp_path):
    for colour, name in enumerate(EXPECTED):
        image(tmp_path / 'train' / name, colour)
    return tmp_path


def load(root, text, **options):
    (root / 'train.csv').write_text(text)
    return MultiLabelImages('train.csv', data_root=str(root), data_prefix='train', serialize_data=False, **options)


def labels_of(dataset):
    names = dataset.metainfo['classes']
    infos = [dataset.get_data_info(index) for index in range(len(dataset))]
    return {info['img_path'].split('/train/')[1]: [names[label] for label in info['gt_label']] for info in infos}


TABLES = {
    'names': 'file,labels\na.png,dog;cat\nb.png,\nmore/c.png,cow\n',
    'pipes': 'image;tags\na.png;dog|cat|dog\nb.png;\nmore/c.png; cow \n',
    'quoted': '\ufefffile,labels\r\na.png,"dog, cat"\r\nb.png,""\r\n\r\nmore/c.png,cow\r\n',
    'columns': 'file,cow,dog,cat\na.png,0,1,1\nb.png,0, 0,0\nmore/c.png,1,0,0\n',
    'of pandas': 'file\tcat\tcow\tdog\na.png\tTrue\tFalse\t1.0\nb.png\t0.0\t0\t0\nmore/c.png\t0\t1\t0\n',
}


@pytest.mark.parametrize('text', TABLES.values(), ids=TABLES)
def test_forms_of_a_table(root, text):
    dataset = load(root, text)
    assert labels_of(dataset) == EXPECTED
    assert {*dataset.metainfo['classes']} == {'cat', 'cow', 'dog'}
    given = load(root, text, metainfo=dict(classes=['dog', 'cat', 'cow']))
    assert given.metainfo['classes'] == ['dog', 'cat', 'cow']
    assert {name: {*labels} for name, labels in labels_of(given).items()} == {k: {*v} for k, v in EXPECTED.items()}
    assert given.get_cat_ids(0) == [0, 1]


def test_names_of_classes_in_two_unicode_normalisations_are_equal(tmp_path):
    composed, decomposed = 'caf\u00e9', 'cafe\u0301'
    table = f'file,labels\na.png,{composed}\nb.png,{decomposed};tea\n'
    for options in ({}, dict(metainfo=dict(classes=(decomposed, 'tea')))):
        dataset = load(tmp_path, table, **options)
        assert [info['gt_label'] for info in map(dataset.get_data_info, (0, 1))] == [[0], [0, 1]]
    assert load(tmp_path, f'file,{composed},tea\na.png,1,0\nb.png,0,1\n', **options).get_cat_ids(1) == [1]


def test_classes_that_are_numbers_are_ordered_by_value(root):
    assert load(root, 'file,labels\na.png,10;9\nb.png,\nmore/c.png,1\n').metainfo['classes'] == ('1', '9', '10')


CAT_AND_DOG = dict(metainfo=dict(classes=['cat', 'dog']))


@pytest.mark.parametrize(
    ('text', 'options', 'message'),
    [
        ('a.png,cat\nb.png,dog\n', {}, 'line 1 must name the columns: file,labels'),
        ('file,labels\na.png,cat\nb.png,Cat\n', {}, "line 3 has the label 'Cat', but earlier lines have 'cat'"),
        ('file,labels\na.png,cat\na.png,dog\n', {}, 'line 3 names a.png again'),
        ('file,labels\na.png,cat,dog\n', {}, 'line 2 has 3 columns, but the header has 2'),
        ('file,cat\na.png,2\n', {}, "line 2 has '2' in the column cat, but must have 0 or 1"),
        ('file,labels\na.png,Cat\n', CAT_AND_DOG, "line 2 has the label 'Cat', but the classes have 'cat': use"),
        (
            'file,cat\na.png,1\n',
            CAT_AND_DOG,
            "'dog' is only a column or only a class: use one column for each of the 2",
        ),
    ],
)
def test_lines_that_do_not_fit(root, text, options, message):
    with pytest.raises(UserError, match=message):
        load(root, text, **options)


@pytest.mark.parametrize('cell', ['', ' ', 'nan', 'NaN', '-1', '-1.0', 'None'])
def test_cells_that_nobody_filled_in(root, cell):
    text = f'file,cat,cow,dog\na.png,1,{cell},1\nb.png,{cell},{cell},0\nmore/c.png,0,1,0\n'
    words = '2 of 3 images .* column cow, and so have 1 more columns: if that means 0, set m'
    with pytest.raises(UserError, match=words):
        load(root, text)
    assert labels_of(load(root, text, missing='no')) == EXPECTED


@pytest.fixture
def unnamed(tmp_path):
    """A list in JSON that names no classes."""
    items = [dict(img_path=f'{index}.png', gt_label=labels) for index, labels in enumerate([[0, 2], [], [0, 2], [1]])]
    (tmp_path / 'list.json').write_text(json.dumps(dict(metainfo={}, data_list=items)))
    return MultiLabelDataset(str(tmp_path / 'list.json'), data_prefix=str(tmp_path), serialize_data=False)


def test_images_of_several_labels_are_spread_and_named(unnamed):
    assert spread_over_classes(unnamed, 4) == [1, 0, 3, 2]
    assert name_class(torch.tensor([0, 2]), unnamed.metainfo.get('classes')) == '0, 2'
    assert name_class(torch.tensor([]), None) == 'nothing'


def test_metrics_of_one_label(unnamed):
    for head, several in ((MultiLabelLinearClsHead(3, 8), False), (LinearClsHead(3, 8), True)):
        model = nn.ModuleDict(dict(head=head))
        with pytest.raises(UserError, match=f'ClassScores has several_labels={several}, .*: set several_labels='):
            check_classes(model, unnamed, [ClassScores(several_labels=several)])
        check_classes(model, unnamed, [ClassScores(several_labels=not several)])


HEAD = "model['head'] = dict(_delete_=True, type='MultiLabelLinearClsHead', num_classes=10, in_channels=64)"


def test_predicted_labels_follow_the_thresholds(tmp_path):
    _, _, model, sample = make(tmp_path, 'vt-resnet18-half_digits', HEAD)
    inferencer = apis.inferencer_of(model)
    path = str(write_image(tmp_path / 'a.png', sample['inputs']))
    (result,) = inferencer(path)
    scores = result['pred_scores']
    names = inferencer.classes
    assert result['pred_label'] == np.flatnonzero(scores >= 0.5).tolist()
    inferencer.thresholds = float(np.sort(scores)[-3])
    (result,) = inferencer(path)
    assert result['pred_label'] == sorted(np.argsort(scores)[-3:].tolist())
    assert result['pred_class'] == [names[label] for label in result['pred_label']]
    assert result['pred_score'] == scores[result['pred_label']].tolist()
    (sample,) = inferencer(path, return_datasamples=True)
    for top_k, shown in ((1, 3), (3, 3), (5, 5)):  # predicted labels are shown in any case
        entries = inferencer.describe(sample, top_k)['predictions']
        assert [entry['predicted'] for entry in entries] == [True] * 3 + [False] * (shown - 3)
    report = dict(per_class=[dict(name=name, best_threshold=None) for name in names])  # without samples: 0.5
    least, most = int(scores.argmin()), int(scores.argmax())
    report['per_class'][least]['best_threshold'] = float(scores[least])
    report['per_class'][most]['best_threshold'] = 2.0
    (tmp_path / 'report.json').write_text(json.dumps(report | dict(per_class=report['per_class'][::-1])))
    inferencer.thresholds = read_thresholds(str(tmp_path / 'report.json'), names)
    (result,) = inferencer(path)
    assert {*result['pred_label']} == {least, *np.flatnonzero(scores >= 0.5)} - {most}
    assert [read_thresholds(number, names) for number in ('0', '0.3', '1')] == [0, 0.3, 1]


@pytest.mark.parametrize(
    ('given', 'message'),
    [
        ('1.5', 'must be a number from 0 to 1'),
        ('none.json', 'there is no none.json; python -m vt test --report'),
        ('report.json', "report.json has no best_threshold for class 'cat'"),
    ],
)
def test_thresholds_that_are_none(tmp_path, monkeypatch, given, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'report.json').write_text(json.dumps(dict(per_class=[dict(name='cat', F1=1.0)])))
    with pytest.raises(UserError, match=message):
        read_thresholds(given, ['cat'])
