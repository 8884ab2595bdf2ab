"""From folders to running extensions: finding, admitting, starting and serving them. Import from its modules."""
