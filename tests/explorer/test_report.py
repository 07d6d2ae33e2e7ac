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
from tool_runner import call, succeed

from vt import apis, record_attention
from vt.analysis.attention.token_measures import measure_tokenizers
from vt.commands.explore import serve
from vt.errors import UserError
from vt.explorer.looking import look_at, pick_from_test_set
from vt.explorer.views import describe_module
from vt.inference.test_set import build_test_set


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
    first = look_at(model, str(image)).modules['backbone.layer4.0.tokenizer']
    torch.testing.assert_close(first.reads, records['backbone.layer4.0.projector'].attention[0])
    torch.testing.assert_close(first.maps, records['backbone.layer4.0.tokenizer'].attention[0])
    relations = [np.array(table, float)[:, 1:] for table in numbers(html, 'relation')]
    for index, relation in enumerate(relations):
        expected = records[f'backbone.layer4.{index}.relation'].attention[0, 0]
        np.testing.assert_allclose(relation, expected, atol=1e-4)
    scores = numbers(html, 'prediction')[0]
    expected = model(str(image))[0]
    assert scores[0] == [expected['pred_class'], f'{100 * expected["pred_score"]:.2f}']


def test_levels_of_a_segmentor_and_their_measures(small_model):
    inferencer = apis.SegmentationInferencer(*small_model('vt-fpn_r18_digit-scenes')[:2])
    (first,) = pick_from_test_set(inferencer.model.cfg, 1)
    look = look_at(inferencer, first.source)
    assert list(look.modules) == [f'neck.tokenizers.{level}' for level in range(4)]
    assert look.overlay.shape == (128, 128, 3)
    assert sum(each['share'] for each in look.predictions) == pytest.approx(1)
    measured = measure_tokenizers(inferencer.model, build_test_set(inferencer.model.cfg), [0], [0])
    for name, module in look.modules.items():
        assert module.relation.shape == (1, 12, 12)
        assert module.maps.shape == module.reads.shape
        rows = {view.name: view.rows for view in describe_module(look, name, 0)}['measures']
        assert [float(row['entropy']) for row in rows] == pytest.approx(measured[name]['entropy_of_tokens'], abs=1e-4)
        reach = torch.tensor([float(row['reach']) for row in rows])
        assert reach.square().mean().sqrt() == pytest.approx(measured[name]['reach'], abs=1e-4)


def test_a_missing_gradio_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, 'vt.explorer.page', raising=False)  # which imports it
    monkeypatch.setitem(sys.modules, 'gradio', None)
    with pytest.raises(UserError, match=r'the page needs Gradio: pip install gradio'):
        serve({}, [], 1)
