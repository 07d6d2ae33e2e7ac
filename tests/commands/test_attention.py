"""``tools/analysis/attention.py`` as a user calls it; what it measures is tested in ``tests/analysis/attention``."""

import json

import pytest
import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from tool_runner import call, succeed

from vt import record_attention
from vt.analysis.attention.token_measures import measure_tokenizers
from vt.apis import get_model
from vt.engine.launch import build_model
from vt.inference.test_set import build_test_set, spread_evenly


def measure(model, *arguments, cwd):
    arguments = [*model[:2], *arguments, '--out', 'tokens.json']
    result = succeed(call('analysis/attention.py', *arguments, cwd=cwd))
    return result.stdout, json.loads((cwd / 'tokens.json').read_text())


def test_tokens_of_a_segmentor(small_model, tmp_path):
    """Entropy, attention to others and gain on the foreground, on images spread over the test set, by hand."""
    config, checkpoint, model, _ = small_model('vt-fpn_r18_digit-scenes')
    out, record = measure((config, checkpoint), '--images', '2', '--background', '0', '3', cwd=tmp_path)
    assert (record['config'], record['checkpoint']) == (str(config), str(checkpoint))
    assert torch.__version__.startswith(record['versions']['torch'])
    assert [(name, row['map'], row['tokens']) for name, row in record['tokenizers'].items()] == [
        (f'neck.tokenizers.{level}', f'{size}x{size}', 3) for level, size in enumerate((32, 16, 8, 4))
    ]
    dataset, found = build_test_set(model.cfg), dict(entropy=[], to_others=[], foreground=[], background=[])
    for index in (0, 255):
        data = model.data_preprocessor(pseudo_collate([dataset[index]]), False)
        with torch.no_grad(), record_attention(model) as records:
            model(data['inputs'], mode='tensor')
        maps = records['neck.tokenizers.0'].attention[0, 0].double()  # L, 32, 32
        found['entropy'].append(-(maps * maps.log()).sum(dim=(-2, -1)).mean())
        relation = records['neck.relation'].attention[0].mean(dim=0).double()  # of all 12 tokens
        found['to_others'].append(1 - relation.diagonal()[:3].mean())
        fine = maps.repeat_interleave(4, dim=-2).repeat_interleave(4, dim=-1)  # L, 128, 128
        labels = data['data_samples'][0].gt_sem_seg.data[0]
        background = (labels == 0) | (labels == 3)
        found['foreground'].append(fine[:, ~background].mean())
        found['background'].append(fine[:, background].mean())
    means = {name: torch.stack(values).mean().item() for name, values in found.items()}
    row = record['tokenizers']['neck.tokenizers.0']
    assert row['entropy'] == pytest.approx(means['entropy'], rel=1e-5)
    assert row['to_others'] == pytest.approx(means['to_others'], rel=1e-5)
    assert row['foreground_gain'] == pytest.approx(means['foreground'] / means['background'] - 1, rel=1e-5)
    assert row['uniform_to_others'] == pytest.approx(1 - 1 / 12)
    assert f'{row["entropy"]:.3f}' in out


def test_tokens_of_a_classifier_have_no_foreground(small_model, tmp_path):
    out, record = measure(small_model('vt-resnet18-half_digits'), '--images', '1', cwd=tmp_path)
    assert list(record['tokenizers']) == ['backbone.layer4.0.tokenizer', 'backbone.layer4.1.tokenizer']
    for row in record['tokenizers'].values():
        assert 0 < row['reach'] < 1
        assert (row['foreground_gain'], row['images_without_both_regions']) == (None, 1)
    assert 'not used' not in out


def test_a_graph_convolution_has_no_reach(small_model):
    cfg = Config.fromfile(small_model('vt-resnet18-half_digits')[0])
    cfg.model.backbone.relation = dict(type='vt.GraphConvolution', num_tokens=4)
    for row in measure_tokenizers(build_model(cfg).eval(), build_test_set(cfg), [0], [0]).values():
        assert row['reach'] is row['shift'] is row['to_others'] is None
        assert row['spread'] > 0


def test_what_cannot_be_measured_is_named(small_model):
    segmentor = small_model('vt-fpn_r18_digit-scenes')[2]
    scenes, plain = build_test_set(segmentor.cfg), get_model('resnet18_digits')
    with pytest.raises(ValueError, match='the model has no tokenizer with attention'):
        measure_tokenizers(plain, build_test_set(plain.cfg), [0], [0])
    with pytest.raises(ValueError, match='the classes of the data set are 0 to 10'):
        measure_tokenizers(segmentor, scenes, [0], [11])
    with pytest.raises(ValueError, match='--images 0 must be at least 1'):
        spread_evenly(scenes, 0)
