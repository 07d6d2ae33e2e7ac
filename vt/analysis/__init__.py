"""Speed and cost of models, attention of visual tokens, tables of scores."""
