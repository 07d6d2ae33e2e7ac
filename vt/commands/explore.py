"""Command of ``vt explore``: a page or report of predictions and tokens."""

import argparse
import os
import signal
import tempfile
from pathlib import Path

from vt.apis.inferencers import VideoInferencer, inferencer_of
from vt.apis.model_zoo import name_of, resolve_config
from vt.checkpoints.run_folders import find_run
from vt.errors import UserError
from vt.explorer.inspection import ShownImage, open_image, pick_from_test_set
from vt.explorer.views import Models, write_report
from vt.files import write_atomically
from vt.hints import as_typed
from vt.image_bounds import EXTENSIONS as IMAGES
from vt.paths import check_output, find_files


def explore(args: argparse.Namespace) -> None:
    """Serve a page on this machine until it is interrupted, or write a report."""
    chosen = [(args.config, args.checkpoint), *([_second(args.compare)] if args.compare else [])]
    files = find_files(args.inputs, (*IMAGES, '.npy'))
    check_output(args.html, *(path for pair in chosen for path in pair), *files)
    images = [open_image(path) for path in files]
    models: Models = {}
    for config, checkpoint in chosen:
        inferencer = inferencer_of(resolve_config(config, args.cfg_options), checkpoint, args.device)
        if isinstance(inferencer, VideoInferencer):
            raise UserError(f'{config} is a video model: use {as_typed("vt show-tokens")}')
        name = name_of(config)
        models[name if name not in models else f'{name} ({Path(checkpoint).name})'] = inferencer
    images = images or pick_from_test_set(next(iter(models.values())).model.cfg, args.images)
    if args.html:
        write_atomically(args.html, write_report(models, images))
        print(f'written to {args.html}')
    else:
        serve(models, images, args.port)


def _second(words: list[str]) -> tuple[str, str]:
    """Return config and checkpoint of the model to compare with."""
    run = find_run(words[0]) if len(words) == 1 else None
    if run is None and len(words) != 2:
        raise UserError(f'--compare {" ".join(words)}: give the folder of a run, or CONFIG CHECKPOINT')
    return (str(run[0]), str(run[1])) if run else (words[0], words[1])


def serve(models: Models, images: list[ShownImage], port: int) -> None:
    """Serve the page until Ctrl-C, SIGTERM or SIGHUP. Its files are in a private folder, deleted when it ends."""
    try:
        from vt.explorer.page import build_page, launch
    except ImportError as error:
        raise UserError('the page requires Gradio: pip install gradio') from error
    for number in (signal.SIGTERM, getattr(signal, 'SIGHUP', signal.SIGTERM)):  # Windows has no SIGHUP
        if signal.getsignal(number) is signal.SIG_DFL:  # not with nohup
            signal.signal(number, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix='vt_explorer_', ignore_cleanup_errors=True) as folder:
        os.environ['GRADIO_TEMP_DIR'] = folder
        launch(build_page(models, images), port)
