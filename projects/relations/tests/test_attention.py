"""``python -m projects.relations.attention`` as a user calls it, on small models with arbitrary weights."""

import json

import cv2
import pytest
import torch
from forked_tools import run_forked
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.registry import DATASETS
from tool_runner import ROOT, assert_one_line

from projects.relations.locality import measure_locality
from vt.apis import get_model
from vt.engine.run.launch import build_model

TOOL = ROOT / 'projects/relations/attention.py'
VIT = ROOT / 'configs/vit/vit-tiny_digits.py'


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp('some attention')


@pytest.fixture(scope='module')
def vit(folder):
    """A small config and a checkpoint of it, with the model and its test set."""
    config, checkpoint = folder / 'vit-tiny_digits.py', folder / 'vit-tiny_digits.pth'
    config.write_text(
        f'_base_ = {str(VIT)!r}\n'
        'model = dict(backbone=dict(arch=dict(embed_dims=32, num_layers=3, num_heads=2, feedforward_channels=32),'
        'with_cls_token=True, out_type="cls_token"), head=dict(in_channels=32))\n'
    )
    torch.manual_seed(0)
    cfg = Config.fromfile(config)
    model = build_model(cfg)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1 + 0.3 * torch.randn_like(parameter))
    torch.save(dict(state_dict=model.state_dict()), checkpoint)
    model.train(False)
    return config, checkpoint, model, DATASETS.build(cfg.test_dataloader.dataset)


def test_locality_of_a_vit(folder, vit):
    config, checkpoint, model, dataset = vit
    arguments = [config, checkpoint, '--images', '2', '--out', 'locality.json', '--plot', 'locality.png']
    result = run_forked(TOOL, 'locality', *arguments, cwd=folder)
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
    results = [run_forked(TOOL, *arguments, cwd=tmp_path, options=options) for _ in range(2)]
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
    result = run_forked(TOOL, 'locality', config, '--images', '1', cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (
        len([line for line in result.stdout.splitlines() if line.strip('| ').split()[:1] == ['12']]) == 1
    )  # twelve layers
    result = run_forked(TOOL, 'locality', 'mmpretrain::deit/deit-tiny_4xb256_in1k.py', cwd=tmp_path)
    assert_one_line(result, 'there is no data/imagenet')


def test_a_strip_of_reaches_is_drawn(tmp_path):
    arguments = [ROOT / 'projects/survey_claims/configs/deit-mini_digits.py', ROOT / 'configs/swin/swin-tiny_digits.py']
    result = run_forked(TOOL, 'reach', *arguments, '--stage', '1', '--out', 'reach.png', cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert cv2.imread(tmp_path / 'reach.png').shape[1] > 400  # three cells
    assert_one_line(
        run_forked(TOOL, 'reach', VIT, '--out', 'reach.png', cwd=tmp_path),
        'VisionTransformer has no stages of blocks',
    )


@pytest.mark.parametrize('option', ['--out', '--plot'])
@pytest.mark.parametrize('file', ['config', 'checkpoint'])
def test_no_input_is_written_over(option, file, vit, tmp_path):
    paths = dict(zip(('config', 'checkpoint'), vit))
    link = tmp_path / 'link.png'
    link.symlink_to(paths[file])
    before = paths[file].read_bytes()
    result = run_forked(TOOL, 'locality', *paths.values(), option, link, cwd=tmp_path)
    assert_one_line(result, f'{link} is an input and would be overwritten')
    assert paths[file].read_bytes() == before


def test_what_is_taken_for_objects_is_measured_before_and_after(tmp_path):
    config = tmp_path / 'objects_psvrt.py'
    base = ROOT / 'projects/relations/configs/vt-resnet18-tuned-half_psvrt.py'
    smaller = 'model = dict(backbone=dict(num_tokens=4, token_channels=64), head=dict(in_channels=64))'
    config.write_text(f'_base_ = {str(base)!r}\n{smaller}\n')
    model = build_model(Config.fromfile(config))
    torch.save(dict(state_dict=model.state_dict()), tmp_path / 'objects.pth')
    outs = ['--out', 'objects.json', '--plot', 'objects.png', '--images', '3']
    result = run_forked(TOOL, 'objects', config.name, 'objects.pth', *outs, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert ' -> ' in result.stdout
    written = json.loads((tmp_path / 'objects.json').read_text())
    assert written['images'] == 3
    assert list(written['before']) == list(written['after']) == ['layer4.0']
    assert written['before'] != written['after']
    assert cv2.imread(str(tmp_path / 'objects.png')) is not None
    result = run_forked(TOOL, 'objects', config.name, 'objects.pth', '--parts', 'layer3.0', cwd=tmp_path)
    assert_one_line(result, '--parts layer3.0: the model has layer4.0')


def test_what_is_no_vit_is_named(vit):
    with pytest.raises(ValueError, match='VTResNet: it has no patch_embed and layers'):
        measure_locality(get_model('vt-resnet18_digits'), vit[3], [0])


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (
            ['reach', ROOT / 'configs/deit/deit-small_digits.py', '--out', 'a.txt'],
            'a.txt: the name of a figure must end in .',
        ),
        (['reach', VIT, '--out', 'a.png', '--image', VIT], 'vit-tiny_digits.py is not a readable image'),
    ],
)
def test_a_wrong_file_is_one_line(arguments, message, tmp_path):
    assert_one_line(run_forked(TOOL, *arguments, cwd=tmp_path), message)
