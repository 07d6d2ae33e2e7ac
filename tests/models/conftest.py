"""What tests of models share."""

import pytest
import torch

from vt.models.visual_transformers.grouped_linear import GroupedLinear
from vt.ops import token_products


@pytest.fixture
def double_precision():
    """From the start, so that nothing which a part computes when it is built is rounded."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture(params=token_products.LIBRARIES)
def either_library(request, monkeypatch):
    """Products of tokens and matrices by each library, whatever the processor prefers, and of every size."""
    if request.param == 'onednn':
        monkeypatch.setattr(GroupedLinear, 'multiply', staticmethod(token_products.multiply))
    monkeypatch.setattr(token_products, 'LEAST_MULTIPLY_ADDS', 0)
    monkeypatch.setattr(token_products, 'LEAST_ROWS', 0)
