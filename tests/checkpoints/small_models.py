"""A run of a model of a few weights."""

from functools import partial
from itertools import count

import torch
from mmengine.config import Config
from mmengine.model import BaseModel
from mmengine.registry import DATASETS, MODELS
from mmengine.runner import Runner
from torch import nn

from vt.checkpoints.weights import load_weights
from vt.engine.run.runner import VTRunner

RUNNERS = dict(Runner=Runner, VTRunner=VTRunner)


@MODELS.register_module('SmallLine', force=True)
class Line(BaseModel):
    """A linear layer with a normalisation."""

    def __init__(self, width=3, init_cfg=None):
        super().__init__(init_cfg=init_cfg)
        self.layer = nn.Linear(width, 2)
        self.norm = nn.BatchNorm1d(2)

    def forward(self, inputs, mode='tensor'):
        outputs = self.norm(self.layer(torch.stack(inputs)))
        loss = outputs.square().mean() + self.layer.weight.sum()
        return dict(loss=loss) if mode == 'loss' else list(outputs)


@DATASETS.register_module('SmallPoints', force=True)
class Points:
    """A data set with metadata."""

    metainfo = dict(classes=('a', 'b'), palette=[[0, 0, 0], [1, 1, 1]])

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return dict(inputs=torch.full((3,), float(index)))


NUMBERS = count()
SHUFFLED = dict(type='DefaultSampler', shuffle=True)


def build_runner(work_dir, optimizer, epochs=1, runner='VTRunner', wrapper=None, **options):
    """Built as the tools build it, from a config; ``Runner`` is mmengine's own."""
    options = {name: str(value) if name == 'load_from' and value else value for name, value in options.items()}
    cfg = dict(
        work_dir=str(work_dir),
        train_dataloader=dict(batch_size=4, num_workers=0, dataset=dict(type='SmallPoints'), sampler=SHUFFLED),
        train_cfg=dict(by_epoch=True, max_epochs=epochs),
        optim_wrapper=dict(wrapper or {}, optimizer=optimizer),
        env_cfg=dict(dist_cfg=dict(backend='nccl')),
        param_scheduler=[dict(type='MultiStepLR', milestones=[1]), dict(type='LinearLR', end=1)],
        default_hooks=dict(checkpoint=dict(type='CheckpointHook' if runner == 'Runner' else 'vt.CheckpointHook')),
    )
    name = f'{work_dir.name}_{next(NUMBERS)}'  # an earlier run of the same name would get the log
    cfg |= dict(model=dict(type='SmallLine'), experiment_name=name, default_scope='mmengine')
    return RUNNERS[runner].from_cfg(Config(cfg | options))


load_part = partial(load_weights, whole=False)
