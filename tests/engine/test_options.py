"""``--cfg-options`` enter a config at the place that they name, lists too, or are refused in a line."""

import pytest
from mmengine.config import Config

from vt.commands.sweep import identify, plan
from vt.engine.prepare import apply_options
from vt.errors import UserError
from vt.registry import MODELS

PIPELINE = [dict(type='Resize', scale=32), dict(type='PackInputs')]
MODEL = dict(head=dict(type='LinearClsHead', loss=dict(type='CrossEntropyLoss'), topk=(1, 5)))


def entered(**options):
    cfg = Config(dict(model=MODEL, pipeline=PIPELINE, mean=[1, 2, 3], clip_grad=None, log_level='INFO'))
    apply_options(cfg, {key.replace('__', '.'): value for key, value in options.items()})
    return cfg.to_dict()


@pytest.mark.parametrize(
    ('key', 'value', 'read'),
    [
        ('pipeline__0__scale', 64, lambda cfg: cfg['pipeline'] == [dict(type='Resize', scale=64), PIPELINE[1]]),
        ('pipeline__1', dict(extra=1), lambda cfg: cfg['pipeline'][1] == dict(type='PackInputs', extra=1)),
        ('pipeline__1', dict(_delete_=True, type='A'), lambda cfg: cfg['pipeline'][1] == dict(type='A')),
        ('pipeline', PIPELINE[:1], lambda cfg: cfg['pipeline'] == PIPELINE[:1]),
        ('mean__2', 9, lambda cfg: cfg['mean'] == [1, 2, 9]),
        ('model__head__topk__1', 3, lambda cfg: cfg['model']['head']['topk'] == (1, 3)),
        ('model__head__loss__use_soft', True, lambda cfg: cfg['model']['head']['loss']['type'] == 'CrossEntropyLoss'),
        ('model__head__loss', None, lambda cfg: cfg['model']['head']['loss'] is None),
        ('clip_grad__max_norm', 1.0, lambda cfg: cfg['clip_grad'] == dict(max_norm=1.0)),
        ('pipeline__2__type', 'A', lambda cfg: cfg['pipeline'] == [*PIPELINE, dict(type='A')]),
        ('pipeline__2', dict(type='A', b=1), lambda cfg: cfg['pipeline'] == [*PIPELINE, dict(type='A', b=1)]),
        ('new__0__type', 'A', lambda cfg: cfg['new'] == [dict(type='A')]),
        ('new__key', 1, lambda cfg: cfg['new'] == dict(key=1)),
    ],
)
def test_an_option_has_its_place(key, value, read):
    assert read(entered(**{key: value}))


@pytest.mark.parametrize(
    ('key', 'value', 'words'),
    [
        (
            'pipeline__2__scale',
            64,
            'no such key .list index out of range.; a part is set by its type; a list takes an index of it',
        ),
        ('pipeline__3__type', 'A', 'list index out of range'),
        ('mean__3', 1, 'list index out of range'),
        ('pipeline__²', 64, 'invalid literal for int'),
        ('pipeline__scale', 64, 'invalid literal for int'),
        ('log_level', dict(a=1), 'no such key'),
        ('pipeline__0', 64, 'it is a part or a list of parts'),
        ('pipeline', 'Resize', 'it is a part or a list of parts.; a part is set by its type'),
        ('model__head__loss', 'CrossEntropyLoss', 'it is a part or a list of parts'),
        ('log_level__a', 1, "a would be in 'INFO'"),
    ],
)
def test_an_option_without_a_place_is_refused(key, value, words):
    with pytest.raises(UserError, match=words):
        entered(**{key: value})


def test_other_places_of_a_shared_part_stay():
    shared = dict(type='A', size=1)
    cfg = Config(dict(one=shared, two=shared))
    apply_options(cfg, {'one.size': 2})
    assert (cfg.one.size, cfg.two.size) == (2, 1)


def test_packages_that_options_name_are_imported(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    part = 'from torch.nn import ReLU\nfrom vt.registry import MODELS\nMODELS.register_module({!r}, module=ReLU)\n'
    (tmp_path / 'parts_of_a_run.py').write_text(part.format('OfARun'))
    apply_options(Config(), {'custom_imports.imports': ['vt', 'parts_of_a_run']})
    assert MODELS.get('vt.OfARun')
    with pytest.raises(UserError, match=r'custom_imports=.*no_parts_of_a_run'):
        apply_options(Config(), {'custom_imports.imports': ['vt', 'no_parts_of_a_run']})
    (tmp_path / 'parts_of_a_sweep.py').write_text(part.format('OfASweep'))
    (tmp_path / 'c.py').write_text("default_scope = 'mmpretrain'\nmodel = dict(type='ImageClassifier')\n")
    settings = ['custom_imports.imports=[vt,parts_of_a_sweep]', 'model.backbone.type=vt.OfASweep']
    identify(plan(str(tmp_path / 'c.py'), settings, [0], tmp_path), tmp_path)
    assert MODELS.get('vt.OfASweep')
