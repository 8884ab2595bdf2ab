"""Importing becket brings in only what every program needs; event loops and the rest come at first use."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

LOOPS = {"anyio", "asyncio", "trio", "uvloop"}
AT_FIRST_USE = {"attr", "attrs", "cattrs", "jsonschema"}
ONLY_BY_SOME_PARTS = {"click", "google.protobuf", "lsprotocol", "pygls", "rich", "watchfiles"}
ONLY_IN_TESTS = {"hypothesis", "pytest"}
UNWANTED = LOOPS | AT_FIRST_USE | ONLY_BY_SOME_PARTS | ONLY_IN_TESTS


def modules_after(statement: str) -> set[str]:
    """Returns the modules that a fresh interpreter holds after this statement."""
    code = f"import sys, json; {statement}; print(json.dumps(sorted(sys.modules)))"
    # -I: neither the environment nor the current folder may add or hide an import.
    done = subprocess.run([sys.executable, "-I", "-c", code], stdout=subprocess.PIPE, check=True, timeout=15)
    return set(json.loads(done.stdout))


@pytest.mark.process
@pytest.mark.parametrize("module", ["becket", "becket.blocking"])
def test_importing_brings_in_nothing_heavy(module: str) -> None:
    loaded = modules_after(f"import {module}")

    assert module in loaded
    assert loaded & UNWANTED == set()


@pytest.mark.process
def test_the_names_of_the_package_are_listed_without_loading_them() -> None:
    assert modules_after("import becket; dir(becket)") & UNWANTED == set()


@pytest.mark.process
def test_the_probe_sees_a_heavy_import() -> None:
    assert {"asyncio", "anyio"} <= modules_after("import becket, anyio, asyncio")
