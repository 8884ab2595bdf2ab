"""The shell around the pure core: event loops, threads, processes and sockets. Loaded name by name, at first use."""
