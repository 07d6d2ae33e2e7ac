"""``tools/test.py --report FOLDER``: what it says is what the predictions say, on a page in one file."""

import json
import pickle
import re
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from commands.test_data_page import HOSTILE, Page, write
from PIL import Image
from scipy.stats import binomtest
from sklearn import metrics
from tool_runner import assert_one_line, call, succeed

from vt.commands.evaluation_report import IMAGES, compare_reports

HEAT = ['--heat-maps'] if find_spec('pytorch_grad_cam') else []
NAMES = sorted((HOSTILE.replace('/', ''), 'cat', 'dog'))
MODEL = """default_scope = 'mmpretrain'
data_preprocessor = dict(mean=[127.5] * 3, std=[60] * 3, to_rgb=True, num_classes=3)
model = dict(
    type='ImageClassifier', backbone=dict(type='ResNet', depth=18, base_channels=8, stem_channels=8),
    neck=dict(type='GlobalAveragePooling'), head=dict(HEAD, num_classes=3, in_channels=64),
)
loader = dict(batch_size=5, num_workers=0, sampler=dict(type='DefaultSampler', shuffle=False))
pipeline = [dict(type='LoadImageFromFile'), dict(type='PackInputs')]
test_cfg = dict()
"""
LABELS = """
dataset = dict(type=KIND, data_root='data', SOURCE, pipeline=pipeline)
test_dataloader = dict(dataset=dataset, **loader)
test_evaluator = dict(type=METRIC)
"""


def classifier_config(head, kind, source, metric):
    text = MODEL.replace('HEAD', f'type={head!r}') + LABELS.replace('KIND', repr(kind))
    return text.replace('SOURCE', source).replace('METRIC', repr(metric))


ONE_LABEL = classifier_config('LinearClsHead', 'CustomDataset', "data_prefix='test'", 'Accuracy')
SEVERAL_LABELS = classifier_config(
    'MultiLabelLinearClsHead', 'MultiLabelDataset', "ann_file='labels.json'", 'AveragePrecision'
)
MAPS = """default_scope = 'mmseg'
data_preprocessor = dict(type='SegDataPreProcessor', mean=[127.5] * 3, std=[60] * 3, bgr_to_rgb=True)
model = dict(
    type='EncoderDecoder', data_preprocessor=data_preprocessor,
    backbone=dict(type='ResNet', depth=18, base_channels=8, stem_channels=8),
    decode_head=dict(type='FCNHead', in_channels=64, channels=8, num_convs=1, concat_input=False, num_classes=3),
    test_cfg=dict(mode='whole'),
)
pipeline = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'), dict(type='PackSegInputs')]
metainfo = dict(classes=NAMES, palette=[[0, 0, 0], [255, 0, 0], [0, 255, 0]])
test_dataloader = dict(
    batch_size=2, num_workers=0, sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='BaseSegDataset', data_root='data', img_suffix='.png', metainfo=metainfo, pipeline=pipeline,
        data_prefix=dict(img_path='images', seg_map_path='masks'),
    ),
)
test_evaluator = dict(type='IoUMetric')
test_cfg = dict()
""".replace('NAMES', repr(NAMES))


def write_folders(root, number=9):
    random = np.random.default_rng(0)
    for name in NAMES:
        for index in range(number):
            pixels = random.integers(1 + random.integers(255, size=3), size=(32, 40, 3)).astype(np.uint8)
            write(root, f'data/test/{name}/{index}.png', pixels)


def report(root, *arguments, page=True):
    succeed(call('test.py', 'config.py', 'weights.pth', '--report', 'report', *arguments, cwd=root))
    assert sorted(path.name for path in (root / 'report').iterdir()) == ['report.html', 'report.json']
    text = (root / 'report/report.html').read_text()
    assert not re.findall(r'(?:src|href)="(?!data:image/)', text)
    found = Page(root / 'report/report.html')
    assert {*found.tags}.isdisjoint({'script', 'iframe', 'object', 'link'})
    return json.loads((root / 'report/report.json').read_text()), found


