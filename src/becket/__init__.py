"""becket joins a host program and its extensions: child processes that speak JSON-RPC 2.0."""

__version__ = "0.1.0"

__all__ = ["__version__"]
