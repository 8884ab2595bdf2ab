"""Transports: child processes, pipes, sockets, stdio and byte streams."""
