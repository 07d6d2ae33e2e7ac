"""A run on this machine: runner, launch, processes, speed, exact resume, and its record."""
