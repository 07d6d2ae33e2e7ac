"""Distillation and token labeling against their formulas, and a teacher in reach of the model but no part of it.

Letters: N batch, P patches, K classes.
"""

import copy
import pickle

import pytest
import timm
import torch
from comparisons import assert_all_learn
from mmengine.model import ExponentialMovingAverage
from mmpretrain.models import LinearClsHead
from mmpretrain.registry import MODELS as CLASSIFIERS
from mmpretrain.structures import DataSample
from survey_backbones import randomise
from torch.nn.functional import interpolate
from torch.testing import assert_close

from vt.errors import UserError
from vt.models import DistilledClassifier, DropoutLinearClsHead
from vt.models.classifiers import token_label
from vt.models.classifiers.distilled import distillation_loss

K = 5
STUDENT_PIXELS = dict(num_classes=K, mean=[120.0, 110.0, 100.0], std=[50.0, 60.0, 70.0], to_rgb=True)


def resnet(channels, num_classes=K, **options):
    return dict(
        type='ImageClassifier',
        backbone=dict(type='ResNet', depth=18, base_channels=channels, stem_channels=channels),
        neck=dict(type='GlobalAveragePooling'),
        head=dict(type='LinearClsHead', num_classes=num_classes, in_channels=8 * channels),
        **options,
    )


STUDENT = dict(
    backbone=dict(type='vt.VTResNet', depth=18, base_channels=4, stem_channels=4, num_tokens=3, token_channels=8),
    neck=dict(type='vt.TokenAverage'),
    head=dict(type='LinearClsHead', num_classes=K, in_channels=8),
)


def build_trained(config):
    """A classifier whose statistics and logits look like a trained one's."""
    torch.manual_seed(1)
    model = CLASSIFIERS.build(copy.deepcopy(config))
    for name, tensor in model.state_dict().items():
        if name.endswith(('running_mean', 'head.fc.weight', 'bn2.weight')):
            tensor.normal_()
    return model.eval()


@pytest.fixture
def teacher_file(tmp_path):
    path = tmp_path / 'teacher.pth'
    torch.save(dict(meta={}, state_dict=build_trained(resnet(4)).state_dict()), path)
    return str(path)


def build(checkpoint, teacher=None, student=STUDENT, **options):
    torch.manual_seed(0)
    student = copy.deepcopy(student) | dict(data_preprocessor=dict(STUDENT_PIXELS))
    model = DistilledClassifier(teacher=teacher or resnet(4), teacher_checkpoint=checkpoint, **student, **options)
    model.init_weights()
    return model


def batch(n=3, size=(32, 48), dtype=torch.float64):
    generator = torch.Generator().manual_seed(2)
    samples = [DataSample().set_gt_label(int(label)) for label in torch.randint(K, (n,), generator=generator)]
    return torch.randn(n, 3, *size, generator=generator, dtype=dtype), samples


def published_distillation(student, teacher, temperature):
    """``T^2 sum p log(p / q)`` of softened probabilities, one image at a time."""
    total = 0
    for logits in zip(student, teacher):
        q, p = ((each / temperature).exp() / (each / temperature).exp().sum() for each in logits)
        total = total + (p * (p.log() - q.log())).sum()
    return temperature**2 * total / len(student)


@pytest.mark.parametrize(('shape', 'temperature'), [((1, 2), 0.5), ((4, 17), 4.0)])
def test_the_distillation_loss_is_its_formula(shape, temperature):
    generator = torch.Generator().manual_seed(shape[0])
    student = torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)
    teacher = 2 * torch.randn(shape, generator=generator, dtype=torch.float64)
    ours = distillation_loss(student, teacher, temperature)
    published = published_distillation(student, teacher, temperature)
    assert_close(ours, published)
    assert_close(*(torch.autograd.grad(loss, student)[0] for loss in (ours, published)))
    assert_close(distillation_loss(teacher, teacher, temperature), torch.zeros((), dtype=torch.float64))
    halves = [40 * each.half() for each in (student, teacher)]  # computed in float32
    assert_close(distillation_loss(*halves), distillation_loss(*(each.float() for each in halves)))


