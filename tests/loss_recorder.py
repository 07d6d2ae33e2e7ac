"""Imported by a test's config: numbers are of double precision, and each process writes down its losses and buffers."""

import json
from pathlib import Path

import torch
from mmengine.evaluator import BaseMetric
from mmengine.hooks import EMAHook, Hook
from mmengine.registry import HOOKS, METRICS

torch.set_default_dtype(torch.float64)


@HOOKS.register_module()
class LossRecorder(Hook):
    priority = 'LOWEST'

    def before_train(self, runner):
        self.losses = []

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        self.losses.append(outputs['loss'].item())

    def after_train(self, runner):
        Path(runner.work_dir, f'losses_{runner.rank}.json').write_text(json.dumps(self.losses))
        buffers = dict(runner.model.named_buffers())
        for hook in runner.hooks:
            if isinstance(hook, EMAHook):
                buffers |= {f'average.{name}': buffer for name, buffer in hook.ema_model.named_buffers()}
        torch.save(buffers, Path(runner.work_dir, f'buffers_{runner.rank}.pth'))


@METRICS.register_module()
class MeanScore(BaseMetric):
    """The number of samples and the mean probability of what was predicted: it shows any change of a model."""

    def process(self, data_batch, data_samples):
        for sample in data_samples:
            scores = sample['pred_score'] if 'pred_score' in sample else sample['seg_logits']['data'].softmax(0)
            self.results.append(scores.max(0).values.mean().item())

    def compute_metrics(self, results):
        return dict(count=len(results), mean_score=sum(results) / len(results))
