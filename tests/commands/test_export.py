"""``tools/export.py`` as a user calls it: what it writes computes what the model does, at other batches and sizes."""

import json
import subprocess
import sys
from argparse import Namespace
from importlib.util import find_spec

import cv2
import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from apis.small_models import make
from forked_tools import run_forked as run
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from tool_runner import assert_one_line

from vt import apis
from vt.apis import predict_exported
from vt.apis.exporting import Network, encode, export_program, largest_difference
from vt.commands.export import describe_inputs, describe_preparation, why_refused
from vt.inference.inputs import Images

NEEDS_OPENVINO = pytest.mark.skipif(not find_spec('openvino'), reason='openvino is not installed')
# Run the script as where there is neither VT nor PyTorch.
ALONE = """
import runpy, sys
sys.modules |= dict.fromkeys(('torch', 'vt', 'mmengine', 'mmcv', 'mmpretrain'))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name='__main__')
"""


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp('some exports')


@pytest.fixture(scope='module')
def classifier(folder):
    return make(folder, 'vt-resnet18-half_digits')


def test_what_is_written_computes_what_the_model_does(classifier, tmp_path):
    config, checkpoint, model, _ = classifier
    arguments = ['--formats', 'program', 'onnx', '--benchmark', '--out', 'r.json', '--out-dir', 'a folder']
    result = run('export.py', config, checkpoint, *arguments, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    record = json.loads((tmp_path / 'r.json').read_text())
    assert record['open_size']
    assert [row['format'] for row in record['results']] == ['program', 'onnx']
    for row in record['results']:
        assert 0 <= row['difference'] < 1e-5
        assert row['seconds'] > 0 < row['eager']
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
    assert about['classes'] == list('0123456789')
    assert (about['mean'], about['channels'], about['input']) == ([127.5] * 3, 'RGB', ['batch', 3, 32, 32])


def write_waves(path, height, width):
    pixels = np.random.default_rng(0).integers(0, 256, (5, 6, 3), np.uint8)
    assert cv2.imwrite(str(path), cv2.resize(pixels, (width, height), interpolation=cv2.INTER_CUBIC))
    return path


def predict_alone(folder, *arguments):
    command = [sys.executable, '-c', ALONE, folder / 'predict.py', *arguments]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.slow
def test_eight_bits_openvino_and_a_script_without_pytorch(classifier, tmp_path):
    formats = ['onnx', 'int8', *(['openvino'] if find_spec('openvino') else [])]
    arguments = ['--formats', *formats, '--accuracy', '20', '--out', 'r.json', '--largest-loss', '100']
    result = run('export.py', *classifier[:2], *arguments, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    record = json.loads((tmp_path / 'r.json').read_text())
    assert (record['metric'], record['scored']) == ('accuracy/top1', 20)
    rows = {row['format']: row for row in record['results']}
    assert [*rows] == formats
    assert all(row['model_score'] == record['score'] for row in rows.values())
    exact = [row for name, row in rows.items() if name != 'int8']
    assert all(row['difference'] < 1e-5 and row['score'] == record['score'] for row in exact)
    assert 1e-4 < rows['int8']['difference'] < 1
    name = classifier[0].stem
    files = [tmp_path / f'exported/{name}{suffix}' for suffix in ('.onnx', '.int8.onnx')]
    assert files[1].stat().st_size < files[0].stat().st_size / 2
    assert (tmp_path / f'exported/{name}.bin').exists() == ('openvino' in formats)

    (tmp_path / 'images').mkdir()
    image = write_waves(tmp_path / 'images/a.png', 50, 70)
    (tmp_path / 'images/notes.txt').write_text('no image')
    expected = {entry['name']: entry['score'] for entry in inferred(classifier, image)['predictions']}
    for file, tolerance in zip(files, (1e-4, 0.2)):
        (found,) = predict_alone(tmp_path / 'exported', file, tmp_path / 'images')
        assert found['file'] == str(image)
        assert len(found['predictions']) == 5
        for entry in found['predictions']:
            assert entry['score'] == pytest.approx(expected[entry['name']], abs=tolerance)


def test_the_script_numbers_classes_without_names_and_names_what_it_leaves_out(tmp_path):
    make_node, info, float32 = onnx.helper.make_node, onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    nodes = [make_node('GlobalAveragePool', ['images'], ['means']), make_node('Flatten', ['means'], ['scores'])]
    given, made = info('images', float32, [1, 3, 8, 8]), info('scores', float32, [1, 3])
    graph = onnx.helper.make_graph(nodes, 'means', [given], [made])
    opset = onnx.helper.make_opsetid('', 17)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8), tmp_path / 'means.onnx')
    about = dict(task='classification', scores='softmax', read={}, steps=[dict(scale=8)], channels='RGB', mean=None)
    about |= dict(std=None, pad_divisor=1, pad_value=0, classes=None)
    (tmp_path / 'means.json').write_text(json.dumps(about))
    cv2.imwrite(str(tmp_path / 'red.png'), np.full((9, 9, 3), (1, 2, 3), np.uint8))
    command = [sys.executable, predict_exported.__file__, tmp_path / 'means.onnx']

    def predict(*arguments):
        return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)

    result = predict(tmp_path / 'gone.png', tmp_path / 'red.png')
    found = json.loads(result.stdout)
    assert [entry['name'] for entry in found['predictions']] == ['0', '1', '2']
    assert result.stderr.endswith('gone.png: no image that can be read\n')
    assert result.returncode == 1
    (tmp_path / 'empty').mkdir()
    assert predict(tmp_path / 'empty').stderr == f'error: {tmp_path / "empty"} contains no image\n'
    assert '--masks needs a segmentation model' in predict(tmp_path / 'red.png', '--masks', tmp_path / 'masks').stderr


