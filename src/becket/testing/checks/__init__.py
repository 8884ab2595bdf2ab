"""`check_*` functions: the contracts of framings, dialects and stores as runnable checks."""
