"""Commands that list what there is: models, settings, versions and devices; and ``vt dist-train``."""

import argparse
import os
import sys
from fnmatch import fnmatchcase

import torch
from mmengine.fileio import load

from vt.analysis.tables import print_table
from vt.apis.model_zoo import list_models
from vt.engine.config.compose import short_models
from vt.engine.config.pretrained import LIBRARIES, PUBLISHED
from vt.engine.config.short_names import SHORT_NAMES
from vt.engine.run.record import describe_device, describe_origin
from vt.errors import UserError
from vt.files import ROOT

# A function of bash. Where no word begins so, as after "data=", bash completes the name of a file.
COMPLETION = """_vt() {{
    local words="{words}"
    ((COMP_CWORD == 1)) && words="{commands}"
    COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
    [[ ${{COMPREPLY[0]}} == *= ]] && compopt -o nospace 2>/dev/null
    true
}}
complete -o default -F _vt vt"""
TASKS = {'fpn': 'masks', '16x4': 'videos'}  # by what is in the name; others are for labels of images


def models(args: argparse.Namespace) -> None:
    """Print the models by their short names, or with a pattern all configs whose names match."""
    known = {row['Name']: row for row in load(ROOT / 'configs/metafile.yml')['Models']}
    names = [*short_models()]
    if args.pattern:
        names = [name for name in names if fnmatchcase(name, f'{args.pattern.lower()}*')]
        names += list_models(args.pattern, ablations=True)
    if not names:
        raise UserError(f'no model is called {args.pattern}: `vt models` lists all; a pattern is such as "swin*"')
    rows = []
    for name in names:
        own = next((key for key in known if key == name or fnmatchcase(key, f'{name}_*_in1k')), None)
        own = own or next((key for key in known if key.partition('_')[0] == name or key.startswith(f'{name}_')), None)
        cost = known[own]['Metadata'] if own else {}
        weights = PUBLISHED.get(own or '', (None, None))
        if 'resnet' in name and own and 'in1k' in own and not any(weights):
            weights = (None, 'backbone')
        rows.append(
            {
                'name': name,
                'task': next((task for part, task in TASKS.items() if part in name), 'labels'),
                'parameters (M)': f'{cost["Parameters"] / 1e6:.1f}' if cost.get('Parameters') else '',
                'GFLOPs': f'{cost["FLOPs"] / 1e9:.1f}' if cost.get('FLOPs') else '',
                'public weights': ', '.join(library for library, found in zip(LIBRARIES, weights) if found),
            }
        )
    print_table(rows, title='Models: vt train NAME data=PATH; timm:NAME is any classifier of timm')


def settings(args: argparse.Namespace) -> None:
    """Print the short names of settings, the keys of the config that they stand for, and what they set."""
    if args.completion:
        words = [*short_models(), *(f'{name}=' for name in SHORT_NAMES)]
        print(COMPLETION.format(commands=' '.join(args.commands), words=' '.join(words)))
        return
    rows = [
        {'name': short.name, 'sets': short.text, 'key of the config': ', '.join(short.keys) or '-'}
        for short in SHORT_NAMES.values()
    ]
    print_table(rows, title='Settings, as NAME=VALUE; every key of a config is one, too')


def env(args: argparse.Namespace) -> None:
    """Print versions, processor and GPUs: what a report of a fault needs."""
    devices = [f'cuda:{index}' for index in range(torch.cuda.device_count())]
    rows = [dict(what='processor', value=describe_device(torch.device('cpu')))]
    rows += [dict(what=name, value=describe_device(torch.device(name))) for name in devices]
    rows += [dict(what=name, value=value) for name, value in describe_origin('cpu')['versions'].items()]
    rows += [dict(what='platform', value=sys.platform), dict(what='VT', value=str(ROOT))]
    print_table(rows, title='This machine')


def dist_train(args: argparse.Namespace) -> None:
    """Replace this process by the script that starts several."""
    script = ROOT / 'tools/dist_train.sh'
    os.environ.setdefault('PYTHON', sys.executable)
    os.execvp('bash', ['bash', str(script), args.model, str(args.processes), *args.rest])
