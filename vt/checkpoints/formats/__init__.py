"""Names of tensors in public files of weights: a table per format and family, and how formats are recognised."""
