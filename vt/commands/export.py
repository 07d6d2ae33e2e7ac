"""Export a model for other runtimes, as ``tools/export.py`` asks."""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.dataset import pseudo_collate
from torch import Tensor
from torch.nn.functional import interpolate

from vt.analysis.speed.timing import time_interleaved
from vt.analysis.tables import print_table
from vt.apis.exporting import SUFFIXES, Network, encode, export_program, largest_difference
from vt.apis.model_zoo import get_model, require_weights, resolve_config
from vt.checkpoints.files import write_atomically
from vt.engine.image_hooks import reads_bgr
from vt.engine.run_record import describe_device
from vt.engine.speed_settings import require_compiler, use_threads
from vt.errors import UserError
from vt.inference.inputs import Images, Videos
from vt.inference.test_set import build_test_set, spread_evenly

from .outputs import check_output, write_json, write_measured

BATCHES = (1, 2, 5)
LARGER = (32, 64)  # pixels that the other size has more in height and width
STRIDE = 32  # sides of images divide by it in every model


def export(args: argparse.Namespace) -> None:
    """Run each format on real inputs, compare it with the model, and write it if it is the same; time them on request.

    Raises:
        UserError: a format differs by more than the tolerance; it is not written.
    """
    check_output(args.out, args.config, args.checkpoint)
    if 'aot' in args.formats:
        require_compiler()
    use_threads()
    cfg, name = resolve_config(args.config, args.cfg_options, quietly=False), Path(args.config).stem
    model = get_model(cfg, require_weights(args.config, args.checkpoint))
    network, images = Network(model), read_inputs(model, args.inputs)
    others = [] if args.fixed_size else resized(images)
    program = export_program(network, images[:2], others[:1])
    if program.reason:
        print(f'the size is fixed, {describe_size(images)}, for this forbids another one: {program.reason}')
    cases = [images[:batch] for batch in BATCHES] + (others if program.open_size else [])
    runs, rows, refused = {}, [], []
    for kind in args.formats:
        file = args.out_dir / f'{name}{SUFFIXES[kind]}'
        content, run = encode(kind, network, program, images[:2])
        differences = {describe_size(case): largest_difference(run, network, case) for case in cases}
        worst = max(differences, key=differences.__getitem__)
        rows.append(dict(format=kind, file=file.name, difference=differences[worst], at=worst))
        if differences[worst] <= args.tolerance:
            runs[kind] = run
            write_atomically(file, content)
        else:
            refused.append(f'{kind} by {differences[worst]:.2g} at {worst}')
    if runs:
        write_json(describe_inputs(model, images, program.open_size), args.out_dir / f'{name}.json')
    if args.benchmark:
        enter_times(rows, runs, network, images[: args.benchmark_batch])
    print_table([describe_row(row) for row in rows], title=f'{name}, compared with the model itself')
    sizes = dict(size=describe_size(images[:1]), open_size=program.open_size, reason=program.reason)
    write_measured(args.out, config=args.config, **sizes, batch=args.benchmark_batch, results=rows)
    if refused:
        line = f'more than --tolerance {args.tolerance} of the largest output differs: {", ".join(refused)}'
        raise UserError(f'{line}; nothing of it is written')


def read_inputs(model: Any, files: list[Path]) -> Tensor:
    """Five or more normalised inputs of one size, ``(N, 3, H, W)`` or ``(N, 3, T, H, W)``: files, or of the test set.

    Raises:
        UserError: a file can't be read.
        OSError: no files are given, and the test set is not here.
    """
    if files:
        reader = Videos if getattr(model.backbone, 'num_frames', None) else Images
        samples = [*map(reader(model.cfg), files)]
    else:
        dataset = build_test_set(model.cfg)
        samples = [dataset[index] for index in spread_evenly(dataset, max(BATCHES))]
    inputs = [model.data_preprocessor(pseudo_collate([sample]), False)['inputs'] for sample in samples]
    inputs = [one.flatten(0, 1)[:1] if one.ndim == 6 else one for one in inputs]  # the first view of a video
    inputs = torch.cat([one for one in inputs if one.shape == inputs[0].shape])
    return inputs.repeat(-(-max(BATCHES) // len(inputs)), *[1] * (inputs.ndim - 1))


def resized(images: Tensor) -> list[Tensor]:
    """Two of the images at a size that is higher, and wider by more; none of clips."""
    if images.ndim != 4:
        return []
    size = [-(-side // STRIDE) * STRIDE + more for side, more in zip(images.shape[2:], LARGER)]
    return [interpolate(images[:batch], size, mode='bilinear') for batch in (2, 1)]


def describe_size(images: Tensor) -> str:
    """Such as ``2 x 224x224``."""
    return f'{len(images)} x {"x".join(map(str, images.shape[2:]))}'


def describe_inputs(model: Any, images: Tensor, open_size: bool) -> dict[str, Any]:
    """What a user of an exported file must know: how images become inputs, and what the outputs are of."""
    preprocessor = model.data_preprocessor
    settings = model.cfg.model.get('data_preprocessor') or model.cfg.get('data_preprocessor') or {}
    turned = settings.get('to_rgb') or settings.get('bgr_to_rgb')
    numbers = {
        name: getattr(preprocessor, name).flatten().tolist() if hasattr(preprocessor, name) else None
        for name in ('mean', 'std')
    }
    return dict(
        input=['batch', *images.shape[1:]],
        open_size=open_size,
        channels='RGB' if turned or not reads_bgr(model.cfg) else 'BGR',
        **numbers,
        classes=model.dataset_meta.get('classes'),
    )


def enter_times(rows: list[dict], runs: dict, network: Network, images: Tensor) -> None:
    """Time the model itself and what was exported, in turn, and enter the medians in seconds."""

    @torch.no_grad()
    def eager() -> None:
        network(images)

    steps = dict(eager=eager) | {kind: (lambda run=run: run(images)) for kind, run in runs.items()}
    seconds = time_interleaved(steps, torch.device('cpu'), describe_device(torch.device('cpu')), rounds=20, seconds=30)
    for row in rows:
        if row['format'] in runs:
            row |= dict(seconds=float(np.median(seconds[row['format']])), eager=float(np.median(seconds['eager'])))


def describe_row(row: dict[str, Any]) -> dict[str, str]:
    """A format as a row of a table."""
    cells = dict(format=row['format'], file=row['file'])
    cells['largest difference'], cells['at'] = f'{row["difference"]:.1e}', row['at']
    if 'seconds' in row:
        cells['ms'], cells['model itself (ms)'] = f'{1000 * row["seconds"]:.1f}', f'{1000 * row["eager"]:.1f}'
        cells['faster'] = f'{row["eager"] / row["seconds"]:.2f}x'
    return cells