def inferred(model, image):
    inferencer = apis.inferencer_of(Config.fromfile(model[0]), str(model[1]), 'cpu')
    (prediction,) = inferencer.forward(pseudo_collate([inferencer.pipeline(image)]))
    return inferencer.describe(prediction) | dict(prediction=prediction)


@pytest.mark.slow
def test_eight_bits_that_lose_too_much_are_refused(classifier, tmp_path):
    image = write_waves(tmp_path / 'a.png', 50, 70)
    arguments = ['--formats', 'int8', '--calibrate', image, '--accuracy', '8', '--largest-loss=-101']
    assert_one_line(
        run('export.py', *classifier[:2], *arguments, cwd=tmp_path), 'of accuracy/top1, more than --largest'
    )
    assert not (tmp_path / 'exported').exists()


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['--benchmark', '--benchmark-batch', '16'], '--benchmark-batch 16 must be from 1 to 5'),
        (['--benchmark-batch', '2'], '--benchmark-batch has no effect without --benchmark: add it, or remove'),
        (['--formats', 'program', '--calibrate', 'a.png'], '--calibrate has no effect without --formats int8'),
        (['--formats', 'int8', '--largest-loss', '5'], '--largest-loss has no effect without --accuracy'),
        (['--accuracy', '-3'], '--accuracy -3 must be a number of images'),
    ],
)
def test_options_without_effect_are_refused(arguments, message, classifier, tmp_path):
    assert_one_line(run('export.py', *classifier[:2], *arguments, cwd=tmp_path), message)
    assert not (tmp_path / 'exported').exists()


@pytest.mark.parametrize('kind', ['int8', pytest.param('openvino', marks=NEEDS_OPENVINO)])
def test_a_small_network_in_other_formats(kind):
    torch.manual_seed(0)
    convolution = torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU()

    class Small(torch.nn.Sequential):
        def forward(self, images, mode):
            return super().forward(images)

    network = Network(Small(*convolution, torch.nn.Flatten(), torch.nn.Linear(8 * 36, 4)))
    images = torch.randn(5, 3, 8, 8)
    program = export_program(network, images[:2])
    files, run_again = encode(kind, network, program, images[:2], images.split(1))
    assert [*files] == dict(int8=['.int8.onnx'], openvino=['.xml', '.bin'])[kind]
    lowest, highest = dict(int8=(1e-6, 0.05), openvino=(0, 1e-5))[kind]
    assert lowest < largest_difference(run_again, network, images) <= highest


