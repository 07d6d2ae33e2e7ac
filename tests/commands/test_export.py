"""``tools/export.py`` as a user calls it: what it writes computes what the model does, at other batches and sizes."""

import json
import os
import subprocess
import sys
import threading
from argparse import Namespace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec, module_from_spec, spec_from_file_location

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
from PIL import Image
from tool_runner import assert_one_line

from vt import apis
from vt.apis import predict_exported
from vt.apis.exporting import Network, encode, export_program, largest_difference
from vt.commands.export import export, why_refused
from vt.commands.exported_script import describe_inputs, describe_preparation, script_text, write_script
from vt.errors import UserError
from vt.inference.inputs import Samples

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


@pytest.fixture(scope='module')
def script(folder):
    """The script as a module of its own, as an export writes it."""
    (folder / 'predict.py').write_text(script_text())
    spec = spec_from_file_location('predict', folder / 'predict.py')
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ABOUT = dict(input=['batch', 3, 8, 8], open_size=True, channels='BGR', mean=None, std=None, classes=None)
ABOUT |= dict(steps=[], scores='softmax', threshold=None, palette=None, pad_divisor=1, pad_value=0)


def write_means(folder):
    """An exported classifier of three classes, whose logits are the means of the channels."""
    nodes = [onnx.helper.make_node('GlobalAveragePool', ['images'], ['means'])]
    nodes += [onnx.helper.make_node('Flatten', ['means'], ['scores'])]
    write_onnx(folder / 'model.onnx', nodes, ['batch', 3])
    (folder / 'model.json').write_text(json.dumps(ABOUT | dict(task='classification', steps=[dict(scale=8)])))
    return folder / 'model.onnx'


def write_levels(folder, number, **about):
    """An exported segmentor that numbers levels of grey from 0 to ``number - 1``; its only output is their logit."""
    weight, bias = np.zeros((number, 3, 1, 1), np.float32), np.zeros(number, np.float32)
    if number == 1:
        weight[0, 0], bias[0] = 1, -255 / 2
    else:  # the largest of 2 k x - k^2 is at k = x, here for x from 0 to number - 1
        weight[:, 0, 0, 0] = 2 * np.arange(number) * (number - 1) / 255
        bias = -(np.arange(number, dtype=np.float32) ** 2)
    tensors = [onnx.numpy_helper.from_array(weight, 'weight'), onnx.numpy_helper.from_array(bias, 'bias')]
    nodes = [onnx.helper.make_node('Conv', ['images', 'weight', 'bias'], ['scores'])]
    write_onnx(folder / 'model.onnx', nodes, ['batch', number, 'height', 'width'], tensors)
    colours = [[k % 256, 0, 1] for k in range(max(2, number))]
    (folder / 'model.json').write_text(
        json.dumps(ABOUT | dict(task='segmentation', palette=colours, threshold=0.3) | about)
    )
    return folder / 'model.onnx'


def write_onnx(path, nodes, shape, tensors=()):
    info, float32 = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    given, made = info('images', float32, ['batch', 3, 'height', 'width']), info('scores', float32, shape)
    graph = onnx.helper.make_graph(nodes, 'graph', [given], [made], tensors)
    opset = onnx.helper.make_opsetid('', 17)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8), path)


def test_the_script_numbers_classes_without_names_and_names_what_it_leaves_out(script, tmp_path, capsys):
    model = str(write_means(tmp_path))
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
        f'warning: {tmp_path / "images"} contains files of other kinds, which are left out: 1 .txt',
        f'skipped: there is no image {tmp_path / "gone.png"}',
        f'skipped: {tmp_path / "images/text.png"} is no image that can be read',
    ]
    (tmp_path / 'empty').mkdir()
    assert script.main([model, str(tmp_path / 'empty')]) == 1
    assert capsys.readouterr().err.startswith(f'error: {tmp_path / "empty"} contains no file that ends in .bmp')
    assert script.main([model, str(tmp_path / 'images'), '--masks', 'masks']) == 1
    assert capsys.readouterr().err == 'error: --masks needs a segmentor, and the model is none: leave it out\n'


