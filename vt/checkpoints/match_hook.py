"""A checkpoint must be the model's; mmengine only warns, and goes on with weights that are arbitrary."""

from mmengine.hooks import Hook
from mmengine.runner import Runner

from vt.registry import HOOKS

from .weights import load_weights, require_some_match, require_training_state, state_of


@HOOKS.register_module()
class WeightsMatchHook(Hook):
    """Stop where a checkpoint is not the model's.

    To go on with training, and to test, every tensor must be there and none be left over; to begin from the weights of
    another task, at least one must fit.

    Args:
        whole: ask for every tensor whatever the checkpoint is for.

    Raises:
        UserError: it is not; or training shall go on from weights alone.
    """

    priority = 'VERY_HIGH'

    def __init__(self, whole: bool = False) -> None:
        self.whole = whole

    def after_load_checkpoint(self, runner: Runner, checkpoint: dict) -> None:
        if not isinstance(runner, Runner):
            return  # a strategy such as FSDP compares the parts that it loads itself
        name, resumes = str(runner.cfg.get('load_from') or 'the checkpoint'), runner.cfg.get('resume')
        if resumes:
            require_training_state(checkpoint, name)
        checkpoint.setdefault('state_dict', state_of(checkpoint, name))  # other hooks need it
        if self.whole or resumes:
            load_weights(runner.model, checkpoint, name=name)
        else:
            require_some_match(runner.model, state_of(checkpoint, name), name)
