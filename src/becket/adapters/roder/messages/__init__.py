"""Messages of Roder, one module for each family."""
