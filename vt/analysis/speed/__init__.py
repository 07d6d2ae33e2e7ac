"""Time and memory of models side by side, of loading data and of starting, and the page that shows them."""
