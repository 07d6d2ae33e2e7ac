# The paper's default recipe with the gradient's norm clipped at 1, so that large rates don't break VT's modules.
_base_ = 'sgd_bs256-90e.py'

optim_wrapper = dict(clip_grad=dict(max_norm=1.0))
