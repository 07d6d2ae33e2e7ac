"""What a model costs and does: complexity, speed, attention pictures, reports."""
