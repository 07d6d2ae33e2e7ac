"""Section 6 of the paper in numbers, as ``tools/attention.py`` asks.

Letters: L tokens, H and W map size, h heads, P = H * W patches.
"""

import argparse
import math
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import mmengine
import mmpretrain
import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.registry import DATASETS
from torch import Tensor, nn
from torch.nn.functional import interpolate, pad
from torch.utils.data import Dataset

from vt.analysis import attention_measures as measures
from vt.analysis.report import print_table
from vt.analysis.vit_attention import describe_locality, draw_locality, read_patch_attention
from vt.checkpoints.loading import load_weights
from vt.engine.config_files import read_config, require_file
from vt.engine.launch import build_model
from vt.models import AttentionTokenizer, Record, record_attention

MMPRETRAIN = 'mmpretrain::'
SEED = 0  # of weights that no checkpoint sets


def measure_tokens(args: argparse.Namespace) -> None:
    """Entropy, gain on the foreground and reach of a trained model's visual tokens; print them, write them on request.

    A token's map is the mean over its tokenizer's heads, W the mean over the relation's; the paper's have one.

    Raises:
        ValueError: the model has no tokenizer that attends; the data set has no class of ``args.background``.
    """
    model, dataset = _prepare(args)
    owners = tokenizers_by_owner(model)
    if not owners:
        raise ValueError('the model has no tokenizer that attends')
    num_classes = len(dataset.metainfo['classes'])
    if not all(0 <= index < num_classes for index in args.background):
        raise ValueError(f'--background {args.background}: the classes of the data set are 0 to {num_classes - 1}')
    measured: dict[str, list[dict[str, Tensor]]] = {name: [] for names in owners.values() for name in names}
    sizes = {name: set() for name in measured}
    has_labels = False
    for inputs, labels in _test_images(model, dataset, args.images):
        has_labels = labels is not None
        with torch.no_grad(), record_attention(model) as records:
            model(inputs, mode='tensor')
        for owner, names in owners.items():
            maps = [records[name].attention.mean(dim=1).double() for name in names]  # of each 1, L, H, W
            relation = _relation_weights(records, owner, sum(attention.shape[1] for attention in maps))
            values = measures.measure_tokens(maps, relation, inputs.shape[-2:], labels, args.background)
            for name, attention, value in zip(names, maps, values):
                measured[name].append(value)
                sizes[name].add('{}x{}'.format(*attention.shape[-2:]))
    rows = {name: dict(map=' '.join(sorted(sizes[name]))) | _summarise(images) for name, images in measured.items()}
    _print_tokens(rows, args.config, has_labels)
    _write(args, background=args.background, tokenizers=rows)


def tokenizers_by_owner(model: nn.Module) -> dict[str, list[str]]:
    """Names of the tokenizers that attend, by the name of the module whose ``relation`` takes their tokens."""
    parts = dict(model.named_modules())
    owners: dict[str, list[str]] = {}
    for name, part in parts.items():
        if isinstance(part, AttentionTokenizer):
            owner = name.rpartition('.')[0]
            while owner and not hasattr(parts[owner], 'relation'):
                owner = owner.rpartition('.')[0]
            owners.setdefault(owner, []).append(name)
    return owners


def _relation_weights(records: dict[str, Record], owner: str, num_tokens: int) -> Tensor | None:
    """W, ``(1, L, L)``; None for a relation without self-attention, or among other tokens than the tokenizers made."""
    record = records.get(f'{owner}.relation'.removeprefix('.'))
    if record is None or record.attention.shape[-1] != num_tokens:
        return None
    return record.attention.mean(dim=1).double()


def _summarise(images: list[dict[str, Tensor]]) -> dict:
    """The mean over images, and over tokens or for each of them; None for what couldn't be measured."""
    values = {key: torch.cat([image[key] for image in images]).cpu() for key in images[0]}  # images, L or 1
    entropies = values['entropy'].mean(dim=0)  # L
    shows_both = (values['on_foreground'] + values['on_background']).isfinite().all(dim=1)  # images
    foreground, background = (values[f'on_{region}'][shows_both].mean(dim=0) for region in ('foreground', 'background'))
    summary = dict(
        tokens=len(entropies),
        images=len(images),
        images_without_both_regions=int((~shows_both).sum()),
        entropy=entropies.mean(),
        entropy_of_tokens=entropies,
        uniform_entropy=values['uniform_entropy'].mean(),
        times_smaller=values['uniform_entropy'].mean() / entropies.mean(),
        foreground_gain=foreground.mean() / background.mean() - 1,
        foreground_gain_of_tokens=foreground / background - 1,
        **{key: values[key].mean().sqrt() for key in ('spread', 'uniform_spread', 'reach', 'shift')},
        **{key: values[key].mean() for key in ('to_others', 'uniform_to_others')},
    )
    return {key: _plain(value) for key, value in summary.items()}


def _print_tokens(rows: dict[str, dict], config: str, has_labels: bool) -> None:
    first = next(iter(rows.values()))
    name = f'{Path(config).stem}, {first["images"]} test images'
    entropies = [
        {
            'tokenizer': tokenizer,
            'map': row['map'] if ' ' not in row['map'] else 'several',
            'tokens': str(row['tokens']),
            'entropy': f'{row["entropy"]:.3f}',
            'of each token': f'{min(row["entropy_of_tokens"]):.2f} to {max(row["entropy_of_tokens"]):.2f}',
            'uniform': f'{row["uniform_entropy"]:.3f}',
            'times smaller': _show(row['times_smaller'], '.2f'),
            'more on foreground (%)': _show(row['foreground_gain'], '+.1f', 100),
        }
        for tokenizer, row in rows.items()
    ]
    print_table(entropies, title=f'{name}: entropy of attention in nats, attention on a pixel of the foreground')
    if has_labels and first['images_without_both_regions']:
        print(f'foreground: {first["images_without_both_regions"]} images left out, labels show it or background alone')
    distances = [
        {
            'tokenizer': tokenizer,
            'A to A': f'{row["spread"]:.3f}',
            'A to Â': _show(row['reach'], '.3f'),
            'uniform': f'{row["uniform_spread"]:.3f}',
            'centre of A to of Â': _show(row['shift'], '.3f'),
            'W on other tokens (%)': _show(row['to_others'], '.1f', 100),
            'uniform W (%)': f'{100 * row["uniform_to_others"]:.1f}',
        }
        for tokenizer, row in rows.items()
    ]
    print_table(distances, title=f'{name}: distance of interacting pixels, root mean square in diagonals')


