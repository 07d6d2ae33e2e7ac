"""Exact resume: an interrupted and resumed run gives the same weights as an uninterrupted one."""
