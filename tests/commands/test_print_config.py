"""What ``tools/print_config.py`` prints is the config of a run, and what each step set."""

import runpy
import sys

import pytest
from mmengine.config import Config
from tool_runner import ROOT

from vt.commands.print_config import compare, print_config
from vt.engine.launch import build_runner
from vt.engine.prepare import Request, prepare
from vt.errors import UserError

CONFIG = str(ROOT / 'configs/vt_resnet/vt-resnet18_digits.py')


@pytest.fixture
def printed(monkeypatch, capsys):
    def printed(*arguments):
        monkeypatch.setattr(sys, 'argv', ['print_config.py', *arguments])
        args = runpy.run_path(str(ROOT / 'tools/print_config.py'))['parse_args']()
        print_config(args)
        return capsys.readouterr().out, args

    return printed


def test_the_config_of_a_run_is_printed(printed, tmp_path):
    options = [f'work_dir={tmp_path / "run"}', 'image_size=24', 'fold=1', 'train_cfg.max_epochs=3']
    text, args = printed(CONFIG, '--launcher', 'none', '--amp', '--cfg-options', *options)
    (tmp_path / 'printed.py').write_text(text)
    runner = build_runner(prepare(CONFIG, Request.of(args)))
    assert Config.fromfile(tmp_path / 'printed.py').to_dict() == runner.cfg.to_dict()


def test_each_step_names_what_it_set(printed):
    text, _ = printed('vt-resnet18_digits', '--compile', '--cfg-options', 'image_size=24', 'train_cfg.max_epochs=3')
    lines = text.partition(' was read:\n')[2].splitlines()
    assert '# --cfg-options: train_cfg.max_epochs = 3 instead of 15' in lines
    assert '# image_size: train_dataloader.dataset.pipeline.0.scale = 24 instead of 64' in lines
    assert "# arguments: speed = {'compile': True}" in lines
    assert (
        "# defaults of runs: default_hooks.checkpoint.type = 'vt.CheckpointHook' instead of 'CheckpointHook'" in lines
    )


def test_parts_that_are_replaced_or_removed_are_one_line():
    before = dict(a=dict(type='A', size=[1, 2]), b=dict(type='B', c=1), d=1)
    after = dict(a=dict(type='A', size=[1, 3]), b=dict(type='C', e=2))
    assert [*compare(before, after)] == [
        'a.size.1 = 3 instead of 2',
        "b = {'type': 'C', 'e': 2} instead of {'type': 'B', 'c': 1}",
        'd is removed',
    ]


def test_a_config_with_an_error_is_refused(printed):
    with pytest.raises(UserError, match='did you mean image_size'):
        printed(CONFIG, '--cfg-options', 'image_siz=24')
