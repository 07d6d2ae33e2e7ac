"""What the command lines in ``tools/`` call: each module takes the arguments of one, calls, prints and writes."""
