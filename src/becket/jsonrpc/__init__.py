"""JSON-RPC 2.0 without I/O: messages, codecs, wire formats and the state of one connection."""
