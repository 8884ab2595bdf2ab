"""Mutation fuzzing of the pure parts: `python -m tests.fuzz --inputs 1000000`. The same seed gives the same inputs."""
