"""Small backbones of the survey's models, and their comparison with equations, outputs and gradients."""

import copy
import math
from functools import cache, partial

import torch
from comparisons import assert_same
from mmengine.config import Config
from torch.nn.functional import interpolate

from vt.apis import find_config
from vt.registry import MODELS


def read(name, whole=False):
    """The model of a config, or all of it."""
    config = _read(name)
    return copy.deepcopy(config) if whole else config.model


@cache
def _read(name):
    return Config.fromfile(find_config(f'{name}_16xb64-300e_in1k'))


# Images of whole windows of 7x7, and widths that parts need.
SIZES = dict.fromkeys(('swin-tiny', 'twins-svt-small', 'gg-tiny', 'hswin-tiny', 'msg-tiny', 'hrformer-small'), 56)
SIZES |= {'shuffle-tiny': 112, 'twins-svt-small': 112}
WIDTHS = {'msg-tiny': dict(channels=16, num_heads=2), 'vitae-small': dict(channels=12, num_heads=2, groups=3)}
DEEP = 'cpvt-small-gap', 'deepvit-small'  # whose last blocks differ from the others
HRFORMER = dict(stem_channels=3, stages=[dict(modules=1, depth=2, channels=[4, 6], num_heads=[1, 2])])
HRFORMER['stages'].append(dict(modules=2, depth=1, channels=[4, 6, 8], num_heads=[1, 2, 2]))


def shrink(stage, widths, keep_depth):
    """Three channels a head, four heads at most; of many blocks the first and the last; stems are narrow, too."""

    def narrow(layer):
        return layer | dict(out_channels=widths.get(layer['out_channels'], 4)) if 'out_channels' in layer else layer

    small = stage | dict(channels=widths[stage['channels']], num_heads=min(4, stage['num_heads']), drop_path=0.0)
    if not keep_depth:
        small |= {key: [value[0], value[-1]] for key, value in stage.items() if isinstance(value, list)}
        small['depth'] = min(2, stage['depth'])
    if 'layers' in stage.get('embed', {}):
        small['embed'] = stage['embed'] | dict(layers=[narrow(layer) for layer in stage['embed']['layers']])
    return small


def small_config(name, size=None, stages=None, **options):
    """A config of a small backbone of a model, or of some of its stages."""
    config = read(name).backbone.to_dict() | dict(drop_path_rate=0.0, image_size=size or SIZES.get(name, 64))
    if name == 'hrformer-small':
        return config | HRFORMER | options
    shared = {key: value for key, value in config.get('every_stage', {}).items() if key in ('channels', 'num_heads')}
    published_stages = [shared | stage for stage in config['stages']]
    widths = {stage['channels']: 3 * min(4, stage['num_heads']) for stage in published_stages}
    small = [shrink(stage, widths, keep_depth=name in DEEP) for stage in published_stages]
    if stages is not None:
        small = [small[stage] for stage in stages]
        config |= dict(in_channels=5 if stages[0] else 3, out_type='tokens')
    return config | dict(stages=[stage | WIDTHS.get(name, {}) for stage in small]) | options


def build(name, size=None, stages=None, training=False, **options):
    """The small backbone, whose weights and statistics are all random."""
    backbone = randomise(MODELS.build(small_config(name, size, stages, **options))).train(training)
    if name == 'vitae-small':  # the features of its cells, as they are printed in the paper, underflow
        for stage in backbone.stages[:2]:
            stage.embed.attend.qkv.weight.data.mul_(0.1)
    if name == 'shuffle-tiny':  # whose batch norms leave the maps large: every softmax would saturate
        for stage in backbone.stages:
            for block in stage.blocks:
                block.attention.part.qkv.weight.data.mul_(0.05)
    if name == 'ps-vit-b14':  # whose points would leave the image, and learn nothing
        backbone.stages[0].embed.moves.data.mul_(0.1)
    return backbone


def randomise(part, by=0.3):
    """Every weight and statistic away from its start, which hides what zeros and ones multiply."""
    for parameter in part.parameters():
        taps = math.prod(parameter.shape[2:])  # of a kernel, whose sums of many would amplify rounding errors
        parameter.data.add_(by * taps**-0.5 * torch.randn_like(parameter))
    for module in part.modules():
        if isinstance(module, (torch.nn.BatchNorm2d, torch.nn.BatchNorm1d)):
            module.running_mean.normal_(std=0.3)
            module.running_var.uniform_(0.5, 2.0)
    return part


def on_grid(part, size):
    """The part on a grid of a size."""
    part.forward = partial(part.forward, size=size)
    return part


def assert_equal_with_gradients(part, equation, *inputs):
    """Outputs, and gradients of all inputs and parameters; ``equation`` takes the inputs and the weights."""
    for tensor in inputs:
        tensor.requires_grad_()
    assert_same(part(*inputs), equation(*inputs, part.state_dict(keep_vars=True)), [*inputs, *part.parameters()])


def bicubic(old, new, is_smooth=False):
    """The matrix that makes ``new`` values of ``old``; a smooth one has a kernel as wide as a new cell."""
    return interpolate(torch.eye(old)[:, None, None], (1, new), mode='bicubic', antialias=is_smooth).flatten(1).T
