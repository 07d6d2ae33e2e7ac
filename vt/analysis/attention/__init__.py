"""Where the attention of visual tokens goes: measures and figures."""
