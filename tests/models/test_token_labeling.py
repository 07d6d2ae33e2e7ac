"""Token labeling against its formula: label maps of a teacher, and patches that are mixed.

Letters: N batch, P patches, K classes.
"""

import copy
import pickle

import pytest
import torch
from mmpretrain.registry import MODELS
from mmpretrain.structures import DataSample
from survey_backbones import randomise
from torch.nn.functional import interpolate

from vt.errors import UserError
from vt.models.classifiers import token_label

K = 5
TEACHER = dict(
    type='ImageClassifier',
    backbone=dict(type='ResNet', depth=18, base_channels=4, stem_channels=4),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(type='LinearClsHead', num_classes=K, in_channels=32),
)
STAGE = dict(
    channels=8,
    num_heads=2,
    depth=2,
    embed=dict(type='vt.PatchEmbed', kernel_size=8),
    class_tokens=1,
    position=dict(type='vt.AbsolutePosition'),
    norm=True,
)
HEAD = dict(type='vt.TokenLabelHead', num_classes=K, in_channels=8)
STUDENT = dict(
    type='vt.TokenLabelClassifier',
    backbone=dict(type='vt.TokenBackbone', image_size=(32, 48), out_type='tokens', stages=[STAGE]),
    head=HEAD,
)


@pytest.mark.parametrize('kind', ['TokenLabelHead', 'DistillationTokenHead'])
def test_a_head_without_an_initialisation_has_that_of_the_configs(kind):
    head = MODELS.build(HEAD | dict(type=f'vt.{kind}', init_cfg=None))
    assert head.init_cfg == dict(type='TruncNormal', layer='Linear', std=0.02)


@pytest.fixture
def box(monkeypatch):
    """The patches that are mixed."""
    patches = torch.zeros(4, 6, dtype=torch.bool)
    patches[1:3, 2:5] = True
    monkeypatch.setattr(token_label, 'draw_box', lambda size, device: patches.flatten())
    return patches


@pytest.fixture
def checkpoint(tmp_path):
    torch.manual_seed(1)
    teacher = MODELS.build(copy.deepcopy(TEACHER))
    randomise(teacher)
    torch.save(teacher.state_dict(), tmp_path / 'teacher.pth')
    return str(tmp_path / 'teacher.pth')


def build(**options):
    torch.manual_seed(0)
    return randomise(MODELS.build(copy.deepcopy(STUDENT) | options).train())


def batch(size=3):
    samples = [DataSample().set_gt_label(index % K) for index in range(size)]
    return torch.randn(size, 3, 32, 48, generator=torch.Generator().manual_seed(2)), samples


def expected_losses(model, images, samples, box, maps):
    """Image by image, patch by patch; ``maps`` of each image are ``(K, 4, 6)``."""
    (stage,) = model.backbone.stages
    tokens, size = stage.embed(images)
    mixed, owners = tokens.clone(), torch.zeros(len(images), 24, dtype=torch.long)
    for image in range(len(images)):
        for patch in range(24):
            owners[image, patch] = len(images) - 1 - image if box.flatten()[patch] else image
            mixed[image, patch] = tokens[owners[image, patch], patch]
    x = torch.cat([stage.class_tokens.expand(len(images), -1, -1), mixed], dim=1) + stage.position.vectors
    for block in stage.blocks:
        x = block(x, size)
    x = stage.norm(x)
    first, second = [], []
    share = box.double().mean().item()
    for image, sample in enumerate(samples):
        log_p = model.head.fc(x[image, 0]).log_softmax(dim=0)
        other = samples[len(samples) - 1 - image]
        first.append(-(1 - share) * log_p[sample.gt_label] - share * log_p[other.gt_label])
        for patch in range(24):
            log_p = model.head.fc_patches(x[image, 1 + patch]).log_softmax(dim=0)
            label = maps[owners[image, patch]].flatten(1)[:, patch]
            second.append(-(label * log_p).sum())
    return torch.cat(first).mean(), torch.stack(second).mean()


