"""Tables, as ``tools/report.py`` asks."""

from pathlib import Path

from vt.analysis.paper import SEGMENTATION, compare_classifiers, compare_segmentors
from vt.analysis.report import describe_run, print_table


def report_runs(work_dirs: list[Path]) -> None:
    """Finished runs side by side."""
    print_table([describe_run(work_dir) for work_dir in work_dirs], title='Finished runs')


def report_complexity(configs: Path) -> None:
    """FLOPs and parameters of our models beside the paper's tables.

    Args:
        configs: the folder of VT's configs.
    """
    title = "Table 8: classifiers at 224x224 (VT-R34's parameters: 19.2 M in table 8, 21.8 M in table 2)"
    print_table(compare_classifiers(configs), title=title)
    for table, (_, (height, width), _) in SEGMENTATION.items():
        print_table(compare_segmentors(configs, table), title=f'Table {table}: segmentors at {height}x{width}')
