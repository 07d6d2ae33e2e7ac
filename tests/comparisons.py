"""Comparison of results with equations or another implementation, values and gradients."""

import re
from collections.abc import Callable, Sequence

import torch
from hypothesis import strategies as st
from torch import Tensor, nn

from vt.ops import use_path

Results = Tensor | Sequence[Tensor]


def assert_same(ours: Results, theirs: Results, variables: Sequence[Tensor]) -> None:
    """Whether two results are equal up to rounding, and their gradients in a random direction."""
    ours, theirs = ([each] if isinstance(each, Tensor) else [*each] for each in (ours, theirs))
    directions = [torch.randn_like(each) for each in theirs]
    options = dict(allow_unused=True, materialize_grads=True)  # a head may not see all of the last block
    gradients = [torch.autograd.grad(each, variables, directions, **options) for each in (ours, theirs)]
    for own, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-9, atol=1e-10)
    for own, other in zip(*gradients, strict=True):
        scale = max(1.0, other.abs().max().item())  # another order of the sums of what is zero
        torch.testing.assert_close(own, other, rtol=1e-8, atol=1e-9 * scale)


def assert_near(ours: Sequence[Tensor], theirs: Sequence[Tensor], tolerance: float) -> None:
    """Whether each error is at most a fraction of its norm or, where that may be zero, of 1 % of the largest norm."""
    largest = max(other.norm() for other in theirs)
    for own, other in zip(ours, theirs, strict=True):
        assert (own - other).norm() <= tolerance * max(other.norm(), 0.01 * largest)


def assert_all_learn(model: nn.Module, cancelled: str = '^$') -> None:
    """Whether every parameter has a gradient beyond rounding, but for those whose names match ``cancelled``."""
    sizes = {key: parameter.grad.abs().max() for key, parameter in model.named_parameters()}
    least = 0.01 * torch.finfo(next(model.parameters()).dtype).eps * max(sizes.values())
    assert [key for key, size in sizes.items() if size <= least and not re.search(cancelled, key)] == []


def assert_is_its_equation(part: nn.Module, equation: Callable[..., Tensor], *inputs: Tensor) -> None:
    """Whether a part of VT is an equation of itself and its inputs on every path of the operations."""
    variables = [*(tensor.requires_grad_() for tensor in inputs), *part.parameters()]
    for path in ('plain', 'fused'):
        with use_path(path):
            ours = part(*inputs)
        assert_same(ours, equation(part, *inputs), variables)


def randomize(part: nn.Module) -> nn.Module:
    """Weights of the size at which every softmax is neither flat nor saturated, in float64."""
    for parameter in part.parameters():
        nn.init.normal_(parameter, std=0.3)
    return part.double()


FACTOR = st.sampled_from([1, 2, 4])  # of the channels of a map and of half of the tokens' ones
# N, C, H, W, L, C_T; heads, groups
SHAPES = st.tuples(
    *(st.integers(1, most) for most in (3, 4, 6, 7, 6, 8)), FACTOR, FACTOR
).map(lambda drawn: (drawn[0], 4 * drawn[1], *drawn[2:5], 8 * drawn[5], *drawn[6:]))  # fmt: skip


def random_map_and_tokens(n: int, c: int, h: int, w: int, num_tokens: int, c_t: int) -> tuple[Tensor, Tensor]:
    """A map ``(N, C, H, W)`` and tokens ``(N, L, C_T)`` in float64, the same for the same sizes."""
    torch.manual_seed(n + c + h + w + num_tokens + c_t)
    return torch.randn(n, c, h, w, dtype=torch.float64), torch.randn(n, num_tokens, c_t, dtype=torch.float64)


def assert_is_not_saturated(records: dict) -> None:
    """Whether no recorded attention of VT's parts is saturated."""
    for name, record in records.items():
        part = name.rpartition('.')[2] if not name.rpartition('.')[2].isdigit() else name.split('.')[-2]
        axes = dict(projector=2, projectors=2, relation=-1).get(part, (-2, -1))
        assert record.attention.amax(dim=axes).mean() < 0.5, name
