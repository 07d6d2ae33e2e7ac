"""Correct for imbalanced classes: the config key ``imbalance`` sets loss weights or repeats images of rare classes."""

import math
from collections import Counter
from collections.abc import Iterable

from mmengine.config import Config
from mmengine.registry import MODELS
from mmpretrain.models import MultiLabelClsHead

from vt.errors import UserError

from .data import Data

METHODS = ('weighted', 'focal', 'balanced')
WEIGHTS = ('class_weight', 'pos_weight')


def apply_imbalance(cfg: Config, data: Data) -> list[str]:
    """Apply ``imbalance`` of a training's config in place, by the labels of its training data, and remove the key.

    - ``'weighted'`` sets weights in the loss of the head: :func:`class_weights`, or :func:`positive_weights` if each
      class has its own sigmoid.
    - ``'focal'`` replaces the loss by MMPretrain's ``FocalLoss`` (Lin et al., 2017).
    - ``'balanced'`` repeats images of rare classes with MMEngine's ``ClassBalancedDataset``, so that the counts become
      proportional to their square roots (Gupta et al., "LVIS", 2019).

    Return a line for the log that says what was set, if anything was. A config that corrects imbalance already is a
    UserError.
    """
    method = cfg.get('imbalance')
    if method is None:
        return []
    if method not in METHODS:
        raise UserError(f'imbalance={method!r} must be {", ".join(map(repr, METHODS))} or None')
    if 'head' not in cfg.model:
        raise UserError('imbalance requires a classifier: for segmentation set class_weight in model.decode_head')
    head, given = cfg.model['head'], cfg.train_dataloader.dataset
    scope = cfg.get('default_scope') or 'mmpretrain'
    with MODELS.switch_scope_and_registry(scope) as registry:
        kind = registry.get(head['type']) if isinstance(head['type'], str) else head['type']
    several = issubclass(kind, MultiLabelClsHead)  # one sigmoid per class
    loss = head.get('loss') or dict(type='CrossEntropyLoss', **(dict(use_sigmoid=True) if several else {}))
    twice = next((f'model.head.loss has {name}' for name in WEIGHTS if loss.get(name) is not None), None)
    twice = twice or ('train_dataloader has ClassBalancedDataset' if 'ClassBalancedDataset' in str(given) else None)
    if twice:
        raise UserError(f'imbalance={method!r} would correct imbalance twice, since {twice}: remove one of the two')
    if method == 'focal':
        head['loss'] = dict(type='FocalLoss', loss_weight=loss.get('loss_weight', 1.0))
        cfg.pop('imbalance')
        return [f'imbalance: model.head.loss is FocalLoss instead of {loss["type"]}']
    dataset, counts = data.load(given, 'train_dataloader.dataset'), data.count_labels(given)
    number = head.get('num_classes') or max(counts) + 1
    if method == 'balanced':
        most = max(counts.values())
        cfg.train_dataloader.dataset = dict(
            type='ClassBalancedDataset', oversample_thr=most / len(dataset), dataset=given
        )
        values = [math.ceil(math.sqrt(most / counts[label])) if counts[label] else 1 for label in range(number)]
        what = 'repetitions of images in an epoch'
    else:
        sigmoids = several or bool(loss.get('use_sigmoid')) or loss.get('mode') == 'multi_label'
        name = WEIGHTS[sigmoids]
        values = positive_weights(counts, number, len(dataset)) if sigmoids else class_weights(counts, number)
        head['loss'], what = loss | {name: values}, f'model.head.loss.{name}'
    cfg.pop('imbalance')
    return [f'imbalance: {what} from {min(values)} to {max(values)}']


def class_weights(counts: Counter[int], number: int) -> list[float]:
    """Return class weights for a softmax loss, ``images / (classes * images of the class)``, with mean 1 over images.

    A class without images gets the weight 1; ``number`` is that of the classes.
    """
    present = [label for label in range(number) if counts[label]]
    total = sum(counts[label] for label in present)
    return _rounded(total / (len(present) * counts[label]) if counts[label] else 1.0 for label in range(number))


def positive_weights(counts: Counter[int], number: int, images: int) -> list[float]:
    """Return weights of positive images for one sigmoid per class: number of negative over number of positive images.

    A class without positive or negative images gets the weight 1; ``number`` is that of the classes.
    """
    return _rounded(
        (images - counts[label]) / counts[label] if 0 < counts[label] < images else 1.0 for label in range(number)
    )


def pixel_weights(counts: Counter[int], number: int) -> list[float]:
    """Return class weights for a segmentation loss, ``1 / log(1.02 + share)``, scaled to mean 1 over pixels.

    The logarithm bounds the weights of very rare classes (Paszke et al., "ENet", 2016). Arguments as in
    :func:`class_weights`.
    """
    total = sum(counts[label] for label in range(number))
    shares = [counts[label] / total for label in range(number)]
    weights = [1 / math.log(1.02 + share) for share in shares]
    mean = sum(share * weight for share, weight in zip(shares, weights))
    return _rounded(weight / mean for weight in weights)


def _rounded(values: Iterable[float]) -> list[float]:
    return [float(f'{value:.4g}') for value in values]
