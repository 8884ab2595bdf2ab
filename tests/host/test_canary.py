"""A variable of the host that is not listed reaches no child, no log line, no error and no crash report, whatever
the dialect of an extension.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from becket.dialects import DIALECTS
from becket.errors import BecketError
from becket.host.events import HostEvent
from becket.host.host import Host
from becket.host.host_settings import group_arguments
from becket.host.starting.manifest import Environment

pytestmark = pytest.mark.process

CANARY = "canary-4711"
NAMES = (
    "GITHUB_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_ACCESS_KEY_ID",
    "DB_PASSWORD",
    "DB_PASS",
    "DATABASE_URL",
    "SSH_AUTH_SOCK",
    "KUBECONFIG",
    "TOKEN",
    "HARMLESS",
    "LD_CANARY",
)
CRASHING = """
import os, sys
print("SEEN", sorted(os.environ.items()), file=sys.stderr)
print("HEARD", os.read(0, 65536) if os.environ.get("BECKET_EXTENSION_ID") != "plain" else b"", file=sys.stderr)
raise SystemExit(3)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for dialect in DIALECTS:
        folder = tmp_path / "root" / dialect
        folder.mkdir(parents=True)
        manifest = f'id = "{dialect}"\nversion = "1.0.0"\ncommand = ["python3", "main.py"]\ndialect = "{dialect}"\n'
        (folder / "becket.toml").write_text(manifest + '[restart]\nstrategy = "never"\n', encoding="utf-8")
        (folder / "main.py").write_text(CRASHING, encoding="utf-8")
    return tmp_path / "root"


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    for name in NAMES:
        monkeypatch.setenv(name, f"{CANARY}-{name}")
    return dict(os.environ)


async def run_all(root: Path, data: Path, caplog: pytest.LogCaptureFixture, **options: Any) -> dict[str, str]:
    """Starts an extension of each dialect, which crashes, and returns all that can be read afterwards, by where."""
    caplog.set_level(logging.DEBUG)
    received: list[HostEvent] = []
    errors: dict[str, BecketError] = {}
    async with Host([root], data=data, **group_arguments(options)) as host:
        host.events.subscribe(HostEvent, received.append)
        for id in host:
            try:
                with anyio.fail_after(60):
                    await host.ready(id)
            except BecketError as error:
                errors[id] = error
        texts = {"problems": repr(host.problems), "status": repr(host.status())}
    assert errors.keys() == {*DIALECTS}
    texts |= {f"error of {id}": "\n".join(texts_of(error)) for id, error in errors.items()}
    texts |= {"log": caplog.text, "events": repr(received)}
    return texts | read_files(data)


def read_files(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): path.read_bytes().decode(errors="replace") for path in files}


def texts_of(error: BaseException | None) -> Iterator[str]:
    while error is not None:
        yield f"{error} {error!r} {vars(error)}"
        error = error.__cause__ or error.__context__


async def test_a_variable_that_is_not_listed_reaches_no_child_and_no_log(
    root: Path, tmp_path: Path, variables: Mapping[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    texts = await run_all(root, tmp_path / "data", caplog, ask=lambda prompt, decision: True)

    assert [where for where, text in texts.items() if CANARY in text] == []
    seen = [line for line in texts["log"].splitlines() if "SEEN" in line]
    assert len(seen) == len(DIALECTS)  # each has reported all that it saw
    assert sum("HEARD b'" in line for line in texts["log"].splitlines()) == len(DIALECTS)


async def test_a_variable_that_the_operator_restores_reaches_the_child_and_is_named_in_the_audit(
    root: Path, tmp_path: Path, variables: Mapping[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    texts = await run_all(root, tmp_path / "data", caplog, inherit_environment=["morphir", "nexo"])

    lines = {dialect: line for dialect in DIALECTS for line in seen_lines(caplog, dialect)}
    assert {dialect for dialect, line in lines.items() if CANARY in line} == {"morphir", "nexo"}
    assert f"{CANARY}-GITHUB_TOKEN" in lines["morphir"]
    assert f"{CANARY}-HARMLESS" in lines["nexo"]
    assert f"{CANARY}-GITHUB_TOKEN" not in lines["nexo"]
    assert f"{CANARY}-LD_CANARY" not in lines["morphir"]
    audit = texts[str(tmp_path / "data" / "audit.jsonl")]
    named = {
        line.partition('"extension":"')[2].partition('"')[0] for line in audit.splitlines() if "GITHUB_TOKEN" in line
    }
    assert named == {"morphir"}
    assert CANARY not in audit


async def test_a_variable_that_the_operator_sets_is_named_in_the_audit_without_its_value(
    root: Path, tmp_path: Path, variables: Mapping[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    environment = Environment(passed=("GITHUB_TOKEN",))

    texts = await run_all(root, tmp_path / "data", caplog, environment=environment)

    audit = texts[str(tmp_path / "data" / "audit.jsonl")]
    starts = [line for line in audit.splitlines() if '"kind":"start"' in line]
    assert ['"variables":["GITHUB_TOKEN"]' in line for line in starts] == [True] * len(DIALECTS)
    assert CANARY not in audit


def seen_lines(caplog: pytest.LogCaptureFixture, dialect: str) -> list[str]:
    return [
        one.getMessage() for one in caplog.records if one.name == f"becket.ext.{dialect}" and "SEEN" in one.getMessage()
    ]