def test_a_classifiers_report_says_what_its_predictions_say(work):
    root = work(ONE_LABEL)
    write_folders(root)
    (root / 'results.csv').write_text('epoch,iteration,loss,</style>$_\n1,3,2.5,50\n2,6,1e99,\n')  # of the run
    record, page = report(root, '--out', 'predictions.pkl', '--tta')
    first = {'epoch': 1.0, 'iteration': 3.0, 'loss': 2.5, '</style>$_': 50.0}
    assert record['curves'] == [first, dict(epoch=2.0, iteration=6.0, loss=1e99)]
    predictions = pickle.loads((root / 'predictions.pkl').read_bytes())
    labels = np.array([int(each['gt_label']) for each in predictions])
    scores = np.stack([each['pred_score'].numpy() for each in predictions])
    predicted = scores.argmax(axis=1)
    assert record['classes'] == NAMES == [row['name'] for row in record['per_class']]
    assert {*predicted} == {0, 1, 2}
    assert record['metrics']['top-1'] == pytest.approx(record['metrics']['accuracy/top1'])
    matrix = metrics.confusion_matrix(labels, predicted, labels=range(3))
    assert record['confusions'] == [[*pair, matrix[pair]] for pair in np.ndindex(3, 3) if matrix[pair]]
    order = np.argsort(scores[np.arange(27), labels], kind='stable')
    assert [each['index'] for each in record['worst']] == order[:IMAGES].tolist()
    first, second = np.sort(scores, axis=1)[:, :-3:-1].T
    certain = np.argsort(first - second, kind='stable')
    assert [each['index'] for each in record['least_certain']] == certain[:IMAGES].tolist()
    confused = sorted((pair for pair in np.ndindex(3, 3) if len({*pair}) > 1), key=lambda pair: -matrix[pair])
    rows = [f'{NAMES[i]} {NAMES[k]} {100 * matrix[i, k] / 9:.2f}' for i, k in confused if matrix[i, k]]  # 9 of a label
    assert f'Most confused label predicted % of the label {" ".join(rows)} Calibration' in page.text
    assert page.text.count('top1') + page.text.count('top-1') == 1
    worst, index = record['worst'][0], order[0]
    assert (worst['label'], worst['prediction']) == (NAMES[labels[index]], NAMES[predicted[index]])
    assert worst['file'] == predictions[index]['img_path']
    assert [worst['score'], worst['score_of_label']] == pytest.approx(scores[index][[predicted[index], labels[index]]])
    assert len(page.images) == 3 + 2 * IMAGES  # confusion matrix, reliability, curves; worst and least certain
    shown = page.images[2].reshape(-1, 3).mean(axis=0)  # BGR, as written but for its size and JPEG
    written = np.asarray(Image.open(root / worst['file'])).reshape(-1, 3).mean(axis=0)[::-1]
    assert shown == pytest.approx(written, abs=4)
    assert NAMES[0] in page.text
    assert f'{index % 9}.png: {worst["label"]}, seen as {worst["prediction"]}' in page.text


def test_several_labels(work):
    root = work(SEVERAL_LABELS)
    weights = torch.load(root / 'weights.pth')
    for part in ('weight', 'bias'):
        weights['state_dict'][f'head.fc.{part}'][2] = 0  # a score of 0.5, which is a prediction
    weights['state_dict']['head.fc.bias'][1] = -9  # which never is one
    torch.save(weights, root / 'weights.pth')
    random = np.random.default_rng(0)
    data_list = []
    for index, labels in enumerate(([0], [0, 2], [], [1], [2], [1, 2])):
        write(root, f'data/{index}.png', random.integers(256, size=(32, 32, 3), dtype=np.uint8))
        data_list.append(dict(img_path=f'{index}.png', gt_label=labels))
    annotation = dict(metainfo=dict(classes=NAMES), data_list=data_list)
    (root / 'data/labels.json').write_text(json.dumps(annotation))
    record, page = report(root, '--out', 'predictions.pkl')
    predictions = pickle.loads((root / 'predictions.pkl').read_bytes())
    scores = np.stack([each['pred_score'].numpy() for each in predictions])
    labels = np.array([[k in each['gt_label'] for k in range(3)] for each in data_list])
    expected = [100 * metrics.average_precision_score(labels[:, k], scores[:, k]) for k in range(3)]
    assert [row['AP'] for row in record['per_class']] == pytest.approx(expected)
    assert record['metrics']['mAP'] == pytest.approx(np.mean(expected))
    assert record['per_class'][2]['predicted'] == 6
    assert record['image_scores'] == pytest.approx((labels == (scores >= 0.5)).mean(axis=1))
    assert all(NAMES[2] in each['prediction'] for each in record['worst'])
    assert len(record['worst']) == 6
    assert len(page.images) == 2 * 6


