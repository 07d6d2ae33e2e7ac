"""The levels of VT-FPN (paper, section 4.2) at once: same result as level by level, in fewer operations.

Tokenize and project are one operation each for all levels, and each kind of token-side matrix is one batched product.
With few tokens, launching an operation takes a GPU longer than computing it.

Letters: N batch, S levels, P pixels and L tokens of a level, C_i, H_i and W_i channels and size of input i, C and C_T
channels of map and token, g groups.
"""

from collections.abc import Sequence

import torch
from mmcv.cnn import ConvModule
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.overrides import has_torch_function

from vt.ops import project_onto_levels, tokenize_levels
from vt.ops.maps import to_pixels
from vt.ops.precision import has_autocast, of_weights
from vt.ops.triton_check import is_exporting
from vt.ops.triton_path import MOST_LEVELS

from ..checks import GLOBAL_HOOKS, hooks_of
from .grouped_linear import GroupedLinear
from .learned_tokenizers import FilterTokenizer
from .projector import Projector

MATRICES = ('key', 'query', 'value')  # of a projector

Parts = tuple[Sequence[nn.Module], Sequence[nn.Module], Sequence[nn.Module]]  # lateral layers, tokenizers, projectors


class LevelsCheck:
    """Decides whether the levels can be computed at once, and remembers what depends on their modules alone."""

    def __init__(self, parts: Parts) -> None:
        self._look_at(parts, _modules_of(parts))

    def _look_at(self, parts: Parts, modules: list[nn.Module]) -> None:
        self._modules, self._hooks, self._is_alike = modules, hooks_of(modules), are_alike(*parts[1:])

    def allows(self, parts: Parts, inputs: Sequence[Tensor]) -> bool:
        """Whether :func:`relate_levels` may be called; arguments as there.

        The parts must be those that it knows, and no hook, exporter, tracer or tensor subclass may need their own
        calls.
        """
        if is_exporting() or torch.jit.is_tracing() or has_torch_function(inputs):
            return False
        modules = _modules_of(parts)
        if modules != self._modules:
            if torch.compiler.is_compiling():  # which cannot look for hooks
                return False
            self._look_at(parts, modules)
        if not self._is_alike or any(map(len, (*GLOBAL_HOOKS, *self._hooks))):
            return False
        if any('forward' in vars(module) for module in modules):
            return False
        for alike in parts[1:]:
            if any((part.num_heads, part.scale) != (1, alike[0].scale) for part in alike):
                return False
        return not any(part.drops and part.training for part in parts[2])


def _modules_of(parts: Parts) -> list[nn.Module]:
    """The parts and their parts."""
    convolutions, tokenizers, projectors = parts
    modules = [layer for convolve in convolutions for layer in convolve.modules()]
    return modules + [module for part in (*tokenizers, *projectors) for module in (part, *part.children())]


def are_alike(tokenizers: Sequence[nn.Module], projectors: Sequence[nn.Module]) -> bool:
    """Whether the parts of all levels have equal shapes and groups, and are of the kinds that can be batched.

    These are filter tokenizers and projectors without normalisation and position encoder.
    """
    for parts, kind in ((tokenizers, FilterTokenizer), (projectors, Projector)):
        for part in parts:
            if type(part) is not kind or type(part.norm) is not nn.Identity:
                return False
    if len(tokenizers) > MOST_LEVELS or any(part.position_encoder is not None for part in tokenizers):
        return False
    kinds = weighted_parts(tokenizers, projectors)
    if any(type(matrix) is not GroupedLinear for kind in kinds[1:] for matrix in kind):
        return False
    if len({kind[0].groups for kind in kinds[2:]}) > 1:
        return False
    return all(part.weight.shape == kind[0].weight.shape for kind in kinds for part in kind)


def weighted_parts(tokenizers: Sequence[nn.Module], projectors: Sequence[nn.Module]) -> list[list[nn.Module]]:
    """Modules with weights, one list per kind, a module per level: tokenizers, their matrices, projectors' matrices."""
    kinds = [list(tokenizers), [part.value for part in tokenizers]]
    return kinds + [[getattr(part, name) for part in projectors] for name in MATRICES]


def relate_levels(parts: Parts, relation: nn.Module, inputs: Sequence[Tensor]) -> tuple[Sequence[Tensor], list[Tensor]]:
    """Compute VT-FPN from its inputs.

    Args:
        parts: lateral layers, tokenizers and projectors, one of each per level, which :class:`LevelsCheck` allows.
        relation: relation of the tokens of all levels.
        inputs: map of each level, ``(N, C_i, H_i, W_i)``.

    Returns:
        The pixels ``(N, P, C)`` of the lateral maps, and the maps ``(N, C, H_i, W_i)`` with the tokens projected onto
        them.
    """
    convolutions, tokenizers, projectors = parts
    biases = None
    if all(map(is_linear, convolutions, inputs)):
        if torch.is_grad_enabled():
            biases = torch.stack([convolve.conv.bias for convolve in convolutions])
        pixels = [convolve_linearly(convolve.conv, x) for convolve, x in zip(convolutions, inputs)]
    else:
        # The coarsest level is computed first, as in VTFPN._tokenize_levels.
        pixels = [to_pixels(convolve(x)) for convolve, x in reversed([*zip(convolutions, inputs)])][::-1]
    filters, *matrices = join([[part.weight for part in kind] for kind in weighted_parts(tokenizers, projectors)])
    filters = filters.view(len(pixels), 1, *tokenizers[0].weight.shape)
    pooled, pixels = tokenize_levels(pixels, filters, tokenizers[0].scale, biases)
    outs = project_onto_levels(pixels, *relate_tokens(pooled, relation, *matrices), projectors[0].scale)
    return pixels, [read.mT.unflatten(2, x.shape[2:]) for read, x in zip(outs, inputs)]


