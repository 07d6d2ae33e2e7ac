"""``tools/analysis/attention.py`` as a user calls it, on small models with arbitrary weights and the embedded data."""

import json

import cv2
import pytest
import torch
from forked_tools import run_forked
from locality import measure_locality
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.registry import DATASETS
from tool_runner import ROOT, assert_one_line

from vt import record_attention
from vt.analysis.attention.token_attention import measure_tokenizers
from vt.apis import get_model
from vt.engine.launch import build_model
from vt.inference.test_set import spread_evenly

CLASSIFIER = ROOT / 'configs/vt_resnet/vt-resnet18_digits.py'
SEGMENTOR = ROOT / 'configs/vt_fpn/vt-fpn_r18_digit-scenes.py'
VIT = ROOT / 'configs/vit/vit-tiny_digits.py'
SMALLER = {
    CLASSIFIER: 'model = dict(backbone=dict(num_tokens=4, token_channels=64), head=dict(in_channels=64))',
    SEGMENTOR: 'model = dict(neck=dict(num_tokens=3, token_channels=64))',
    VIT: 'model = dict(backbone=dict(arch=dict(embed_dims=32, num_layers=3, num_heads=2, feedforward_channels=32),'
    'with_cls_token=True, out_type="cls_token"), head=dict(in_channels=32))',
}


def make(folder, base):
    """A small config and a checkpoint of it, with the model."""
    config, checkpoint = folder / f'{base.stem}.py', folder / f'{base.stem}.pth'
    config.write_text(f'_base_ = {str(base)!r}\n{SMALLER[base]}\n')
    torch.manual_seed(0)
    cfg = Config.fromfile(config)
    model = build_model(cfg)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1 + 0.3 * torch.randn_like(parameter))
    torch.save(dict(state_dict=model.state_dict()), checkpoint)
    model.train(False)
    return config, checkpoint, model, DATASETS.build(cfg.test_dataloader.dataset)


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp('some attention')


@pytest.fixture(scope='module')
def classifier(folder):
    return make(folder, CLASSIFIER)


@pytest.fixture(scope='module')
def segmentor(folder):
    return make(folder, SEGMENTOR)


@pytest.fixture(scope='module')
def vit(folder):
    return make(folder, VIT)


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
        'analysis/attention.py', 'tokens', config, checkpoint, '--images', '3', '--out', 'tokens.json', cwd=folder
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
    result = run_forked('analysis/attention.py', 'tokens', *arguments, cwd=folder)
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
    result = run_forked('analysis/attention.py', 'tokens', *arguments, cwd=folder)
    assert result.returncode == 0, result.stderr
    for row in json.loads((folder / 'graph.json').read_text())['tokenizers'].values():
        assert row['reach'] is row['shift'] is row['to_others'] is None
        assert row['spread'] > 0


def test_locality_of_a_vit(folder, vit):
    config, checkpoint, model, dataset = vit
    arguments = [config, checkpoint, '--images', '2', '--out', 'locality.json', '--plot', 'locality.png']
    result = run_forked('analysis/attention.py', 'locality', *arguments, cwd=folder)
    assert result.returncode == 0, result.stderr
    assert 'vit-tiny_digits (vit-tiny_digits.pth), 2 test images' in result.stdout
    record = json.loads((folder / 'locality.json').read_text())
    queries_and_keys = {}
    for index, layer in enumerate(model.backbone.layers):
        layer.attn.qkv.register_forward_hook(lambda part, x, out, index=index: queries_and_keys.update({index: out}))
    ratios = torch.zeros(3, 2)
    places = [(i, j) for i in range(8) for j in range(8)]
    for index in (0, 359):
        data = model.data_preprocessor(pseudo_collate([dataset[index]]), False)
        with torch.no_grad():
            model(data['inputs'], mode='tensor')
        for layer, qkv in queries_and_keys.items():
            queries, keys, _ = qkv[0, 1:].unflatten(-1, (3, 2, 16)).permute(1, 2, 0, 3)  # h, P, d
            attention = (queries @ keys.transpose(-2, -1) / 4).softmax(dim=-1)  # among patches alone
            for row, (i, j) in enumerate(places):
                near = [column for column, (x, y) in enumerate(places) if max(abs(x - i), abs(y - j)) <= 1]
                ratios[layer] += attention[:, row, near].sum(dim=-1) / 64 / 2
    assert torch.tensor(record['of_heads']).sub(ratios).abs().max() < 1e-5
    assert record['mean'] == pytest.approx(ratios.mean(dim=1).tolist(), abs=1e-5)
    assert record['std_over_heads'] == pytest.approx(((ratios[:, 0] - ratios[:, 1]).abs() / 2).tolist(), abs=1e-5)
    assert record['uniform'] == pytest.approx(22 * 22 / 64**2)
    assert all(0 < share < 1 for share in record['on_no_patch'])
    assert f'{100 * record["mean"][2]:.2f}' in result.stdout
    assert cv2.imread(str(folder / 'locality.png')).shape[1] > 500


def test_locality_without_a_checkpoint_says_so(tmp_path):
    options = ['test_dataloader.dataset.indices=2', 'model.backbone.arch.num_layers=2']
    arguments = ['locality', VIT, '--out', 'a.json']
    results = [run_forked('analysis/attention.py', *arguments, cwd=tmp_path, options=options) for _ in range(2)]
    assert results[0].returncode == 0, results[0].stderr
    assert 'vit-tiny_digits (random weights, as initialised), 2 test images' in results[0].stdout
    assert json.loads((tmp_path / 'a.json').read_text())['checkpoint'] is None
    tables = [result.stdout[result.stdout.index('vit-tiny_digits (') :] for result in results]
    assert tables[0] == tables[1]  # the same weights every time


