"""Settings that OpenMMLab's runners take, and data as users have them, through the command lines."""

import pickle

import cv2
import numpy as np
import torch
from bad_input.small_runs import DIGITS, FOLDER
from forked_tools import run_forked
from tool_runner import assert_one_line, call, succeed

MMENGINE = """
activation_checkpointing = ['backbone.layer1']
efficient_conv_bn_eval = ['backbone.layer2']
param_scheduler = [dict(type='CosineAnnealingLR', T_max=1, convert_to_iter_based=True)]
default_hooks = dict(timer=None)
"""


def run(tool, folder, config, *arguments, **kwargs):
    (folder / 'config.py').write_text(config)
    return call(tool, 'config.py', *arguments, cwd=folder, **kwargs)


def write_images(folder, names):
    """Random images, at their paths in a folder."""
    generator = np.random.default_rng(0)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(folder / name), generator.integers(0, 256, (40, 50, 3), dtype=np.uint8))


def test_settings_of_mmengine_train(tmp_path):
    result = succeed(run('train.py', tmp_path, DIGITS + MMENGINE, options=['default_hooks.logger.interval=1']))
    assert 'Epoch(train) [1][2/2]' in result.stdout
    assert (tmp_path / 'work_dirs/config/epoch_1.pth').exists()


def test_a_config_for_tests_alone(trained_digits, tmp_path):
    config = DIGITS + 'optim_wrapper = train_cfg = train_dataloader = param_scheduler = None\n'
    assert 'accuracy/top1' in succeed(run('test.py', tmp_path, config, trained_digits)).stdout
    assert_one_line(run('train.py', tmp_path, config), 'training requires train_dataloader in the config')


def test_a_folder_without_labels_gives_predictions(trained_digits, tmp_path):
    write_images(tmp_path / 'data/images', ['a.png', 'b.png'])
    config = FOLDER.replace("data_prefix='images'", "data_prefix='images', with_label=False")
    config = config.replace('num_classes=2', 'num_classes=10')
    succeed(run('test.py', tmp_path, config, trained_digits, '--out', 'predictions.pkl'))
    assert len(pickle.loads((tmp_path / 'predictions.pkl').read_bytes())) == 2
    result = run('test.py', tmp_path, config, trained_digits, '--report', 'none')
    assert_one_line(result, 'the test images have no labels: write predictions')
    assert not (tmp_path / 'none').exists()


def test_images_of_a_remote_store_are_left_to_its_client(tmp_path):
    """A stand-in for a client: files below another root."""
    write_images(tmp_path / 'store', [f'images/{name}/0.png' for name in ('cat', 'dog')])
    (tmp_path / 'data').mkdir()
    (tmp_path / 'data/list.txt').write_text('cat/0.png 0\ndog/0.png 1\n')
    (tmp_path / 'client.py').write_text(
        'from mmengine.fileio import LocalBackend, register_backend\n'
        "@register_backend('store')\n"
        'class Store(LocalBackend):\n'
        "    def get(self, path):\n        return super().get(path.replace('data/', 'store/', 1))\n"
        '    def get_local_path(self, path):\n        raise NotImplementedError\n'
    )
    config = "import sys\nsys.path.insert(0, '.')\n" + FOLDER.replace(
        "dict(type='LoadImageFromFile')", "dict(type='LoadImageFromFile', backend_args=dict(backend='store'))"
    ).replace("data_prefix='images'", "data_prefix='images', ann_file='list.txt', classes=('cat', 'dog')")
    (tmp_path / 'config.py').write_text(config + "custom_imports = dict(imports=['vt', 'client'])\n")
    succeed(run_forked('check_dataset.py', 'config.py', cwd=tmp_path))
    succeed(run_forked('train.py', 'config.py', cwd=tmp_path, options=['train_dataloader.batch_size=2']))


def test_a_checkpoint_of_other_classes_is_refused(trained_digits, tmp_path):
    checkpoint = torch.load(trained_digits, weights_only=False)
    classes = checkpoint['meta']['dataset_meta']['classes']
    checkpoint['meta']['dataset_meta']['classes'] = (classes[1], classes[0], *classes[2:])
    torch.save(checkpoint, tmp_path / 'other.pth')
    message = f"other.pth was trained with '{classes[1]}' as label 0, the Digits data set has '{classes[0]}'"
    assert_one_line(run('test.py', tmp_path, DIGITS, 'other.pth'), message)
    write_images(tmp_path / 'images', ['a.png'])
    result = run('predict.py', tmp_path, DIGITS, 'other.pth', 'images', '--out', 'predictions.csv')
    assert_one_line(result, f"other.pth was trained with '{classes[1]}' as label 0, test_dataloader.dataset has")
    begun = succeed(run('train.py', tmp_path, DIGITS, options=['load_from=other.pth']))
    assert f'{message}: the head starts from weights that were trained for other classes' in begun.stdout
