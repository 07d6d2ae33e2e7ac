"""One table of what people get wrong on a command line: words of the one line that ends it, and no file is changed."""

import shlex
import shutil
from importlib.util import find_spec

import cv2
import numpy as np
import pytest
from apis.small_models import make, write_image
from bad_input.one_process import call
from bad_input.small_runs import FOLDER
from tool_runner import ROOT, assert_one_line

from vt import apis

DIGITS = f'{ROOT}/configs/vt_resnet/vt-resnet18_digits.py'
IMAGENET = f'{ROOT}/configs/vt_resnet/vt-resnet18_8xb32-90e_in1k.py'
ADVANCED = f'{ROOT}/configs/vt_resnet/vt-resnet18-advanced_digits.py'
CIFAR = f'{ROOT}/configs/vt_resnet/vt-resnet18_1xb128-90e_cifar10.py'
LIP = f'{ROOT}/configs/vt_fpn/vt-fpn_r50_4xb24-48k_lip-473x473.py'
PREDICT, SHOW, EXPLORE = (
    f'{tool}.py digits.py digits.pth' for tool in ('predict', 'analysis/show_tokens', 'explore')
)  # fmt: skip
OVER = 'is an input and would be overwritten: give another file to write'
COMMANDS = [
    ('train.py nowhere.py', 'there is no config nowhere.py'),
    (
        f'train.py {DIGITS} --resume nowhere.pth',
        'there is no checkpoint to resume from nowhere.pth',
    ),
    (f'train.py {DIGITS} --cfg-options load_from=nowhere.pth', 'there is no checkpoint for load_from: nowhere.pth'),
    (f'train.py {IMAGENET}', 'there is no data/imagenet: put it there, or correct its path'),
    (f'train.py {CIFAR}', 'there is no data/cifar10: put it there, or correct its path'),
    (f'train.py {ADVANCED}', 'there is no checkpoint work_dirs/resnet18_digits/epoch_15.pth: train the model first,'),
    (f'test.py {DIGITS} nowhere.pth', 'there is no checkpoint nowhere.pth'),
    ('test.py digits.py digits.pth --out m.txt', '--out m.txt: metrics are written as .json'),
    ('test.py digits.py digits.pth --out digits.py/m.json', 'digits.py is no folder that can be written to'),
    ('test.py digits.py digits.pth --out /proc/none/m.json', '/proc is no folder that can be written to'),
    ('test.py scenes.py scenes.pth --out digits.py/maps', 'digits.py is no folder that can be written to'),
    ('test.py digits.py digits.pth --heat-maps', '--heat-maps needs --report FOLDER'),
    ('test.py digits.py digits.pth --compare first', '--compare first needs --report FOLDER'),
    ('test.py digits.py digits.pth --report digits.py', 'digits.py is no folder that can be written to'),
    ('test.py digits.py digits.pth --report digits.py/report', 'digits.py is no folder that can be written to'),
    (
        'test.py digits.py digits.pth --report r --cfg-options test_dataloader.sampler.shuffle=True',
        'set test_dataloader.sampler.shuffle=False',
    ),
    (f'test.py {LIP} scenes.pth --tta', 'left and right are classes'),
    (
        'test.py scenes.py scenes.pth --out p.pkl',
        '--out p.pkl: metrics are written as .json, predicted maps to a folder',
    ),
    (f'{PREDICT} empty', 'empty contains no file that ends in .bmp'),
    (f'{PREDICT} data --out r.txt', '--out r.txt: results are written as .json or .csv'),
    (f'{PREDICT} data --out digits.py/r.csv', 'digits.py is no folder that can be written to'),
    (f'{PREDICT} data --out taken.csv', 'taken.csv.part'),
    (f'{PREDICT} data --out-dir data', 'would be overwritten: give another folder than --out-dir data'),
    (f'{PREDICT} data --masks masks', '--masks needs a segmentor'),
    (f'{PREDICT} data --out-dir data/a.png', '--out-dir data/a.png is a file where a folder is needed'),
    (f'{PREDICT} data --workers 100000', '--workers 100000 must be from 0 to 256'),
    (f'{PREDICT} data --top-k 0', '--batch-size 8 and --top-k 0 must be at least 1'),
    ('predict.py scenes.py scenes.pth data --masks data', 'data/a.png would be overwritten: give another folder than'),
    ('predict.py scenes.py scenes.pth data --masks x --out-dir ./x', 'x/a.png would be overwritten: give another'),
    ('predict.py vt-resnet18_digits digits.pth data', "digits.pth is not the model's: "),
    ('predict.py vt-resnet18_digit digits.pth data', "there is no model 'vt-resnet18_digit': did you mean vt-resnet18"),
    ('predict.py digits.py nowhere.pth data', 'there is no checkpoint nowhere.pth'),
    ('predict.py saved saved data', 'there is no checkpoint saved/model.safetensors'),
    (f'export.py {IMAGENET} digits.pth', "is not the model's: "),
    ('check_dataset.py folder.py --out r.json', 'there is no none: put it there, or correct its path'),
    ('check_dataset.py digits.py --workers 0', '--workers 0 must be at least 1'),
    ('benchmark.py nowhere.py', 'there is no config nowhere.py'),
    (f'benchmark.py {DIGITS} --sizes 64x', '--sizes 64x is not a size: write 224 or 800x1216'),
    (f'benchmark.py {DIGITS} --devices cuda:99', "device 'cuda:99' cannot be used"),
    (f'benchmark.py {DIGITS} --devices cpu --dtypes tf32', '--dtypes tf32: cpu has no TensorFloat-32; give float32'),
    (f'benchmark.py {DIGITS} {DIGITS}', 'two of the models have the same name'),
    (f'sweep.py {DIGITS} model.backbone.num_tokns=1,2', "VTResNet has no argument 'num_tokns'; did you mean num_toke"),
    (f'sweep.py {DIGITS} train_cfg.max_epochs', "'train_cfg.max_epochs' must have the form key=value,value"),
    (f'sweep.py {DIGITS} --seeds 3:0', '--seeds 3:0: give them as 0:3 (0, 1 and 2) or as 0,4'),
    (f'sweep.py {DIGITS} randomness.seed=1,2', 'randomness.seed cannot be swept: use --seeds'),
    (f'sweep.py {DIGITS} --jobs -1', '--jobs -1: give 1 or more'),
    (f'sweep.py {DIGITS} train_cfg.a=1 train_cfg.a=2', 'train_cfg.a is given twice: give all its'),
    (f'sweep.py {DIGITS} model.backbone.out_indices=[1,2', 'cannot be read: a list is [a,b]'),
    ('analysis/report.py runs work_dirs/none', 'there is no work_dirs/none/training.json'),
    ('analysis/report.py sweep .', 'there is no finished run in'),
    (f'analysis/show_tokens.py {DIGITS} nowhere.pth', 'there is no checkpoint nowhere.pth'),
    (f'{SHOW} data/a.png zero.png', 'zero.png is no image'),
    (f'{SHOW} data/a.png data/notes.txt', 'data/notes.txt is no image'),
    (f'{SHOW} data/a.png gone.png', 'there is no image gone.png'),
    ('analysis/show_tokens.py plain.py digits.pth tokens.png', f'tokens.png {OVER}'),
    (f'{SHOW} data/a.png --out ./data/a.png', f'a.png {OVER}'),
    (f'{SHOW} data/a.png --out data/../digits.py', f'digits.py {OVER}'),
    (f'{SHOW} data/a.png --out digits.pth', f'digits.pth {OVER}'),
    ('analysis/show_tokens.py digits.py nowhere.pth data/a.png --out a.txt', 'a.txt: a figure is written as .'),
    ('explore.py vt-resnet18_digits digits.pth --html r.html', "digits.pth is not the model's: "),
    (f'{EXPLORE} --compare digits.py nowhere.pth --html r.html', 'there is no checkpoint nowhere.pth'),
    (f'{EXPLORE} --html r.html --inputs no.png', 'there is no no.png: put'),
    (f'{EXPLORE} --html r.html --images 0', '--images 0 must be at least 1'),
    ('explore.py moving.py moving.pth --html r.html', 'is a video model'),
]
if find_spec('pytorch_grad_cam'):
    COMMANDS += [('analysis/show_heat_maps.py digits.py digits.pth data/a.png --target ten', 'there is no class ten')]


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Small models by short names, two images, and what is no image, no model or in the way."""
    folder = tmp_path_factory.mktemp('command lines')
    names = {'digits': 'vt-resnet18-half_digits', 'scenes': 'vt-fpn_r18_digit-scenes'}
    for name, config in (names | dict(moving='mvit-tiny_moving-digits')).items():
        made = make(folder, config)
        for path in made[:2]:
            path.rename(folder / f'{name}{path.suffix}')
        if name == 'digits':
            apis.save_model(made[2], folder / 'saved')
            (folder / 'data/more').mkdir(parents=True)
            write_image(folder / 'data/a.png', made[3]['inputs'])
    (folder / 'saved/model.safetensors').unlink()
    cv2.imwrite(str(folder / 'data/more/b.jpg'), np.zeros((50, 70, 3), np.uint8))
    shutil.copy(folder / 'data/a.png', folder / 'tokens.png')
    for name in ('empty', 'taken.csv.part'):
        (folder / name).mkdir()
    (folder / 'data/notes.txt').write_text('mine')
    (folder / 'zero.png').write_bytes(b'')
    (folder / 'plain.py').write_text("_base_ = 'digits.py'\n")  # without a work directory
    (folder / 'folder.py').write_text(FOLDER.replace("data_root='data'", "data_root='none'"))
    return folder


def files(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob('*') if 'work_dirs' not in path.parts}


@pytest.mark.parametrize(('command', 'words'), COMMANDS, ids=range(len(COMMANDS)))
def test_a_command_line(command, words, folder, monkeypatch, capsys):
    before = files(folder)
    result = call(*shlex.split(command), cwd=folder, monkeypatch=monkeypatch, capsys=capsys)
    assert_one_line(result, words)
    assert files(folder) == before
    assert not [*folder.rglob('work_dirs/**/*.pth')]
