"""The LSP client: connection, documents, server requests and subscriptions."""
