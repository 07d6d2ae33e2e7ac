"""Tables of what was measured, as ``tools/report.py`` asks."""

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from vt.analysis import export_page, mvit_page, survey_claims, survey_page, where_page
from vt.analysis.ablation import ablation_tables, score_tables, sweep_report
from vt.analysis.ablation.run_scores import arrange, gather, read_records, read_run
from vt.analysis.attention import attention_page
from vt.analysis.complexity.complexity_tables import all_tables
from vt.analysis.figures import save_figure
from vt.analysis.run_record import describe_run, read_each
from vt.analysis.speed import performance_page
from vt.analysis.tables import insert, print_table, to_markdown, write_csv
from vt.checkpoints.files import write_atomically
from vt.engine.config_files import ROOT, announce
from vt.errors import UserError

from .outputs import write_json, write_measured

# By task and by the paper's number of the table.
ComparedTasks = dict[str, dict[int, list[ablation_tables.Comparison]]]
DescribedTasks = dict[str, dict[int, list[dict[str, str]]]]

LINK = re.compile(r'\[(.*?)\]\(.*?\)')  # of Markdown, whose words a terminal shows
RECORDS = ROOT / 'docs/records'
ABLATIONS = ('twin-digits-10e', 'twin-digits', 'digits-half', 'relational-scenes')  # tables of the paper's ablations


def report_runs(args: argparse.Namespace) -> None:
    """Finished runs side by side."""
    rows, unread = read_each(describe_run, args.work_dirs)
    if rows:
        print_table(rows, title='Finished runs')
    _name(unread)


def _name(unread: Sequence[str]) -> None:
    """What could not be read, once all else is reported."""
    if unread:
        raise UserError('; '.join(unread))


def report_complexity(args: argparse.Namespace) -> None:
    """FLOPs and parameters of our models beside the paper's tables 1 to 10, and of MViT beside the published ones."""
    configs = ROOT / 'configs'
    announce(f'configs of {configs}')
    for title, rows, notes in all_tables(configs):
        print_table(rows, title, notes)
    for title, rows in zip(('Multiscale vision transformers', 'Their ablations'), mvit_page.describe_all(ROOT)):
        print_table([{key: LINK.sub(r'\1', cell) for key, cell in row.items()} for row in rows], title)


def report_scores(args: argparse.Namespace) -> None:
    """Scores of finished runs, a row for the seeds of each; write their records on request."""
    records, unread = _read_labelled(score_tables.label_run, args.work_dirs)
    print_table(score_tables.describe(records), title='Scores', notes=[score_tables.describe_origin(records)])
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        write_json(records, args.out, indent=1)
        print(f'written to {args.out}')
    _name(unread)


def _read_labelled(read: Callable[[Path], list[dict]], work_dirs: Sequence[Path]) -> tuple[list[dict], list[str]]:
    """Records of runs, labelled by their folders, and lines of those that can't be read; an error where none can."""
    found, unread = read_each(read, work_dirs)
    if not found:
        _name(unread)
    return [record for records in found for record in records], unread


def report_sweep(args: argparse.Namespace) -> None:
    """A sweep's finished runs side by side; write tables and a plot of scores against costs on request."""
    records, unread = _read_labelled(sweep_report.read_run, sweep_report.finished(args.folder))
    left = sweep_report.unfinished(args.folder)
    rows = sweep_report.tabulate(records)
    notes = [score_tables.describe_origin(records), *([f'Not finished: {", ".join(left)}.'] if left else [])]
    print_table(rows, title=str(args.folder), notes=notes)
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        write_atomically(args.out / 'sweep.md', '\n\n'.join([to_markdown(rows), *notes]) + '\n')
        write_csv(rows, args.out / 'sweep.csv')
        save_figure(sweep_report.draw(records), args.out / 'sweep.png')
        print(f'written to {args.out}')
    _name(unread)


def report_pages(args: argparse.Namespace) -> None:
    """Write every score in README, ``docs`` and headers of configs from the records of ``reproduce.sh``."""
    for page in (ROOT / 'README.md', *sorted((ROOT / 'docs').glob('*.md'))):
        score_tables.write_page(page, RECORDS)
        attention_page.write_page(page, ROOT / 'docs/attention')
    where_page.write_page(ROOT / 'docs/where.md', RECORDS, ROOT / 'docs/where')
    score_tables.write_headers(ROOT, RECORDS)
    tables = [RECORDS / f'{table}.json' for table in ABLATIONS]
    speeds = [ROOT / f'docs/benchmarks/{name}_cpu.json' for name in ('ablations', 'scenes')]
    tasks = _compare_with_paper(read_records([path for path in tables if path.is_file()]))
    _write_ablation(tasks, _describe(tasks, speeds), ROOT / 'docs/ablations', ROOT / 'docs/ablations.md')
    print('written to README.md, docs and the headers of configs')


