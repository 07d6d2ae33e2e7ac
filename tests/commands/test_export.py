"""``tools/export.py`` as a user calls it: what it writes computes what the model does, at other batches and sizes."""

import json
import subprocess
import sys
from argparse import Namespace
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace

import cv2
import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from apis.small_models import make
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmpretrain.models.backbones.resnet import BasicBlock, ResNet
from PIL import Image
from tool_runner import ROOT, assert_one_line, call, succeed

from vt import apis
from vt.commands.export import (
    describe_inputs,
    describe_preparation,
    describe_size,
    script_text,
    why_refused,
    write_script,
)
from vt.errors import UserError
from vt.inference.inputs import Samples
from vt.serialization import predict_exported
from vt.serialization.export import Network, encode, export_program, largest_difference

NEEDS_OPENVINO = pytest.mark.skipif(not find_spec('openvino'), reason='openvino is not installed')
# Run the script as where there is neither VT nor PyTorch.
ALONE = """
import runpy, sys
sys.modules |= dict.fromkeys(('torch', 'vt', 'mmengine', 'mmcv', 'mmpretrain'))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name='__main__')
"""
SEGMENTOR = f"""
_base_ = '{ROOT}/configs/baselines/fpn_r18_digit-scenes.py'
backbone = dict(_delete_=True, type='ResNet', depth=18, base_channels=4, stem_channels=4, num_stages=1, strides=(1,),
    dilations=(1,), out_indices=(0,))
head = dict(_delete_=True, type='FCNHead', in_channels=4, channels=4, num_convs=0, concat_input=False, num_classes=11)
model = dict(backbone=backbone, neck=None, decode_head=head)
"""


