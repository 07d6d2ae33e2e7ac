"""Whether two runs ended alike, to the last bit."""

import torch

from vt.checkpoints.reading import load_checkpoint


def final_checkpoint(work_dir):
    """What the newest checkpoint of a finished run holds."""
    return load_checkpoint((work_dir / 'last_checkpoint').read_text())


def bits(tensor):
    return tensor.reshape(-1).view(torch.uint8)


def differences(first, second, name=''):
    """Names of the parts in which two checkpoints differ, besides the run's own times, paths and logs."""
    if isinstance(first, torch.Tensor):
        same = first.dtype == second.dtype and first.shape == second.shape and torch.equal(bits(first), bits(second))
        return [] if same else [name]
    if isinstance(first, dict):
        own = {'meta', 'message_hub'} if not name else set()
        if first.keys() != second.keys():
            return [f'{name}: {sorted(map(str, first.keys() ^ second.keys()))}']
        return [found for key in first.keys() - own for found in differences(first[key], second[key], f'{name}.{key}')]
    if isinstance(first, (list, tuple)):
        pairs = enumerate(zip(first, second, strict=True))
        return [found for index, pair in pairs for found in differences(*pair, f'{name}.{index}')]
    return [] if first == second else [f'{name}: {first!r} and {second!r}']


def assert_same_end(first, second):
    """Two work directories hold the same weights, averages, optimizer, schedulers, counters and best score."""
    checkpoints = [final_checkpoint(work_dir) for work_dir in (first, second)]
    assert differences(*checkpoints) == []
    for key in ('epoch', 'iter', 'seed'):
        assert checkpoints[0]['meta'][key] == checkpoints[1]['meta'][key]
    infos = [checkpoint['message_hub']['runtime_info'] for checkpoint in checkpoints]
    assert infos[0]['best_score'] == infos[1]['best_score']
    names = [sorted(path.name for path in work_dir.glob('*.pth')) for work_dir in (first, second)]
    assert names[0] == names[1]
