"""Settings for speed change no result, can be turned off, and leave what the user chose."""

import copy
import subprocess
import sys

import pytest
import torch
from mmengine.dataset import DefaultSampler
from mmengine.hooks import Hook
from mmengine.model import BaseModel
from mmengine.registry import init_default_scope
from mmengine.structures import BaseDataElement
from mmpretrain.registry import MODELS
from mmpretrain.structures import DataSample
from torch import nn

from vt.engine.processes.sharding import like
from vt.engine.runner import VTRunner
from vt.engine.speed_settings import (
    SpeedSettings,
    keep_freed_memory,
    to_channels_last,
    use_threads,
)

CLASSIFIER = dict(
    type='ImageClassifier',
    backbone=dict(type='vt.VTResNet', depth=18, num_tokens=4, token_channels=64),
    neck=dict(type='vt.TokenAverage'),
    head=dict(type='LinearClsHead', num_classes=3, in_channels=64),
)
TEACHER = dict(
    type='ImageClassifier',
    backbone=dict(type='ResNet', depth=18),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(type='LinearClsHead', num_classes=3, in_channels=512),
)


def is_channels_last(tensor):
    return tensor.is_contiguous(memory_format=torch.channels_last)


@pytest.fixture(autouse=True)
def scope():
    """Types without a prefix are MMPretrain's, whatever ran before in this process."""
    init_default_scope('mmpretrain')


@pytest.fixture
def batch():
    torch.manual_seed(0)
    samples = [DataSample().set_gt_label(label) for label in (0, 2)]
    return dict(inputs=torch.randint(0, 256, (2, 3, 64, 64), dtype=torch.uint8), data_samples=samples)


@pytest.mark.parametrize('distilled', [False, True])
def test_channels_last_changes_no_loss_and_no_gradient(batch, distilled, tmp_path):
    torch.manual_seed(0)
    cfg = copy.deepcopy(CLASSIFIER)
    if distilled:
        torch.save(MODELS.build(TEACHER).state_dict(), tmp_path / 'teacher.pth')
        cfg.update(type='vt.DistilledClassifier', teacher=TEACHER, teacher_checkpoint=str(tmp_path / 'teacher.pth'))
    plain, fast = (MODELS.build(cfg).double() for _ in range(2))
    fast.load_state_dict(plain.state_dict())
    if distilled:
        teacher = fast.build_teacher().classifier
    for _ in range(2):  # a second call changes nothing
        to_channels_last(fast)
    losses = {}
    for model in (plain, fast):
        inputs = model.data_preprocessor(copy.deepcopy(batch), training=True)
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
    if distilled:
        assert all(is_channels_last(weight) for weight in teacher.parameters() if weight.dim() == 4)


def test_a_segmentors_scores_leave_in_the_default_layout():
    from mmseg.models.decode_heads import FPNHead

    sizes = dict(in_channels=[8, 8], in_index=[0, 1], feature_strides=[4, 8], channels=8, num_classes=3)
    head = FPNHead(norm_cfg=dict(type='BN'), align_corners=False, **sizes).eval()
    maps = [torch.randn(2, 8, size, size) for size in (8, 4)]
    expected = head(maps)
    for _ in range(2):
        to_channels_last(head)
    layouts = []
    head.conv_seg.register_forward_pre_hook(lambda layer, inputs: layouts.append(is_channels_last(inputs[0])))
    scores = head([x.contiguous(memory_format=torch.channels_last) for x in maps])
    torch.testing.assert_close(scores, expected)
    assert layouts == [True]
    assert scores.is_contiguous()


def test_loaded_weights_and_copies_keep_the_layout():
    model = MODELS.build(CLASSIFIER)
    state = copy.deepcopy(model.state_dict())
    to_channels_last(model)
    model.load_state_dict(state)
    for copied in (model, copy.deepcopy(model)):
        weights = [parameter for parameter in copied.parameters() if parameter.dim() == 4]
        assert weights
        assert all(is_channels_last(weight) for weight in weights)


@pytest.mark.parametrize('before', [torch.contiguous_format, torch.channels_last])
def test_a_resumed_fused_optimizer_goes_on_in_the_other_layout(before):
    """PyTorch's fused optimizers take numbers in memory order, whatever the strides are."""
    torch.manual_seed(0)
    after = torch.channels_last if before == torch.contiguous_format else torch.contiguous_format
    start, *gradients = (torch.randn(8, 4, 3, 3) for _ in range(4))

    def optimize(memory_formats):
        state = None
        weight = start.clone()
        for gradient, memory_format in zip(gradients, memory_formats):
            weight = nn.Parameter(weight.detach().contiguous(memory_format=memory_format))
            optimizer = torch.optim.AdamW([weight], lr=0.1, fused=True)
            if state is not None:
                optimizer.load_state_dict(state)
                held = optimizer.state[weight]
                held.update({name: like(weight, value) for name, value in held.items()})
            weight.grad = gradient.contiguous(memory_format=memory_format)
            optimizer.step()
            state = copy.deepcopy(optimizer.state_dict())
        return weight

    torch.testing.assert_close(optimize([before, before, after]), optimize([before, before, before]))


