"""Tell apart the words of a command: ``vt predict MODEL [CHECKPOINT] [INPUT ...] [NAME=VALUE ...]``."""

import argparse
import re
from pathlib import Path

from vt.apis.model_zoo import find_source
from vt.checkpoints.run_folders import find_run, is_weights
from vt.engine.config.own_data import usual_model
from vt.engine.config.pretrained import TIMM
from vt.errors import UserError
from vt.key_values import parse_options
from vt.serialization.model_folder import CONFIG

SETTING = re.compile(r'[A-Za-z_][\w.]*=')


def read_words(args: argparse.Namespace) -> None:
    """Enter ``config``, ``checkpoint``, ``cfg_options`` and other words into the arguments of a command, in place.

    The first word is the model. A run, or a saved model, brings its own weights; ``weights=`` or a checkpoint as the
    second word names others. All other words are inputs, or formats.

    Raises:
        UserError: a word is missing or is one too many, or weights are given twice.
    """
    args.config, *words = _split(args)
    if args.device and args.others != 'inputs':  # of a run, whose processes see no other
        args.cfg_options.setdefault('device', args.device)
    run = find_run(args.config) if args.takes_checkpoint else None
    saved = args.config if Path(args.config, CONFIG).is_file() else None
    args.config = str(run[0]) if run else find_source(args.config)
    if args.takes_checkpoint:
        is_second = words and (is_weights(words[0]) or Path(words[0], CONFIG).is_file() or not args.others)
        named = words.pop(0) if is_second else None
        other = args.cfg_options.pop('weights', None)
        if named and other and named != other:
            raise UserError(f'{named} and weights={other} both name weights: give one of them')
        own = str(run[1]) if run else 'timm' if args.config.startswith(TIMM) else saved
        args.checkpoint = named or other or own
        if args.checkpoint is None:
            raise UserError(f'{args.words[0]} needs weights: give a checkpoint, weights=timm, or the folder of a run')
    if args.others:
        setattr(args, args.others, words)
    elif words:
        raise UserError(f'{" ".join(words)}: this command takes no such words; settings are NAME=VALUE')


def _split(args: argparse.Namespace) -> list[str]:
    """Return the words that are no settings, the model first; the settings are entered as ``cfg_options``."""
    resume = getattr(args, 'resume', None)
    if resume and SETTING.match(resume) and not Path(resume).exists():  # --resume took a setting
        args.words, args.resume = [*args.words, resume], 'auto'
    given = [word for word in args.words if SETTING.match(word) and not Path(word).exists()]
    words = [word for word in args.words if word not in given]
    args.cfg_options = parse_options(given) | (getattr(args, 'cfg_options', None) or {})
    if not words and getattr(args, 'resume', None) not in (None, 'auto'):  # --resume took the only word
        words, args.resume = [args.resume], 'auto'
    if not words and getattr(args, 'needs_no_model', False) and 'data' in args.cfg_options:
        words = [usual_model(args.cfg_options)]
    if not words:
        raise UserError('name a model first, such as vt-resnet18, or the path of a config, or the folder of a run')
    return words
