"""The page on the survey's models: what each chooses and costs, and what validates it."""

from pathlib import Path

from mmengine.config import Config

from vt.apis import find_config, list_models
from vt.engine.config.pretrained import PUBLISHED
from vt.files import read_json

from .complexity import COST, count_config
from .components import describe_choices, describe_survey_models, read_survey_models
from .markdown import BENCHMARKS, ROOT, Rows, cells, config_path, table
from .metafiles import read_models
from .recipes import describe_recipes, describe_sources, find_authors

CONFIG = '{}_16xb64-300e_in1k'
DENSE = '_4xb4-160k_ade20k-512x512'
DIFFERENCES = BENCHMARKS / 'survey/references.json'  # as python -m docs.reports references measures them
COSTS = {
    'model': '[{title}](../{folder}/README.md)',
    **COST,
    'top-1, published': '[{published[2]}](../{authors})',
    'validated by': '{validated}',
    "compared with the authors' code": '{beside}',
    'note': '{why}',
}
SEGMENTORS = {
    'config': '[`{name}`](../{path})',
    'G FLOPs': '{cost.flops:G.2f}',
    "neck's G FLOPs": '{neck.flops:G.2f}',
    'M parameters': '{cost.parameters:M.2f}',
}


def measure_references() -> dict[str, float]:
    """How far each model that timm has is from timm's, see :mod:`docs.reports.references`."""
    from .references import measure_difference  # timm is no part of an installation

    return {
        name: measure_difference(
            Config.fromfile(ROOT / config_path(CONFIG.format(name))),
            entry['reference'],
            entry.get('image_size', 224),
        )
        for name, entry in read_survey_models().items()
        if 'reference' in entry
    }


def describe_costs() -> Rows:
    """A row a model: parameters and FLOPs beside the published ones, and what validates it."""
    differences = read_json(DIFFERENCES, 'measure it: python -m docs.reports references', keys=['differences'])
    rows = []
    for name, entry in read_survey_models().items():
        path = config_path(CONFIG.format(name))
        validated = '[published equations](../tests/published_survey.py), 1e-09'
        if 'reference' in entry:
            difference = differences['differences'][name]
            validated = f"timm's `{entry['reference']}`, {f'{difference:.0e}' if difference else 'the same'}"
        more = dict(folder=Path(path).parent.as_posix(), authors=find_authors(name), validated=validated)
        more['cost'] = read_models()[path]['Metadata']
        if 'compared_with' in entry:
            repository, commit = entry['compared_with'].split('@')
            link = f'[{repository}](https://github.com/{repository}/tree/{commit}) {commit}'
            more['beside'] = ', '.join([link, *([entry['compared']] if 'compared' in entry else [])])
        rows.append(dict(why='') | entry | more)
    return cells(rows, COSTS, missing='-')


def describe_segmentors() -> Rows:
    """A row a model with a neck for dense prediction: FLOPs and parameters."""
    names = [name.removesuffix(DENSE) for name in list_models() if name.endswith(DENSE)]
    rows = []
    for name in sorted(name for name in names if name.split('_')[0] in read_survey_models()):
        path = config_path(name + DENSE)
        cost, neck = count_config(ROOT / path, (512, 512))
        rows.append(dict(name=name, path=path, cost=cost, neck=neck))
    return cells(rows, SEGMENTORS)


def describe_published() -> Rows:
    """Which published weights each config takes by a library's name."""
    found = {name: find_config(name).relative_to(ROOT).as_posix() for name in PUBLISHED}
    return [
        {
            'config': f'[{name}](../../{found[name]})',
            '`timm`': timm and f'`{timm}`',
            '`torchvision`': torchvision and f'`{torchvision}`',
        }
        for name, (timm, torchvision) in PUBLISHED.items()
    ]


PLACES = {
    'survey choices': lambda: table(describe_choices(), dense=True),
    'survey components': lambda: table(describe_survey_models(), dense=True),
    'survey costs': lambda: table(describe_costs()),
    'survey recipes': lambda: table(describe_recipes(), dense=True),
    'survey sources': lambda: table(describe_sources(), dense=True),
    'survey segmentors': lambda: table(describe_segmentors()),
    'published weights': lambda: table(describe_published()),
}
