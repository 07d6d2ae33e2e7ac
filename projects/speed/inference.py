"""Measure predictions from JPEG files to classes: ``python -m projects.speed.inference CONFIG[=TIMM_NAME] ...``.

Models have random weights. Exported files are kept in the working directory, so that a second call measures at once.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from mmengine.registry import DefaultScope
from mmpretrain import ImageClassificationInferencer
from PIL import Image
from rich.progress import track
from torch._inductor import aoti_load_package  # the documented path

from docs.reports.records import write_measured
from vt import apis
from vt.analysis.tables import print_table
from vt.cli.parser import CommandParser
from vt.engine.reporting import one_line_errors
from vt.engine.run.speed_settings import compile_parts, keep_freed_memory, use_threads
from vt.files import ROOT, read_json
from vt.paths import check_output
from vt.serialization.export import run_onnx
from vt.serialization.predict_exported import predict

from .data_loading import write_jpegs
from .timing import median_of_rounds

BATCH, LOADERS = 8, 2  # timm's inference.py has two loading processes
FORMATS = ('onnx', 'openvino', 'aot')
Predict = Callable[[str], np.ndarray]


def export(config: str, folder: Path, image: str) -> Path:
    """Write a checkpoint of random weights and the exported files that are not there; return the checkpoint's path."""
    checkpoint = folder / f'{config}.pth'
    if not (folder / f'{config}.json').exists():
        torch.manual_seed(0)
        model = apis.get_model(config)
        model.init_weights()
        torch.save(dict(state_dict=model.state_dict()), checkpoint)
        command = [str(ROOT / 'tools/export.py'), config, str(checkpoint), *FORMATS, '--inputs', image]
        subprocess.run([sys.executable, *command, '--out-dir', str(folder)], check=True)
    return checkpoint


def ways_of_vt(config: str, folder: Path, image: str) -> dict[str, Predict]:
    """Functions from a file to scores, with one model of VT; they agree on the image."""
    import openvino  # no part of an installation, nor is timm

    checkpoint, file = export(config, folder, image), str(folder / config)
    inferencer, compiled = apis.inferencer_of(config, checkpoint), apis.inferencer_of(config, checkpoint)
    compile_parts(compiled.model)
    about = read_json(Path(f'{file}.json'), 'export it again')
    session = run_onnx(Path(f'{file}.onnx').read_bytes())
    hints = dict(INFERENCE_PRECISION_HINT='f32', INFERENCE_NUM_THREADS=torch.get_num_threads())
    network = openvino.Core().compile_model(f'{file}.xml', 'CPU', hints)
    library = aoti_load_package(f'{file}.aot.pt2')

    @torch.no_grad()
    def run_library(x: np.ndarray) -> list[np.ndarray]:
        return [library(torch.from_numpy(x)).numpy()]

    ways: dict[str, Predict] = {
        'vt.apis': lambda path: inferencer(path)[0]['pred_scores'],
        'vt.apis, torch.compile': lambda path: compiled(path)[0]['pred_scores'],
        'AOTInductor': lambda path: predict(run_library, about, path),
        'ONNX Runtime': lambda path: predict(lambda x: session(torch.from_numpy(x)), about, path),
        'OpenVINO': lambda path: predict(lambda x: [*network(x).values()], about, path),
    }
    expected = ways['vt.apis'](image)
    for name, way in ways.items():
        if not np.allclose(way(image), expected, atol=1e-4 * expected.max()):
            raise RuntimeError(f'{name} differs from vt.apis for {config}')
    return ways


def way_of_timm(name: str) -> Predict:
    """The function of timm's documentation from a file to scores."""
    import timm

    model = timm.create_model(name).eval()
    transform = timm.data.create_transform(**timm.data.resolve_model_data_config(model), is_training=False)

    @torch.inference_mode()
    def run(path: str) -> np.ndarray:
        image = Image.open(path).convert('RGB')
        return model(transform(image).unsqueeze(0)).softmax(dim=1)[0].numpy()

    return run


def library_of_mmpretrain(config: str, checkpoint: Path) -> ImageClassificationInferencer:
    """MMPretrain's inferencer of a config."""
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        return ImageClassificationInferencer(str(apis.find_config(config)), str(checkpoint), device='cpu')


