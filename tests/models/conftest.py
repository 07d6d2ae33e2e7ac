"""What tests of models share."""

import pytest
import torch

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
    monkeypatch.setattr(token_products, '_library', request.param)
    monkeypatch.setattr(token_products, 'LEAST_MULTIPLY_ADDS', 0)
    monkeypatch.setattr(token_products, 'LEAST_ROWS', 0)
