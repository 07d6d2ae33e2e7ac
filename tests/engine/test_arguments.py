"""Arguments that become settings."""

import pytest

from vt.commands.arguments import ToolParser


@pytest.fixture
def parser():
    parser = ToolParser('Take settings.', 'python tool.py')
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
        ('/my data (1)', '/my data (1)'),
        ("'/my data'", '/my data'),
        ('1,2', [1, 2]),
        ('[(1, 2), a]', [(1, 2), 'a']),
        ("['traffic light','car, van']", ['traffic light', 'car, van']),
        ("[{'type': 'EMAHook', 'momentum': 1e-3}]", [{'type': 'EMAHook', 'momentum': 1e-3}]),
        ("{'depth': 18}", {'depth': 18}),
        ('{}.pth', '{}.pth'),
        ("'007'", '007'),
        ("'a','b'", ['a', 'b']),
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


def test_no_path_a_dict_of_paths_and_a_rate(parser):
    settings = ['load_from=None', "a.data_prefix={'img_path': 'b'}", 'a.drop_path=0.1', 'hooks.checkpoint=None']
    assert parser.parse_args(['--cfg-options', *settings]).cfg_options == {
        'load_from': None,
        'a.data_prefix': dict(img_path='b'),
        'a.drop_path': 0.1,
        'hooks.checkpoint': None,
    }


def test_an_option_without_a_value_is_named(parser, capsys):
    with pytest.raises(SystemExit, match='2'):
        parser.parse_args(['--cfg-options', 'a.b'])
    assert "'a.b' is not of the form key=value" in capsys.readouterr().err


@pytest.mark.parametrize(
    'text',
    ['[1,2', '[1,2]]', '(1', '(a)', '[[a],b', '],[', '{a:1}', '{a:1,b:2}', '[dict(type=A)]', '[dict(type=A,b=1)]'],
)
def test_a_value_that_would_be_read_as_something_else_is_refused(parser, text, capsys):
    with pytest.raises(SystemExit, match='2'):
        parser.parse_args(['--cfg-options', f'a.b={text}'])
    assert f'a.b={text} cannot be read: a list is [a,b], a dict ' in capsys.readouterr().err


def test_every_setting_of_cfg_options_counts(parser):
    """Of several flags, and of a list behind and before a number."""
    arguments = ['--cfg-options', 'a=1', '--cfg-options', 'a=2', 'b=[1,2]', 'c=3', 'b=4']
    assert parser.parse_args(arguments).cfg_options == dict(a=2, b=4, c=3)
