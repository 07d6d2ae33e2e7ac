"""What is wrong with data: annotation files, images, masks; some of it before a run, or all of it."""
