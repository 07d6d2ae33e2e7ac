"""Train a config with every combination of settings and seeds: ``python tools/sweep.py CONFIG KEY=VALUE,VALUE ...``."""

import argparse


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description='Train a config with every combination of settings and seeds. Called again it goes on; '
        'tools/analysis/report.py sweep lays the runs side by side.'
    )
    parser.add_argument('config', help='path of the config')
    parser.add_argument(
        'settings', nargs='*', metavar='KEY=VALUE,VALUE', help='keys of the config, as of --cfg-options, and values'
    )
    parser.add_argument('--seeds', default='0', help='0:3 for 0, 1 and 2, or 0,4 (default: 0)')
    parser.add_argument('--work-dir', help='folder of all runs (default: work_dirs/sweeps/<config name>)')
    parser.add_argument('--jobs', type=int, help='runs at a time (default: as many as GPUs, or cores, are there)')
    parser.add_argument(
        '--executor',
        choices=['local', 'slurm', 'debug'],
        default='local',
        help='processes of this machine, jobs of SLURM, or one after the other in this process (default: local)',
    )
    slurm = parser.add_argument_group('of a job of SLURM')
    slurm.add_argument('--partition', help='to send jobs to')
    slurm.add_argument('--time', type=int, help='minutes; a job that is not finished by then is queued anew')
    slurm.add_argument('--memory', type=int, help='gigabytes')
    slurm.add_argument('--cpus', type=int, help='cores')
    slurm.add_argument('--gpus', type=int, help='GPUs')
    parser.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    return parser.parse_intermixed_args()


if __name__ == '__main__':
    from vt.commands.arguments import run

    run('sweep:sweep', parse_args())
