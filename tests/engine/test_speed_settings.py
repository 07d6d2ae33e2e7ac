"""Settings for speed change no result, can be turned off, and leave what the user chose."""

import copy
import sys

import pytest
import torch
from engine.interruption.small_runs import loader, small_runner, train_small
from engine.processes.in_each_process import CLASSIFIER, count_page_faults
from mmengine.hooks import Hook
from mmengine.registry import init_default_scope
from mmpretrain.registry import MODELS
from mmpretrain.structures import DataSample
from process_groups import run_function
from torch import nn

from vt.engine.run.runner import VTRunner
from vt.engine.run.sharding import like
from vt.engine.run.speed_settings import SpeedSettings, keep_freed_memory, use_threads
from vt.models import optimize_for
from vt.ops import triton_path

HEAD, NECK = dict(type='LinearClsHead', num_classes=3, in_channels=512), dict(type='GlobalAveragePooling')
TEACHER = dict(type='ImageClassifier', backbone=dict(type='ResNet', depth=18), neck=NECK, head=HEAD)


def is_channels_last(tensor):
    return tensor.is_contiguous(memory_format=torch.channels_last)


@pytest.fixture(autouse=True)
def scope():
    """Types without a prefix are MMPretrain's, whatever ran before in this process."""
    init_default_scope('mmpretrain')


def test_channels_last_changes_no_loss_and_no_gradient(tmp_path):
    """Of a distilled classifier, which holds a plain one and its teacher."""
    torch.manual_seed(0)
    torch.save(MODELS.build(TEACHER).state_dict(), tmp_path / 'teacher.pth')
    distilled = dict(type='vt.DistilledClassifier', teacher=TEACHER, teacher_checkpoint=str(tmp_path / 'teacher.pth'))
    plain, fast = (MODELS.build(copy.deepcopy(CLASSIFIER | distilled)).double() for _ in range(2))
    fast.load_state_dict(plain.state_dict())
    teacher = fast.build_teacher().classifier
    optimize_for(fast)
    hooks = [len(part._forward_hooks) for part in fast.modules()]
    optimize_for(fast)
    assert [len(part._forward_hooks) for part in fast.modules()] == hooks
    images = torch.randint(0, 256, (2, 3, 64, 64), dtype=torch.uint8)
    samples, losses = [DataSample().set_gt_label(label) for label in (0, 2)], {}
    for model in (plain, fast):
        inputs = model.data_preprocessor(dict(inputs=images.clone(), data_samples=samples), training=True)
        assert is_channels_last(inputs['inputs']) == (model is fast)
        inputs['inputs'] = inputs['inputs'].double()
        losses[model] = sum(model(**inputs, mode='loss').values())
        losses[model].backward()
    torch.testing.assert_close(losses[fast], losses[plain], rtol=1e-9, atol=0)
    rounding = max(parameter.grad.abs().max().item() for parameter in plain.parameters()) * 1e-17
    for ours, theirs in zip(fast.parameters(), plain.parameters()):
        atol = 1e-9 * theirs.grad.abs().max().item() + rounding
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-6, atol=atol)
        assert ours.dim() != 4 or (is_channels_last(ours) and ours.stride() == ours.grad.stride())
    assert all(is_channels_last(weight) for weight in teacher.parameters() if weight.dim() == 4)


def test_with_fsdp_the_maps_are_in_channels_last_and_the_weights_are_not(tmp_path, monkeypatch):
    """So that the Triton kernels are used."""
    monkeypatch.setattr(triton_path, '_can_run', lambda *device: True)
    options = dict(model=TEACHER | dict(backbone=dict(type='ResNet', depth=18, out_indices=(0,))))
    model = small_runner(tmp_path, fsdp={}, default_scope='mmpretrain', **options).model.bfloat16()
    assert all(weight.is_contiguous() for weight in model.parameters())
    images = model.data_preprocessor(dict(inputs=torch.zeros(2, 3, 64, 64, dtype=torch.uint8)))['inputs']
    (maps,) = model.backbone(images.bfloat16())
    assert triton_path.supports(maps, 16)
    assert not triton_path.supports(maps.contiguous(), 16)


LAYOUTS = torch.contiguous_format, torch.channels_last


