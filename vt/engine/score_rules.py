"""Which scores are better when they are greater, and which when they are less: one table for all that compare them."""

import re

from vt.errors import UserError

# Words in names of scores, without digits or a leading "m" or "a" for a mean: "f" is F1, "d" is d1 of depth estimation.
# The first rule wins: a top-1 error is an error.
RULES = {
    'less': {
        *('loss', 'losses', 'error', 'errors', 'err', 'wrong', 'perplexity', 'ppl', 'nll', 'entropy', 'ece'),
        *('brier', 'rmse', 'mse', 'mae', 'mape', 'epe', 'rel', 'silog', 'hausdorff', 'fid', 'lpips', 'wer', 'cer'),
    },
    'greater': {
        *('accuracy', 'acc', 'top', 'precision', 'recall', 'sensitivity', 'specificity', 'f', 'fscore', 'score', 'ap'),
        *('ar', 'auc', 'auroc', 'auprc', 'roc', 'iou', 'dice', 'jaccard', 'pq', 'kappa', 'mcc', 'ndcg', 'psnr', 'ssim'),
        *('bleu', 'cider', 'rouge', 'd'),
    },
}


def rule_of(score: str) -> str | None:
    """Return ``'greater'`` or ``'less'``, whichever is better for a score; None if its name does not say it.

    Of a path such as ``classes/F1/dog`` the first part with a known word decides.
    """
    for part in score.lower().split('/'):
        words = {each for word in re.findall('[a-z]+', part) for each in (word, re.sub('^[am]', '', word))}
        for rule, known in RULES.items():
            if words & known:
                return rule
    return None


def require_rule(score: str, setting: str) -> str:
    """Return the rule of a score that ``setting`` names; raise a UserError if its name does not say it."""
    if rule := rule_of(score):
        return rule
    words = f'{setting}={score}: the name does not say whether a greater or a smaller score is better'
    raise UserError(f"{words}: set rule='greater' or 'less' in the same dict")