def test_the_losses_and_their_gradients_with_the_same_dropout(teacher_file):
    weights, temperature, student, seen = (0.5, 2.0), 3.0, copy.deepcopy(STUDENT), []
    student['head']['type'] = 'vt.DropoutLinearClsHead'
    options = dict(distillation_weight=weights[0], cls_weight=weights[1], temperature=temperature)
    model = build(teacher_file, student=student, **options).double().train()
    model.head.fc.register_forward_hook(lambda *arguments: seen.append(arguments[-1]))
    inputs, samples = batch()
    losses = model(inputs, samples, mode='loss')
    (logits,) = seen
    teacher_logits = build_trained(resnet(4)).double()(inputs).detach()
    labels = [int(sample.gt_label) for sample in samples]
    cross_entropy = sum(-scores.softmax(-1).log()[label] for scores, label in zip(logits, labels)) / len(labels)
    distillation = published_distillation(logits, teacher_logits, temperature)
    expected = dict(loss_cls=weights[1] * cross_entropy, loss_distillation=weights[0] * distillation)
    assert_close(losses, expected)
    total, log = model.parse_losses(losses)
    assert_close(total, sum(expected.values()))
    assert list(log) == ['loss', 'loss_cls', 'loss_distillation']
    weight = model.head.fc.weight
    assert_close(*(torch.autograd.grad(loss, weight, retain_graph=True) for loss in (total, sum(expected.values()))))
    assert not any(parameter.requires_grad for parameter in model.build_teacher().parameters())


def test_the_teacher_is_no_part_of_the_model_and_stays_as_it_is(teacher_file):
    model = build(teacher_file).train()
    plain = CLASSIFIERS.build(dict(type='ImageClassifier', **copy.deepcopy(STUDENT)))
    before = copy.deepcopy(model.build_teacher().state_dict())
    model(*batch(dtype=torch.float32), mode='loss')
    assert not any(part.training for part in model.build_teacher().modules())
    assert_close(model.build_teacher().state_dict(), before)  # statistics too
    assert list(model.state_dict()) == list(plain.state_dict())
    assert [name for name, _ in model.named_modules()] == [name for name, _ in plain.named_modules()]
    plain.load_state_dict(model.state_dict())
    inputs, _ = batch(dtype=torch.float32)
    assert_close(model.eval()(inputs), plain.eval()(inputs))


def test_copies_and_averages_hold_no_teacher(teacher_file):
    model = build(teacher_file).train()
    average = ExponentialMovingAverage(model, momentum=0.5, update_buffers=True)
    assert list(average.module.state_dict()) == list(model.state_dict())
    for held in (average.module, pickle.loads(pickle.dumps(model))):
        assert not held._teacher
    inputs, samples = batch(dtype=torch.float32)
    assert_close(average.module.loss(inputs, samples), model.loss(inputs, samples))  # it gets one of its own
    average.update_parameters(model)
    before = model.head.fc.weight.detach().clone()
    with torch.no_grad():
        model.head.fc.weight += 1
    average.update_parameters(model)
    assert_close(average.module.head.fc.weight, before + 0.5)


def test_the_teacher_sees_its_own_normalisation(teacher_file):
    teacher = resnet(4, data_preprocessor=dict(mean=[10.0, 20.0, 30.0], std=[1.0, 2.0, 3.0], to_rgb=False))
    model = build(teacher_file, teacher).double()
    pixels = torch.randint(256, (2, 3, 32, 40), generator=torch.Generator().manual_seed(3), dtype=torch.uint8)
    inputs = model.data_preprocessor(dict(inputs=pixels))['inputs'].double()
    trained = build_trained(teacher).double()
    expected = trained(trained.data_preprocessor(dict(inputs=pixels))['inputs'])
    assert_close(model.build_teacher()(inputs), expected, rtol=1e-5, atol=1e-5)  # a preprocessor knows float32 alone
    without = build(teacher_file).double().build_teacher()(inputs)
    assert not torch.allclose(without, expected, rtol=0.1)
    assert_close(without, trained(inputs))


