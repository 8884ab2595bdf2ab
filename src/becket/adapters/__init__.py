"""Holds one package for each foreign system; an adapter is imported at first use."""