@pytest.fixture(scope='module')
def classifier(tmp_path_factory):
    """A small VT-ResNet with one block in each stage."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ResNet.arch_settings, 18, (BasicBlock, (1, 1, 1, 1)))
        yield make(tmp_path_factory.mktemp('a classifier'), 'vt-resnet18-half_digits')


def test_what_is_written_computes_what_the_model_does(classifier, tmp_path):
    config, checkpoint, model, _ = classifier
    arguments = ['program', 'onnx', '--out', 'r.json', '--out-dir', 'a folder']
    succeed(call('export.py', config, checkpoint, *arguments, cwd=tmp_path))
    record = json.loads((tmp_path / 'r.json').read_text())
    assert record['open_size']
    assert [row['format'] for row in record['results']] == ['program', 'onnx']
    assert all(0 <= row['difference'] < 1e-5 for row in record['results'])
    session = onnxruntime.InferenceSession(tmp_path / 'a folder/vt-resnet18-half_digits.onnx')
    program = torch.export.load(tmp_path / 'a folder/vt-resnet18-half_digits.pt2').module()
    for size in [(1, 3, 32, 32), (7, 3, 32, 32), (3, 3, 96, 64)]:
        images = torch.randn(size)
        with torch.no_grad():
            expected = model(images).numpy()
        (found,) = session.run(None, {session.get_inputs()[0].name: images.numpy()})
        assert found == pytest.approx(expected, abs=1e-5)
        assert program(images).detach().numpy() == pytest.approx(expected, abs=1e-5)
    about = json.loads((tmp_path / 'a folder/vt-resnet18-half_digits.json').read_text())
    assert about | dict(classes=[*'0123456789'], mean=[127.5] * 3, channels='RGB', input=['batch', 3, 32, 32]) == about


def write_waves(path, height, width):
    pixels = np.random.default_rng(0).integers(0, 256, (5, 6, 3), np.uint8)
    assert cv2.imwrite(str(path), cv2.resize(pixels, (width, height), interpolation=cv2.INTER_CUBIC))
    return path


def predict_alone(folder, *arguments):
    command = [sys.executable, '-c', ALONE, folder / 'predict.py', *arguments]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope='module')
def tiny(tmp_path_factory):
    """A ResNet of one stage."""
    backbone = "_delete_=True, type='ResNet', depth=18, base_channels=4, stem_channels=4, num_stages=1, strides=(1,)"
    options = f'model = dict(backbone=dict({backbone}, dilations=(1,), out_indices=(0,)), head=dict(in_channels=4))'
    return make(tmp_path_factory.mktemp('tiny'), 'resnet18-half_digits', options)


def test_eight_bits_and_a_script_without_pytorch(tiny, tmp_path):
    arguments = ['onnx', 'int8', '--accuracy=20', '--benchmark', '--out=r.json', '--max-accuracy-drop=100']
    options = ['test_evaluator.topk=(1,2)', 'default_hooks.checkpoint.save_best=accuracy/top2']
    succeed(call('export.py', *tiny[:2], *arguments, cwd=tmp_path, options=options))
    record = json.loads((tmp_path / 'r.json').read_text())
    assert (record['metric'], record['scored']) == ('accuracy/top2', 20)
    rows = {row['format']: row for row in record['results']}
    assert [*rows] == ['onnx', 'int8']
    for kind, row in rows.items():
        assert row['model_score'] == record['score']
        assert row['seconds'] > 0 < row['eager']
        assert kind == 'int8' or row['score'] == record['score']
        assert (1e-4 < row['difference'] < 1) if kind == 'int8' else (row['difference'] < 1e-5)
    files = [tmp_path / f'exported/{tiny[0].stem}{suffix}' for suffix in ('.onnx', '.int8.onnx')]
    (tmp_path / 'images').mkdir()
    image = write_waves(tmp_path / 'images/a.png', 50, 70)
    (tmp_path / 'images/notes.txt').write_text('no image')
    (own,) = apis.ClassificationInferencer(tiny[2])(str(image))
    expected = dict(zip('0123456789', own['pred_scores'].tolist()))
    for file, tolerance in zip(files, (1e-4, 0.2)):
        (found,) = predict_alone(tmp_path / 'exported', file, tmp_path / 'images')
        assert found['file'] == str(image)
        assert len(found['predictions']) == 5
        for entry in found['predictions']:
            assert entry['score'] == pytest.approx(expected[entry['name']], abs=tolerance)


@pytest.fixture(scope='module')
def script():
    """The script as a module of its own, as an export writes it; without locks, as on Windows."""
    module = ModuleType('predict')
    module.__file__ = 'predict.py'
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, 'fcntl', None)
        exec(compile(script_text(), 'predict.py', 'exec'), vars(module))
    return module


ABOUT = dict(input=['batch', 3, 8, 8], open_size=True, channels='BGR', mean=None, std=None, classes=None)
ABOUT |= dict(steps=[], scores='softmax', threshold=None, palette=None, pad_divisor=1, pad_value=0)


def write_onnx(path, nodes, shape, **tensors):
    """A network of ONNX nodes from ``images`` to ``scores``; ``shape`` is that of the scores."""
    values = [f'float{[*x.shape]} {name} = {{{", ".join(map(str, x.flatten()))}}}' for name, x in tensors.items()]
    images = 'float[batch, 3, height, width] images'
    graph = f'network ({images}) => (float[batch, {shape}] scores) <{", ".join(values)}> {{{nodes}}}'
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {graph}'), path)


MEANS = 'means = GlobalAveragePool (images)'


def write_means(folder, **about):
    """An exported classifier whose scores are the means of blue, green and red."""
    write_onnx(folder / 'model.onnx', f'{MEANS} scores = Flatten (means)', '3')
    about = ABOUT | dict(task='classification', steps=[dict(scale=8)]) | about
    (folder / 'model.json').write_text(json.dumps(about))
    return str(folder / 'model.onnx')


def test_the_script_numbers_classes_without_names_and_names_what_it_leaves_out(script, tmp_path, capsys):
    model = write_means(tmp_path)
    (tmp_path / 'images').mkdir()
    cv2.imwrite(str(tmp_path / 'images/red.png'), np.full((9, 9, 3), (1, 2, 3), np.uint8))
    (tmp_path / 'images/text.png').write_text('no image')
    (tmp_path / 'images/notes.txt').write_text('no image')
    assert script.main([model, str(tmp_path / 'gone.png'), str(tmp_path / 'images')]) == 1
    out, errors = capsys.readouterr()
    found = json.loads(out)
    assert {entry['name']: entry['score'] for entry in found['predictions']} == pytest.approx(
        dict(zip('012', np.exp([1, 2, 3]) / np.exp([1, 2, 3]).sum())), abs=1e-6
    )
    assert errors.splitlines() == [
        f'warning: {tmp_path / "images"} contains files of other types, which are skipped: 1 .txt',
        f'skipped: there is no image {tmp_path / "gone.png"}',
        f'skipped: {tmp_path / "images/text.png"} is not a readable image',
    ]
    assert script.main([model, str(tmp_path / 'images'), '--masks', 'masks']) == 1
    assert 'error: --masks requires a segmentation model' in capsys.readouterr().err


def test_files_of_an_export_that_do_not_fit_are_one_line(script, tmp_path, capsys):
    model, about = write_means(tmp_path, classes=['a', 'b']), tmp_path / 'model.json'
    Image.new('RGB', (8, 8)).save(tmp_path / 'a.png')

    def message():
        assert script.main([model, str(tmp_path / 'a.png')]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        return line

    assert 'has 2 class names, but the model has 3 classes' in message()
    for content, words in (('[1]', 'content is [1], not dict'), ('{', 'is damaged'), ('{}', 'lacks input, open_')):
        about.write_text(content)
        assert words in message()
    about.unlink()
    assert message() == f'error: there is no {about}; export the model again'
    write_means(tmp_path, open_size=False, steps=[])
    Image.new('RGB', (8, 7)).save(tmp_path / 'a.png')
    assert (
        message()
        == f'skipped: {tmp_path / "a.png"} is preprocessed to 7x8 pixels, but this exported model requires 8x8'
    )
    (tmp_path / 'model.onnx').write_bytes(b'no model')
    assert message().startswith(f'error: {model} is damaged: ')


def test_no_script_is_written_that_predicts_something_else(classifier, tmp_path, capsys):
    model = apis.get_model(classifier[0], classifier[1])
    about = describe_inputs(model, (3, 32, 32), True)
    for changed, scores, reason in (
        ({}, lambda x: [np.eye(1, 10)], 'predictions of the script differ'),
        (dict(channels='BGR'), None, 'inputs of the script differ from those of the test pipeline'),
    ):
        assert write_script(model, about | changed, scores, tmp_path) == {}
        assert f'predict.py is not written: {reason}' in capsys.readouterr().out
    assert not (tmp_path / 'predict.py').exists()
    (tmp_path / 'predict.py').write_text('mine')
    assert write_script(model, about, None, tmp_path) == {}
    assert (
        f'{tmp_path / "predict.py"} exists and is another script, which is not overwritten' in capsys.readouterr().out
    )
    assert (tmp_path / 'predict.py').read_text() == 'mine'


def test_masks_of_the_script_are_those_of_the_tool(tmp_path):
    (tmp_path / 'segmentor.py').write_text(SEGMENTOR)
    torch.save(dict(state_dict=apis.get_model(tmp_path / 'segmentor.py').state_dict()), tmp_path / 'segmentor.pth')
    for name in ('image.png', 'image.tif', 'within/image.png'):
        (tmp_path / 'images' / name).parent.mkdir(parents=True, exist_ok=True)
        write_waves(tmp_path / 'images' / name, 128, 128)
    network = ('segmentor.py', 'segmentor.pth')
    succeed(call('export.py', *network, 'onnx', '--out-dir', '.', cwd=tmp_path))
    succeed(call('predict.py', *network, 'images', '--masks', 'own', cwd=tmp_path))
    places = (tmp_path / 'images', '--masks', tmp_path / 'made')
    assert len(predict_alone(tmp_path, tmp_path / 'segmentor.onnx', *places)) == 3
    masks = {path.relative_to(tmp_path / 'own') for path in (tmp_path / 'own').rglob('*.png')}
    assert masks == {path.relative_to(tmp_path / 'made') for path in (tmp_path / 'made').rglob('*.*')}
    for mask in masks:
        with Image.open(tmp_path / 'own' / mask) as own, Image.open(tmp_path / 'made' / mask) as made:
            assert (own.size, own.mode, own.getpalette()) == (made.size, made.mode, made.getpalette())
            assert np.mean(np.asarray(own) == np.asarray(made)) > 0.999


FORMATS = dict(int8=['.int8.onnx'], openvino=['.xml', '.bin'], aot=['.aot.pt2'])
MARKS = dict(openvino=NEEDS_OPENVINO, aot=pytest.mark.slow)


@pytest.mark.parametrize('odd', ['1 x 32x32', '5 x 32x32', '1 x 64x96'])
def test_a_format_is_compared_at_each_batch_and_size_and_not_written_where_it_errs(odd, tiny, tmp_path, monkeypatch):
    tried = []

    def encode_with_an_error(*arguments):
        files, run = encode(*arguments)

        def run_with_an_error(images):
            tried.append(describe_size(images))
            return [found + (tried[-1] == odd) * 2e-3 * np.abs(found).max() for found in run(images)]

        return files, run_with_an_error

    monkeypatch.setattr('vt.commands.export.encode', encode_with_an_error)
    earlier = tmp_path / f'exported/{tiny[0].stem}.pt2'
    earlier.parent.mkdir()
    earlier.write_text('earlier')
    image = write_waves(tmp_path / 'a.png', 50, 70)
    result = call('export.py', *tiny[:2], 'program', '--inputs', image, cwd=tmp_path)
    assert_one_line(result, f'program differs by 0.002 at {odd}, more than --tolerance 0.0001')
    assert {*tried} == {'1 x 32x32', '2 x 32x32', '5 x 32x32', '2 x 64x96', '1 x 64x96'}
    assert [(path.name, path.read_text()) for path in earlier.parent.iterdir()] == [(earlier.name, 'earlier')]


@pytest.fixture(scope='module')
def small():
    """A small network with images and its program."""
    torch.manual_seed(0)
    convolution = torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU()

    class Small(torch.nn.Sequential):
        def forward(self, images, mode):
            return super().forward(images)

    network = Network(Small(*convolution, torch.nn.Flatten(), torch.nn.Linear(8 * 36, 4)))
    images = torch.randn(5, 3, 8, 8)
    return network, images, export_program(network, images[:2])


@pytest.mark.parametrize('kind', [pytest.param(kind, marks=MARKS.get(kind, ())) for kind in FORMATS])
def test_a_small_network_in_other_formats(kind, small):
    network, images, program = small
    files, run_again = encode(kind, program, images.split(1))
    assert [*files] == FORMATS[kind]
    lowest, highest = (1e-6, 0.05) if kind == 'int8' else (0, 1e-5)
    assert lowest <= largest_difference(run_again, network, images) <= highest


@pytest.mark.parametrize(
    ('row', 'reason'),
    [
        (dict(format='onnx', difference=2e-4), 'onnx differs by 0.0002 at 1 x 8x8, more than --tolerance 0.0001'),
        (dict(format='onnx', difference=1e-4), None),
        (dict(format='int8', difference=0.1, metric='mIoU', score=np.nan, model_score=60.0), 'int8 loses nan of mIoU'),
        (dict(format='int8', difference=float('inf')), 'int8 gives NaN or infinite'),
        (dict(format='int8', difference=0.1, metric='mIoU', score=58.0, model_score=60.0), 'int8 loses 2.00 of mIoU'),
        (dict(format='int8', difference=0.1, metric='mIoU', score=59.0, model_score=60.0), None),
        (dict(format='int8', difference=0.1, metric='mIoU', score=80.0, model_score=60.0), None),
    ],
)
def test_what_is_refused(row, reason):
    found = why_refused(dict(at='1 x 8x8', **row), Namespace(tolerance=1e-4, max_accuracy_drop=1.0))
    assert (found is None) == (reason is None)
    assert (reason or '') in (found or '')


PIPELINES = [
    [
        dict(type='ResizeEdge', scale=45, edge='short', interpolation='bicubic', backend='pillow'),
        dict(type='CenterCrop', crop_size=(40, 32)),
    ],
    [dict(type='ResizeEdge', scale=45, edge='long')],
    [dict(type='Resize', scale=(64, 48), interpolation='lanczos')],
    [dict(type='Resize', scale=(64, 48), keep_ratio=True)],
]


@pytest.mark.parametrize('steps', PIPELINES)
def test_the_script_prepares_images_as_the_pipeline(classifier, steps, tmp_path):
    cfg = Config.fromfile(classifier[0])
    pipeline = [dict(type='LoadImageFromFile'), *steps, dict(type='PackInputs')]
    cfg.test_dataloader.dataset = dict(type='CustomDataset', data_root='none', pipeline=pipeline)
    normalisation = dict(mean=[120.0, 110, 100], std=[60.0, 50, 40], to_rgb=True)
    cfg.model.data_preprocessor = cfg.data_preprocessor = dict(normalisation, pad_size_divisor=16, pad_value=7)
    model = apis.get_model(cfg)
    about = describe_inputs(model, (3, 32, 32), True) | describe_preparation(apis.inferencer_of(model))
    about = json.loads(json.dumps(about))
    for size in ((50, 70), (61, 33)):
        file = write_waves(tmp_path / 'a.png', *size)
        expected = model.data_preprocessor(pseudo_collate([Samples(cfg)(file)]), False)['inputs'].numpy()
        found, own_size, _ = predict_exported.prepare(file, about)
        assert own_size == size
        assert found.flags.c_contiguous
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_missing_package_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, 'onnxruntime', None)
    with pytest.raises(UserError, match=r'of onnxruntime.*: pip install onnx onnxscript onnxruntime$'):
        encode('onnx', SimpleNamespace(onnx=b''))


@pytest.mark.parametrize('scale', [1, 1e4])
@pytest.mark.parametrize(
    ('index', 'added', 'expected'), [(0, 1, 0.25), (0, -1, 0.25), (1, 0.2, 0.5), (1, np.nan, np.inf)]
)
def test_a_difference_is_relative_to_the_largest_value_of_its_output(index, added, expected, scale):
    outputs = [scale * np.array([1, -4, 0.5]), scale * np.array([0.1, 0.2, 0.4])]
    found = [each.copy() for each in outputs]
    found[index][2] += scale * added
    difference = largest_difference(lambda _: found, lambda _: [*map(torch.tensor, outputs)], None)
    assert difference == pytest.approx(expected)


class Fixed(torch.nn.Module):
    """A network whose size becomes a constant, as in a library's code; formats without guards would be wrong."""

    def forward(self, images, mode):
        return torch.nn.functional.interpolate(images, [int(side * 0.5) for side in images.shape[2:]])


