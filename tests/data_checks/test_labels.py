"""Labels that mean something else in another split, or than the config says, are found by the names of the classes."""

import json
from collections import Counter
from dataclasses import replace

import cv2
import numpy as np
import pytest
from mmpretrain.datasets import CustomDataset, MultiLabelDataset

from vt.data_checks.labels import Labels, compare_classes, find_label_gaps, labels_of, tabulate_classes
from vt.data_checks.samples import Sample, iter_data_infos
from vt.engine.hooks.num_classes import compare_with_checkpoint, labels_in


def labels(split, *names, found=None, folders=True, **counts):
    """Labels of a split with two samples of each class, but for those in ``counts``."""
    numbers = +Counter({label: counts.get(name, 2) for label, name in enumerate(names)})  # without zeros
    return Labels(split, f'data/{split}', names, numbers, found or names, folders)


def load(kind, *arguments):
    dataset = kind(*arguments, lazy_init=True, serialize_data=False)
    dataset.full_init()
    return labels_of('train', dataset, [Sample('', labels_in(info)) for info in iter_data_infos(dataset)], None)


OF_SPLITS = [  # classes of the training and of the validation
    ('apple|banana|cherry', 'apple|banana|cherry', None),
    ('apple|banana|cherry', 'apple|banana|Cherry', "has the class 'Cherry' for label 2, but train"),
    ('apple|banana|cherry', 'banana|cherry', "for label 0, but train has the class 'apple': use"),
    ('apple|banana|cherry', 'apple|banana|cherry|date', "'date' for label 3, but train has no class:"),
    ('caf\u00e9|tea', 'cafe\u0301|tea', None),
    ('caf\u00e9|tea', 'caf\u00e9|te\u0430', r"class 'te\u0430' for label 1, but"),
]
OF_FOLDERS = [  # classes of the config, and folders
    ('.ipynb_checkpoints a', '.ipynb_checkpoints a', 'hidden folder .ipynb_checkpoints, which would be a class'),
    ('banana apple', 'apple banana', 'set classes in the order of the folders'),
    ('apple other', 'apple banana', "has 'banana' from label 1, but train_dataload"),
    ('Apple Banana', 'apple banana', None),
    ('tench goldfish', 'apple banana', None),
]


@pytest.mark.parametrize(
    ('splits', 'words'),
    [
        ([labels('train', *'abc', folders=False), labels('val', *'acb', folders=False)], 'in the same order'),
        *(([labels('train', *a.split('|')), labels('val', *b.split('|'))], words) for a, b, words in OF_SPLITS),
        *(([labels('train', *a.split(), found=tuple(b.split()))], words) for a, b, words in OF_FOLDERS),
    ],
)
def test_labels_that_mean_other_classes(splits, words):
    found = [problem.message for _, problem in compare_classes(splits)]
    assert len(found) == (words is not None)
    assert words is None or words in found[0]


@pytest.mark.parametrize(
    ('own', 'expected'),
    [
        (labels('val', 'a', 'b', a=0), "no samples: has no sample of 'a': its score has no meaning"),
        (labels('train', 'a', 'b', a=0, b=12), "one class: has samples of only one class, 'b': nothing is learned"),
        (labels('train', 'a', 'b'), None),
        (replace(labels('train', 'a'), total=2), "one class: has samples of only one class, 'a': nothing is learned"),
        (replace(labels('train', 'a'), total=3), None),  # of several labels: one image is without it
        (replace(labels('val', 'a'), total=2), None),
    ],
)
def test_classes_without_samples(own, expected):
    assert [f'{problem.kind}: {problem.message}' for problem in find_label_gaps(own)] == (
        [expected] if expected else []
    )


def test_folders_and_lists_have_these_labels(tmp_path):
    for name in ('train/b/0.png', 'train/b/1.png', 'train/a/.keep'):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(tmp_path / name), np.zeros((4, 4, 3), np.uint8)) if 'png' in name else (tmp_path / name).touch()
    own = load(CustomDataset, str(tmp_path / 'train'))
    assert (own.names, own.found, own.folders, own.counts) == (('a', 'b'), ('a', 'b'), True, {1: 2})
    assert tabulate_classes([own]) == [dict(label='0', name='a', train='0'), dict(label='1', name='b', train='2')]
    items = [dict(img_path=f'{index}.png', gt_label=label) for index, label in enumerate(([0], [1, 2]))]
    (tmp_path / 'list.json').write_text(json.dumps(dict(metainfo=dict(classes=[*'abc']), data_list=items)))
    own = load(MultiLabelDataset, str(tmp_path / 'list.json'))
    assert (own.names, own.found, own.folders, own.counts) == ((*'abc',), (*'abc',), False, {0: 1, 1: 1, 2: 1})


@pytest.mark.parametrize(
    ('classes', 'words'),
    [
        (('apple', 'banana'), None),
        (('a\u0301pple', 'banana'), "a.pth was trained with 'apple' as label 0, the data has 'a\u0301pple'"),
        (('Apfel', 'Banane'), None),  # the same classes in another language
        (('banana', 'apple'), "a.pth was trained with 'apple' as label 0, the data has 'banana'"),
        (('apple', 'banana', 'cherry'), "a.pth was trained with 2 classes ('apple', 'banana'), the data has 3"),
    ],
)
def test_classes_of_a_checkpoint(classes, words):
    assert compare_with_checkpoint(classes, ('apple', 'banana'), 'a.pth', 'the data') == words
    assert compare_with_checkpoint(('cafe\u0301', 'tea'), ('caf\u00e9', 'tea'), 'a.pth', 'the data') is None