def measure_locality(args: argparse.Namespace) -> None:
    """How local a ViT's attention is by depth; print it, draw and write it on request.

    Raises:
        ValueError: the backbone is not a ViT whose attention can be read.
    """
    model, dataset = _prepare(args)
    ratios, to_patches, uniform = [], [], []
    for inputs, _ in _test_images(model, dataset, args.images):
        attention, grid = read_patch_attention(model, inputs)
        among = [layer[..., -math.prod(grid) :].double() for layer in attention]  # of each layer 1, h, P, P
        ratios.append(torch.cat([measures.locality_ratio(layer, grid) for layer in among]))  # layers, h
        to_patches.append(torch.stack([layer.sum(dim=-1).mean() for layer in among]))  # layers
        uniform.append(measures.uniform_locality(*grid))
    by_head, on_patches = (torch.stack(images).mean(dim=0).cpu() for images in (ratios, to_patches))
    elsewhere = (1 - on_patches).clamp(min=0)  # layers; a rounded 0 stays 0
    even = float(np.mean(uniform))
    weights = Path(args.checkpoint).name if args.checkpoint else 'random weights, as initialised'
    title = f'{Path(args.config).stem} ({weights}), {len(ratios)} test images'
    print_table(describe_locality(by_head, elsewhere, even), title=title)
    if args.picture:
        draw_locality(by_head, even, title).savefig(args.picture, dpi=150)
        print(f'written to {args.picture}')
    shares = dict(mean=by_head.mean(dim=1), std_over_heads=by_head.std(dim=1, correction=0), of_heads=by_head)
    shares = {key: _plain(value) for key, value in shares.items()}
    _write(args, images=len(ratios), **shares, on_no_patch=_plain(elsewhere), uniform=even)


def _prepare(args: argparse.Namespace) -> tuple[nn.Module, Dataset]:
    """The model, with the checkpoint's weights if there is one, and the test set of a config."""
    for path in (args.out, getattr(args, 'picture', None)):
        if path and not Path(path).parent.is_dir():
            raise FileNotFoundError(f'there is no folder {Path(path).parent} to write {Path(path).name} into')
    cfg = _read_config(args.config)
    cfg.merge_from_dict(args.cfg_options or {})
    if not cfg.get('test_dataloader'):
        raise ValueError('the config has no test_dataloader, whose images are measured')
    if args.checkpoint:
        require_file(args.checkpoint, 'checkpoint')
    torch.manual_seed(SEED)
    model = build_model(cfg)
    if args.checkpoint:
        load_weights(model, args.checkpoint)
    else:
        model.init_weights()
    model.to('cuda' if torch.cuda.is_available() else 'cpu')
    model.eval()
    return model, DATASETS.build(cfg.test_dataloader.dataset)


def _read_config(path: str) -> Config:
    if path.startswith(MMPRETRAIN):
        path = str(Path(mmpretrain.__file__).parent / '.mim/configs' / path.removeprefix(MMPRETRAIN))
    return read_config(path)


def _test_images(model: nn.Module, dataset: Dataset, number: int) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Preprocessed test images one by one, spread evenly over the set, since they may differ in size.

    Yields:
        The image, ``(1, 3, height, width)``, and where there are any its labels at this size, ``(1, height, width)``.
    """
    if number < 1:
        raise ValueError(f'--images {number} must be at least 1')
    for index in np.linspace(0, len(dataset) - 1, min(number, len(dataset))).round().astype(int):
        batch = pseudo_collate([dataset[int(index)]])
        image_size = batch['inputs'][0].shape[-2:]
        data = model.data_preprocessor(batch, False)
        (sample,) = data['data_samples']
        labels = sample.gt_sem_seg.data if 'gt_sem_seg' in sample else None
        yield data['inputs'], None if labels is None else _fit_labels(labels, image_size, data['inputs'].shape[-2:])


def _fit_labels(labels: Tensor, image_size: Sequence[int], padded_size: Sequence[int]) -> Tensor:
    """Labels ``(1, height, width)`` of the original image for the resized one, padded at the right and the bottom."""
    labels = interpolate(labels[None].float(), tuple(image_size), mode='nearest-exact')[0].long()
    right, bottom = padded_size[1] - image_size[1], padded_size[0] - image_size[0]
    return pad(labels, (0, right, 0, bottom), value=measures.IGNORED_LABEL)


def _write(args: argparse.Namespace, **record) -> None:
    if args.out:
        origin = dict(config=args.config, checkpoint=args.checkpoint, torch=torch.__version__)
        mmengine.dump(dict(command=shlex.join(['python', *sys.argv]), **origin, **record), args.out, indent=2)
        print(f'written to {args.out}')


def _plain(value):
    """Numbers of a tensor as JSON has them; None for NaN, what couldn't be measured, and for infinity."""
    if isinstance(value, Tensor):
        value = value.tolist()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _show(value: float | None, form: str, factor: float = 1.0) -> str:
    return '' if value is None else f'{factor * value:{form}}'
