"""Models in files for others: saved folders, exported programs, weights in the names of timm."""