def test_a_segmentors_report(work):
    root, random = work(MAPS), np.random.default_rng(0)
    for index in range(5):
        write(root, f'data/images/{index}.png', random.integers(256, size=(40, 64, 3), dtype=np.uint8))
        mask = random.choice(np.array([0, 1, 255], np.uint8), size=(5, 8)).repeat(8, axis=0).repeat(8, axis=1)
        write(root, f'data/masks/{index}.png', mask)
    record, page = report(root, '--out', 'maps', *HEAT)
    label, predicted = (
        np.stack([np.asarray(Image.open(root / folder / f'{index}.png')) for index in range(5)])
        for folder in ('data/masks', 'maps')
    )
    valid = label != 255
    matrix = metrics.confusion_matrix(label[valid], predicted[valid], labels=range(3))
    assert record['confusions'] == [[*pair, matrix[pair]] for pair in np.ndindex(3, 3) if matrix[pair]]
    ious = [row['IoU'] for row in record['per_class'] if row['IoU'] is not None]
    assert record['metrics']['mIoU'] == pytest.approx(np.mean(ious), abs=0.01)
    assert 'boundary IoU' in page.text
    means = []
    for one, other, known in zip(label, predicted, valid):
        shown = np.union1d(one[known], other[known])
        means.append(metrics.jaccard_score(one[known], other[known], labels=shown, average='macro', zero_division=0))
    assert [each['index'] for each in record['worst']] == np.argsort(means, kind='stable').tolist()
    assert record['worst'][0]['mean_IoU'] == pytest.approx(100 * min(means))
    assert len(page.images) == 1 + 5
    assert page.images[1].shape[1] == (3 + len(HEAT)) * 160  # image, labels, prediction, heat map
    assert len(HEAT) == page.text.count('contribute to the prediction, by gradcam')
    assert NAMES[0] in page.text


def test_two_checkpoints_side_by_side(work):
    root = work(ONE_LABEL)
    write_folders(root)
    first, _ = report(root)
    (root / 'report').rename(root / 'first')
    weights = torch.load(root / 'weights.pth')
    weights['state_dict']['head.fc.bias'] += torch.tensor([0.0, 0.0, 1e4])  # everything is the last class
    torch.save(weights, root / 'weights.pth')
    second, page = report(root, '--compare', 'first')
    found, (before, now) = second['comparison'], (np.array(each['image_scores']) for each in (first, second))
    assert now.sum() == 9
    assert (found['better'], found['worse']) == (((now > before).sum()), (now < before).sum())
    assert found['p'] == pytest.approx(binomtest(found['better'], found['better'] + found['worse']).pvalue)
    for row, old, new in zip(found['per_class'], first['per_class'], second['per_class']):
        assert (row['name'], row['other'], row['this']) == (new['name'], old['F1'], new['F1'])
        assert row['difference'] == pytest.approx(new['F1'] - old['F1'])
    assert f'Better here on {found["better"]} samples' in page.text
    assert 'Against weights.pth' in page.text
    rows = sorted(found['per_class'], key=lambda row: -abs(row['difference']))
    places = [page.text.index(f'{row["name"]} {row["other"]:.2f} {row["this"]:.2f}') for row in rows]
    assert places == sorted(places)
    write(root, 'data/test/cat/new.png', np.zeros((32, 40, 3), np.uint8))
    arguments = ['test.py', 'config.py', 'weights.pth', '--compare', 'first', '--report', 'third']
    assert_one_line(call(*arguments, cwd=root), 'has 27 images, this test has 28')
    (root / 'data/test/dog/0.png').unlink()
    assert_one_line(call(*arguments, cwd=root), 'has other images or classes')
    for content, words in (
        (first | dict(image_scores=None), 'image_scores in content is None'),
        ({}, 'lacks checkpoint'),
    ):
        (root / 'first/report.json').write_text(json.dumps(content))
        assert_one_line(call(*arguments, cwd=root), words)
    assert not any((root / 'third').iterdir())


def test_an_image_without_a_score_is_not_compared():
    common = dict(checkpoint='', classes=[], per_class=[], labels_digest='')
    found = compare_reports(*(common | dict(image_scores=scores) for scores in ([None, 2.0], [1.0, 1.0])), 'F1')
    assert (found['better'], found['worse'], found['p']) == (1, 0, 1.0)
