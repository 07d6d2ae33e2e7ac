"""VT's registries: children of mmengine's root registries, with scope ``vt``.

A config of any OpenMMLab project names a part of VT by its prefix, for example ``dict(type='vt.VTResNet')``.
"""

from mmengine import registry as root

MODELS = root.Registry('model', parent=root.MODELS, scope='vt')
DATASETS = root.Registry('dataset', parent=root.DATASETS, scope='vt')
HOOKS = root.Registry('hook', parent=root.HOOKS, scope='vt')
OPTIM_WRAPPERS = root.Registry('optim_wrapper', parent=root.OPTIM_WRAPPERS, scope='vt')
