"""Analysis of models: speed and cost, attention of visual tokens, tables of scores."""