def assert_losses(model, maps, box, patch_weight=0.5):
    images, samples = batch()
    losses = model.loss(images, samples)
    first, second = expected_losses(model, images, samples, box, maps)
    torch.testing.assert_close(losses['loss_cls'], first)
    torch.testing.assert_close(losses['loss_patches'], patch_weight * second)
    sum(losses.values()).backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in model.parameters())


def teachers_maps(checkpoint):
    """Of the batch, from the teacher's last map: the classifier of each pixel."""
    teacher = MODELS.build(copy.deepcopy(TEACHER)).eval()
    teacher.load_state_dict(torch.load(checkpoint))
    with torch.no_grad():
        features = teacher.backbone(batch()[0])[-1]
        weight, bias = teacher.head.fc.weight, teacher.head.fc.bias
        return (torch.einsum('kc,nchw->nkhw', weight, features) + bias[:, None, None]).softmax(dim=1)


def test_losses_of_maps_of_a_teacher_and_of_the_images_labels(checkpoint, box):
    model = build(teacher=TEACHER, teacher_checkpoint=checkpoint, patch_weight=0.7)
    maps = interpolate(teachers_maps(checkpoint), (4, 6), mode='bilinear', align_corners=False)
    assert_losses(model, maps, box, patch_weight=0.7)
    assert not any('teacher' in name for name in model.state_dict())
    again = pickle.loads(pickle.dumps(copy.deepcopy(model)))
    torch.testing.assert_close(again.loss(*batch()), model.loss(*batch()))
    labels = [sample.gt_label.item() for sample in batch()[1]]
    assert_losses(build(), torch.eye(K)[labels][..., None, None].expand(-1, -1, 4, 6), box)


def test_labels_of_images_and_patches_are_smoothed(checkpoint, box):
    box[:] = False
    options = dict(teacher=TEACHER, teacher_checkpoint=checkpoint)
    model, (images, samples) = build(**options, label_smoothing=0.2), batch()
    tokens = model.backbone(images)[0]
    first, second = (
        part.log_softmax(dim=-1) for part in (model.head.fc(tokens[:, 0]), model.head.patch_logits([tokens]))
    )
    losses, plain = model.loss(images, samples), build(**options).loss(images, samples)
    torch.testing.assert_close(losses['loss_cls'], 0.8 * plain['loss_cls'] - 0.2 * first.mean())
    torch.testing.assert_close(losses['loss_patches'], 0.8 * plain['loss_patches'] - 0.5 * 0.2 * second.mean())


def test_a_prediction_is_the_class_tokens_and_half_of_the_patches_largest():
    model = build().eval()
    tokens = model.backbone(batch()[0])[0]
    expected = model.head.fc(tokens[:, 0]) + 0.5 * model.head.fc_patches(tokens[:, 1:]).amax(dim=1)
    torch.testing.assert_close(model(batch()[0]), expected)


def test_boxes_are_of_all_shares():
    torch.manual_seed(0)
    boxes = torch.stack([token_label.draw_box((20, 30), torch.device('cpu')) for _ in range(500)]).unflatten(
        1, (20, 30)
    )
    shares = boxes.double().mean(dim=(1, 2))
    assert shares.min() < 0.02
    assert shares.max() > 0.6
    assert 0.2 < shares.mean() < 0.5
    for box in boxes[:50]:
        assert torch.equal(box, box.any(dim=1)[:, None] & box.any(dim=0))


def head_with(**options):
    return dict(head=HEAD | options)


@pytest.mark.parametrize(
    ('options', 'words'),
    [
        (head_with(loss=dict(type='LabelSmoothLoss', label_smooth_val=0.1)), 'a LabelSmoothLoss, has no'),
        (head_with(loss=dict(type='CrossEntropyLoss', class_weight=[1.0] * K)), 'head.loss.* has no effect'),
        (head_with(cal_acc=True), 'head.cal_acc has no effect'),
        (dict(teacher_size=32), 'teacher_size without teacher'),
    ],
)
def test_what_does_not_fit_is_refused_when_built(options, words):
    with pytest.raises(UserError, match=words):
        build(**options)
