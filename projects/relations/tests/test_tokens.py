"""``projects.relations.attention tokens`` as a user calls it, on small models and the embedded data."""

import functools
import json

import numpy as np
import pytest
import torch
from apis.small_models import make
from forked_tools import run_forked
from mmengine.dataset import pseudo_collate
from tool_runner import ROOT, succeed

from projects.relations.token_measures import measure_tokenizers
from vt import record_attention
from vt.apis import get_model
from vt.inference.test_set import build_test_set, spread_evenly


@pytest.fixture(scope='module')
def small_model(tmp_path_factory):
    folder = tmp_path_factory.mktemp('small models')
    return functools.cache(lambda name: make(folder, name))


CLASSIFIER, SEGMENTOR = 'vt-resnet18-half_digits', 'vt-fpn_r18_digit-scenes'


def measure(folder, *arguments):
    """What the command prints, and what it writes."""
    tool = ROOT / 'projects/relations/attention.py'
    result = succeed(run_forked(tool, 'tokens', *arguments, '--out', 'tokens.json', cwd=folder))
    return result.stdout, json.loads((folder / 'tokens.json').read_text())


def test_tokens_of_a_classifier(small_model, tmp_path):
    config, checkpoint, *_ = small_model(CLASSIFIER)
    printed, record = measure(tmp_path, config, checkpoint, '--images', '3')
    assert (record['config'], record['checkpoint']) == (str(config), str(checkpoint))
    assert torch.__version__.startswith(record['versions']['torch'])
    assert list(record['tokenizers']) == ['backbone.layer4.0.tokenizer', 'backbone.layer4.1.tokenizer']
    row = record['tokenizers']['backbone.layer4.1.tokenizer']
    assert (row['map'], row['tokens'], row['images']) == ('8x8', 4, 3)
    assert 0 < row['reach'] < 1
    assert row['foreground_gain'] is None  # digits have no masks
    assert row['images_without_both_regions'] == 3
    assert 'images left out' not in printed
    assert f'{row["entropy"]:.3f}' in printed


def test_tokens_of_a_segmentor(small_model, tmp_path):
    config, checkpoint, model, _ = small_model(SEGMENTOR)
    printed, record = measure(tmp_path, config, checkpoint, '--images', '2', '--background', '0', '3')
    assert 'left out' not in printed
    rows = record['tokenizers']
    assert [(name, row['map'], row['tokens']) for name, row in rows.items()] == [
        (f'neck.tokenizers.{level}', f'{size}x{size}', 3) for level, size in enumerate((32, 16, 8, 4))
    ]
    densities, to_others, dataset = [], [], build_test_set(model.cfg)
    for index in (0, 255):  # spread over the 256
        data = model.data_preprocessor(pseudo_collate([dataset[index]]), False)
        with torch.no_grad(), record_attention(model) as records:
            model(data['inputs'], mode='tensor')
        fine = records['neck.tokenizers.0'].attention[0, 0].double()  # L, 32, 32
        fine = fine.repeat_interleave(4, dim=-2).repeat_interleave(4, dim=-1)  # L, 128, 128
        labels = data['data_samples'][0].gt_sem_seg.data[0]
        background = (labels == 0) | (labels == 3)
        densities.append([fine[:, where].mean(dim=1).tolist() for where in (~background, background)])
        relation = records['neck.relation'].attention[0, 0].double()  # 4 L, 4 L
        to_others.append(1 - relation.diagonal()[:3].mean().item())
    foreground, background = np.mean(densities, axis=0)  # L
    row = rows['neck.tokenizers.0']
    assert row['foreground_gain'] == pytest.approx(foreground.mean() / background.mean() - 1, rel=1e-5)
    assert row['foreground_gain_of_tokens'] == pytest.approx(foreground / background - 1, rel=1e-5)
    images = [measure_tokenizers(model, dataset, [index], (0, 3))['neck.tokenizers.0'] for index in (0, 255)]
    assert row['spread'] ** 2 == pytest.approx(np.mean([image['spread'] ** 2 for image in images]))
    assert row['to_others'] == pytest.approx(np.mean(to_others), rel=1e-5)
    assert row['uniform_to_others'] == pytest.approx(1 - 1 / 12)
    for row in rows.values():
        assert 1 < row['times_smaller'] == pytest.approx(row['uniform_entropy'] / row['entropy'])
        spread_of_reached = 2 * (row['reach'] ** 2 - row['shift'] ** 2) - row['spread'] ** 2
        assert 0 < spread_of_reached < 0.3
    assert f'{100 * rows["neck.tokenizers.3"]["to_others"]:.1f}' in printed


def test_what_cannot_be_measured_is_named(small_model):
    classifier, segmentor = (small_model(name)[2] for name in (CLASSIFIER, SEGMENTOR))
    digits, scenes = (build_test_set(model.cfg) for model in (classifier, segmentor))
    with pytest.raises(ValueError, match='the model has no tokenizer with attention'):
        measure_tokenizers(get_model('resnet18_digits'), digits, [0], [0])
    with pytest.raises(ValueError, match='the classes of the data set are 0 to 10'):
        measure_tokenizers(segmentor, scenes, [0], [11])
    with pytest.raises(ValueError, match='--images 0 must be at least 1'):
        spread_evenly(scenes, 0)
