# FSDP2, for models and batches that don't fit: each process keeps a part of the weights, the gradients, the optimizer's
# state and the averages of EMAHook. Add it to a config's _base_; docs/how-to/many-machines.md has the steps.
# Checkpoints are whole files: --resume goes on from one in any number of processes, with this key or without it.
# Weights are not in channels_last.
fsdp = dict(
    # Classes of modules whose weights are gathered together for a forward or backward pass.
    units=['Block', 'TransformerEncoderLayer', 'VTModule', 'Bottleneck', 'BasicBlock'],
    shard_over=None,  # processes that share one copy of the weights, such as the 8 of a machine; None for all
)
