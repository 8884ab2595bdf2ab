"""Event loops behind one protocol: asyncio, trio, and threads without a loop."""
