"""What tests of models share."""

import pytest
import torch


@pytest.fixture
def double_precision():
    """From the start, so that nothing which a part computes when it is built is rounded."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
