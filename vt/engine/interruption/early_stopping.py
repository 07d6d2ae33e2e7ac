"""Early stopping that keeps its count when a run is resumed."""

from mmengine.hooks import EarlyStoppingHook as PlainEarlyStoppingHook
from mmengine.runner import EpochBasedTrainLoop, Runner

from vt.errors import UserError
from vt.registry import HOOKS


@HOOKS.register_module()
class EarlyStoppingHook(PlainEarlyStoppingHook):
    """mmengine's hook with its arguments; counter and best score are saved in every checkpoint.

    A run that was stopped early stops again when it is resumed. If the run is too short for ``patience``, it logs a
    warning.

    Raises:
        UserError: the name of the score does not show whether higher or lower is better, and there is no ``rule``.
    """

    priority = 'LOW'  # before the checkpoint hook, so that the best checkpoint has the count of its validation

    def __init__(self, *args, **kwargs) -> None:
        try:
            super().__init__(*args, **kwargs)
        except ValueError as error:
            raise UserError(f"EarlyStoppingHook: {error} Set rule='greater' or rule='less'") from error

    def before_train(self, runner: Runner) -> None:
        """Restore the count from a resumed checkpoint."""
        loop, state = runner.train_loop, runner.message_hub.runtime_info.get(self._key)
        if state:
            self.wait_count, self.best_score = state['wait_count'], state['best_score']
            better, goal = self.rule_map[self.rule], self.stopping_threshold
            loop.stop_training = self.wait_count >= self.patience or (
                goal is not None and better(self.best_score, goal)
            )
        if loop.stop_training:
            words = f'the run was stopped early by {self.monitor}: raise patience or stopping_threshold to continue'
            runner.logger.warning(f'EarlyStoppingHook: {words}')
        end = loop.max_epochs if isinstance(loop, EpochBasedTrainLoop) else loop.max_iters
        first, step = loop.val_begin, loop.val_interval
        number = 0 if runner.val_loop is None else -(-end // step) - (first - 1) // step
        if number < self.patience + 2 and self.stopping_threshold is None:
            words = f'patience={self.patience} has no effect in a run of {number} validations'
            runner.logger.warning(f'EarlyStoppingHook: {words}: lower it, or train_cfg.val_interval')

    def after_val_epoch(self, runner: Runner, metrics: dict) -> None:
        """Update the count, and store it for the next checkpoint."""
        super().after_val_epoch(runner, metrics)
        state = dict(wait_count=self.wait_count, best_score=float(self.best_score))
        runner.message_hub.update_info(self._key, state)

    @property
    def _key(self) -> str:
        return f'early_stopping/{self.monitor}'
