"""The explorer without a browser: what is looked at, the report of it, and what can't be done."""

import base64
import re
import sys

import cv2
import numpy as np
import pytest
import torch
from apis.small_models import make, sharpen
from mmengine.dataset import pseudo_collate
from survey_backbones import build
from tool_runner import call, succeed

from vt import apis, record_attention
from vt.commands.explore import serve
from vt.errors import UserError
from vt.explorer.inspection import Inspection, Module, find_modules, inspect_image, pick_from_test_set
from vt.explorer.views import describe_module
from vt.models import MViT


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp('some looks')


@pytest.fixture(scope='module')
def classifier(folder):
    made = make(folder, 'vt-resnet18-half_digits')
    sharpen(made[1])
    return made


@pytest.fixture
def image(tmp_path):
    path = tmp_path / '<b>mine.png'
    cv2.imwrite(str(path), np.random.default_rng(0).integers(0, 256, (60, 90, 3), np.uint8))
    return path


def numbers(html, view):
    """The rows of every table of a view."""
    tables = re.findall(rf'data-view="{view}">.*?</figure>', html, re.DOTALL)
    rows = [re.findall(r'<tr>(<td>.*?)</tr>', table, re.DOTALL) for table in tables]
    return [[re.findall(r'<td>(.*?)</td>', row) for row in table] for table in rows if table]


def test_a_report_of_two_models_stands_alone_and_has_the_recorders_numbers(folder, classifier, image, tmp_path):
    plain = make(folder, 'resnet18-half_digits')
    arguments = [*classifier[:2], '--compare', *plain[:2], '--inputs', image, '--html', 'report.html']
    succeed(call('explore.py', *arguments, cwd=tmp_path))
    html = (tmp_path / 'report.html').read_text()
    assert '<h2>&lt;b&gt;mine.png</h2>' in html
    assert '<b>' not in html
    assert not re.findall(r'(?:src|href)="(?!data:|#")', html)
    assert html.count('No part of this model attends') == 1
    images = re.findall(r'src="data:image/jpeg;base64,(.*?)"', html)
    shapes = [cv2.imdecode(np.frombuffer(base64.b64decode(each), np.uint8), 1).shape for each in images]
    assert len(shapes) == 2 + 5  # the image twice; tokens, reads and relation of a module, and of one that reads not
    model = apis.ClassificationInferencer(*classifier[:2])
    inputs = model.model.data_preprocessor(pseudo_collate([model.pipeline(str(image))]), False)['inputs']
    with torch.no_grad(), record_attention(model.model) as records:
        model.model(inputs, mode='tensor')
    first = inspect_image(model, str(image)).modules['backbone.layer4.0.tokenizer']
    torch.testing.assert_close(first.reads, records['backbone.layer4.0.projector'].attention[0])
    torch.testing.assert_close(first.maps, records['backbone.layer4.0.tokenizer'].attention[0])
    for index, relation in enumerate([np.array(table, float)[:, 1:] for table in numbers(html, 'relation')]):
        expected = records[f'backbone.layer4.{index}.relation'].attention[0, 0]
        np.testing.assert_allclose(relation, expected, atol=1e-4)
    scores = numbers(html, 'prediction')[0]
    expected = model(str(image))[0]
    assert scores[0] == [expected['pred_class'], f'{100 * expected["pred_score"]:.2f}']


def test_levels_of_a_segmentor(small_model):
    inferencer = apis.SegmentationInferencer(*small_model('vt-fpn_r18_digit-scenes')[:2])
    (first,) = pick_from_test_set(inferencer.model.cfg, 1)
    inspection = inspect_image(inferencer, first.source)
    assert list(inspection.modules) == [f'neck.tokenizers.{level}' for level in range(4)]
    assert inspection.overlay.shape == (128, 128, 3)
    assert sum(each['share'] for each in inspection.predictions) == pytest.approx(1)
    for module in inspection.modules.values():
        assert module.relation.shape == (1, 12, 12)
        assert module.maps.shape == module.reads.shape


@pytest.mark.parametrize('pools', [False, True])
def test_maps_on_a_grid_leave_out_the_class_token(pools):
    arch = dict(channels=8, depths=(1, 1))
    model = MViT(arch, image_size=64, num_frames=4, key_value_stride=(1, 2, 2)) if pools else build('deit-small')
    with torch.no_grad(), record_attention(model) as records:
        model(torch.randn(1, 3, *([4] if pools else []), 64, 64))
    modules = find_modules(model, records)
    assert modules.keys() == records.keys()
    for name, module in modules.items():
        maps = module.maps.flatten(start_dim=2)  # h, Q, P
        torch.testing.assert_close(maps, records[name].attention[0, ..., 1:])


@pytest.mark.parametrize('head', range(4))
def test_numbers_of_a_head_or_of_the_mean_and_a_row_a_token(head):
    torch.manual_seed(0)
    maps, relation = torch.rand(2, 3, 4, 5), torch.rand(3, 3, 3)
    module = Module(maps, relation)
    assert [*module.heads] == [0, 1, 2, 3]
    assert [*Module(maps[:1]).heads] == [0]
    views = describe_module(Inspection(torch.rand(3, 8, 8), [], None, dict(a=module)), 'a', head)
    found = {view.name: np.array([[*row.values()] for row in view.rows], float) for view in views if view.rows}
    expected = relation[head - 1] if head else relation.mean(dim=0)
    np.testing.assert_allclose(found['relation'], np.column_stack([[1, 2, 3], expected]), atol=1e-4)
    seen = maps[head - 1] if head in (1, 2) else maps.mean(dim=0)  # there is no third head of the maps
    entropies = torch.distributions.Categorical(seen.flatten(1)).entropy()
    np.testing.assert_allclose(found['entropy'], np.column_stack([[1, 2, 3], entropies]), atol=1e-4)


def test_a_missing_gradio_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, 'vt.explorer.page', raising=False)  # which imports it
    monkeypatch.setitem(sys.modules, 'gradio', None)
    with pytest.raises(UserError, match=r'the page requires Gradio: pip install gradio'):
        serve({}, [], 1)
