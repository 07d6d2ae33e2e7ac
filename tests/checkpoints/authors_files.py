"""Files of weights as the authors' own code writes them: names, shapes, and the logits that their code computes.

``authors_files.txt`` has a heading for each model: ours, the repository and its commit, the largest logit and the first
ones, of one image; below it the names, ``{0-3}`` and ``{a,b}`` for each of several, and their shapes. The weights are
drawn here, each from its name, as they were when the authors' code was run (float32, CPU, PyTorch 2.14).
"""

import itertools
import math
import re
import zlib
from pathlib import Path

import torch

FLAT = ('token', 'pos', 'table', 'messenger')  # drawn alike in every axis


def read_files():
    """Of each model: our config's name, the source, the largest logit, the first ones, and shapes by name."""
    files = []
    for line in Path(__file__).with_suffix('.txt').read_text().splitlines():
        if line.startswith('# '):
            name, source, largest, first = line[2:].split(' | ')
            files.append((name, source, float(largest), [float(logit) for logit in first.split()], {}))
        else:
            pattern, shape = line.split(' ')
            sides = () if shape == '-' else tuple(int(side) for side in shape.split('x'))
            files[-1][-1].update((expanded, sides) for expanded in expand(pattern))
    return files


def expand(pattern):
    """``a.{0-1}.{b,c}`` to four names."""
    parts = [options(part) if index % 2 else [part] for index, part in enumerate(re.split(r'\{(.*?)\}', pattern))]
    return [''.join(chosen) for chosen in itertools.product(*parts)]


def options(text):
    numbers = re.fullmatch(r'(\d+)-(\d+)', text)
    return text.split(',') if not numbers else [str(n) for n in range(int(numbers[1]), int(numbers[2]) + 1)]


def draw(name, shape):
    """A tensor of a name, the same wherever it is drawn."""
    name = re.sub(r'^ps_layers\.\d\.position_layer\.', 'pos_layer.', name)  # one layer by several names
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    x = torch.randn(shape, generator=generator)
    if name.endswith('running_var'):
        return 1 + 0.1 * x.abs()
    if len(shape) > 1 and not any(word in name for word in FLAT):
        return x * math.prod(shape[1:]) ** -0.5
    return name.endswith(('weight', 'scale', 'gamma_1', 'gamma_2')) + 0.1 * x


def draw_image(size, frames=None):
    shape = (1, 3, size, size) if frames is None else (1, 3, frames, size, size)
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))
