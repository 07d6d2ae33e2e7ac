"""``tools/export.py`` as a user calls it: what it writes computes what the model does, at other batches and sizes."""

import json

import numpy as np
import onnxruntime
import pytest
import torch
from apis.small_models import make
from forked_tools import run_forked as run
from tool_runner import assert_one_line

from vt import apis
from vt.apis.exporting import Network, export_program, largest_difference


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


def test_what_differs_too_much_is_refused_and_taken_away(classifier, tmp_path):
    result = run('export.py', *classifier[:2], '--formats', 'torchscript', '--tolerance', '0', cwd=tmp_path)
    assert_one_line(result, 'more than --tolerance 0.0 of the largest output differs: torchscript by ')
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
    assert about['channels'] == 'RGB'
    assert ('the size is fixed' in result.stdout) == (name == 'vt-fpn_r18_digit-scenes')


@pytest.mark.slow
def test_a_compiled_library(classifier, tmp_path):
    result = run('export.py', *classifier[:2], '--formats', 'aot', '--out', 'r.json', cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    (row,) = json.loads((tmp_path / 'r.json').read_text())['results']
    assert row['difference'] < 1e-5
