"""Benchmarks: time, memory and matrix operators of models."""