def report_ablation(args: argparse.Namespace) -> None:
    """Accuracy, FLOPs, parameters and speed of finished runs beside the paper's tables; write them on request.

    Raises:
        UserError: no two runs belong to one of the paper's tables; ``--page`` without ``--out``.
    """
    if args.page and not args.out:
        raise UserError('--page needs --out, a folder for the picture that the page shows')
    found, unread = read_each(read_run, args.runs)
    if not found:
        _name(unread)
    tasks = _compare_with_paper(arrange(record for records in found for record in records))
    described = _describe(tasks, args.speed)
    for task, tables in described.items():
        for number, rows in tables.items():
            print_table(rows, ablation_tables.name_table(number, task))
    if args.out:
        _write_ablation(tasks, described, args.out, args.page)
        print(f'written to {args.out}')
    _name(unread)


def _compare_with_paper(records: Sequence[dict]) -> ComparedTasks:
    tasks = gather(records)
    tasks = {name: ablation_tables.compare_with_paper(scores) for name, scores in tasks.items()}
    tasks = {name: comparisons for name, comparisons in tasks.items() if comparisons}
    if not tasks:
        raise UserError('no two of these runs stand in one table of the paper; give a model and a variant of it')
    return tasks


def _describe(tasks: ComparedTasks, speeds: Sequence[Path]) -> DescribedTasks:
    measured = ablation_tables.read_speeds(speeds)
    return {
        task: {number: ablation_tables.describe(rows, measured) for number, rows in tables.items()}
        for task, tables in tasks.items()
    }


def _write_ablation(tasks: ComparedTasks, described: DescribedTasks, out: Path, page: Path | None) -> None:
    """The tables as Markdown and comma-separated values, the picture, and the tables between a page's marks."""
    texts, every = {}, []
    for task, tables in described.items():
        titled = [
            f'**{ablation_tables.name_table(number, task)}**\n\n{to_markdown(rows)}' for number, rows in tables.items()
        ]
        texts[task] = '\n\n'.join(titled) + '\n\n'
        for number, rows in tables.items():
            every += ablation_tables.name_task(rows, task, number)
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / 'tables.md', '\n'.join(texts.values()))
    write_csv(every, out / 'tables.csv')
    save_figure(ablation_tables.draw(tasks), out / 'changes.png')
    for task, text in texts.items() if page else ():
        insert(page, f'ablation {task}', text)


def report_performance(args: argparse.Namespace) -> None:
    """Write the page on performance, its figures in a folder of its name, and the summary into another page."""
    text = performance_page.render((ROOT / 'docs/performance.template.md').read_text(), args.data)
    figures = args.page.with_suffix('')
    figures.mkdir(parents=True, exist_ok=True)
    save_figure(performance_page.draw_page_scaling(args.data), figures / 'scaling.png', dpi=80)
    save_figure(performance_page.draw_memory(args.data), figures / 'memory.png', dpi=80)
    write_atomically(args.page, text)
    if args.readme:
        insert(args.readme, 'performance', performance_page.summarise(args.data))
        insert(args.readme, 'processors', performance_page.compare_machines(args.data))
    print(f'written to {args.page} and {figures}')


def report_mvit(args: argparse.Namespace) -> None:
    """Write the tables of multiscale vision transformers: what each model and each ablation costs."""
    mvit_page.write_page(args.page, ROOT)
    print(f'written to {args.page}')


def report_survey(args: argparse.Namespace) -> None:
    """Write the tables of the survey's systems: what each chooses, what it costs, how it is validated.

    On request, compare those that timm has with timm's anew.
    """
    if args.twins:
        write_measured(ROOT / survey_page.DIFFERENCES, differences=survey_page.measure_twins(ROOT))
    survey_page.write_page(args.page, ROOT)
    print(f'written to {args.page}')


def report_claims(args: argparse.Namespace) -> None:
    """Measure what structure, and what runs there are, say to the survey's claims; write it into its page."""
    measured = dict(costs=survey_claims.measure_costs(ROOT), places=survey_claims.measure_places(ROOT))
    measured['tokens'] = survey_claims.measure_tokens(ROOT, args.runs)
    write_measured(ROOT / survey_claims.MEASURES, **measured)
    survey_page.write_claims(args.page, ROOT)
    print(f'written to {args.page}')


def report_export(args: argparse.Namespace) -> None:
    """Write the table of exported models: largest differences and speed of each format."""
    export_page.write_page(args.page, ROOT / 'docs/benchmarks/export')
    print(f'written to {args.page}')
