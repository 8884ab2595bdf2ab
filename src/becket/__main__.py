"""Runs the command line for `python -m becket`."""

from __future__ import annotations

from becket.cli.entry import main

if __name__ == "__main__":
    main()
