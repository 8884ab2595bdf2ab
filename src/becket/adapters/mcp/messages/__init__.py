"""Messages of MCP, one module for each family."""
