"""Tool input: the schema of a signature, and the validation of an input."""