PAGE_FAULTS = """
import resource, torch
from vt.engine.speed_settings import keep_freed_memory
assert keep_freed_memory()
for _ in range(20):  # glibc settles within ten
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(2**24)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(sys.platform != 'linux', reason='glibc')
def test_freed_memory_is_kept(monkeypatch):
    monkeypatch.delenv('GLIBC_TUNABLES', raising=False)
    result = subprocess.run([sys.executable, '-c', PAGE_FAULTS], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) < 1000  # 64 MiB are 16,384 pages


@pytest.mark.parametrize(
    ('name', 'value'), [('GLIBC_TUNABLES', 'glibc.malloc.arena_max=2'), ('MALLOC_MMAP_THRESHOLD_', '4096')]
)
def test_an_allocator_that_the_user_chose_stands(name, value, monkeypatch):
    monkeypatch.setenv(name, value)
    assert not keep_freed_memory()


@pytest.fixture
def threads():
    before = torch.get_num_threads()
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
    monkeypatch.delenv('OMP_NUM_THREADS', raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    torch.set_num_threads(3)
    assert use_threads() == torch.get_num_threads() == expected


def test_a_run_on_a_gpu_uses_one_thread(monkeypatch, threads):
    monkeypatch.delenv('OMP_NUM_THREADS', raising=False)
    monkeypatch.setattr('joblib.cpu_count', lambda only_physical_cores: 4)
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: True)
    torch.set_num_threads(3)
    assert SpeedSettings().set_process().endswith('; 1 thread')
    assert torch.get_num_threads() == 1
    SpeedSettings(keep_memory=False).set_process(torch.device('cpu'))  # a model that is not on the GPU
    assert torch.get_num_threads() == 4
    SpeedSettings(keep_memory=False).set_process(torch.device('cuda:1'))
    assert torch.get_num_threads() == 1
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: False)
    SpeedSettings(keep_memory=False).set_process()
    assert torch.get_num_threads() == 4


class Line(BaseModel):
    """The smallest model that trains."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, inputs, mode):
        return dict(loss=self.weight.sum()) if mode == 'loss' else [BaseDataElement()]


class Probe(Hook):
    """Writes down what cuDNN was told in each iteration."""

    def __init__(self):
        self.seen = []

    def before_train_iter(self, runner, batch_idx, data_batch=None):
        self.seen.append(('train', torch.backends.cudnn.benchmark))

    def before_val_iter(self, runner, batch_idx, data_batch=None):
        self.seen.append(('val', torch.backends.cudnn.benchmark))


@pytest.mark.parametrize(('deterministic', 'expected'), [(False, 'medium'), (True, 'highest')])
def test_the_precision_of_products_is_a_gpus_setting(deterministic, expected, tmp_path, monkeypatch):
    before = torch.get_float32_matmul_precision()
    options = dict(speed=dict(matmul_precision='medium', keep_memory=False))
    options['randomness'] = dict(deterministic=deterministic)
    environment = dict(cudnn_benchmark=False, dist_cfg=dict(backend='nccl'), mp_cfg=dict(mp_start_method='fork'))
    runner = VTRunner(model=Line(), work_dir=str(tmp_path), cfg=options)
    assert torch.get_float32_matmul_precision() == before  # without a GPU
    with monkeypatch.context() as pretended:
        pretended.setattr(torch.cuda, 'is_available', lambda: True)
        runner.setup_env(environment)
    found = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(before)
    assert found == expected


def test_attention_of_cudnn_is_off(tmp_path):
    before = torch.backends.cuda.cudnn_sdp_enabled()
    VTRunner(model=Line(), work_dir=str(tmp_path), cfg=dict(speed=dict(keep_memory=False)))
    found = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(before)
    assert not found


def test_convolutions_are_tried_while_training_alone(tmp_path):
    probe = Probe()
    dataset = [dict(inputs=torch.zeros(3, 4, 4))]
    loader = dict(dataset=dataset, sampler=dict(type=DefaultSampler), batch_size=1)
    runner = VTRunner(
        model=Line(),
        work_dir=str(tmp_path),
        train_dataloader=loader,
        val_dataloader=loader,
        train_cfg=dict(by_epoch=True, max_epochs=2),
        val_cfg=dict(),
        val_evaluator=[],
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.1)),
        custom_hooks=[dict(type='vt.CudnnBenchmarkHook'), probe],
        cfg=dict(speed=dict(keep_memory=False)),
    )
    runner.train()
    torch.backends.cudnn.benchmark = False
    assert probe.seen == [('train', True), ('val', False)] * 2
