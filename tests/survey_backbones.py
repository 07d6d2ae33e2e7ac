"""Small backbones of the survey's models, and their comparison with equations, outputs and gradients."""

import math
from functools import cache

import published_survey as published
import published_survey_second as second
import torch
from comparisons import assert_same
from mmengine.config import Config

from vt.apis import find_config
from vt.registry import MODELS

BATCH_NORMS = (torch.nn.BatchNorm2d, torch.nn.BatchNorm1d)
# Of each model its equations, and whether a class token is what leaves it; None where all tokens do (of CeiT those of
# all blocks).
EQUATIONS = {
    'pvt-small': (published.pvt, True),
    'rest-small': (published.rest, False),
    'cswin-tiny': (published.cswin, False),
    'ceit-small': (published.ceit, None),
    'cpvt-small-gap': (published.cpvt, False),
    'p2t-small': (published.p2t, False),
    'shuffle-tiny': (published.shuffle, False),
    'gg-tiny': (published.gg, False),
    'localvit-small': (published.localvit, True),
    'deepvit-small': (published.deepvit, True),
    't2t-vit-t-14': (published.t2t, True),
    'swin-tiny': (published.swin, False),
    'swinv2-tiny': (published.swin_v2, False),
    'vit-rezero': (second.rezero, True),
    'vit-early-conv': (second.early_convolutions, True),
    'vit-sparse': (second.sparse, True),
    'vit-performer': (second.performer, True),
    'vit-tokenlearner': (second.token_learner, False),
    'elsa-swin-tiny': (second.elsa, False),
    'hswin-tiny': (second.hswin, False),
    'msg-tiny': (second.msg, True),
    'vitae-small': (second.vitae, False),
    'ps-vit-b14': (second.progressive_sampling, True),
    'lv-vit-small': (second.lv_vit, None),
}


@cache
def read(name):
    return Config.fromfile(find_config(f'{name}_16xb64-300e_in1k')).model


def shrink(stage, widths, keep_depth):
    """Three channels a head, four heads at most; the convolutions of a stem are narrow, too."""

    def narrow(layer):
        return layer | dict(out_channels=widths.get(layer['out_channels'], 4)) if 'out_channels' in layer else layer

    small = stage | dict(channels=widths[stage['channels']], num_heads=min(4, stage['num_heads']))
    small['depth'] = stage['depth'] if keep_depth else min(2, stage['depth'])
    if 'layers' in stage.get('embed', {}):
        small['embed'] = stage['embed'] | dict(layers=[narrow(layer) for layer in stage['embed']['layers']])
    return small


def build(name, size, stages=None, training=False, channels=None, **options):
    """A small backbone of a model, or of some of its stages, which all have the options.

    With ``channels`` all stages are as wide. Every weight and statistic is random.
    """
    config = read(name).backbone.to_dict()
    widths = {stage['channels']: 3 * min(4, stage['num_heads']) for stage in config['stages']}
    small = [shrink(stage, widths, keep_depth=len(config['stages']) == 1) for stage in config['stages']]
    if stages is not None:
        small = [small[stage] for stage in stages]
        config |= dict(in_channels=5 if stages[0] else 3, out_type='tokens')
    if channels:
        small = [stage | dict(channels=channels, num_heads=2) for stage in small]
    small = [stage | options for stage in small]
    if training:
        small = [stage | dict(drop_path=0.0) for stage in small]
        config['drop_path_rate'] = 0.0
    return randomise(MODELS.build(config | dict(stages=small, image_size=size))).train(training)


def randomise(part):
    for name, parameter in part.named_parameters():
        taps = math.prod(parameter.shape[2:])  # of a kernel, whose sums of many would amplify rounding errors
        parameter.data.add_(0.3 * taps**-0.5 * torch.randn_like(parameter))
        if name.endswith('log_scale'):
            parameter.data[0] = 5.0  # a hundred is the most that it counts for
    for module in part.modules():
        if isinstance(module, BATCH_NORMS):
            module.running_mean.normal_(std=0.3)
            module.running_var.uniform_(0.5, 2.0)
    return part


def assert_equal_with_gradients(part, equation, *inputs):
    """Outputs, and gradients of all inputs and parameters; ``equation`` takes the inputs and the weights."""
    for tensor in inputs:
        tensor.requires_grad_()
    variables = [*inputs, *part.parameters()]
    assert_same(part(*inputs), equation(*inputs, part.state_dict(keep_vars=True)), variables)


class Alone(torch.nn.Module):
    """A backbone, and a neck behind it, whose only output comes as it is."""

    def __init__(self, *parts):
        super().__init__()
        self.parts = torch.nn.Sequential(*parts)

    def forward(self, x):
        (out,) = self.parts(x)
        return out


def heads_of(backbone):
    attentions = [stage.blocks[0].attention.part for stage in backbone.stages if len(stage.blocks)]
    return [sum(branch.num_heads for branch in getattr(part, 'branches', [part])) for part in attentions]


def assert_is_its_equations(name, backbone, batch, size, stages=None, training=False, **options):
    """A model's backbone, or some of its stages, on random images or maps of a size."""
    equation, reads_class_token = EQUATIONS[name]
    options |= dict(heads=heads_of(backbone), training=training) | (dict(stages=stages) if stages else {})

    def theirs(x, weights):
        tokens = equation(x.permute(0, 2, 3, 1), published.under(weights, 'parts.0'), **options)
        if stages or reads_class_token is None:
            return tokens
        return tokens[:, 0] if reads_class_token else tokens.mean(dim=1)

    channels = 5 if stages and stages[0] else 3
    assert_equal_with_gradients(Alone(backbone), theirs, torch.randn(batch, channels, *size))


def cubic(distance, a):
    """Keys' kernel."""
    d = abs(distance)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0


def bicubic(old, new, is_smooth=False):
    """The matrix that makes ``new`` values of ``old``; a smooth one has a kernel as wide as a new cell."""
    matrix = torch.zeros(new, old)
    for row in range(new):
        place = (row + 0.5) * old / new - 0.5
        if is_smooth:
            weights = torch.tensor([cubic((near - place) / max(1, old / new), -0.5) for near in range(old)])
            matrix[row] = weights / weights.sum()
            continue
        for near in range(int(place // 1) - 1, int(place // 1) + 3):
            matrix[row, min(max(near, 0), old - 1)] += cubic(place - near, -0.75)
    return matrix