def test_the_teacher_sees_its_own_size(teacher_file):
    model, shapes = build(teacher_file, teacher_size=64), []
    model.build_teacher().classifier.register_forward_pre_hook(lambda _, inputs: shapes.append(inputs[0].shape[-2:]))
    model(*batch(dtype=torch.float32), mode='loss')
    assert shapes == [(64, 96)]  # the shorter side, of 32x48 pixels


def test_the_teacher_sees_mixed_images(teacher_file):
    student = copy.deepcopy(STUDENT)
    student['train_cfg'] = dict(augments=dict(type='Mixup', alpha=1.0))
    student['head']['loss'] = dict(type='LabelSmoothLoss', label_smooth_val=0.1, mode='original', num_classes=K)
    model = build(teacher_file, student=student)
    seen = []
    model.build_teacher().register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    images, samples = torch.randint(256, (4, 3, 32, 32)), batch(4)[1]
    plain = model.data_preprocessor(dict(inputs=images, data_samples=samples))['inputs']
    data = model.data_preprocessor(dict(inputs=images, data_samples=samples), training=True)
    losses = model(**data, mode='loss')
    assert not torch.equal(seen[0], plain)
    assert_close(seen[0], data['inputs'])
    assert all(loss.isfinite() for loss in losses.values())


@pytest.mark.parametrize(
    ('options', 'error', 'message'),
    [
        (dict(teacher_checkpoint='nowhere.pth'), FileNotFoundError, 'nowhere.pth'),
        (dict(teacher_checkpoint=None), ValueError, 'has no weights: set model.teacher_checkpoint to a checkpoint'),
        (dict(teacher=resnet(4, num_classes=7)), ValueError, 'model.teacher has 7 classes, but the student has 5'),
        (dict(teacher=resnet(8)), ValueError, r'backbone.\S+ has shape \(4.*\), not \(8'),
        (dict(hard=True, temperature=3.0), ValueError, 'temperature=3.0 has no effect with hard=True'),
    ],
)
def test_what_is_wrong_is_said_before_training(options, error, message, teacher_file):
    options = dict(teacher=resnet(4), teacher_checkpoint=teacher_file) | options
    with pytest.raises(error, match=message) as raised:
        DistilledClassifier(**options, **copy.deepcopy(STUDENT)).init_weights()
    assert '\n' not in str(raised.value)


def test_a_timm_model_teaches(tmp_path):
    teacher = timm.create_model('resnet18', num_classes=K)
    torch.save(teacher.state_dict(), tmp_path / 'timm.pth')
    config = dict(type='TimmClassifier', model_name='resnet18', num_classes=K, pretrained=False)
    model = build(str(tmp_path / 'timm.pth'), config)
    inputs, samples = batch(dtype=torch.float32)
    assert_close(model.build_teacher()(inputs), teacher.eval()(inputs))
    assert model(inputs, samples, mode='loss')['loss_distillation'] > 0


def test_dropout_before_the_linear_layer():
    plain, head = LinearClsHead(K, 400), DropoutLinearClsHead(K, 400, dropout=0.25)
    head.load_state_dict(plain.state_dict())
    feature = torch.rand(2, 400) + 1
    assert_close(head.eval()((feature,)), plain((feature,)))
    dropped = head.train().pre_logits((feature,))
    kept = dropped != 0
    assert_close(dropped[kept], feature[kept] / 0.75)
    assert 0.15 < 1 - kept.float().mean() < 0.35


