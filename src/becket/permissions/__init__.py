"""Permission names, grants, and the gate that decides on each call."""
