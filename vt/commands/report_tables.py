"""Tables, as ``tools/report.py`` asks."""

from pathlib import Path

import mmengine

from vt.analysis.ablation import ablation_tables
from vt.analysis.ablation.paper_changes import compare_with_paper
from vt.analysis.ablation.run_scores import gather, read_records
from vt.analysis.complexity import complexity_tables
from vt.analysis.paper import ABLATIONS, SEGMENTATION
from vt.analysis.run_record import describe_run
from vt.analysis.speed import performance_page
from vt.analysis.tables import insert, print_table, to_markdown, write_csv
from vt.checkpoints.files import write_atomically
from vt.engine.config_files import announce
from vt.errors import UserError


def report_runs(work_dirs: list[Path]) -> None:
    """Finished runs side by side."""
    print_table([describe_run(work_dir) for work_dir in work_dirs], title='Finished runs')


def report_complexity(configs: Path) -> None:
    """FLOPs and parameters of our models beside the paper's tables 1 to 10.

    Args:
        configs: the folder of VT's configs.
    """
    announce(f'configs of {configs}')
    rows = {1: complexity_tables.compare_reductions(configs), 2: complexity_tables.compare_default_recipe(configs)}
    rows |= {table: complexity_tables.compare_ablation(configs, table) for table in ABLATIONS}
    rows[8] = complexity_tables.compare_advanced_recipe(configs)
    rows |= {table: complexity_tables.compare_segmentors(configs, table) for table in SEGMENTATION}
    titles = {1: 'how much less VT-ResNet costs', 2: 'the default recipe', 8: 'the advanced recipe'}
    titles |= {table: ablation.title for table, ablation in ABLATIONS.items()}
    for table, (_, (height, width), _) in SEGMENTATION.items():
        titles[table] = f'segmentors at {height}x{width}'
    for table in sorted(rows):
        print_table(rows[table], title=f'Table {table}: {titles[table]}', notes=complexity_tables.NOTES.get(table, ()))


def report_ablation(runs: list[Path], speed: list[Path], out: Path | None, page: Path | None) -> None:
    """Accuracy, FLOPs, parameters and speed of finished runs beside the paper's tables.

    Args:
        runs: work directories, or JSON files of records.
        speed: what ``tools/benchmark.py --out`` wrote of the same configs.
        out: directory for ``results.json`` (the records), ``tables.md``, ``tables.csv`` and ``changes.png``.
        page: a Markdown page whose marked places take the tables, one a task.

    Raises:
        UserError: no two runs belong to one of the paper's tables.
    """
    records = read_records(runs)
    speeds = ablation_tables.read_speeds(speed)
    tasks = {name: compare_with_paper(scores) for name, scores in gather(records).items()}
    tasks = {name: comparisons for name, comparisons in tasks.items() if comparisons}
    if not tasks:
        raise UserError('no two of these runs stand in one table of the paper; give a model and a variant of it')
    texts, every = {}, []
    for task, comparisons in tasks.items():
        texts[task] = ''
        for number, rows in comparisons.items():
            described = ablation_tables.describe(rows, speeds)
            title = f'Table {number} on {task}: {ablation_tables.TITLES[number]}'
            print_table(described, title)
            texts[task] += f'**{title}**\n\n{to_markdown(described)}\n\n'
            every += [{'task': task, 'table': str(number)} | _one_metric(row) for row in described]
    if out:
        out.mkdir(parents=True, exist_ok=True)
        mmengine.dump(records, out / 'results.json', indent=1)
        write_atomically(out / 'tables.md', '\n'.join(texts.values()))
        write_csv(every, out / 'tables.csv')
        ablation_tables.draw(tasks).savefig(out / 'changes.png', dpi=100)
        print(f'written to {out}')
    for task, text in texts.items() if page else ():
        insert(page, task, text)


def _one_metric(row: dict[str, str]) -> dict[str, str]:
    """A row whose columns don't name the metric, so that tables of several metrics share them."""
    return {name.replace('top-1', 'score').replace('mIoU', 'score'): value for name, value in row.items()}


def report_performance(data: Path, template: Path, page: Path, readme: Path | None) -> None:
    """The page on performance, with its figures in a folder of its name beside it.

    Args:
        data: folder of what ``tools/benchmark_performance.sh`` measured.
        template: the page's text, with places for the numbers.
        page: Markdown file to write.
        readme: a Markdown page whose marked place takes the summary.
    """
    text = performance_page.render(template.read_text(), data)
    figures = page.with_suffix('')
    figures.mkdir(parents=True, exist_ok=True)
    performance_page.draw_page_scaling(data).savefig(figures / 'scaling.png', dpi=80)
    performance_page.draw_memory(data).savefig(figures / 'memory.png', dpi=80)
    write_atomically(page, text)
    if readme:
        insert(readme, 'performance', performance_page.summarise(data))
    print(f'written to {page} and {figures}')
