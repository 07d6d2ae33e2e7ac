"""How images, videos and test sets come to a model: through the pipeline of its test set."""
