"""What a run leaves behind is JSON of plain numbers."""

import json

import numpy as np
import pytest
import torch

from vt.files import as_plain, write_json


def test_matrices_and_numbers_that_json_lacks(tmp_path):
    matrix = torch.arange(4).view(2, 2)
    metrics = {'matrix': matrix, 'classes': np.array([0.5, float('nan')]), 'one': np.float32(0.5), 'top': (1, 2)}
    metrics |= {'inf': float('-inf'), 'deep': dict(a=[torch.tensor(float('nan'))])}
    plain = dict(matrix=[[0, 1], [2, 3]], classes=[0.5, None], one=0.5, top=[1, 2], inf=None, deep=dict(a=[None]))
    assert as_plain(metrics) == plain
    write_json(metrics, tmp_path / 'm.json')
    assert json.loads((tmp_path / 'm.json').read_text(), parse_constant=pytest.fail) == plain