@pytest.mark.parametrize(
    ('row', 'reason'),
    [
        (dict(format='onnx', difference=2e-4), 'onnx differs by 0.0002 at 1 x 8x8, more than --tolerance 0.0001'),
        (dict(format='onnx', difference=1e-5), None),
        (dict(format='int8', difference=0.1), None),
        (dict(format='int8', difference=0.1, metric='mIoU', score=np.nan, model_score=60.0), 'int8 loses nan of mIoU'),
        (dict(format='int8', difference=float('inf')), 'int8 gives NaN or infinite'),
        (dict(format='int8', difference=0.1, metric='mIoU', score=58.0, model_score=60.0), 'int8 loses 2.00 of mIoU'),
        (dict(format='int8', difference=0.1, metric='mIoU', score=59.5, model_score=60.0), None),
    ],
)
def test_what_is_refused(row, reason):
    found = why_refused(dict(at='1 x 8x8', **row), Namespace(tolerance=1e-4, largest_loss=1.0))
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
@pytest.mark.parametrize('size', [(50, 70), (61, 33)])
def test_the_script_prepares_images_as_the_pipeline(classifier, steps, size, tmp_path):
    file = write_waves(tmp_path / 'a.png', *size)
    cfg = Config.fromfile(classifier[0])
    load = dict(type='LoadImageFromFile', imdecode_backend='pillow')
    cfg.test_dataloader.dataset = dict(
        type='CustomDataset', data_root='none', pipeline=[load, *steps, dict(type='PackInputs')]
    )
    normalisation = dict(mean=[120.0, 110, 100], std=[60.0, 50, 40], to_rgb=True)
    cfg.model.data_preprocessor = cfg.data_preprocessor = dict(normalisation, pad_size_divisor=16, pad_value=7)
    model = apis.get_model(cfg)
    expected = model.data_preprocessor(pseudo_collate([Images(cfg)(file)]), False)['inputs'].numpy()
    about = describe_inputs(model, torch.zeros(1, 3, 32, 32), True) | describe_preparation(model)
    found, own_size, _ = predict_exported.prepare(file, json.loads(json.dumps(about)))
    assert own_size == size
    assert found.flags.c_contiguous
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_what_differs_too_much_is_refused_and_taken_away(classifier, tmp_path):
    result = run('export.py', *classifier[:2], '--formats', 'torchscript', '--tolerance', '0', cwd=tmp_path)
    assert_one_line(result, 'more than --tolerance 0.0 of the largest output')
    assert not list(tmp_path.rglob('*.ts'))
    result = run('export.py', config_of_imagenet(), classifier[1], cwd=tmp_path)
    assert_one_line(result, "is not the model's: ")


def test_nan_is_a_difference():
    def network(images):
        return images, images

    def run_with_nan(images):
        return [images.numpy(), np.full_like(images.numpy(), np.nan)]

    assert largest_difference(run_with_nan, network, torch.ones(2, 3)) == float('inf')


def config_of_imagenet():
    return apis.find_config('vt-resnet18_8xb32-90e_in1k')


def test_a_size_that_became_a_constant_is_found_and_fixed():
    """As a library's code makes one; formats without guards would be silently wrong."""

    class Fixed(torch.nn.Module):
        def forward(self, images, mode):
            return torch.nn.functional.interpolate(images, [int(side * 0.5) for side in images.shape[2:]])

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
def test_scenes_and_videos(name, folder, tmp_path):
    config, checkpoint, *_ = make(folder, name)
    result = run('export.py', config, checkpoint, '--out', 'r.json', cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    record = json.loads((tmp_path / 'r.json').read_text())
    assert max(row['difference'] for row in record['results']) < 1e-5
    assert not record['open_size']
    about = json.loads((tmp_path / f'exported/{name}.json').read_text())
    assert about['channels'] == ('BGR' if name == 'vt-fpn_r18_digit-scenes' else 'RGB')
    if name == 'vt-fpn_r18_digit-scenes':
        image = write_waves(tmp_path / 'a.png', 150, 150)
        file = tmp_path / f'exported/{name}.onnx'
        (found,) = predict_alone(tmp_path / 'exported', file, image, '--masks', tmp_path / 'masks')
        mask = cv2.imread(str(tmp_path / 'masks/a.png.png'), cv2.IMREAD_UNCHANGED)
        expected = inferred((config, checkpoint), image)
        assert np.mean(mask == expected['prediction'].pred_sem_seg.data[0].numpy()) > 0.999
        best = expected['predictions'][0]
        assert found['predictions'][0] == dict(name=best['name'], score=pytest.approx(best['share'], abs=1e-3))
    else:
        assert 'predict.py is not written: the script does not support videos' in result.stdout
    assert ('the image size is fixed' in result.stdout) == (name == 'vt-fpn_r18_digit-scenes')


@pytest.mark.slow
def test_a_compiled_library(classifier, tmp_path):
    result = run('export.py', *classifier[:2], '--formats', 'aot', '--out', 'r.json', cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    (row,) = json.loads((tmp_path / 'r.json').read_text())['results']
    assert row['difference'] < 1e-5
