"""Preprocessing of images, videos and test sets for inference, with the test pipeline of a model."""
