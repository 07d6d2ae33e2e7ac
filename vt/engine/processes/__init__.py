"""Distributed runs: launch, communication, sharding and error reports."""
