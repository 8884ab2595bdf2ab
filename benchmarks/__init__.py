"""becket beside its peers and the hand-written floors: one interleaved run, the same workloads, ratios."""
