"""``--cfg-options``: texts become values, and enter a config at the place that they name, or are refused in a line."""

import pytest
from mmengine.config import Config

from vt.cli.parser import CommandParser
from vt.engine.config.options import apply_options
from vt.errors import UserError
from vt.registry import MODELS


@pytest.fixture
def parser():
    parser = CommandParser('Take settings.', 'python tool.py')
    parser.add_common_options()
    return parser


@pytest.mark.parametrize(
    ('text', 'value'),
    [
        ('3', 3),
        ('0.5', 0.5),
        ('true', True),
        ('None', None),
        ('name', 'name'),
        ('/my data/a b', '/my data/a b'),
        ("'/my data'", '/my data'),
        ('1,2', [1, 2]),
        ('[(1, 2), a]', [(1, 2), 'a']),
        ("['traffic light','car, van']", ['traffic light', 'car, van']),
        ("[{'type': 'EMAHook', 'momentum': 1e-3}]", [{'type': 'EMAHook', 'momentum': 1e-3}]),
        ("{'depth': 18}", {'depth': 18}),
        ('{}.pth', '{}.pth'),
        ("'007'", '007'),
        ("dad's", "dad's"),
        ('[1,2],[a,b]', [[1, 2], ['a', 'b']]),
        ('[traffic light,car]', ['traffic light', 'car']),  # of which mmengine makes 'trafficlight'
    ],
)
def test_values_of_cfg_options(parser, text, value):
    assert parser.parse_args(['--cfg-options', f'a.b={text}', 'c=1']).cfg_options == {'a.b': value, 'c': 1}


@pytest.mark.parametrize('text', ['2024', '007', '1e3', 'a,b', 'nan', 'True', '[1]', '(a) b', '0x10', '1_000'])
def test_a_path_stays_text(parser, text):
    keys = ['data_root', 'a.data_prefix.img_path', 'a.ann_file', 'work_dir', 'load_from', 'a.init_cfg.checkpoint']
    found = parser.parse_args(['--cfg-options', *(f'{key}={text}' for key in keys)]).cfg_options
    assert found == dict.fromkeys(keys, text)


def test_no_path_a_dict_of_paths_and_a_rate_are_read(parser):
    settings = ['load_from=None', "a.data_prefix={'img_path': 'b'}", 'a.drop_path=0.1', 'hooks.checkpoint=None']
    found = parser.parse_args(['--cfg-options', *settings]).cfg_options
    paths = dict(load_from=None) | {'a.data_prefix': dict(img_path='b'), 'hooks.checkpoint': None}
    assert found == paths | {'a.drop_path': 0.1}


UNREAD = ['[1,2', '[1,2]]', '(1', '(a)', '[[a],b', '],[', '{a:1}', '{a:1,b:2}', '[dict(type=A)]', '[dict(type=A,b=1)]']


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('a.b', "'a.b' must have the form key=value"),
        *((f'a.b={text}', f'a.b={text} cannot be parsed: write a list as [a,b], and a dict ') for text in UNREAD),
    ],
)
def test_what_would_be_read_as_something_else_is_refused(parser, text, words, capsys):
    with pytest.raises(SystemExit, match='2'):
        parser.parse_args(['--cfg-options', text])
    assert words in capsys.readouterr().err


def test_every_setting_of_cfg_options_counts(parser):
    """Of several flags, and of a list behind and before a number."""
    arguments = ['--cfg-options', 'a=1', '--cfg-options', 'a=2', 'b=[1,2]', 'c=3', 'b=4']
    assert parser.parse_args(arguments).cfg_options == dict(a=2, b=4, c=3)


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
        ('pipeline__2__scale', 64, 'no such key .list index out of range.; set the type to replace a part; an index'),
        ('pipeline__3__type', 'A', 'list index out of range'),
        ('mean__3', 1, 'list index out of range'),
        ('pipeline__²', 64, 'invalid literal for int'),
        ('pipeline__scale', 64, 'invalid literal for int'),
        ('log_level', dict(a=1), 'no such key'),
        ('pipeline__0', 64, 'it is a dict with a type, or a list of such dicts'),
        ('pipeline', 'Resize', 'it is a dict with a type, or a list of such dicts.; set the type to replace a part'),
        ('model__head__loss', 'CrossEntropyLoss', 'it is a dict with a type, or a list of such dicts'),
        ('log_level__a', 1, "a cannot be set in 'INFO'"),
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
    part = "from torch.nn import ReLU\nfrom vt.registry import MODELS\nMODELS.register_module('OfARun', module=ReLU)\n"
    (tmp_path / 'parts_of_a_run.py').write_text(part)
    apply_options(Config(), {'custom_imports.imports': ['vt', 'parts_of_a_run']})
    assert MODELS.get('vt.OfARun')
    with pytest.raises(UserError, match=r'custom_imports=.*no_parts_of_a_run'):
        apply_options(Config(), {'custom_imports.imports': ['vt', 'no_parts_of_a_run']})
