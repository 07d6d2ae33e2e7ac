"""A teacher's label maps are written to a file, from which a student of the embedded digits learns."""

import torch
from forked_tools import run_forked
from mmengine.config import Config
from mmengine.registry import DATASETS
from mmpretrain.registry import MODELS
from tool_runner import ROOT

from vt.engine.launch import build_model

SMALL = """
head = dict(num_classes=10, in_channels=64)
student = dict(channels=16, num_heads=2, depth=2, embed=dict(type='vt.PatchEmbed', kernel_size=16), class_tokens=1)
model = dict(
    {teacher}
    backbone=dict(stages=[student]),
    head=dict(in_channels=16),
)
train_dataloader = dict(dataset=dict(indices=40))
val_dataloader = dict(dataset=dict(indices=8))
train_cfg = dict(max_epochs=1)
"""
TEACHER = """
    teacher=dict(backbone=dict(base_channels=8, stem_channels=8), head=head), teacher_checkpoint='teacher.pth',
"""


def write_config(path, base, teacher=''):
    path.write_text(f'_base_ = {str(ROOT / "configs/lv_vit" / base)!r}\n{SMALL.format(teacher=teacher)}')
    return path


def test_a_student_learns_from_a_file_of_its_teacher(tmp_path):
    config = write_config(tmp_path / 'teacher_digits.py', 'lv-vit-small_digits.py', TEACHER)
    cfg = Config.fromfile(config)
    torch.manual_seed(0)
    teacher = MODELS.build(cfg.model.teacher)
    torch.save(teacher.state_dict(), tmp_path / 'teacher.pth')
    result = run_forked('analysis/label_maps.py', config, 'maps.pth', '--batch-size', '16', cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert 'written to maps.pth: 40 images, 10x2x2' in result.stdout
    maps = torch.load(tmp_path / 'maps.pth')
    model = build_model(cfg)
    teacher.eval()
    dataset = DATASETS.build(cfg.train_dataloader.dataset | dict(pipeline=cfg.test_pipeline))
    inputs = model.data_preprocessor(dict(inputs=[dataset[39]['inputs']]), False)['inputs']
    with torch.no_grad():
        (features,) = teacher.backbone(inputs)
        expected = teacher.head.fc(features.movedim(1, -1)).softmax(dim=-1).movedim(-1, 1)
    torch.testing.assert_close(maps[39:].float(), expected, rtol=2e-3, atol=1e-4)
    student = write_config(tmp_path / 'student_digits.py', 'lv-vit-small_label-file_digits.py')
    result = run_forked('train.py', student, '--work-dir', 'run', cwd=tmp_path, options=['model.label_file=maps.pth'])
    assert result.returncode == 0, result.stderr
    assert 'loss_patches' in result.stdout
