"""VT's registries: children of mmengine's root registries, with scope ``vt``.

Configs of any OpenMMLab project use parts of VT with the prefix ``vt``, for example ``dict(type='vt.VTResNet')``. The
modules that register parts are imported at the first look-up.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from importlib import import_module
from typing import Any

from mmengine import registry as root

from ._libraries import import_library, importing


class Registry(root.Registry):
    """Child of mmengine's registry of the same name.

    Args:
        parent: mmengine's registry.
        locations: modules that register parts; imported at the first look-up.
        segmentation: modules of parts that need MMSegmentation; imported at the first look-up of a name that is not in
            ``locations``.
    """

    def __init__(self, parent: root.Registry, locations: list[str], segmentation: Sequence[str] = ()) -> None:
        super().__init__(parent.name, parent=parent, scope='vt', locations=locations)
        self.locations, self.segmentation = locations, segmentation

    def import_from_location(self) -> None:
        with importing(*self.locations):
            super().import_from_location()

    def get(self, key: str) -> type | None:
        found = super().get(key)
        if found is None and self.segmentation:
            self.import_segmentation()
            found = super().get(key)
        return found

    def import_segmentation(self) -> None:
        """Import the parts that need MMSegmentation."""
        with importing(*self.segmentation):
            for module in self.segmentation:
                import_module(module)


MODELS = Registry(
    root.MODELS,
    ['vt.models', 'vt.video.views'],
    segmentation=['vt.models.bands', 'vt.models.visual_transformers.vt_fpn', 'vt.models.sliding_windows'],
)
WEIGHT_INITIALIZERS = Registry(root.WEIGHT_INITIALIZERS, ['vt.models.layer_init'])
DATASETS = Registry(
    root.DATASETS,
    [
        'vt.datasets.digits',
        'vt.datasets.hugging_face',
        'vt.datasets.image_tables',
        'vt.datasets.moving_digits',
        'vt.engine.determinism',
        'vt.video.dataset',
    ],
    segmentation=[
        'vt.datasets.coco_masks',
        'vt.datasets.digit_scenes',
        'vt.datasets.hugging_face_masks',
        'vt.datasets.images_and_masks',
    ],
)
DATA_SAMPLERS = Registry(root.DATA_SAMPLERS, ['vt.engine.determinism'])
HOOKS = Registry(
    root.HOOKS,
    [
        'vt.engine.hooks.num_classes',
        'vt.engine.hooks.console',
        'vt.engine.hooks.curves',
        'vt.engine.hooks.training_images',
        'vt.engine.hooks.dry_run',
        'vt.engine.hooks.invalid_losses',
        'vt.engine.run.processes',
        'vt.engine.run.runner',
        'vt.engine.determinism',
        'vt.engine.hooks.checkpoint',
        'vt.engine.hooks.early_stopping',
        'vt.engine.hooks.preemption',
        'vt.engine.run.resume',
        'vt.engine.hooks.visualization',
        'vt.engine.hooks.redraw',
        'vt.engine.run.schedules',
        'vt.engine.hooks.validation_loss',
        'vt.checkpoints.loading',
    ],
)
LOOPS = Registry(root.LOOPS, ['vt.engine.run.resume'])
RUNNERS = Registry(root.RUNNERS, ['vt.engine.run.runner'])
OPTIM_WRAPPERS = Registry(root.OPTIM_WRAPPERS, ['vt.engine.run.mixed_precision'])
PARAM_SCHEDULERS = Registry(root.PARAM_SCHEDULERS, ['vt.engine.run.schedules'])
MODEL_WRAPPERS = Registry(root.MODEL_WRAPPERS, ['vt.engine.run.sync_batch_norm'])
VISBACKENDS = Registry(root.VISBACKENDS, ['vt.engine.run.log_servers'])
METRICS = Registry(root.METRICS, ['vt.analysis.evaluation'])
TRANSFORMS = Registry(
    root.TRANSFORMS,
    ['vt.datasets.bands', 'vt.datasets.coco_annotations', 'vt.datasets.colour_masks', 'vt.video.clips'],
)


def import_every_part(scope: str) -> None:
    """Import all modules that register parts; those that need MMSegmentation only in scope ``'mmseg'``."""
    for registry in (MODELS, DATASETS, TRANSFORMS):
        registry.import_from_location()
        if scope == 'mmseg':
            registry.import_segmentation()


def build(registry: root.Registry, part: Any, scope: str | None) -> Any:
    """Build a copy of a part of a config, whose types without a prefix belong to a scope; None is ``'mmpretrain'``.

    Types get the prefix, so that mmengine's default scope, which is one for the process, is not needed. It is replaced
    only where something else has set another one.
    """
    scope, part = scope or 'mmpretrain', deepcopy(part)
    import_library(scope)
    with suppress(ImportError):  # a scope without a package
        import_module(f'{scope}.registry')
    shared = [each for each in vars(root).values() if isinstance(each, root.Registry)]
    own = [each.children[scope] for each in shared if scope in each.children]
    for each in own:
        if each.name in (MODELS.name, DATASETS.name, TRANSFORMS.name):
            each.import_from_location()
    names = {name for each in own for name in each.module_dict}
    for each in dicts_in(part):
        if each.get('type') in names:
            each['type'] = f'{scope}.{each["type"]}'
    current = root.DefaultScope.get_current_instance()
    is_other = current is not None and current.scope_name != scope
    with root.DefaultScope.overwrite_default_scope(scope if is_other else None):
        return registry.build(part)


def dicts_in(value: Any) -> Iterator[dict]:
    """Yield the dicts in a value, each before those in it."""
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ():
        yield from dicts_in(part)