def test_mmpretrains_own_config_by_its_name(tmp_path):
    """It wants ImageNet, which isn't here; the embedded digits stand in."""
    digits = Config.fromfile(ROOT / 'configs/_base_/datasets/digits.py').test_dataloader.dataset
    config = tmp_path / 'deit.py'
    config.write_text(
        "_base_ = ['mmpretrain::deit/deit-tiny_4xb256_in1k.py']\n"
        "custom_imports = dict(imports=['vt'])\n"
        f'test_dataloader = dict(dataset=dict(_delete_=True, **{digits.to_dict()}))\n'
        'model = dict(backbone=dict(img_size=64))\n'
    )
    result = run_forked('analysis/attention.py', 'locality', config, '--images', '1', cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert len([line for line in result.stdout.splitlines() if line.split()[:1] == ['12']]) == 1  # twelve layers
    result = run_forked('analysis/attention.py', 'locality', 'mmpretrain::deit/deit-tiny_4xb256_in1k.py', cwd=tmp_path)
    assert_one_line(result, 'there is no data/imagenet')


def test_what_cannot_be_measured_is_named(folder, classifier, segmentor, vit):
    with pytest.raises(ValueError, match=r"pth is not the model's: backbone\.layer4\.0\S+ is \("):
        get_model(Config.fromfile(CLASSIFIER), str(classifier[1]))
    weights = torch.load(vit[1])['state_dict']
    torch.save(
        {key: value for key, value in weights.items() if 'backbone.layers.1.' not in key}, folder / 'partial.pth'
    )
    with pytest.raises(ValueError, match=r"partial\.pth is not the model's: .+ it lacks backbone\S+ and 11 more"):
        get_model(Config.fromfile(vit[0]), str(folder / 'partial.pth'))
    with pytest.raises(ValueError, match='the model has no tokenizer with attention'):
        measure_tokenizers(*vit[2:], [0], [0])
    with pytest.raises(ValueError, match='the classes of the data set are 0 to 10'):
        measure_tokenizers(*segmentor[2:], [0], [11])
    with pytest.raises(ValueError, match='--images 0 must be at least 1'):
        spread_evenly(segmentor[3], 0)
    with pytest.raises(ValueError, match='VTResNet: it has no patch_embed and layers'):
        measure_locality(*classifier[2:], [0])


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['tokens', 'nowhere.py', 'any.pth'], 'there is no config nowhere.py'),
        (['tokens', CLASSIFIER, 'nowhere.pth'], 'there is no checkpoint nowhere.pth'),
        (['locality', VIT, '--plot', 'none/a.png'], 'there is no folder none to write a.png to'),
        (['reach', VIT, '--out', 'none/a.png'], 'there is no folder none to write a.png to'),
        (['reach', VIT, '--out', 'a.txt'], 'a.txt: a figure is written as .'),
        (['reach', VIT, '--out', 'a.png', '--image', VIT], 'vit-tiny_digits.py is no image that can be read'),
    ],
)
def test_a_wrong_file_is_one_line(arguments, message, tmp_path):
    assert_one_line(run_forked('analysis/attention.py', *arguments, cwd=tmp_path), message)


def test_a_strip_of_reaches_is_drawn(tmp_path):
    arguments = [ROOT / 'configs/deit/ablations/deit-mini_digits.py', ROOT / 'configs/swin/swin-tiny_digits.py']
    result = run_forked(
        'analysis/attention.py', 'reach', *arguments, '--stage', '1', '--out', 'reach.png', cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    assert cv2.imread(tmp_path / 'reach.png').shape[1] > 400  # three cells
    assert_one_line(
        run_forked('analysis/attention.py', 'reach', VIT, '--out', 'reach.png', cwd=tmp_path),
        'VisionTransformer has no stages of blocks',
    )


@pytest.mark.parametrize('option', ['--out', '--plot'])
@pytest.mark.parametrize('file', ['config', 'checkpoint'])
def test_no_input_is_written_over(option, file, vit, tmp_path):
    paths = dict(zip(('config', 'checkpoint'), vit))
    link = tmp_path / 'link.png'
    link.symlink_to(paths[file])
    before = paths[file].read_bytes()
    result = run_forked('analysis/attention.py', 'locality', *paths.values(), option, link, cwd=tmp_path)
    assert_one_line(result, f'{link} is an input and would be overwritten')
    assert paths[file].read_bytes() == before


def test_what_is_taken_for_objects_is_measured_before_and_after(folder):
    config = folder / 'objects_psvrt.py'
    base = ROOT / 'configs/vt_resnet/vt-resnet18-tuned-half_psvrt.py'
    smaller = 'model = dict(backbone=dict(num_tokens=4, token_channels=64), head=dict(in_channels=64))'
    config.write_text(f'_base_ = {str(base)!r}\n{smaller}\n')
    model = build_model(Config.fromfile(config))
    torch.save(dict(state_dict=model.state_dict()), folder / 'objects.pth')
    outs = ['--out', 'objects.json', '--plot', 'objects.png', '--images', '3']
    result = run_forked('analysis/attention.py', 'objects', config.name, 'objects.pth', *outs, cwd=folder)
    assert result.returncode == 0, result.stderr
    assert ' -> ' in result.stdout
    written = json.loads((folder / 'objects.json').read_text())
    assert written['images'] == 3
    assert list(written['before']) == list(written['after']) == ['layer4.0']
    assert written['before'] != written['after']
    assert cv2.imread(str(folder / 'objects.png')) is not None
    result = run_forked(
        'analysis/attention.py', 'objects', config.name, 'objects.pth', '--parts', 'layer3.0', cwd=folder
    )
    assert_one_line(result, '--parts layer3.0: the model has layer4.0')
