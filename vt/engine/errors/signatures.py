"""Which arguments a part takes."""

import inspect
from typing import Any


def accepted_arguments(part: Any) -> tuple[list[str], bool]:
    """The arguments that a class or function takes by name, and whether it takes any others too.

    A class that hands ``**kwargs`` on to its base takes those of the base.
    """
    owners = inspect.getmro(part) if inspect.isclass(part) else (part,)
    names: dict[str, None] = {}
    for owner in owners:
        function = vars(owner).get('__init__') if inspect.isclass(part) else part
        if function is None:
            continue
        try:
            parameters = list(inspect.signature(function).parameters.values())[inspect.isclass(part) :]
        except (TypeError, ValueError):  # a builtin without a signature
            return list(names), True
        named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        names.update({parameter.name: None for parameter in parameters if parameter.kind in named})
        if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
            return list(names), False
    return list(names), True
