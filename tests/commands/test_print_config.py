"""What ``tools/print_config.py`` prints is the config of a run, and what each step set."""

from mmengine.config import Config
from tool_runner import ROOT, call, succeed

from vt.commands.print_config import compare
from vt.engine.config.steps import read_config
from vt.engine.run.launch import build_runner
from vt.key_values import parse_options

CONFIG = str(ROOT / 'configs/vt_resnet/vt-resnet18_digits.py')


def test_the_config_of_a_run_is_printed_which_python_has_too(tmp_path):
    options = [f'work_dir={tmp_path / "run"}', 'image_size=24', 'fold=1', 'train_cfg.max_epochs=3']
    options += ['imbalance=weighted', 'model.head.num_classes=auto']
    result = succeed(call('print_config.py', CONFIG, '--launcher', 'none', '--amp', cwd=tmp_path, options=options))
    (tmp_path / 'printed.py').write_text(result.stdout)
    runner = build_runner(read_config(CONFIG, parse_options(options)), amp=True)
    assert Config.fromfile(tmp_path / 'printed.py').to_dict() == runner.cfg.to_dict()
    assert len(runner.cfg.model.head.loss.class_weight) == runner.model.head.num_classes == 10
    assert '# imbalance: model.head.loss.class_weight = [' in result.stdout
    assert '# classes of the data: model.head.num_classes = 10 instead of ' in result.stdout


def test_each_step_names_what_it_set(tmp_path):
    options = ['image_size=24', 'train_cfg.max_epochs=3']
    text = succeed(call('print_config.py', 'vt-resnet18_digits', '--compile', cwd=tmp_path, options=options)).stdout
    lines = text.partition(' was read:\n')[2].splitlines()
    assert '# --cfg-options: train_cfg.max_epochs = 3 instead of 15' in lines
    assert '# image_size: train_dataloader.dataset.pipeline.0.scale = 24 instead of 64' in lines
    assert "# arguments: speed = {'compile': True}" in lines
    hook = "# defaults of runs: default_hooks.checkpoint.type = 'vt.CheckpointHook' instead of 'CheckpointHook'"
    assert hook in lines


def test_parts_that_are_replaced_or_removed_are_one_line():
    before = dict(a=dict(type='A', size=[1, 2]), b=dict(type='B', c=1), d=1)
    after = dict(a=dict(type='A', size=[1, 3]), b=dict(type='C', e=2))
    assert [*compare(before, after)] == [
        'a.size.1 = 3 instead of 2',
        "b = {'type': 'C', 'e': 2} instead of {'type': 'B', 'c': 1}",
        'd is removed',
    ]
