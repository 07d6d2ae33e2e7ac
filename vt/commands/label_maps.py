"""Command of ``tools/analysis/label_maps.py``: write the label maps of a teacher."""

import argparse
import io

import torch
from mmengine.dataset import pseudo_collate
from mmengine.registry import DATASETS

from vt.checkpoints.files import write_atomically
from vt.engine.checks.config import check_config
from vt.engine.launch import build_model
from vt.engine.prepare import read_config
from vt.errors import UserError
from vt.models import TokenLabelClassifier

from .outputs import check_output


def write_label_maps(args: argparse.Namespace) -> None:
    """Write the teacher's probabilities ``(images, K, h, w)`` for the training images, in half precision.

    Images go through the test pipeline. Training from the file must use the same pipeline.

    Raises:
        UserError: the config has no classifier with a teacher.
    """
    check_output(args.out, args.config)
    cfg = read_config(args.config, args.cfg_options)
    check_config(cfg, args.cfg_options or {})
    model = build_model(cfg)
    if not isinstance(model, TokenLabelClassifier) or not model.teacher_cfg:
        raise UserError('the config has no vt.TokenLabelClassifier with a teacher, whose label maps could be written')
    model.to('cuda' if torch.cuda.is_available() else 'cpu')
    pipeline = cfg.test_dataloader.dataset.pipeline
    dataset = DATASETS.build(cfg.train_dataloader.dataset | dict(pipeline=pipeline))
    teacher, maps = model.build_teacher(), []
    for start in range(0, len(dataset), args.batch_size):
        samples = [dataset[index] for index in range(start, min(start + args.batch_size, len(dataset)))]
        inputs = model.data_preprocessor(pseudo_collate(samples), False)['inputs']
        maps.append(teacher.label_maps(inputs).half().cpu())
    content = io.BytesIO()
    maps = torch.cat(maps)
    torch.save(maps, content)
    write_atomically(args.out, content.getbuffer(), follow=True)
    print(f'written to {args.out}: {len(dataset)} images, {"x".join(map(str, maps.shape[1:]))}')
