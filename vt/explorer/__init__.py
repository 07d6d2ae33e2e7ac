"""The explorer: a local web page, or a report in one file, that shows a model's predictions and attention."""
