"""The levels of VT-FPN (paper, section 4.2) in parallel: same result as level by level, in fewer operations.

Each kind of token-side matrix is one batched product over the levels, and under autocast all weights are cast in one
copy. With few tokens, launching a product takes a GPU longer than computing it.

Letters: N batch, S levels, L tokens of a level, C_i, H_i and W_i channels and size of input i, C and C_T channels of
map and token, g groups.
"""

from collections.abc import Iterable, Sequence

import torch
from mmcv.cnn import ConvModule
from torch import Tensor, nn
from torch.nn.functional import conv2d, linear
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import has_torch_function

from vt.ops import project_onto, tokenize
from vt.ops.maps import to_pixels
from vt.ops.precision import has_autocast

from .grouped_linear import GroupedLinear
from .learned_tokenizers import FilterTokenizer
from .projector import Projector

MATRICES = ('key', 'query', 'value')  # of a projector


def can_relate(
    convolutions: Sequence[nn.Module],
    tokenizers: Sequence[nn.Module],
    projectors: Sequence[nn.Module],
    inputs: Sequence[Tensor],
) -> bool:
    """Whether :func:`relate_levels` may be called; arguments as there.

    The parts must be those that it knows, and no hook, compiler, tracer or tensor subclass may need their own calls.
    """
    if not are_alike(tokenizers, projectors):
        return False
    if torch.compiler.is_compiling() or torch.jit.is_tracing() or has_torch_function(inputs):
        return False
    layers = [layer for convolve in convolutions for layer in convolve.modules()]
    parts = [*tokenizers, *projectors]
    matrices = [part for outer in parts for part in outer.children() if isinstance(part, GroupedLinear)]
    return not has_listeners([*layers, *parts, *matrices])


def are_alike(tokenizers: Sequence[nn.Module], projectors: Sequence[nn.Module]) -> bool:
    """Whether the parts of all levels have equal shapes and groups, and are of the kinds that can be batched.

    These are filter tokenizers and projectors without normalisation, position encoder or active stochastic depth, and
    with one head for each projector.
    """
    for part in tokenizers:
        if type(part) is not FilterTokenizer or part.position_encoder is not None:
            return False
        if type(part.norm) is not nn.Identity:
            return False
    for part in projectors:
        if type(part) is not Projector or type(part.norm) is not nn.Identity or part.num_heads > 1:
            return False
        if part.training and part.drops:
            return False
    kinds = weighted_parts(tokenizers, projectors)
    if any(type(matrix) is not GroupedLinear for kind in kinds[1:] for matrix in kind):
        return False
    alike = all(part.weight.shape == kind[0].weight.shape for kind in kinds for part in kind)
    return alike and len({kind[0].groups for kind in kinds[2:]}) == 1


def weighted_parts(tokenizers: Sequence[nn.Module], projectors: Sequence[nn.Module]) -> list[list[nn.Module]]:
    """Modules with weights, one list per kind, a module per level: tokenizers, their matrices, projectors' matrices."""
    kinds = [list(tokenizers), [part.value for part in tokenizers]]
    return kinds + [[getattr(part, name) for part in projectors] for name in MATRICES]


def are_linear(convolutions: Sequence[nn.Module]) -> bool:
    """Whether all lateral layers are plain 1x1 convolutions with a bias."""
    for layer in convolutions:
        if type(layer) is not ConvModule or layer.with_norm or layer.with_activation:
            return False
        conv = layer.conv
        shape = (conv.kernel_size, conv.stride, conv.padding, conv.groups)
        if type(conv) is not nn.Conv2d or conv.bias is None or shape != ((1, 1), (1, 1), (0, 0), 1):
            return False
    return True


