"""Position embeddings and position biases."""
