"""What of a model sees visual tokens and no pixels: many small operations, which a compiler can join."""

from typing import Any

from torch import nn

from .grouped_linear import GroupedLinear


def token_side(model: nn.Module) -> list[nn.Module]:
    """The outermost modules that see tokens and no pixels: relations, and token-side matrices outside of them."""
    found: dict[str, nn.Module] = {}
    for name, part in model.named_modules():
        is_relation = name.split('.')[-1] == 'relation' and any(True for _ in part.parameters())
        inside = any(name.startswith(f'{outer}.') for outer in found)
        if (is_relation or isinstance(part, GroupedLinear)) and not inside:
            found[name] = part
    return list(found.values())


def compile_token_side(model: nn.Module, **options: Any) -> None:
    """Compile each relation in place, each a region of its own; the rest of the model stays eager.

    A relation is a dozen small operations on a few tokens. At batch 1 a GPU waits longer for each to be launched than
    it takes; compiled, what stands between two products is one kernel. A token-side matrix outside of a relation is one
    product, which nothing can be joined with, and stays eager too. Names and weights stay as they are.

    Args:
        model: a model, or a part of one.
        **options: of :func:`torch.compile`; ``mode='reduce-overhead'`` makes each region one CUDA graph.
    """
    for part in token_side(model):
        if not isinstance(part, GroupedLinear):
            part.compile(**options)


def lay_out_for_onednn(model: nn.Module) -> None:
    """Keep each token-side matrix in memory as oneDNN reads it: output by output, or input by input one that is moved.

    Names, shapes and values stay. Before a model is wrapped for DDP, whose buckets take the weights' strides.
    """
    for part in model.modules():
        if isinstance(part, GroupedLinear) and not part.pixel_side:
            part.weight.data = part.weight.data.mT.contiguous().mT
