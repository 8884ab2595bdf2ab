"""`python -m becket` is `becket`."""

from __future__ import annotations

from becket.cli.entry import main

if __name__ == "__main__":
    main()
