"""Programs over many devices: what may be computed in parts, and how the parts go together."""
