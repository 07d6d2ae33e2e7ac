"""The page of each folder of ``configs``, the index of pages, and the metafile."""

import re
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path
from textwrap import fill

from rich.progress import track

from vt.engine.config.compose import short_models
from vt.engine.config.pretrained import LIBRARIES, PUBLISHED
from vt.files import ROOT

from . import markdown
from .components import read_survey_models
from .forward_files import read_files
from .markdown import RECORDS
from .metafiles import METAFILE, PAPERS, describe_folder, leaf_configs, read_models, read_scores, write_metafile

BASE = re.compile(r"'((?:\.\./)+_base_/models/([\w-]+)\.py)'")
EMBEDDED = ('_digits', 'scenes', 'moving-digits')  # how configs end whose data comes with the package
SENTENCE = re.compile(r'.+?[.?](?= |$)')
PROCESSES = re.compile(r'_([2-9]|\d{2,})xb\d')  # in names of configs that are for several GPUs
WORDS = {'Top 1 Accuracy': 'top-1', 'mIoU': 'mIoU'}
PAGE, INDEX_PAGE = (Path(__file__).with_name(f'model_{name}.md.j2') for name in ('page', 'index'))
COLUMNS = {
    'config': '[{Name}]({path})',
    'data': '{Metadata[Training Data]}',
    'input': '{Metadata[Input]}',
    'M parameters': '{Metadata[Parameters]:M.2f}',
    'G FLOPs': '{Metadata[FLOPs]:G.3g}',
    'score (%)': '{score}',
    'description': '{what}',
}
NUMBERS = ('M parameters', 'G FLOPs', 'score (%)')
FOLDERS = {
    'model': '[{title}]({folder}/README.md)',
    'paper': '[{paper[0]}]({paper[1]}), {paper[2]}',
    'configs': '{count}',
}


def render(known: dict[str, dict] | None = None) -> dict[Path, str]:
    """The texts of all pages and the metafile by their paths; nothing is written.

    Args:
        known: models' entries in the metafile by their configs' paths, whose FLOPs are not counted again; all of them
            by default.
    """
    known = read_models() if known is None else known
    scores, folders, texts = read_scores(RECORDS), leaf_configs(), {}
    collections: list[dict] = []
    models: list[dict] = []
    for folder, paths in track(folders.items(), 'configs', transient=True):
        collection, own = describe_folder(folder, paths, scores, known)
        texts[ROOT / 'configs' / folder / 'README.md'] = render_page(folder, own)
        collections.append(collection)
        models += own
    rows = [PAPERS[folder] | dict(folder=folder, count=len(paths)) for folder, paths in folders.items()]
    texts[ROOT / 'configs/README.md'] = markdown.fill(INDEX_PAGE, folders=rows, columns=FOLDERS)
    return texts | {METAFILE: write_metafile(collections, models)}


def render_page(folder: str, models: list[dict]) -> str:
    """The page of a folder below ``configs``, of its models' entries in the metafile."""
    rows = [_describe(model, folder) for model in models]
    own = [row for row in rows if 'what' not in row] or rows
    embedded = [row for row in own if row['Name'].endswith(EMBEDDED)] or own
    bases = _named_bases(row['Config'] for row in own)
    several = [row for row in own if PROCESSES.search(row['Name'])]
    return markdown.fill(
        PAGE,
        **PAPERS[folder] | dict(weights=_weights(own, PAPERS[folder].get('weights', {}))),
        themselves=_bases(bases),
        files=_files(bases),
        columns=COLUMNS,
        numbers=NUMBERS,
        own=own,
        ablations=[row for row in rows if row not in own],
        commands=_commands(
            _plainest(embedded, folder), _plainest(several, folder) if several else None, _own_data(bases, folder)
        ),
    )


