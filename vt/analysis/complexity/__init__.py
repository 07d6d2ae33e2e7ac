"""Multiply-adds and parameters, and the paper's tables of them."""
