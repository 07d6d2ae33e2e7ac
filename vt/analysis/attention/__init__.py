"""Where attention goes: measures of visual tokens and of a ViT, and pictures of tokens."""
