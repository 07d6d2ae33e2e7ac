"""Public weights of three channels in models of other numbers: the stem, what the log says, and what is refused."""

import pytest
import torch
from checkpoints.small_models import load_part
from hypothesis import given, settings
from hypothesis import strategies as st
from mmengine.logging import MMLogger
from mmengine.registry import init_default_scope
from mmpretrain.registry import MODELS
from timm.models import adapt_input_conv

from vt.checkpoints.formats.recognise import adapt_channels
from vt.checkpoints.loading import weights_only
from vt.errors import UserError


@pytest.fixture(autouse=True)
def scope():
    init_default_scope('mmpretrain')


def tokens(**options):
    embed = dict(type='vt.PatchEmbed', kernel_size=4)
    stage = dict(channels=16, depth=1, num_heads=2, embed=embed) | options
    return dict(type='vt.TokenBackbone', image_size=32, stages=[stage])


WINDOWS = dict(type='vt.WindowAttention', windows=dict(type='vt.Windows', window=4))
SMALL = dict(channels=16, depths=(1, 1))
# Backbones, and the convolution of each that takes the image.
BACKBONES = {
    'VT-ResNet': (dict(type='vt.VTResNet', depth=18, num_tokens=4, token_channels=32), 'conv1'),
    'ResNet-D': (dict(type='ResNetV1d', depth=50), 'stem.0.conv'),
    'DeiT': (tokens(class_tokens=1), 'stages.0.embed.projection'),
    'Swin': (tokens(attention=WINDOWS), 'stages.0.embed.projection'),
    'MViT': (dict(type='vt.MViT', arch=SMALL, image_size=32), 'stages.0.embed.projection'),
    'MViT, videos': (dict(type='vt.MViT', arch=SMALL, image_size=32, num_frames=4), 'stages.0.embed.projection'),
}


def adapted(weight, number):
    """Channels 0, 1, 2, 0, 1, ... in their sum, or all summed into one."""
    if number == 1:
        return weight.sum(dim=1, keepdim=True)
    return torch.stack([weight[:, index % 3] for index in range(number)], dim=1) * 3 / number


@settings(max_examples=30)
@given(
    st.integers(1, 13),
    st.sampled_from([(8, 3, 7, 7), (5, 3, 4, 4), (6, 3, 3, 7, 7)]),
    st.integers(0, 99),
)
def test_channels_are_adapted_as_timm_does(number, shape, seed):
    """An image whose channels are equal gives the same as before, if these weigh the same."""
    weight = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    own = adapt_channels(weight, number)
    torch.testing.assert_close(own, adapted(weight, number), rtol=1e-15, atol=1e-15)
    # timm's is of two dimensions, those of a cube are one for it, and its result is in float32
    theirs = adapt_input_conv(number, weight.float().flatten(3)).reshape(own.shape)
    torch.testing.assert_close(own.float(), theirs, rtol=1e-6, atol=1e-6)
    gray = weight.mean(dim=1, keepdim=True).expand_as(weight)
    torch.testing.assert_close(adapt_channels(gray, number).sum(dim=1), gray.sum(dim=1), rtol=1e-12, atol=1e-12)


def build(config, **options):
    torch.manual_seed(len(options))
    backbone = MODELS.build(config | options)
    backbone.eval()  # MMPretrain's returns nothing
    return backbone


@pytest.fixture
def log(caplog):
    """What mmengine's logger says."""
    logger = MMLogger.get_current_instance()
    logger.addHandler(caplog.handler)
    with weights_only():
        yield caplog
    logger.removeHandler(caplog.handler)


@pytest.mark.parametrize('number', [1, 4, 13])
@pytest.mark.parametrize('name', BACKBONES)
def test_a_stem_answers_a_constant_image_as_before(name, number, log):
    config, stem = BACKBONES[name]
    file, model = build(config), build(config, in_channels=number)
    assert load_part(model, dict(state_dict=file.state_dict())) == file.state_dict().keys()
    old, new = (backbone.get_submodule(stem).weight.double() for backbone in (file, model))
    torch.testing.assert_close(new, adapted(old, number), rtol=1e-6, atol=1e-7)
    how = 'summed' if number == 1 else 'repeated and scaled'
    assert f'channels: {stem}.weight from 3 to {number}, {how}' in log.text
    model(torch.ones(1, number, *[32] * (old.ndim - 2)))


def test_files_of_other_numbers_than_three_are_refused():
    config, _ = BACKBONES['DeiT']
    file, model = build(config, in_channels=4), build(config, in_channels=2)
    with pytest.raises(UserError, match='the model needs'):
        load_part(model, dict(state_dict=file.state_dict()))
