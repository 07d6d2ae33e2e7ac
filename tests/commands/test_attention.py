"""``tools/analysis/attention.py`` as a user calls it, on small models with arbitrary weights and the embedded data."""

import json

import pytest
import torch
from apis.small_models import make
from forked_tools import run_forked
from mmengine.config import Config
from mmengine.dataset import pseudo_collate

from vt import record_attention
from vt.analysis.attention.token_measures import measure_tokenizers
from vt.apis import get_model
from vt.engine.launch import build_model
from vt.inference.test_set import build_test_set, spread_evenly


def build(folder, name, options=''):
    config, checkpoint, model, _ = make(folder, name, options)
    return config, checkpoint, model, build_test_set(model.cfg)


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp('some attention')


@pytest.fixture(scope='module')
def classifier(folder):
    options = 'model = dict(backbone=dict(num_tokens=4, token_channels=64), head=dict(in_channels=64))'
    return build(folder, 'vt-resnet18_digits', options)


@pytest.fixture(scope='module')
def segmentor(folder):
    return build(folder, 'vt-fpn_r18_digit-scenes')


def records_of(model, dataset, indices):
    """Recorded attention and the labels of some images."""
    for index in indices:
        data = model.data_preprocessor(pseudo_collate([dataset[index]]), False)
        with torch.no_grad(), record_attention(model) as records:
            model(data['inputs'], mode='tensor')
        yield records, data['data_samples'][0]


def test_tokens_of_a_classifier(folder, classifier):
    config, checkpoint, model, dataset = classifier
    result = run_forked(
        'analysis/attention.py', config, checkpoint, '--images', '3', '--out', 'tokens.json', cwd=folder
    )
    assert result.returncode == 0, result.stderr
    record = json.loads((folder / 'tokens.json').read_text())
    assert (record['config'], record['checkpoint']) == (str(config), str(checkpoint))
    assert torch.__version__.startswith(record['versions']['torch'])
    assert list(record['tokenizers']) == ['backbone.layer4.0.tokenizer', 'backbone.layer4.1.tokenizer']
    entropies, on_others = [], []
    for records, _ in records_of(model, dataset, (0, 180, 359)):  # spread over the 360
        maps = records['backbone.layer4.1.tokenizer'].attention[0, 0].double()  # L, H, W
        entropies.append(-(maps * maps.log()).sum(dim=(-2, -1)))
        on_others.append(1 - records['backbone.layer4.1.relation'].attention[0, 0].double().diagonal().mean())
    row = record['tokenizers']['backbone.layer4.1.tokenizer']
    assert (row['map'], row['tokens'], row['images']) == ('4x4', 4, 3)
    assert row['entropy_of_tokens'] == pytest.approx(torch.stack(entropies).mean(dim=0).tolist(), rel=1e-5)
    assert row['to_others'] == pytest.approx(torch.stack(on_others).mean().item(), rel=1e-5)
    assert 0 < row['reach'] < 1
    assert row['foreground_gain'] is None  # digits have no masks
    assert row['images_without_both_regions'] == 3
    assert 'images left out' not in result.stdout
    assert f'{row["entropy"]:.3f}' in result.stdout


def test_tokens_of_a_segmentor(folder, segmentor):
    config, checkpoint, model, dataset = segmentor
    arguments = [config, checkpoint, '--images', '2', '--background', '0', '3', '--out', 'levels.json']
    result = run_forked('analysis/attention.py', *arguments, cwd=folder)
    assert result.returncode == 0, result.stderr
    assert 'left out' not in result.stdout
    rows = json.loads((folder / 'levels.json').read_text())['tokenizers']
    assert [(name, row['map'], row['tokens']) for name, row in rows.items()] == [
        (f'neck.tokenizers.{level}', f'{size}x{size}', 3) for level, size in enumerate((32, 16, 8, 4))
    ]
    densities = dict(foreground=[], background=[])
    for records, sample in records_of(model, dataset, (0, 255)):
        fine = records['neck.tokenizers.0'].attention[0, 0].double()  # L, 32, 32
        fine = fine.repeat_interleave(4, dim=-2).repeat_interleave(4, dim=-1)  # L, 128, 128
        labels = sample.gt_sem_seg.data[0]
        background = (labels == 0) | (labels == 3)
        densities['foreground'].append(fine[:, ~background].mean())
        densities['background'].append(fine[:, background].mean())
    foreground, background = (torch.stack(values).mean().item() for values in densities.values())
    row = rows['neck.tokenizers.0']
    assert row['foreground_gain'] == pytest.approx(foreground / background - 1, rel=1e-5)
    assert row['uniform_to_others'] == pytest.approx(1 - 1 / 12)
    for row in rows.values():
        assert 0 < row['entropy'] < row['uniform_entropy']
        spread_of_reached = 2 * (row['reach'] ** 2 - row['shift'] ** 2) - row['spread'] ** 2
        assert 0 < spread_of_reached < 0.3
    assert f'{100 * rows["neck.tokenizers.3"]["to_others"]:.1f}' in result.stdout


def test_a_graph_convolution_has_no_reach(folder, classifier):
    config = folder / 'graph.py'
    relation = dict(type='vt.GraphConvolution', num_tokens=4)
    config.write_text(f'_base_ = {str(classifier[0])!r}\nmodel = dict(backbone=dict(relation={relation}))\n')
    torch.save(build_model(Config.fromfile(config)).state_dict(), folder / 'graph.pth')
    arguments = [config, 'graph.pth', '--images', '1', '--out', 'graph.json']
    result = run_forked('analysis/attention.py', *arguments, cwd=folder)
    assert result.returncode == 0, result.stderr
    for row in json.loads((folder / 'graph.json').read_text())['tokenizers'].values():
        assert row['reach'] is row['shift'] is row['to_others'] is None
        assert row['spread'] > 0


def test_what_cannot_be_measured_is_named(classifier, segmentor):
    plain = get_model('resnet18_digits')
    with pytest.raises(ValueError, match='the model has no tokenizer with attention'):
        measure_tokenizers(plain, classifier[3], [0], [0])
    with pytest.raises(ValueError, match='the classes of the data set are 0 to 10'):
        measure_tokenizers(*segmentor[2:], [0], [11])
    with pytest.raises(ValueError, match='--images 0 must be at least 1'):
        spread_evenly(segmentor[3], 0)
