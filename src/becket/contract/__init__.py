"""The extension vocabulary in types: what a host and its extensions say to each other. Import from its modules."""
