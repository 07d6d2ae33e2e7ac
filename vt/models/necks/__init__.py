"""Necks for classifiers, a feature pyramid from one map, and VT-FPN for dense prediction."""