def loader_of_timm(name: str, folder: Path) -> Callable[[], object]:
    """A function that predicts a folder as timm's inference.py does."""
    import timm

    model = timm.create_model(name).eval()
    data = timm.data.resolve_model_data_config(model)
    dataset = timm.data.create_dataset('', folder)
    loader = timm.data.create_loader(
        dataset, batch_size=BATCH, num_workers=LOADERS, device=torch.device('cpu'), use_prefetcher=True, **data
    )

    @torch.inference_mode()
    def run() -> list:
        return [model(images).softmax(-1).topk(5) for images, _ in loader]

    return run


def main(args: argparse.Namespace) -> None:
    """Measure latency of one image, then throughput of all, interleaved; print both and write them to a file."""
    check_output(args.out)
    use_threads()
    args.work_dir.mkdir(parents=True, exist_ok=True)
    images = args.work_dir / f'images_{args.images}'
    if not images.exists():
        images.mkdir()
        write_jpegs(images, args.images)
    files = sorted(map(str, images.rglob('*.jpg')))
    calls: dict[tuple[str, str], Predict] = {}
    libraries: dict[tuple[str, str], Callable[[], object]] = {}
    for given in args.models:
        config, _, name = given.partition('=')
        checkpoint = export(config, args.work_dir, files[0])
        calls |= {(config, way): call for way, call in ways_of_vt(config, args.work_dir, files[0]).items()}
        own, theirs = apis.inferencer_of(config, checkpoint), library_of_mmpretrain(config, checkpoint)
        calls[config, 'MMPretrain'] = lambda path, theirs=theirs: theirs(path)[0]['pred_scores']
        libraries[config, 'VT'] = lambda own=own: own(files, batch_size=BATCH)
        libraries[config, 'VT, workers=2'] = lambda own=own: own(files, batch_size=BATCH, workers=2)
        libraries[config, 'MMPretrain'] = lambda theirs=theirs: theirs(files, batch_size=BATCH)
        if name:
            calls[config, f'timm, {name}'] = way_of_timm(name)
            libraries[config, f'timm, {name}'] = loader_of_timm(name, images)

    def seconds(call: Callable, *given: str) -> float:
        start = time.perf_counter()
        call(*given)
        return time.perf_counter() - start

    runs = {key: [] for key in calls}
    for index in track(range(-3, args.calls), 'One image'):
        for key, call in calls.items():
            taken = seconds(call, files[index % len(files)])
            runs[key] += [taken] if index >= 0 else []
    latency = [
        {'model': model, 'from file to classes by': way}
        | {f'p{percent}_ms': 1e3 * float(np.percentile(runs[model, way], percent)) for percent in (50, 95)}
        for model, way in calls
    ]
    keep_freed_memory()  # as tools/predict.py does; all libraries profit
    steps = {key: lambda run=run: len(files) / seconds(run) for key, run in libraries.items()}
    median_of_rounds(steps, 1, 'Warm-up')
    throughput = [
        dict(
            model=model,
            library=library,
            images_per_second=median,
            runs=rates,
            range=f'{min(rates):.1f} to {max(rates):.1f}',
        )
        for (model, library), (median, rates) in median_of_rounds(steps, args.rounds, 'All images').items()
    ]
    for rows in (latency, throughput):
        shown = [
            {key: f'{cell:.4g}' if isinstance(cell, float) else cell for key, cell in row.items() if key != 'runs'}
            for row in rows
        ]
        print_table(shown, 'Inference from files')
    settings = dict(images=f'{len(files)} synthetic, 500x375', calls=args.calls, batch_size=BATCH)
    write_measured(args.out, **settings, timm=version('timm'), latency=latency, throughput=throughput)


def parse_args() -> argparse.Namespace:
    parser = CommandParser(
        'Measure the latency of one image and the throughput of many, from JPEG files to classes.',
        'python -m projects.speed.inference resnet18_8xb32-90e_in1k=resnet18 vt-resnet18_8xb32-90e_in1k',
    )
    parser.add_argument(
        'models', nargs='+', metavar='CONFIG[=TIMM_NAME]', help="names of models, and of timm's same one"
    )
    parser.add_argument('--images', type=int, default=1000, help='number of generated JPEG files (default: 1000)')
    parser.add_argument('--calls', type=int, default=100, help='calls of each way for the latency (default: 100)')
    parser.add_argument('--rounds', type=int, default=3, help='rounds of the throughput (default: 3)')
    parser.add_argument('--work-dir', type=Path, default=Path('work_dirs/inference'), help='folder for exported files')
    parser.add_argument('--out', help='JSON file for the measurements')
    parser.add_common_options(config=False, checkpoint=False)
    return parser.parse_args()


if __name__ == '__main__':
    args = parse_args()
    with one_line_errors('inference', args.traceback):
        main(args)
