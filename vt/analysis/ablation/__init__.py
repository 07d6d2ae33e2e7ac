"""Tables that compare the scores of finished runs."""
