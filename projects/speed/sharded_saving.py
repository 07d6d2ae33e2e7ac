"""Compare sharded checkpoints written in the background and at once: ``torchrun ... -m projects.speed.sharded_saving``.

A DeiT-S of the embedded digits is trained with AdamW and averages, sharded over the processes.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from mmengine.dist import barrier, is_main_process

import vt  # noqa: F401
from vt.analysis.tables import print_table
from vt.commands.arguments import ToolParser
from vt.commands.outputs import write_json
from vt.engine.errors import one_line_errors
from vt.engine.interruption.checkpoint_hook import CheckpointHook
from vt.engine.launch import build_runner
from vt.engine.prepare import read_config
from vt.engine.processes.distributed import join_processes
from vt.engine.run_record import describe_origin
from vt.registry import HOOKS

CONFIG = 'configs/deit/deit-small_digits.py'
INTERVAL = 3


@HOOKS.register_module(force=True)
class TimedCheckpointHook(CheckpointHook):
    """Notes the seconds that each call after an iteration took."""

    def before_train(self, runner) -> None:
        super().before_train(runner)
        self.seconds = []

    def after_train_iter(self, runner, *args, **kwargs) -> None:
        begin = time.perf_counter()
        super().after_train_iter(runner, *args, **kwargs)
        self.seconds.append(time.perf_counter() - begin)


def parse_args() -> argparse.Namespace:
    parser = ToolParser(
        'Measure how long training waits for a sharded checkpoint, written in the background and at once.',
        'torchrun --standalone --nproc-per-node 2 -m projects.speed.sharded_saving',
    )
    parser.add_argument('--rounds', type=int, default=3, help='number of interleaved rounds (default: 3)')
    parser.add_argument('--saves', type=int, default=2, help='number of saves in each run (default: 2)')
    parser.add_argument('--out', type=Path, help='write the measurements to this JSON file')
    parser.add_common_options(config=False, checkpoint=False)
    return parser.parse_args()


def main(args: argparse.Namespace) -> None:
    folder = Path(tempfile.gettempdir(), f'sharded_saving_{os.environ["MASTER_PORT"]}')  # of all processes
    runs = []
    for _ in range(args.rounds):
        for asynchronous in (True, False):
            runs.append(measure(asynchronous, args.saves, folder))
            barrier()
            if is_main_process():
                shutil.rmtree(folder)
            barrier()
    if not is_main_process():
        return
    if args.out:
        write_json(dict(describe_origin(), config=CONFIG, runs=runs), args.out)
    rows = []
    for asynchronous in (True, False):
        of_kind = [run for run in runs if run['asynchronous'] is asynchronous]
        rows.append(
            {
                'written': 'in the background' if asynchronous else 'at once',
                **{
                    name: f'{statistics.median(value for run in of_kind for value in run[name]):.3g}'
                    for name in ('standing_still', 'next_iteration', 'other_iterations')
                },
            }
        )
    print_table(rows, title=f'Seconds, median; {runs[0]["bytes"]:,} bytes in {runs[0]["processes"]} processes')


def measure(asynchronous: bool, saves: int, folder: Path) -> dict:
    """Seconds of saves, of the iterations behind them, while the last checkpoint may be written, and of the others."""
    cfg = read_config(CONFIG)
    cfg.merge_from_dict(
        dict(
            work_dir=str(folder),
            launcher='pytorch',
            log_level='WARNING',
            fsdp=dict(asynchronous=asynchronous),
            speed=dict(threads=1),
            custom_hooks=[dict(type='EMAHook')],
            train_cfg=dict(_delete_=True, type='IterBasedTrainLoop', max_iters=INTERVAL * (saves + 1)),
            train_dataloader=dict(batch_size=4, num_workers=0, persistent_workers=False),
            val_cfg=None,
            val_dataloader=None,
            val_evaluator=None,
            param_scheduler=None,
        )
    )
    cfg.default_hooks.checkpoint = dict(
        type='vt.TimedCheckpointHook', by_epoch=False, interval=INTERVAL, max_keep_ckpts=1, save_last=False
    )
    cfg.default_hooks.rehearsal = None
    join_processes(cfg)
    runner = build_runner(cfg)
    runner.train()
    (hook,) = (hook for hook in runner.hooks if isinstance(hook, TimedCheckpointHook))
    times = runner.message_hub.get_scalar('train/time').data[0].tolist()
    saved = [INTERVAL * (index + 1) - 1 for index in range(saves)]
    waits = [times[index + 1] - hook.seconds[index] for index in saved]  # the timer runs from iteration to iteration
    others = [times[index] for index in range(1, len(times)) if index % INTERVAL]
    return dict(
        asynchronous=asynchronous,
        processes=runner.world_size,
        bytes=sum(path.stat().st_size for path in folder.glob('iter_*/*')),
        standing_still=[hook.seconds[index] for index in saved],
        next_iteration=waits,
        other_iterations=others,
    )


if __name__ == '__main__':
    args = parse_args()
    with one_line_errors('sharded_saving', args.traceback):
        main(args)
