"""What mmengine's runners lack for VT: checks before a run, settings for speed, CPU launch, one-line errors."""
