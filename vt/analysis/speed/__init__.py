"""Time, memory and matrix operators of models, alone and side by side."""
