"""What a command measures: a model, trained or not, and images of its test set."""

import argparse

import torch
from mmengine.config import Config
from torch import nn
from torch.utils.data import Dataset

from vt.apis import get_model
from vt.commands.outputs import check_output
from vt.engine.launch import draw_weights
from vt.engine.prepare import read_config
from vt.inference.test_set import build_test_set, spread_evenly

SEED = 0  # of random weights, without a checkpoint


def prepare(args: argparse.Namespace) -> tuple[nn.Module, Dataset, list[int], dict]:
    """Check the output; return the model, the test set, indices of images, and the origin for the JSON file."""
    check_output(args.out, args.config, args.checkpoint)
    model = build(read_config(args.config, args.cfg_options), args.checkpoint)
    dataset = build_test_set(model.cfg)
    indices = spread_evenly(dataset, args.images)
    return model, dataset, indices, dict(config=args.config, checkpoint=args.checkpoint, images=len(indices))


def build(cfg: Config, checkpoint: str | None) -> nn.Module:
    """Build a model on the GPU, if there is one; without a checkpoint with reproducible random weights."""
    torch.manual_seed(SEED)
    model = get_model(cfg, checkpoint)
    if not checkpoint:
        draw_weights(model)
    return model.to('cuda' if torch.cuda.is_available() else 'cpu')
