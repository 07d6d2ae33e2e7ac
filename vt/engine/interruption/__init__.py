"""Going on after an interruption as if there had been none."""