def test_files_of_other_sizes_are_skipped_where_the_size_is_fixed(script, tmp_path, capsys):
    model = str(write_levels(tmp_path, 3, open_size=False))
    files = [tmp_path / f'{side}.png' for side in (7, 8, 9)]
    for file, side in zip(files, (7, 8, 9)):
        Image.fromarray(np.full((side, 8), 200, np.uint8)).save(file)
    assert script.main([model, *map(str, files)]) == 1
    out, errors = capsys.readouterr()
    assert json.loads(out)['predictions'][0] == dict(name='2', score=1.0)
    assert errors.splitlines() == [
        f'skipped: {tmp_path / name}.png becomes an input of {name}x8 pixels; this export takes only 8x8'
        for name in '79'
    ]


def test_files_of_an_export_that_do_not_fit_are_one_line(script, tmp_path, capsys):
    model, about = str(write_levels(tmp_path, 3, classes=['a', 'b'])), tmp_path / 'model.json'
    Image.new('RGB', (8, 8)).save(tmp_path / 'a.png')

    def message():
        assert script.main([model, str(tmp_path / 'a.png')]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        return line

    assert 'holds 2 names of classes, the model has 3 classes' in message()
    for content, words in (('[1]', 'contains a list'), ('{', 'is damaged'), ('{}', 'lacks input, open_')):
        about.write_text(content)
        assert words in message()
    about.unlink()
    assert message() == f'error: there is no {about}; export the model again'
    write_levels(tmp_path, 3)
    (tmp_path / 'model.onnx').write_bytes(b'no model')
    assert message().startswith(f'error: {model} is damaged: ')


def test_no_script_is_written_that_predicts_something_else(classifier, tmp_path, capsys):
    model = apis.get_model(classifier[0], classifier[1])
    nodes = [onnx.helper.make_node('GlobalAveragePool', ['images'], ['means'])]
    weight = onnx.numpy_helper.from_array(np.eye(3, 10, dtype=np.float32), 'weight')
    nodes += [onnx.helper.make_node('Flatten', ['means'], ['rows'])]
    nodes += [onnx.helper.make_node('MatMul', ['rows', 'weight'], ['scores'])]
    write_onnx(tmp_path / 'other.onnx', nodes, ['batch', 10], [weight])
    about, content = describe_inputs(model, (3, 32, 32), True), (tmp_path / 'other.onnx').read_bytes()
    assert write_script(model, about, content, tmp_path) == {}
    assert 'predict.py is not written: predictions of the script differ' in capsys.readouterr().out
    assert write_script(model, about | dict(channels='BGR'), content, tmp_path) == {}
    assert 'inputs of the script differ from those of the test pipeline for ' in capsys.readouterr().out
    assert not (tmp_path / 'predict.py').exists()
    (tmp_path / 'predict.py').write_text('mine')
    assert write_script(model, about, content, tmp_path) == {}
    assert f'{tmp_path / "predict.py"} is another script, which is kept' in capsys.readouterr().out
    assert (tmp_path / 'predict.py').read_text() == 'mine'


def test_no_script_is_written_whose_masks_differ(folder, tmp_path, capsys, monkeypatch):
    """With 300 classes: the masks have 16 bits."""
    config, *_ = make(folder, 'vt-fpn_r18_digit-scenes')
    cfg = Config.fromfile(config)
    cfg.model.decode_head.num_classes = 300
    model = apis.get_model(cfg)
    model.dataset_meta = dict(
        classes=[f'class {k}' for k in range(300)], palette=[[k % 256, k // 256, 0] for k in range(300)]
    )
    image = torch.randn(2, 3, 128, 128)
    network = Network(model)
    program = export_program(network, image, [])
    about = describe_inputs(model, image.shape[1:], program.open_size)
    assert write_script(model, about, program.onnx, tmp_path)['task'] == 'segmentation'
    (tmp_path / 'predict.py').unlink()
    for correct, wrong in (('np.uint16', 'np.uint8'), ('with_suffix(mask[0])', 'with_suffix(".bmp")')):
        changed = script_text().replace(correct, wrong)
        monkeypatch.setattr('vt.commands.exported_script.script_text', lambda text=changed: text)
        assert write_script(model, about, program.onnx, tmp_path) == {}
        assert 'masks of the script differ from those of tools/predict.py' in capsys.readouterr().out


def test_the_script_runs_without_locks(monkeypatch, tmp_path):
    """As on Windows."""
    monkeypatch.setitem(sys.modules, 'fcntl', None)
    names = dict(__name__='script')
    exec(compile(script_text(), 'predict.py', 'exec'), names)
    names['write_atomically'](tmp_path / 'a.txt', 'text')
    assert [path.name for path in tmp_path.iterdir()] == ['a.txt']


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
    files, run_again = encode(kind, program, images.split(1))
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
    load = dict(type='LoadImageFromFile')
    cfg.test_dataloader.dataset = dict(
        type='CustomDataset', data_root='none', pipeline=[load, *steps, dict(type='PackInputs')]
    )
    normalisation = dict(mean=[120.0, 110, 100], std=[60.0, 50, 40], to_rgb=True)
    cfg.model.data_preprocessor = cfg.data_preprocessor = dict(normalisation, pad_size_divisor=16, pad_value=7)
    model = apis.get_model(cfg)
    expected = model.data_preprocessor(pseudo_collate([Samples(cfg)(file)]), False)['inputs'].numpy()
    about = describe_inputs(model, (3, 32, 32), True) | describe_preparation(model)
    found, own_size, _ = predict_exported.prepare(file, json.loads(json.dumps(about)))
    assert own_size == size
    assert found.flags.c_contiguous
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_missing_package_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, 'onnxruntime', None)
    program = export_program(Network(Fixed()), torch.rand(2, 3, 8, 8))
    with pytest.raises(UserError, match=r"of onnxruntime.*: pip install 'visual-transformers\[export,openvino\]'"):
        encode('onnx', program)


def test_a_missing_package_is_told_before_anything_is_scored(classifier, monkeypatch):
    monkeypatch.setitem(sys.modules, 'onnxruntime', None)
    monkeypatch.setattr('vt.commands.export.score', None)
    given = dict(config=str(classifier[0]), checkpoint=str(classifier[1]), cfg_options=None, formats=['onnx'])
    with pytest.raises(UserError, match='of onnxruntime'):
        export(Namespace(**given, inputs=[], out=None, fixed_size=True, accuracy=8))


def test_nan_is_a_difference():
    def network(images):
        return images, images

    def run_with_nan(images):
        return [images.numpy(), np.full_like(images.numpy(), np.nan)]

    assert largest_difference(run_with_nan, network, torch.ones(2, 3)) == float('inf')


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
        mask = np.asarray(Image.open(tmp_path / 'masks/a.png'))
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


@pytest.mark.slow
def test_nothing_is_reported_to_the_makers_of_the_runtime(tmp_path):
    """ONNX Runtime connects some seconds after its import."""
    asked = []

    class Proxy(BaseHTTPRequestHandler):
        def do_CONNECT(self):
            asked.append(self.path)
            self.send_error(502)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(('127.0.0.1', 0), Proxy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        proxies = dict.fromkeys(('http_proxy', 'https_proxy'), f'http://127.0.0.1:{server.server_port}')
        left_out = ('ORT_DISABLE_TELEMETRY', 'no_proxy', 'NO_PROXY')
        env = {name: value for name, value in os.environ.items() if name not in left_out} | proxies
        content = 'import sys, time; from onnx import TensorProto, helper; from vt.apis.exporting import encode\n'
        content += "x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in 'xy')\n"
        content += "graph = helper.make_graph([helper.make_node('Relu', ['x'], ['y'])], 'graph', [x], [y])\n"
        content += "model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=9)\n"
        content += "program = type('Made', (), dict(onnx=model.SerializeToString()))\n"
        content += "encode('onnx', program); time.sleep(8)"
        subprocess.run([sys.executable, '-c', content], cwd=tmp_path, env=env, check=True)
        server.shutdown()
    assert asked == []
