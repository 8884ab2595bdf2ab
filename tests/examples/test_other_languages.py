"""Extensions without a kit run on a becket host: in a shell, in plain Python, and in Java with generated types."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
from tests.examples.example_programs import EXAMPLES, PATIENCE

from becket import Host, RemoteError
from becket.contract.commands import Text
from becket.contract.memory import Query
from becket.host.starting.becket_toml import load_manifest
from becket.stores.in_memory import InMemoryStore

pytestmark = [pytest.mark.process]

FOLDER = EXAMPLES / "other_languages"
BUILD_PATIENCE = 300  # seconds, for Maven


def needs(*programs: str) -> pytest.MarkDecorator:
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


@asynccontextmanager
async def hosted(language: str, store: InMemoryStore | None = None) -> AsyncGenerator[Host, None]:
    """Yields a host that has started the extension of this folder, with all that it requests."""
    manifest = load_manifest(FOLDER / language / "becket.toml")
    with anyio.fail_after(PATIENCE):
        async with Host(
            [FOLDER / language], grants={manifest.id: manifest.permissions}, data=None, store=store
        ) as host:
            await host.ready(manifest.id)
            yield host


async def texts_of(host: Host, command: str) -> list[str]:
    id, _, name = command.partition(":")
    async with host[id].invoke_command(name) as run:
        return [event.content async for event in run if isinstance(event, Text)]


@needs("bash", "jq", "uptime")
async def test_an_extension_in_a_shell_has_a_tool_and_a_command() -> None:
    async with hosted("shell") as host:
        assert (await host.call_tool("uptime_uptime", {})).startswith("up ")
        (load,) = await texts_of(host, "uptime:load")
        assert len(load.split()) == 3


def test_the_extension_in_a_shell_has_at_most_forty_lines() -> None:
    assert len((FOLDER / "shell" / "uptime.sh").read_text(encoding="utf-8").splitlines()) <= 40


async def test_an_extension_in_plain_python_calls_the_host_within_its_requests() -> None:
    async with hosted("python") as host:
        counts = [await host.call_tool_json("pages_count", {"text": text}) for text in ("one two", "Grüße", "")]
        kept = await texts_of(host, "pages:counts")
        with pytest.raises(RemoteError) as refused:
            await texts_of(host, "pages:none")

    assert counts == [2, 1, 0]
    assert kept == ["0 words", "1 words", "2 words"]
    assert refused.value.code == -32602


def test_the_extension_in_plain_python_imports_the_standard_library_alone() -> None:
    tree = ast.parse((FOLDER / "python" / "pages.py").read_text(encoding="utf-8"))
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules += [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]

    assert {module.partition(".")[0] for module in modules} <= sys.stdlib_module_names


# -- Java


def build_java() -> None:
    """Builds the extension if it is out of date, or skips the test: it downloads nothing."""
    folder = FOLDER / "java"
    made = folder / "target" / "classes" / "Words.class"
    sources = [folder / "pom.xml", *folder.glob("src/main/java/*.java"), EXAMPLES.parent / "schemas/becket.schema.json"]
    if made.is_file() and made.stat().st_mtime > max(source.stat().st_mtime for source in sources):
        return
    built = subprocess.run(["mvn", "-o", "-q", "-B", "clean", "package"], cwd=folder, timeout=BUILD_PATIENCE)
    if built.returncode != 0:
        pytest.skip("Maven has not downloaded what it needs: run `mvn package` in examples/other_languages/java")


@needs("java", "mvn")
@pytest.mark.slow
@pytest.mark.timeout(BUILD_PATIENCE + PATIENCE)
async def test_an_extension_in_java_uses_types_that_were_generated() -> None:
    build_java()
    store = InMemoryStore()
    async with hosted("java", store) as host:
        assert await host.call_tool_json("words_count", {"text": "one two  three"}) == 3
        assert await host.call_tool_json("words_count", {"text": " "}) == 0
        assert [record.content for record in store.query(Query("words"))] == ["0 words", "3 words"]


def test_the_extension_in_java_has_at_most_a_hundred_lines() -> None:
    (source,) = (FOLDER / "java").glob("src/main/java/*.java")
    assert len(source.read_text(encoding="utf-8").splitlines()) <= 100
