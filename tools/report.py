"""Lay finished runs side by side: ``python tools/report.py WORK_DIR [WORK_DIR ...]``."""

import argparse
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description='Lay finished runs side by side.')
    parser.add_argument('work_dirs', nargs='+', type=Path, help='work directories of trained and benchmarked models')
    parser.add_argument('--traceback', action='store_true', help='show the whole traceback of an error')
    args = parser.parse_args()
    from vt.engine.errors import one_line_errors

    with one_line_errors('report', args.traceback):
        from vt.analysis.report import describe_run, print_table

        print_table([describe_run(work_dir) for work_dir in args.work_dirs], title='Finished runs')


if __name__ == '__main__':
    main()
