"""The page on the survey's systems: its tables are those of the configs, and its example runs."""

import shutil
import sys

from forked_tools import run_forked
from tool_runner import ROOT

PAGE = ROOT / 'docs/survey.md'


def test_the_tables_are_those_of_the_configs(tmp_path):
    page = shutil.copy(PAGE, tmp_path)
    result = run_forked('report.py', 'survey', '--page', page, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / 'survey.md').read_text() == PAGE.read_text()


def test_an_attention_of_ones_own_trains_in_twenty_lines(tmp_path, monkeypatch):
    part, config = (block.split('```')[0] for block in PAGE.read_text().split('```python\n')[-2:])
    assert len([line for line in (part + config).splitlines() if line]) <= 20
    (tmp_path / 'row_attention.py').write_text(part)
    base = str(ROOT / 'configs/survey/swin-tiny_digits.py')
    (tmp_path / 'rows_digits.py').write_text(config.replace('swin-tiny_digits.py', base))
    monkeypatch.setenv('PYTHONPATH', str(tmp_path))
    monkeypatch.setattr(sys, 'path', [str(tmp_path), *sys.path])
    options = ['train_cfg.max_epochs=1', 'train_dataloader.dataset.indices=32', 'val_dataloader.dataset.indices=8']
    result = run_forked('train.py', 'rows_digits.py', '--work-dir', 'run', cwd=tmp_path, options=options)
    assert result.returncode == 0, result.stderr
    assert 'accuracy/top1' in result.stdout
