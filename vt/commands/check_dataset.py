"""Read all data of a config once, as ``tools/check_dataset.py`` asks."""

import argparse
import sys

import joblib

from vt.analysis.data_quality.dataset_report import print_report, read_data
from vt.engine.checks.config_walk import check_config
from vt.engine.config_files import read_config
from vt.errors import UserError

from .outputs import check_output, write_json


def check_dataset(args: argparse.Namespace) -> None:
    """Print, and write on request, what is wrong with the data and what they are; exit with 1 if anything is wrong.

    Raises:
        UserError: the config is wrong, or not there.
    """
    check_output(args.out, args.config)
    cfg = read_config(args.config, args.cfg_options)
    check_config(cfg, args.cfg_options or {})
    if args.workers is not None and args.workers < 1:
        raise UserError(f'--workers {args.workers} must be at least 1')
    report = read_data(cfg, tuple(args.splits), args.workers or joblib.cpu_count())
    print_report(report)
    if args.out:
        write_json(report, args.out)
    if report['problems']:
        sys.exit(1)