def _describe(model: dict, folder: str) -> dict:
    path = Path(model['Config']).relative_to(f'configs/{folder}')
    (result,) = model['Results']
    score = ', '.join(f'{WORDS[name]} {score:.2f}' for name, score in result['Metrics'].items())
    row = model | dict(path=path.as_posix(), score=score)
    return row | dict(what=_header(model)[0]) if 'ablations' in Path(model['Config']).parts else row


def representatives() -> dict[str, str]:
    """The config that stands for each base config of a model, the one with the shortest path."""
    users: dict[str, list[str]] = {}
    for config in read_models():
        for name in _named_bases([config]):
            users.setdefault(name, []).append(config)
    return {name: min(configs, key=lambda config: (len(config), config)) for name, configs in users.items()}


def _named_bases(configs: Iterable[str]) -> dict[str, str]:
    """Names of the base configs of models that configs name, with their paths as these write them."""
    return {name: path for config in configs for path, name in BASE.findall((ROOT / config).read_text())}


def _files(bases: dict[str, str]) -> list[dict[str, str]]:
    """Rows of base configs, and of the files that their forward passes go through."""
    alike: dict[str, list[str]] = {}
    for name, path in bases.items():
        links = [
            f'[`{Path(file).name}`](../../{file})' if file.startswith('vt/') else f'`{file}`'
            for file in read_files().get(name, ())
        ]
        alike.setdefault(', '.join(links), []).append(f'[`{name}`]({path})')
    return [{'base configs': ', '.join(names), 'files': links} for links, names in alike.items() if links]


def _bases(found: dict[str, str]) -> str:
    """Where the models are put together, and where they are compared with others."""
    links = ', '.join(f'[`{name}`]({path})' for name, path in found.items())
    compared = ' [`docs/survey.md`](../../docs/survey.md) compares their parts with those of other models.'
    text = f'Base configs: {links}.{compared if found.keys() & read_survey_models() else ""}'
    return fill(text, 120, break_long_words=False, break_on_hyphens=False) if links else ''


def _header(model: dict) -> tuple[str, list[str]]:
    """The first sentence of a config, and the commands that its header names."""
    lines = (ROOT / model['Config']).read_text().splitlines()
    lines = [line[2:] for line in takewhile(lambda line: line.startswith('# '), lines)]
    commands = [line for line in lines if line.startswith('vt ')]
    return SENTENCE.match(' '.join(lines))[0], commands


def _plainest(models: list[dict], folder: str) -> dict:
    """The model whose name is most like its folder's, without additions."""
    start = folder.replace('_', '-')
    return min(models, key=lambda model: (not model['Name'].startswith(start), len(model['Name'])))


def _commands(example: dict, parallel: dict | None, own: list[str]) -> list[str]:
    """How to train the model on one's own data, how to train and test a config, and another in several processes."""
    commands = [*own, *(_header(example)[1] or [f'vt train {example["Name"]}']), f'vt test work_dirs/{example["Name"]}']
    if parallel:
        commands.append(f'vt dist-train {parallel["Name"]} {PROCESSES.search(parallel["Name"])[1]}')
    return commands


def _own_data(bases: dict[str, str], folder: str) -> list[str]:
    """The command that trains the plainest model of a folder on one's own data; none for changes of other models."""
    own = re.compile(folder.replace('_', '-') + '(?![a-z])')
    named = [name for name in short_models() if own.match(name)]
    named = named or [name for name in bases if name in short_models() and folder != 'vt_anywhere']
    name = min(named, key=lambda name: ('fpn' in name, len(name), name), default=None)
    return [f'vt train {name} data={"scenes" if "fpn" in name else "photos"}'] if name else []


def _weights(models: list[dict], others: dict[str, str]) -> list[tuple[str, str]]:
    """Names of models with public weights, and the libraries that have them; of ``others`` those of a part."""
    published = {name: zip(LIBRARIES, found) for name, found in PUBLISHED.items()}
    known = {name: next(library for library, found in pairs if found) for name, pairs in published.items()} | others
    return [(model['Name'], known[model['Name']]) for model in models if model['Name'] in known]
