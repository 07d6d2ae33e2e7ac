# FSDP, for models that don't fit: each process keeps a part of the weights, the gradients and the optimizer's state.
# Checkpoints are those of a run without it: test one with the config that this one is added to.
# The optimizer's state alone is sharded, where that is enough, by ZeRO, with the name of the optimizer behind it:
#   optim_wrapper = dict(optimizer=dict(type='ZeroRedundancyOptimizer', optimizer_type='SGD'))
runner_type = 'FlexibleRunner'
strategy = dict(
    type='vt.FSDPStrategy',
    model_wrapper=dict(
        # What is gathered at once for a forward pass: parts of this many weights.
        auto_wrap_policy=dict(type='torch.distributed.fsdp.wrap.size_based_auto_wrap_policy', min_num_params=1_000_000),
    ),
)
