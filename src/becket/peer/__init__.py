"""Runs JSON-RPC connections on event loops, threads, child processes and sockets."""
