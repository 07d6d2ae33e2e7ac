"""The levels of VT-FPN (paper, section 4.2) at once: same result as level by level, in fewer operations.

Tokenize and project are one operation each for all levels, and each kind of token-side matrix is one batched product.
With few tokens, launching an operation takes a GPU longer than computing it.

Letters: N batch, S levels, P pixels and L tokens of a level, C_i, H_i and W_i channels and size of input i, C and C_T
channels of map and token, g groups.
"""

from collections.abc import Sequence
from typing import Any

import torch
from mmcv.cnn import ConvModule
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.overrides import has_torch_function

from vt.ops import project_onto_levels, tokenize_levels
from vt.ops.dispatch import is_plain
from vt.ops.maps import to_pixels
from vt.ops.precision import cast_and_cache, has_autocast
from vt.ops.triton_check import is_exporting
from vt.ops.triton_path import MOST_LEVELS
from vt.private_names import has_hooks

from .grouped_linear import GroupedLinear
from .learned_tokenizers import FilterTokenizer
from .projector import Projector
from .vt_fpn import VTFPN

MATRICES = ('key', 'query', 'value')  # of a projector


class FusedVTFPN(VTFPN):
    """:class:`vt.VTFPN` that computes its levels at once, without calling their parts, see :func:`fuse_levels`.

    The parts are called in exported and traced programs, inside ``vt.ops.use_path('plain')``, while one has hooks or a
    ``forward`` of its own, and from the replacement of one, or of an option, until the next :func:`fuse_levels`.
    """

    lateral_convs: Any
    tokenizers: Any

    def relate_levels(self, maps: Sequence[Tensor]) -> tuple[Sequence[Tensor], list[Tensor]]:
        if not self._can_fuse(maps):
            return super().relate_levels(maps)
        biases = None
        if all(map(is_linear, self.lateral_convs, maps)):
            if torch.is_grad_enabled():
                biases = torch.stack([convolve.conv.bias for convolve in self.lateral_convs])
            pixels = [convolve_linearly(convolve.conv, x) for convolve, x in zip(self.lateral_convs, maps)]
        else:
            # The coarsest level is computed first, as in VTFPN.
            pixels = [to_pixels(convolve(x)) for convolve, x in reversed([*zip(self.lateral_convs, maps)])][::-1]
        kinds = weighted_parts(self.tokenizers, self.projectors)
        filters, *matrices = join([[part.weight for part in kind] for kind in kinds])
        filters = filters.view(len(pixels), 1, *self.tokenizers[0].weight.shape)
        pooled, pixels = tokenize_levels(pixels, filters, self.tokenizers[0].scale, biases)
        operands = relate_tokens(pooled, self.relation, *matrices)
        outs = project_onto_levels(pixels, *operands, self.projectors[0].scale)
        return pixels, [read.mT.unflatten(2, x.shape[2:]) for read, x in zip(outs, maps)]

    def _can_fuse(self, maps: Sequence[Tensor]) -> bool:
        """Whether nobody needs the calls of the parts, and these are those of the last :func:`fuse_levels`."""
        if is_plain() or is_exporting() or torch.jit.is_tracing() or has_torch_function(maps):
            return False
        found = parts_of(self)
        modules = [*found[0], *(each for convolve in self.lateral_convs for each in convolve.modules())]
        return found == self.fused and not any('forward' in vars(each) or has_hooks(each) for each in modules)


def fuse_levels(model: Any) -> None:
    """Put :class:`FusedVTFPN` in the place of each VT-FPN in a model whose levels can be computed at once."""
    for neck in model.modules():
        if type(neck) in (VTFPN, FusedVTFPN) and are_alike(neck.tokenizers, neck.projectors):
            neck.__class__, neck.fused = FusedVTFPN, parts_of(neck)


def parts_of(neck: VTFPN) -> tuple[list[nn.Module], list[type], list[tuple]]:
    """Return tokenizers and projectors with their parts, the classes of all, and the options of the former."""
    parts = *neck.tokenizers, *neck.projectors
    modules = [each for part in parts for each in (part, *part.children())]
    options = [(getattr(part, 'num_heads', 1), getattr(part, 'scale', 1.0)) for part in parts]
    return modules, [*map(type, modules)], options


def are_alike(tokenizers: Sequence[nn.Module], projectors: Sequence[nn.Module]) -> bool:
    """Whether the parts of all levels have equal shapes, groups and options, and are of the kinds that can be batched.

    These are filter tokenizers and projectors with one head, without normalisation, position encoder and drop path.
    """
    for parts, kind in ((tokenizers, FilterTokenizer), (projectors, Projector)):
        for part in parts:
            if type(part) is not kind or type(part.norm) is not nn.Identity:
                return False
            if (part.num_heads, part.scale) != (1, parts[0].scale):
                return False
    if any(part.position_encoder is not None for part in tokenizers) or any(part.drops for part in projectors):
        return False
    if len(tokenizers) > MOST_LEVELS:
        return False
    kinds = weighted_parts(tokenizers, projectors)
    if any(type(matrix) is not GroupedLinear for kind in kinds[1:] for matrix in kind):
        return False
    if len({kind[0].groups for kind in kinds[2:]}) > 1:
        return False
    return all(part.weight.shape == kind[0].weight.shape for kind in kinds for part in kind)


def weighted_parts(tokenizers: Sequence[Any], projectors: Sequence[Any]) -> list[list[Any]]:
    """Modules with weights, one list per kind, a module per level: tokenizers, their matrices, projectors' matrices."""
    kinds = [list(tokenizers), [part.value for part in tokenizers]]
    return kinds + [[getattr(part, name) for part in projectors] for name in MATRICES]


def relate_tokens(
    pooled: Tensor, relation: nn.Module, token_value: Tensor, key: Tensor, query: Tensor, value: Tensor
) -> tuple[Tensor, ...]:
    """Compute keys and values of the projectors from the pooled pixels of all levels, all ``(S, N, L, C)``.

    Args:
        pooled: what the tokenizers pooled.
        relation: relation of the tokens, ``(N, S L, C_T)``.
        token_value: W_V of the tokenizers of all levels, ``(S g, inputs / g, outputs / g)``.
        key: W_K of the projectors of all levels, likewise.
        query: W_Q of the projectors of all levels, likewise.
        value: W_V of the projectors of all levels, likewise.
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
    return cast_and_cache(dtype, lambda *weights: _join(dtype, len(kinds), *weights), *tensors)


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


def convolve_linearly(conv: Any, x: Tensor) -> Tensor:
    """Pixels of a 1x1 convolution, as a linear layer whose bias autograd does not know of.

    The gradient of the weight gets the strides of the weight, as distributed training expects.
    """
    weight = conv.weight
    matrix = weight.flatten(1) if weight.stride(2) == 1 else weight.permute(0, 2, 3, 1).flatten(1)
    return linear(to_pixels(x), matrix, conv.bias.detach())