def relate_tokens(
    pooled: Tensor, relation: nn.Module, token_value: Tensor, key: Tensor, query: Tensor, value: Tensor
) -> tuple[Tensor, Tensor]:
    """Compute keys and values of the projectors from the pooled pixels of all levels, all ``(S, N, L, C)``.

    Args:
        pooled: what the tokenizers pooled.
        relation: relation of the tokens, ``(N, S L, C_T)``.
        token_value, key, query, value: matrices of all levels, ``(S g, inputs / g, outputs / g)``.
    """
    num_levels, n, num_tokens, _ = pooled.shape
    groups, inputs, outputs = len(token_value) // num_levels, *token_value.shape[1:]
    blocks = pooled.view(num_levels, n, num_tokens, groups, inputs).permute(0, 3, 1, 2, 4)  # S, g, N, L, C / g
    blocks = torch.bmm(blocks.reshape(len(token_value), n * num_tokens, inputs), token_value)
    blocks = blocks.view(num_levels, groups, n, num_tokens, outputs)  # S, g, N, L, C_T / g
    tokens = relation(blocks.permute(2, 0, 3, 1, 4).reshape(n, num_levels * num_tokens, groups * outputs))

    groups, inputs, outputs = len(key) // num_levels, *key.shape[1:]
    blocks = tokens.reshape(n, num_levels, num_tokens, groups, inputs).permute(1, 3, 0, 2, 4)  # S, g, N, L, C_T / g
    blocks = blocks.reshape(len(key), n * num_tokens, inputs)
    both = torch.stack([torch.bmm(torch.bmm(blocks, key), query.mT), torch.bmm(blocks, value)])
    both = both.view(2, num_levels, groups, n, num_tokens, outputs).permute(0, 1, 3, 4, 2, 5)
    return both.reshape(2, *pooled.shape).unbind()


def join(kinds: Sequence[Sequence[Tensor]]) -> tuple[Tensor, ...]:
    """Concatenate the tensors of all levels along the first axis, for each kind; under autocast in its precision."""
    device, dtype = kinds[0][0].device.type, kinds[0][0].dtype
    if has_autocast(device) and dtype != torch.float64:
        dtype = torch.get_autocast_dtype(device)
    tensors = [tensor for kind in kinds for tensor in kind]
    if torch.is_grad_enabled():
        return _Join.apply(dtype, len(kinds), *tensors)
    return of_weights(dtype, lambda *weights: _join(dtype, len(kinds), *weights), *tensors)


def _join(dtype: torch.dtype, num_kinds: int, *tensors: Tensor) -> tuple[Tensor, ...]:
    number = len(tensors) // num_kinds
    return tuple(torch.cat(tensors[i : i + number]).to(dtype) for i in range(0, len(tensors), number))


class _Join(torch.autograd.Function):
    """:func:`join`; its backward pass splits one gradient of each kind, where autograd would fill four with zeros."""

    @staticmethod
    def forward(ctx, dtype: torch.dtype, num_kinds: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.number, ctx.dtype = len(tensors) // num_kinds, tensors[0].dtype
        ctx.set_materialize_grads(False)
        return _join(dtype, num_kinds, *tensors)

    @staticmethod
    def backward(ctx, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        nothing = [None] * ctx.number
        parts = [nothing if g is None else g.to(ctx.dtype).chunk(ctx.number) for g in gradients]
        return None, None, *(part for kind in parts for part in kind)


def is_linear(convolve: nn.Module, x: Tensor) -> bool:
    """Whether a lateral layer is computed as a linear layer of pixels: a plain 1x1 convolution with bias, on a GPU.

    There it adds the bias without another pass; on a CPU a convolution is up to twice as fast.
    """
    if not x.is_cuda or not x.is_contiguous(memory_format=torch.channels_last):
        return False
    if type(convolve) is not ConvModule or convolve.with_norm or convolve.with_activation:
        return False
    conv = convolve.conv
    shape = conv.kernel_size, conv.stride, conv.padding, conv.groups
    return type(conv) is nn.Conv2d and shape == ((1, 1), (1, 1), (0, 0), 1) and conv.bias is not None


def convolve_linearly(conv: nn.Conv2d, x: Tensor) -> Tensor:
    """Pixels of a 1x1 convolution, as a linear layer whose bias autograd does not know of.

    The gradient of the weight gets the strides of the weight, as distributed training expects.
    """
    weight = conv.weight
    matrix = weight.flatten(1) if weight.stride(2) == 1 else weight.permute(0, 2, 3, 1).flatten(1)
    return linear(to_pixels(x), matrix, conv.bias.detach())
