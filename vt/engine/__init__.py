"""Extensions of mmengine's runner: checks before a run, settings for speed, launch on CPUs, one-line errors."""