@pytest.mark.parametrize(('before', 'after'), [LAYOUTS, LAYOUTS[::-1]])
def test_a_resumed_fused_optimizer_goes_on_in_the_other_layout(before, after):
    """PyTorch's fused optimizers take numbers in memory order, whatever the strides are."""
    torch.manual_seed(0)
    start, *gradients = (torch.randn(8, 4, 3, 3) for _ in range(4))

    def optimize(layouts):
        state, weight = None, start.clone()
        for gradient, layout in zip(gradients, layouts):
            weight = nn.Parameter(weight.detach().contiguous(memory_format=layout))
            optimizer = torch.optim.AdamW([weight], lr=0.1, fused=True)
            if state is not None:
                optimizer.load_state_dict(state)
                held = optimizer.state[weight]
                held.update({name: like(weight, value) for name, value in held.items()})
            weight.grad = gradient.contiguous(memory_format=layout)
            optimizer.step()
            state = copy.deepcopy(optimizer.state_dict())
        return weight

    torch.testing.assert_close(optimize([before, before, after]), optimize([before] * 3))


@pytest.mark.skipif(sys.platform != 'linux', reason='glibc')
def test_freed_memory_is_kept_unless_the_user_chose_an_allocator(monkeypatch):
    monkeypatch.delenv('GLIBC_TUNABLES', raising=False)
    assert run_function(1, count_page_faults)[0] < 1000  # 64 MiB are 16,384 pages
    for name, value in (('GLIBC_TUNABLES', 'glibc.malloc.arena_max=2'), ('MALLOC_MMAP_THRESHOLD_', '4096')):
        with monkeypatch.context() as chosen:
            chosen.setenv(name, value)
            assert not keep_freed_memory()


@pytest.fixture
def threads(monkeypatch):
    monkeypatch.delenv('OMP_NUM_THREADS', raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ('environment', 'expected'),
    [
        ({'LOKY_MAX_CPU_COUNT': '1'}, 1),
        ({'LOCAL_WORLD_SIZE': '100000'}, 1),
        ({'OMP_NUM_THREADS': '2', 'LOKY_MAX_CPU_COUNT': '1'}, 3),  # as they are
    ],
)
def test_threads_are_the_cores_of_this_process_unless_the_user_chose(environment, expected, monkeypatch, threads):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert use_threads() == torch.get_num_threads() == expected


@pytest.mark.parametrize(
    ('has_gpu', 'device', 'expected'), [(True, None, 1), (True, 'cpu', 4), (True, 'cuda:1', 1), (False, None, 4)]
)
def test_a_run_on_a_gpu_uses_one_thread(has_gpu, device, expected, monkeypatch, threads):
    monkeypatch.setattr('joblib.cpu_count', lambda only_physical_cores: 4)
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: has_gpu)
    told = SpeedSettings(keep_memory=False).set_process(device and torch.device(device))
    assert told.endswith('; 1 thread') == (expected == 1)
    assert torch.get_num_threads() == expected


@pytest.mark.parametrize(('deterministic', 'expected'), [(False, 'medium'), (True, 'highest')])
def test_the_precision_of_products_is_a_gpus_setting(deterministic, expected, tmp_path, monkeypatch):
    before = torch.get_float32_matmul_precision()
    options = dict(speed=dict(matmul_precision='medium', keep_memory=False))
    options['randomness'] = dict(deterministic=deterministic)
    environment = dict(cudnn_benchmark=False, dist_cfg=dict(backend='nccl'), mp_cfg=dict(mp_start_method='fork'))
    made = VTRunner(model=nn.Linear(1, 1), work_dir=str(tmp_path), cfg=options)
    assert torch.get_float32_matmul_precision() == before  # without a GPU
    with monkeypatch.context() as pretended:
        pretended.setattr(torch.cuda, 'is_available', lambda: True)
        made.setup_env(environment)
    found = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(before)
    assert found == expected


def test_convolutions_are_tried_while_training_alone_and_cudnns_attention_never(tmp_path):
    seen, probe, before = [], Hook(), torch.backends.cuda.cudnn_sdp_enabled()
    probe.before_train_iter = lambda *_, **__: seen.append(('train', torch.backends.cudnn.benchmark))
    probe.before_val_iter = lambda *_, **__: seen.append(('val', torch.backends.cudnn.benchmark))
    options = dict(train_dataloader=loader(batch_size=8), val_dataloader=loader(batch_size=8))
    options |= dict(speed=dict(keep_memory=False), custom_hooks=[dict(type='vt.CudnnBenchmarkHook')])
    train_small(tmp_path, 2, hooks=[probe], **options)
    torch.backends.cudnn.benchmark = False
    found = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(before)
    assert not found
    assert seen == [('train', True), ('val', False)] * 2
