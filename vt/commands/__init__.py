"""What the command lines in ``tools/`` do, once their arguments are read."""