def relate_levels(
    convolutions: Sequence[nn.Module],
    tokenizers: Sequence[FilterTokenizer],
    relation: nn.Module,
    projectors: Sequence[Projector],
    inputs: Sequence[Tensor],
) -> tuple[list[Tensor], list[Tensor]]:
    """Compute VT-FPN from its inputs.

    Args:
        convolutions, tokenizers, projectors: one per level, for which :func:`can_relate` is true.
        relation: relation of the tokens of all levels.
        inputs: map of each level, ``(N, C_i, H_i, W_i)``.

    Returns:
        The lateral maps, and the maps with the tokens projected onto them, both ``(N, C, H_i, W_i)``.
    """
    num_levels = len(inputs)
    parts = [[part.weight for part in kind] for kind in weighted_parts(tokenizers, projectors)]
    of_pixels = are_linear(convolutions)
    if of_pixels:
        parts += [[tensor] for convolve in convolutions for tensor in (convolve.conv.weight, convolve.conv.bias)]
    filters, token_value, key, query, value, *lateral = join(parts)

    filters, laterals, pooled = filters.chunk(num_levels), [], []
    for level in reversed(range(num_levels)):  # the coarsest first, as in VTFPN._tokenize_levels
        x, part = inputs[level], tokenizers[level]
        x = map_pixels(x, *lateral[2 * level : 2 * level + 2]) if of_pixels else convolutions[level](x)
        laterals.insert(0, x)
        pooled.insert(0, tokenize(x, filters[level], part.num_heads, part.scale))  # N, L, C
    n, num_tokens, _ = pooled[0].shape

    def by_level(blocks: Tensor, *order: int) -> Tensor:
        """Permute the axes S, g, N, L, c of ``(S g, N L, c)``, and flatten the last two."""
        return (
            blocks.view(num_levels, len(blocks) // num_levels, n, num_tokens, blocks.shape[-1])
            .permute(*order)
            .flatten(-2)
        )

    blocks = torch.cat(pooled, dim=-1).view(n * num_tokens, *token_value.shape[:2]).transpose(0, 1)  # S g, N L, C / g
    tokens = relation(by_level(torch.bmm(blocks, token_value), 2, 0, 3, 1, 4).flatten(1, 2))  # N, S L, C_T
    blocks = tokens.view(n, num_levels, num_tokens, len(key) // num_levels, key.shape[1])  # N, S, L, g, C_T / g
    blocks = blocks.permute(1, 3, 0, 2, 4).reshape(len(key), n * num_tokens, key.shape[1])  # S g, N L, C_T / g
    keys = by_level(torch.bmm(torch.bmm(blocks, key), query.mT), 0, 2, 3, 1, 4).unsqueeze(2)  # S, N, 1, L, C
    values = by_level(torch.bmm(blocks, value), 0, 2, 3, 1, 4).unsqueeze(2)
    levels = zip(projectors, laterals, keys.unbind(), values.unbind())
    return laterals, [project_onto(x, k, v, part.scale) for part, x, k, v in levels]


def join(parts: Sequence[Sequence[Tensor]]) -> list[Tensor]:
    """Concatenate the tensors of all levels along the first axis, for each part; under autocast in its precision."""
    device = parts[0][0].device.type
    if not has_autocast(device) or parts[0][0].dtype == torch.float64:
        return [torch.cat(part) if len(part) > 1 else part[0] for part in parts]
    flat = torch.cat([tensor.flatten() for part in parts for tensor in part]).to(torch.get_autocast_dtype(device))
    chunks = flat.split([sum(tensor.numel() for tensor in part) for part in parts])
    return [chunk.view(-1, *part[0].shape[1:]) for chunk, part in zip(chunks, parts)]


def map_pixels(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Apply a 1x1 convolution; on a GPU in channels_last as a linear layer, which adds the bias without another pass.

    On a CPU the convolution is up to twice as fast.
    """
    if x.is_cuda and x.is_contiguous(memory_format=torch.channels_last):
        return map_pixels_linearly(x, weight, bias)
    return conv2d(x, weight, bias)


def map_pixels_linearly(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """As :func:`map_pixels`, always as a linear layer."""
    return linear(to_pixels(x), weight.flatten(1), bias).transpose(1, 2).unflatten(2, x.shape[2:])


def has_listeners(modules: Iterable[nn.Module]) -> bool:
    """Whether a module has a forward hook or pre-hook, of its own or a global one, or an overridden ``forward``.

    Children of the modules are not checked.
    """
    registers = [register_module_forward_hook, register_module_forward_pre_hook]
    for module in modules:
        if 'forward' in vars(module):
            return True
        registers += [module.register_forward_hook, module.register_forward_pre_hook]
    for register in registers:
        with register(print) as handle:  # never called; only the handle of a new hook gives access to the others
            if len(handle.hooks_dict_ref()) > 1:
                return True
    return False
