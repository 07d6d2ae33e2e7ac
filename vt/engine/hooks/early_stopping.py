"""Early stopping that keeps its count when a run is resumed."""

from mmengine.hooks import EarlyStoppingHook as PlainEarlyStoppingHook
from mmengine.runner import Runner

from vt.registry import HOOKS


@HOOKS.register_module()
class EarlyStoppingHook(PlainEarlyStoppingHook):
    """mmengine's hook with its arguments; counter and best score are saved in every checkpoint.

    A run that was stopped early stops again when it is resumed.
    """

    priority = 'LOW'  # before the checkpoint hook, so that the best checkpoint has the count of its validation

    def before_train(self, runner: Runner) -> None:
        """Restore the count from a resumed checkpoint."""
        loop, state = runner.train_loop, runner.message_hub.runtime_info.get(self._key)
        if state:
            self.wait_count, self.best_score = state['wait_count'], state['best_score']
            better, goal = self.rule_map[self.rule], self.stopping_threshold
            is_reached = goal is not None and better(self.best_score, goal)
            loop.stop_training = self.wait_count >= self.patience or is_reached
        if loop.stop_training:
            words = f'the run was stopped early by {self.monitor}: raise patience or stopping_threshold to continue'
            runner.logger.warning(f'EarlyStoppingHook: {words}')

    def after_val_epoch(self, runner: Runner, metrics: dict) -> None:
        """Update the count, and store it for the next checkpoint."""
        super().after_val_epoch(runner, metrics)
        state = dict(wait_count=self.wait_count, best_score=float(self.best_score))
        runner.message_hub.update_info(self._key, state)

    @property
    def _key(self) -> str:
        return f'early_stopping/{self.monitor}'
