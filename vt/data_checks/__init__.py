"""What the data of a config hold, and what is wrong with them: before a run, and all of it on request."""