PATCHES = dict(embed=dict(type='vt.PatchEmbed', kernel_size=16))
PATCHES |= dict(channels=8, depth=1, num_heads=2, class_tokens=2, norm=True)
TOKENS = dict(type='vt.TokenBackbone', image_size=32, out_type='class_tokens', stages=[PATCHES])
TOKENS = dict(backbone=TOKENS, head=dict(type='vt.DistillationTokenHead', num_classes=K, in_channels=8))


def two_logits(model, inputs):
    layers = model.head.fc, model.head.fc_distillation
    return [layer(token) for layer, token in zip(layers, model.backbone(inputs)[0], strict=True)]


@pytest.mark.parametrize('hard', [False, True])
def test_the_teacher_speaks_to_the_distillation_token_alone(hard, teacher_file):
    """DeiT, equations 2 and 3: labels and teacher each have their token, and both predict."""
    model = build(teacher_file, student=TOKENS, hard=hard, distillation_weight=0.5, cls_weight=0.5).double()
    inputs, samples = batch(size=(32, 32))
    model.train()
    losses = model.loss(inputs, samples)
    by_labels, by_teacher = two_logits(model, inputs)
    labels = torch.cat([sample.gt_label for sample in samples])
    teacher = model.build_teacher()(inputs)
    expected = -by_labels.log_softmax(1)[range(3), labels].mean()
    assert_close(losses['loss_cls'], 0.5 * expected)
    if hard:
        expected = -by_teacher.log_softmax(1)[range(3), teacher.argmax(1)].mean()
    else:
        expected = published_distillation(by_teacher, teacher, 1.0)
    assert_close(losses['loss_distillation'], 0.5 * expected)
    model.eval()
    by_labels, by_teacher = two_logits(model, inputs)
    assert_close(model(inputs, mode='tensor'), (by_labels + by_teacher) / 2)


POSITIONED = dict(class_tokens=1, position=dict(type='vt.AbsolutePosition'), norm=True)
LABELED_STAGE = dict(embed=dict(type='vt.PatchEmbed', kernel_size=8), channels=8, num_heads=2, depth=2, **POSITIONED)
HEAD = dict(type='vt.TokenLabelHead', num_classes=K, in_channels=8)
LABELED = dict(type='vt.TokenBackbone', image_size=(32, 48), out_type='tokens', stages=[LABELED_STAGE])
LABELED = dict(type='vt.TokenLabelClassifier', backbone=LABELED, head=HEAD)


@pytest.mark.parametrize('kind', ['TokenLabelHead', 'DistillationTokenHead'])
def test_a_head_without_an_initialisation_has_that_of_the_configs(kind):
    head = CLASSIFIERS.build(HEAD | dict(type=f'vt.{kind}', init_cfg=None))
    assert head.init_cfg == dict(type='TruncNormal', layer='Linear', std=0.02)


@pytest.fixture
def box(monkeypatch):
    """The patches that are mixed."""
    patches = torch.zeros(4, 6, dtype=torch.bool)
    patches[1:3, 2:5] = True
    monkeypatch.setattr(token_label, 'draw_box', lambda size, device: patches.flatten())
    return patches


def build_labeled(**options):
    torch.manual_seed(0)
    return randomise(CLASSIFIERS.build(copy.deepcopy(LABELED) | options).train())


def expected_losses(model, images, labels, box, maps):
    """Images and the last one first are mixed in the box; labels are ``(N, K)``, ``maps`` of patches ``(N, 24, K)``."""
    (stage,) = model.backbone.stages
    tokens, size = stage.embed(images)
    is_other, share = box.flatten()[:, None], box.float().mean()
    mixed, targets = (torch.where(is_other, each.flip(0), each) for each in (tokens, maps))
    x = torch.cat([stage.class_tokens.expand(len(images), -1, -1), mixed], dim=1) + stage.position.vectors
    for block in stage.blocks:
        x = block(x, size)
    x = stage.norm(x)
    first = ((1 - share) * labels + share * labels.flip(0)) * model.head.fc(x[:, 0]).log_softmax(dim=-1)
    second = targets * model.head.fc_patches(x[:, 1:]).log_softmax(dim=-1)
    return -first.sum(dim=-1).mean(), -second.sum(dim=-1).mean()


