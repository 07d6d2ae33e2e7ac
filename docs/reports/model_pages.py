"""The page and the metafile of each folder of ``configs``: ``python -m docs.reports.model_pages``, a few minutes.

``--known`` counts the models that no metafile has yet and enters scores anew; that takes seconds.
"""

import argparse
import re
from itertools import takewhile
from pathlib import Path
from textwrap import fill

import pandas as pd
import yaml
from rich.progress import track

from vt.checkpoints.files import write_atomically
from vt.engine.config_files import ROOT, announce, read_config

from .components import read_systems
from .metafiles import INDEX, METAFILE, PAPERS, leaf_configs, make_metafile, read_metafiles, read_scores

BASE = re.compile(r"'((?:\.\./)+_base_/models/([\w-]+)\.py)'")
EMBEDDED = ('_digits', 'scenes', 'moving-digits', 'svrt-1')  # how configs end whose data comes with the package
SENTENCE = re.compile(r'.+?[.?](?= |$)')
PROCESSES = re.compile(r'_([2-9]|\d{2,})xb\d')  # in names of configs that are for several GPUs
WORDS = {'Top 1 Accuracy': 'top-1', 'mIoU': 'mIoU'}
PAGE = """# {title}

> [{paper}]({url}), {citation}

{about}
## Configs
{table}

Parameters and FLOPs (multiply-adds, attention and head counted) are of one input of this size. Scores are of runs with
[records](../../docs/records), medians over their seeds; without a score a config was not trained here.
{ablations}
## Commands
```bash
{commands}
```
{weights}"""
INDEX_PAGE = """# Models

Each folder has a page with its paper, its configs and their costs and scores, and the commands to train and test.
[`_base_`](_base_) has what they share: models, data sets, schedules and recipes.

{table}

Names, for `vt.apis.get_model` and the tools, are the configs' file names. This page is written by
`python -m docs.reports.model_pages`.
"""
WEIGHTS = """
## Public weights
A backbone starts from public weights by two options; the log says how many tensors were loaded.
```bash
{commands}
```
"""
SAVE = """python -c "import torch, {module}; torch.save({call}.state_dict(), '{checkpoint}')"
"""
START = """python tools/train.py {config} \\
    --cfg-options model.backbone.init_cfg.type=Pretrained model.backbone.init_cfg.checkpoint={checkpoint}"""


def render(known: dict[str, dict] | None = None) -> dict[Path, str]:
    """The texts of all pages, metafiles and the index by their paths; nothing is written.

    Args:
        known: models' entries of metafiles by their configs' paths, whose FLOPs are not counted again; those of all
            metafiles by default.
    """
    if known is None:
        known = {entry['Config']: entry for metafile in read_metafiles().values() for entry in metafile['Models']}
    scores, folders = read_scores(ROOT / 'docs/records'), leaf_configs()
    texts, rows = {}, []
    for folder, paths in track(folders.items(), 'configs', transient=True):
        metafile = make_metafile(folder, paths, scores, known)
        place = ROOT / 'configs' / folder
        texts[place / METAFILE] = _dump(metafile)
        texts[place / 'README.md'] = render_page(folder, metafile['Models'])
        paper, url, citation = PAPERS[folder]['paper']
        link = f'[{PAPERS[folder]["title"]}]({folder}/README.md)'
        rows.append({'model': link, 'paper': f'[{paper}]({url}), {citation}', 'configs': f'{len(paths)}'})
    texts[ROOT / 'configs/README.md'] = INDEX_PAGE.format(table=_table(rows))
    texts[ROOT / INDEX] = _dump(dict(Import=[f'configs/{folder}/{METAFILE}' for folder in folders]))
    return texts


def render_page(folder: str, models: list[dict]) -> str:
    """The page of a folder.

    Args:
        folder: below ``configs``.
        models: their entries in its metafile.
    """
    about = PAPERS[folder]
    paper, url, citation = about['paper']
    own = [model for model in models if not _is_ablation(model)] or models
    others = [model for model in models if model not in own]
    embedded = [model for model in own if model['Name'].endswith(EMBEDDED)] or own
    several = [model for model in own if PROCESSES.search(model['Name'])]
    return PAGE.format(
        title=about['title'],
        paper=paper,
        url=url,
        citation=citation,
        about='\n'.join(filter(None, [about['about'], _bases(own)])),
        table=_table([_row(model, folder) for model in own]),
        ablations=_ablations(others, folder),
        commands='\n'.join(_commands(_plainest(embedded, folder), _plainest(several, folder) if several else None)),
        weights=_weights(own, about.get('weights', {})),
    )


def _is_ablation(model: dict) -> bool:
    return 'ablations' in Path(model['Config']).parts


