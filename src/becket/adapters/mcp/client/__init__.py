"""The MCP client: connection, typed calls and callbacks."""
