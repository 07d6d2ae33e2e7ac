"""What a model makes of an image, to look at: a page on this machine, and the same as a report in one file."""
