"""The host's half of a run: drives one workload through an entrant and prints its figures as one JSON line."""
