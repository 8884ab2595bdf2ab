"""Writes the files that are made from the contract, or finds those out of date: `python -m tools.sdk [--check]`."""

from __future__ import annotations

import sys

from tools.sdk.files import find_drift, write_all

if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        drift = find_drift()
        for file in drift:
            print(f"{file}: is not what the contract says; run `make sdk`", file=sys.stderr)
        sys.exit(1 if drift else 0)
    for file in write_all():
        print(f"written: {file}")