def assert_losses(model, maps, box, patch_weight=0.5, smoothing=0.0):
    images, samples = batch(dtype=torch.float32)
    losses = model.loss(images, samples)
    labels = torch.eye(K)[[sample.gt_label.item() for sample in samples]]
    maps = labels[:, :, None, None].expand(-1, -1, 4, 6) if maps is None else maps
    labels, maps = ((1 - smoothing) * each + smoothing / K for each in (labels, maps.flatten(2).mT))
    first, second = expected_losses(model, images, labels, box, maps)
    torch.testing.assert_close(losses['loss_cls'], first)
    torch.testing.assert_close(losses['loss_patches'], patch_weight * second)
    sum(losses.values()).backward()
    assert_all_learn(model)


def teachers_maps():
    """Of the batch, from the teacher's last map: the classifier of each pixel."""
    teacher = build_trained(resnet(4))
    with torch.no_grad():
        features = teacher.backbone(batch(dtype=torch.float32)[0])[-1]
        weight, bias = teacher.head.fc.weight, teacher.head.fc.bias
        return (torch.einsum('kc,nchw->nkhw', weight, features) + bias[:, None, None]).softmax(dim=1)


@pytest.mark.parametrize('smoothing', [0.0, 0.2])
def test_losses_of_maps_of_a_teacher_and_of_the_images_labels(smoothing, teacher_file, box):
    options = dict(teacher=resnet(4), teacher_checkpoint=teacher_file, patch_weight=0.7)
    model = build_labeled(label_smoothing=smoothing, **options)
    maps = interpolate(teachers_maps(), (4, 6), mode='bilinear', align_corners=False)
    assert_losses(model, maps, box, 0.7, smoothing)
    assert not any('teacher' in name for name in model.state_dict())
    again = pickle.loads(pickle.dumps(copy.deepcopy(model)))
    torch.testing.assert_close(again.loss(*batch(dtype=torch.float32)), model.loss(*batch(dtype=torch.float32)))
    assert_losses(build_labeled(label_smoothing=smoothing), None, box, smoothing=smoothing)


def test_a_prediction_is_the_class_tokens_and_half_of_the_patches_largest():
    model = build_labeled().eval()
    tokens = model.backbone(batch(dtype=torch.float32)[0])[0]
    expected = model.head.fc(tokens[:, 0]) + 0.5 * model.head.fc_patches(tokens[:, 1:]).amax(dim=1)
    torch.testing.assert_close(model(batch(dtype=torch.float32)[0]), expected)


def test_boxes_are_of_all_shares():
    torch.manual_seed(0)
    boxes = torch.stack([token_label.draw_box((20, 30), torch.device('cpu')).view(20, 30) for _ in range(500)])
    shares = boxes.double().mean(dim=(1, 2))
    assert shares.min() < 0.02
    assert shares.max() > 0.6
    assert 0.2 < shares.mean() < 0.5
    for box in boxes[:50]:
        assert torch.equal(box, box.any(dim=1)[:, None] & box.any(dim=0))


@pytest.mark.parametrize(
    ('options', 'words'),
    [
        (dict(head=HEAD | dict(loss=dict(type='LabelSmoothLoss', label_smooth_val=0.1))), 'head.loss=Label.* has no'),
        (dict(head=HEAD | dict(loss=dict(type='CrossEntropyLoss', class_weight=[1.0]))), 'head.loss.* has no effect'),
        (dict(head=HEAD | dict(cal_acc=True)), 'head.cal_acc has no effect'),
        (dict(teacher_size=32), 'teacher_size without teacher'),
    ],
)
def test_what_does_not_fit_is_refused_when_built(options, words):
    with pytest.raises(UserError, match=words):
        build_labeled(**options)
