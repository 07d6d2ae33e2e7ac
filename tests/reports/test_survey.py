"""The page on the survey's models: its tables are those of the configs, and its example runs."""

import re

import torch
from mmengine.config import Config
from mmpretrain.registry import MODELS
from tool_runner import ROOT, call, succeed

from docs.reports.components import describe_survey_models, read_survey_models
from vt.apis import find_config

PAGE = ROOT / 'docs/survey.md'


def test_an_attention_of_ones_own_trains_in_twenty_lines(tmp_path, monkeypatch):
    part, config = (block.split('```')[0] for block in PAGE.read_text().split('```python\n')[-2:])
    assert len([line for line in (part + config).splitlines() if line]) <= 20
    (tmp_path / 'row_attention.py').write_text(part)
    base = str(ROOT / 'configs/swin/swin-tiny_digits.py')
    (tmp_path / 'rows_digits.py').write_text(config.replace('swin-tiny_digits.py', base))
    monkeypatch.syspath_prepend(tmp_path)
    options = ['train_cfg.max_epochs=1', 'train_dataloader.dataset.indices=4', 'val_dataloader.dataset.indices=4']
    options.append('train_dataloader.batch_size=4')
    result = succeed(call('train.py', 'rows_digits.py', '--work-dir', 'run', cwd=tmp_path, options=options))
    assert 'accuracy/top1' in result.stdout


def test_the_table_names_the_norms_that_a_system_has():
    """Of one system for each answer."""
    short = dict.fromkeys(('LayerNorm', 'LayerNorm2d'), 'LN') | dict(InstanceNorm2d='IN')
    short |= dict.fromkeys(('BatchNorm', 'BatchNorm1d', 'BatchNorm2d'), 'BN')
    told = {
        frozenset(re.findall(r'\b[A-Z]N\b', row['normalisation'])): (name, entry)
        for (name, entry), row in zip(read_survey_models().items(), describe_survey_models(), strict=True)
    }
    assert len(told) > 2
    for norms, (name, entry) in told.items():
        config = Config.fromfile(find_config(f'{name}_16xb64-300e_in1k')).model.backbone
        with torch.device('cpu' if entry.get('backbone_of') == 'MMPretrain' else 'meta'):
            parts = [type(part).__name__ for part in MODELS.build(config).modules()]
        assert norms == {short[part] for part in parts if part in short}, name
