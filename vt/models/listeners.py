"""Who else may see, and keep, what passes through a module."""

from collections.abc import Callable, Iterable

from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils.hooks import RemovableHandle


def has_listeners(modules: Iterable[nn.Module]) -> bool:
    """Whether anybody may see what these modules get or give in a forward pass.

    A listener is a forward hook or pre-hook, on one of the modules or on all modules at once, or a function in the
    place of one module's ``forward``. Children are not asked for unless they are named, too.
    """
    registers = [register_module_forward_hook, register_module_forward_pre_hook]
    for module in modules:
        if 'forward' in vars(module):
            return True
        registers += [module.register_forward_hook, module.register_forward_pre_hook]
    return any(map(_has_hooks, registers))


def _has_hooks(register: Callable[[Callable], RemovableHandle]) -> bool:
    """Whether there are hooks where ``register`` adds one: PyTorch shows them through a new one's handle only."""
    with register(_ignore) as handle:
        return len(handle.hooks_dict_ref()) > 1


def _ignore(*args) -> None:
    """A hook that does nothing."""
