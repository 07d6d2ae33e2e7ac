"""Two training steps and an evaluation of a normalisation, whole or as the shard of one process."""

from vt.engine.processes.sync_batch_norm import CPUSyncBatchNorm


def run_steps(norm, batches):
    """Outputs, gradients of the maps and of the parameters, the state, and what evaluation gives.

    ``batches`` holds for each step the maps and what their outputs are multiplied with before the loss.
    """
    results = []
    for maps, factors in batches:
        maps = maps.clone().requires_grad_()
        output = norm(maps)
        (output * factors).square().sum().backward()
        results += [output.detach(), maps.grad]
    gradients = [parameter.grad for parameter in norm.parameters()]
    return results, gradients, dict(norm.state_dict()), norm.eval()(batches[0][0]).detach()


def run_shard(rank, shards, options, batches):
    norm = CPUSyncBatchNorm(batches.shape[3], **options).to(batches.dtype)
    return run_steps(norm, [[part.split(shards)[rank] for part in batch] for batch in batches])