def test_a_size_that_became_a_constant_is_found_and_fixed():
    images, other = torch.rand(2, 3, 32, 32), torch.rand(2, 3, 64, 96)
    program = export_program(Network(Fixed()), images, [other])
    assert not program.open_size
    assert program.reason
    run = program.program.module()
    assert np.array_equal(run(images), Fixed()(images, 'tensor'))
    assert run(torch.rand(5, 3, 32, 32)).shape == (5, 3, 16, 16)
    with pytest.raises(AssertionError, match='Guard failed'):
        run(other)


@pytest.mark.slow
@pytest.mark.parametrize('name', ['vt-fpn_r18_digit-scenes', 'mvit-tiny_moving-digits'])
def test_scenes_and_videos(name, small_model, tmp_path):
    config, checkpoint, *_ = small_model(name)
    result = succeed(call('export.py', config, checkpoint, '--out', 'r.json', cwd=tmp_path))
    record = json.loads((tmp_path / 'r.json').read_text())
    assert max(row['difference'] for row in record['results']) < 1e-5
    assert not record['open_size']
    about = json.loads((tmp_path / f'exported/{name}.json').read_text())
    if name == 'vt-fpn_r18_digit-scenes':
        assert (about['channels'], about['task']) == ('BGR', 'segmentation')
        assert 'the image size is fixed' in result.stdout
    else:
        assert about['channels'] == 'RGB'
        assert 'predict.py is not written: the script does not support videos' in result.stdout
