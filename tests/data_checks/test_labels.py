"""Labels that mean something else in another split, or than the config says, are found by the names of the classes."""

import json

import cv2
import numpy as np
import pytest
from mmpretrain.datasets import CustomDataset, MultiLabelDataset

from vt.data_checks.labels import compare_classes, find_gaps, labels_of, tabulate_classes
from vt.data_checks.samples import Problem, Sample, infos_of
from vt.engine.checks.classes import compare_with_checkpoint, labels_in


@pytest.fixture
def load(tmp_path):
    """A function that writes class folders of two images each and loads them as a split."""

    def load(split, *folders, classes=None, number=2):
        for folder in folders:
            (tmp_path / split / folder).mkdir(parents=True)
            for index in range(number):
                cv2.imwrite(str(tmp_path / split / folder / f'{index}.png'), np.zeros((4, 4, 3), np.uint8))
        metainfo = classes and dict(classes=classes)
        dataset = CustomDataset(str(tmp_path / split), metainfo=metainfo, lazy_init=True, serialize_data=False)
        dataset.full_init()
        return labels_of(split, dataset, [Sample('', labels_in(info)) for info in infos_of(dataset)], None)

    return load


def messages(problems):
    problems = [problem if isinstance(problem, Problem) else problem[1] for problem in problems]
    return [f'{problem.kind}: {problem.message}' for problem in problems]


@pytest.mark.parametrize(
    ('val', 'words'),
    [
        (('apple', 'banana', 'Cherry'), "rename 'Cherry' to 'cherry'"),
        (('apple', 'banana ', 'cherry'), "rename 'banana ' to 'banana'"),
        (
            ('banana', 'cherry'),
            "does not have the class folder 'apple' of train: give both the same, if need be as empty folders",
        ),
        (('apple', 'banana', 'cherry', 'date'), "has the class folder 'date', which train"),
        (('apple', 'banana', 'kiwi'), "has the class folder 'kiwi', which train"),
    ],
)
def test_folders_that_move_the_labels(load, val, words):
    (found,) = messages(compare_classes([load('train', 'apple', 'banana', 'cherry'), load('val', *val)]))
    assert words in found


def test_folders_in_another_unicode_normalisation(load):
    splits = [load('train', 'caf\u00e9', 'tea'), load('val', 'cafe\u0301', 'tea'), load('test', 'cafe\u0301', 'cafz')]
    assert not [*compare_classes(splits[:2])]
    assert [row['name'] for row in tabulate_classes(splits[:2])] == ['caf\u00e9', 'tea']
    splits[0] = load('more', 'caf\u00e9', 'cafz')
    (found,) = messages(compare_classes([splits[0], splits[2]]))
    words = r"has the class folder 'cafe\u0301', but more has 'caf\xe9', so the "
    assert words in found
    assert r"rename 'cafe\u0301' to 'caf\xe9'" in found


def test_the_same_folders_pass(load):
    splits = [load(split, 'apple', 'banana') for split in ('train', 'val')]
    assert not [*compare_classes(splits)]
    assert tabulate_classes(splits) == [
        dict(label='0', name='apple', train='2', val='2'),
        dict(label='1', name='banana', train='2', val='2'),
    ]


def test_an_empty_class_folder_keeps_the_labels_and_is_named(load, tmp_path):
    train = load('train', 'apple', 'banana', 'cherry')
    (tmp_path / 'val/apple').mkdir(parents=True)
    val = load('val', 'banana', 'cherry')
    assert not [*compare_classes([train, val])]
    assert messages(find_gaps(val)) == ["no samples: has no sample of 'apple': its score has no meaning"]


def test_a_hidden_folder_is_no_class(load):
    (found,) = messages(compare_classes([load('train', '.ipynb_checkpoints', 'apple')]))
    assert 'has the hidden folder .ipynb_checkpoints, which would be a class: remove it' in found


@pytest.mark.parametrize('classes', [('banana', 'apple'), ('Banana', 'Apple'), ('apple', 'other')])
def test_classes_of_the_config_in_another_order_than_the_folders(load, classes):
    (found,) = messages(compare_classes([load('train', 'apple', 'banana', classes=classes)]))
    assert 'give classes the order of the folders' in found


@pytest.mark.parametrize('classes', [('Apple', 'Banana'), ('tench', 'goldfish')])
def test_other_names_for_the_same_folders_pass(load, classes):
    assert not [*compare_classes([load('train', 'apple', 'banana', classes=classes)])]


def test_classes_of_an_annotation_file_in_another_order(tmp_path):
    def load(split, classes, labels=((0,), (1, 2))):
        items = [dict(img_path=f'{index}.png', gt_label=[*label]) for index, label in enumerate(labels)]
        path = tmp_path / f'{split}.json'
        path.write_text(json.dumps(dict(metainfo=dict(classes=classes), data_list=items)))
        dataset = MultiLabelDataset(str(path), lazy_init=True, serialize_data=False)
        dataset.full_init()
        return labels_of(split, dataset, [Sample('', labels_in(info)) for info in infos_of(dataset)], None)

    train, val = load('train', ['a', 'b', 'c']), load('val', ['a', 'c', 'b'])
    assert train.counts == {0: 1, 1: 1, 2: 1}
    (found,) = messages(compare_classes([train, val]))
    assert "has 'c' as label 1, but train has 'b': give both the same order of classes" in found


def test_one_class_alone_is_no_training(load, tmp_path):
    (tmp_path / 'train/b').mkdir(parents=True)
    found = messages(find_gaps(load('train', 'a', number=12)))
    assert found == ["one class: has samples of only one class, 'a': nothing is learned"]


@pytest.mark.parametrize(
    ('classes', 'words'),
    [
        (('apple', 'banana'), None),
        (('Apple', 'Banana'), None),
        (('a\u0301pple', 'banana'), "a.pth was trained with 'apple' as label 0, the data has 'a\u0301pple'"),
        (('Apfel', 'Banane'), None),  # the same classes in another language
        (('banana', 'apple'), "a.pth was trained with 'apple' as label 0, the data has 'banana'"),
        (('apple', 'banana', 'cherry'), "a.pth was trained with 2 classes ('apple', 'banana'), the data has 3"),
    ],
)
def test_classes_of_a_checkpoint(classes, words):
    assert compare_with_checkpoint(classes, ('apple', 'banana'), 'a.pth', 'the data') == words


def test_classes_of_a_checkpoint_in_another_unicode_normalisation():
    assert compare_with_checkpoint(('cafe\u0301', 'tea'), ('caf\u00e9', 'tea'), 'a.pth', 'the data') is None