def _bases(models: list[dict]) -> str:
    """Where the models are put together, and where they are compared with others."""
    found = {name: path for model in models for path, name in BASE.findall((ROOT / model['Config']).read_text())}
    links = ', '.join(f'[`{name}`]({path})' for name, path in found.items())
    compared = ' [`docs/survey.md`](../../docs/survey.md) compares their parts with those of other models.'
    text = f'The models themselves: {links}.{compared if found.keys() & read_systems() else ""}'
    return fill(text, 120, break_long_words=False, break_on_hyphens=False) + '\n' if links else ''


def _row(model: dict, folder: str) -> dict[str, str]:
    metadata, (result,) = model['Metadata'], model['Results']
    path = Path(model['Config']).relative_to(f'configs/{folder}')
    row = {
        'config': f'[{model["Name"]}]({path.as_posix()})',
        'data': metadata['Training Data'],
        'input': metadata['Input'],
        'M parameters': f'{metadata["Parameters"] / 1e6:.2f}',
        'G FLOPs': f'{metadata["FLOPs"] / 1e9:.3g}',
        'score (%)': ', '.join(f'{WORDS[name]} {score:.2f}' for name, score in result['Metrics'].items()),
    }
    return row | ({'what it is': _header(model)[0]} if _is_ablation(model) else {})


def _ablations(models: list[dict], folder: str) -> str:
    return f'\n## Ablations\n{_table([_row(model, folder) for model in models])}\n' if models else ''


def _header(model: dict) -> tuple[str, list[str]]:
    """The first sentence of a config, and the commands that its header names."""
    lines = (ROOT / model['Config']).read_text().splitlines()
    lines = [line[2:] for line in takewhile(lambda line: line.startswith('# '), lines)]
    commands = [line for line in lines if line.startswith(('python ', 'bash '))]
    return SENTENCE.match(' '.join(lines))[0], commands


def _plainest(models: list[dict], folder: str) -> dict:
    """The model whose name is most like its folder's, without additions."""
    start = folder.replace('_', '-')
    return min(models, key=lambda model: (not model['Name'].startswith(start), len(model['Name'])))


def _commands(example: dict, parallel: dict | None) -> list[str]:
    """How to train and test the one, and how to train the other in several processes."""
    path = example['Config']
    loop = read_config(str(ROOT / path), quietly=True).train_cfg
    last = f'epoch_{loop["max_epochs"]}' if 'max_epochs' in loop else f'iter_{loop["max_iters"]}'
    commands = _header(example)[1] or [f'python tools/train.py {path}']
    commands.append(f'python tools/test.py {path} work_dirs/{example["Name"]}/{last}.pth')
    if parallel:
        processes = PROCESSES.search(parallel['Name'])[1]
        commands.append(f'bash tools/dist_train.sh {parallel["Config"]} {processes}')
    return commands


def _weights(models: list[dict], named: dict[str, str]) -> str:
    """How to start models from public weights, where some are known to fit."""
    commands = []
    for model in models:
        name = model['Name']
        system = read_systems().get(name.removesuffix('_16xb64-300e_in1k'), {})
        twin = system.get('twin') if system.get('backbone_of') != 'MMPretrain' else None
        if not (public := named.get(name, twin)):
            continue
        module, _, function = public.rpartition('.')
        checkpoint = public if '://' in public else f'{function}.pth'
        if checkpoint != public:
            call = f"{public}(weights='DEFAULT')" if module else f"timm.create_model('{public}', pretrained=True)"
            commands.append(SAVE.format(module=module or 'timm', call=call, checkpoint=checkpoint).rstrip())
        commands.append(START.format(config=model['Config'], checkpoint=checkpoint))
    return WEIGHTS.format(commands='\n'.join(commands)) if commands else ''


def _table(rows: list[dict[str, str]]) -> str:
    rows = pd.DataFrame(rows)
    align = ['right' if name in ('M parameters', 'G FLOPs', 'score (%)', 'configs') else 'left' for name in rows]
    return rows.to_markdown(index=False, disable_numparse=True, colalign=align)


def _dump(content: dict) -> str:
    return yaml.safe_dump(content, sort_keys=False, width=120)


def main() -> None:
    parser = argparse.ArgumentParser(prog='python -m docs.reports.model_pages', description=__doc__)
    parser.add_argument('--known', action='store_true', help='keep the parameters and FLOPs that the metafiles have')
    args = parser.parse_args()
    announce(f'configs of {ROOT / "configs"}')
    texts = render(None if args.known else {})
    for path, text in texts.items():
        write_atomically(path, text)
    print(f'{len(texts)} files written')


if __name__ == '__main__':
    main()
