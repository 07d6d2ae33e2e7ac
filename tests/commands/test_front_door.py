"""``python -m vt COMMAND``: the tools from any folder, by names or paths, also on systems without Unix's modules."""

import os
import subprocess
import sys

import mmcv
import numpy as np
import pytest
import torch
from bad_input.small_runs import DIGITS
from tool_runner import ROOT, assert_one_line, call, succeed

from vt.apis.model_zoo import find_source
from vt.cli import main
from vt.cli.commands import COMMANDS
from vt.engine.config.compose import short_models
from vt.engine.config.short_names import SHORT_NAMES

OPTIONS = 'train_dataloader.dataset.indices=8', 'train_dataloader.batch_size=4', 'val_dataloader.dataset.indices=4'
# The modules that Windows lacks cannot be imported, and processes are started as there and on macOS.
ELSEWHERE = """
import multiprocessing, platform, sys

if __name__ == '__main__':
    sys.modules.update(dict.fromkeys(('fcntl', 'resource', 'termios', 'pwd', 'grp')))
    platform.system = lambda: 'Windows'  # MMEngine asks it
    multiprocessing.set_start_method('spawn')
    from vt.cli import main
    main()
"""


def test_every_tool_is_a_command_with_its_sentence(monkeypatch, capsys):
    monkeypatch.setattr(sys, 'argv', ['vt'])
    main()
    lines = capsys.readouterr().out.splitlines()
    assert {path.stem.replace('_', '-') for path in (ROOT / 'tools').rglob('*.py')} == {*COMMANDS}
    for name, command in COMMANDS.items():
        (number,) = [number for number, line in enumerate(lines) if line.split()[:1] == [name]]
        assert lines[number].split()[1:] == command.description.split()
        assert lines[number + 1].split()[:2] == ['vt', name]


@pytest.mark.parametrize('given', ['check-dataset', 'check_dataset', 'check'])
def test_a_command_is_a_tool_by_the_first_letters_of_its_name(given, monkeypatch, capsys):
    monkeypatch.setattr(sys, 'argv', ['vt', given, '--help'])
    with pytest.raises(SystemExit, match='0'):
        main()
    assert capsys.readouterr().out.startswith('usage: vt check-dataset [-h]')


@pytest.mark.parametrize(
    ('given', 'advice'), [('trian', 'did you mean train? '), ('ex', 'did you mean explore or export? '), ('x', '')]
)
def test_another_command_is_refused_in_a_line(given, advice, monkeypatch, capsys):
    monkeypatch.setattr(sys, 'argv', ['vt', given])
    with pytest.raises(SystemExit, match='1'):
        main()
    line = f'error: there is no command {given!r}: {advice}vt --help lists all\n'
    assert capsys.readouterr().err == line


@pytest.mark.parametrize(
    ('start', 'usage', 'form'),
    [
        (['-c', 'from vt.cli import main; main()', 'predict'], 'vt predict', 'vt {}'),
        (['-m', 'vt', 'predict'], 'python -m vt predict', 'python -m vt {}'),
        (['tools/predict.py'], 'predict.py', 'python tools/{}.py'),
    ],
)
def test_commands_are_named_as_they_were_typed(start, usage, form):
    command, env = [sys.executable, *start, '--help'], os.environ | dict(COLUMNS='999')
    text = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=env).stdout
    assert text.startswith(f'usage: {usage} [-h]')
    assert f'a report.json of {form.format("test")} --report' in text
    assert f'example:\n  {form.format("predict")} swin-tiny' in text


def test_a_config_is_a_name_or_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = str(ROOT / 'configs/vt_resnet/vt-resnet18_digits.py')
    for name in ('vt-resnet18_digits', 'VT-ResNet18_digits'):
        assert find_source(name) == config
    for path in (config, 'missing.py', 'mmpretrain::resnet/resnet18_8xb32_in1k.py', '.'):
        assert find_source(path) == path


def test_a_config_imports_modules_of_the_current_folder(tmp_path):
    (tmp_path / 'part_beside.py').write_text('import vt\n')
    (tmp_path / 'own.py').write_text(f"{DIGITS}custom_imports = dict(imports=['part_beside'])\n")
    succeed(call('print_config.py', 'own.py', cwd=tmp_path))


@pytest.mark.slow
def test_train_resume_and_predict_without_the_modules_of_unix(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('PYTHONPATH', str(ROOT))
    (tmp_path / 'vt_elsewhere.py').write_text(ELSEWHERE)
    (tmp_path / 'digits.py').write_text(DIGITS)
    mmcv.imwrite(np.full((8, 8, 3), 100, np.uint8), str(tmp_path / 'photo.png'))
    for command in (
        ['train', 'digits.py', '--cfg-options', *OPTIONS, 'train_dataloader.num_workers=1'],
        ['train', 'digits.py', '--resume', '--cfg-options', *OPTIONS, 'train_cfg.max_epochs=2'],
        ['predict', 'work_dirs/digits/digits.py', 'work_dirs/digits/epoch_2.pth', 'photo.png', '--out', 'found.json'],
    ):
        result = subprocess.run([sys.executable, 'vt_elsewhere.py', *command], capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
    assert {path.name for path in tmp_path.glob('work_dirs/digits/epoch_*')} == {'epoch_1.pth', 'epoch_2.pth'}
    assert (tmp_path / 'found.json').is_file()


def test_what_there_is_is_listed(tmp_path):
    def printed(tool, *arguments):
        return succeed(call(tool, *arguments, cwd=tmp_path)).stdout

    tables = [(printed('models.py'), short_models()), (printed('settings.py'), SHORT_NAMES)]
    for text, names in tables:
        assert [line.split('|')[1].strip() for line in text.splitlines() if line.startswith('| ')][2:] == [*names]
    assert 'swin-tiny_16xb64-300e_in1k' in printed('models.py', 'swin*')
    assert torch.__version__.partition('+')[0] in printed('env.py')
    assert_one_line(call('models.py', 'swim', cwd=tmp_path), 'no model is called swim')


@pytest.mark.parametrize(
    ('typed', 'completed'),
    [
        ('vt exp', 'explore export'),
        ('vt train swin-', 'swin-tiny'),
        ('vt train swin-tiny ep', 'epochs='),
        ('vt train swin-tiny data = ph', ''),
    ],
)
def test_bash_completes_what_is_typed(typed, completed, tmp_path):
    (tmp_path / 'vt.bash').write_text(succeed(call('settings.py', '--completion', cwd=tmp_path)).stdout)
    script = (
        f'source vt.bash; COMP_WORDS=({typed}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _vt; echo ${{COMPREPLY[@]}}'
    )
    result = subprocess.run(['bash', '-c', script], cwd=tmp_path, capture_output=True, text=True)
    assert sorted(succeed(result).stdout.split()) == completed.split()
