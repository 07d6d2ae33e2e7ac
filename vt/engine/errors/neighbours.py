"""Names near a misspelt one."""

import difflib

from mmengine.registry import Registry, root

from vt._libraries import importing


def describe_unknown_type(name: str, scope: str, kind: str) -> str:
    """The line for a type that no registry has.

    Args:
        name: of the type.
        scope: of the registry that was asked, ``'mmpretrain'`` for example.
        kind: of the registry, ``'model'`` for example.
    """
    near = difflib.get_close_matches(name, _known_types(kind, scope), n=3, cutoff=0.6)
    hint = f'did you mean {" or ".join(near)}?' if near else 'is its package in custom_imports, and its prefix there?'
    return f"there is no {kind} type '{name}'; {hint}"


def neighbours(name: str, known: list[str]) -> str:
    """What a misspelt name may have meant."""
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    return f'did you mean {" or ".join(near)}?' if near else f'there are {", ".join(known)}'


def _known_types(kind: str, scope: str) -> list[str]:
    """Names that a config of ``scope`` can give to a ``kind``, with prefixes where they are needed."""
    registries = [registry for registry in vars(root).values() if isinstance(registry, Registry)]
    registry = next(registry for registry in registries if registry.name == kind)
    with importing():
        for child in list(registry.children.values()):
            child.get('no such part')  # all are imported in the search for it
    names = list(registry.module_dict)
    for child in registry.children.values():
        names += [name if child.scope == scope else f'{child.scope}.{name}' for name in child.module_dict]
    return names
