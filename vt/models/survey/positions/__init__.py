"""Position embeddings and biases."""
