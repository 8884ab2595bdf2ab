"""The language client against widely used language servers."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from lsprotocol import types
from tests.adapters.lsp import servers
from tests.adapters.lsp.servers import command, needs_servers, needs_typescript

from becket.adapters import lsp

HERE = Path(__file__).parent
PYTHON = '''import os

def greet(name: str) -> str:
    """Returns a greeting."""
    return "hello " + name

print(greet("\U0001d4b3"), greet( "b"))
undefined_name
'''

PATIENCE = 50  # seconds: the first time, servers are compiled while they start
# One process less; and it does not fetch types from a registry.
FRUGAL = {"disableAutomaticTypingAcquisition": True, "tsserver": {"useSyntaxServer": "never"}}

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(60)]


class Editor(lsp.LanguageClient):
    """A client that records the requests of its server, and applies edits to open documents."""

    def __init__(self, root: Path, **options: Any) -> None:
        super().__init__(root=root, **options)
        self.asked: list[str] = []
        self.open: dict[str, lsp.TextDocument] = {}

    async def configuration(self, item: types.ConfigurationItem) -> Any:
        self.asked.append("configuration")
        return await super().configuration(item)

    async def register_capability(self, params: types.RegistrationParams) -> None:
        self.asked.append("register")
        await super().register_capability(params)

    async def create_progress(self, params: types.WorkDoneProgressCreateParams) -> None:
        self.asked.append("progress")

    async def apply_edit(self, params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        self.asked.append("edit")
        for uri, edits in edits_of(params.edit):
            await self.open[uri].apply(edits)
        return types.ApplyWorkspaceEditResult(applied=True)


def edits_of(edit: types.WorkspaceEdit | None) -> Iterator[tuple[str, Sequence[Any]]]:
    assert edit is not None
    yield from (edit.changes or {}).items()
    for change in edit.document_changes or ():
        assert isinstance(change, types.TextDocumentEdit)
        yield change.text_document.uri, change.edits


@asynccontextmanager
async def editing(
    server: list[str], root: Path, name: str, text: str, **options: Any
) -> AsyncGenerator[tuple[Editor, lsp.TextDocument], None]:
    (root / name).write_text(text, encoding="utf-8")
    editor = Editor(root, **options)
    with anyio.fail_after(PATIENCE):
        async with editor.connect_process(server), editor.open_document(name) as document:
            editor.open[document.uri] = document
            yield editor, document
        assert editor.peer.process is not None
        assert editor.peer.process.exit_code == 0


def at(document: lsp.TextDocument, what: str) -> tuple[types.TextDocumentIdentifier, types.Position]:
    return document.identifier, document.position(document.text.index(what))


@needs_servers
async def test_python_lsp_server_reports_its_progress_and_what_it_finds(tmp_path: Path) -> None:
    text = PYTHON.replace("\U0001d4b3", "milk")  # it counts each character as one unit in any encoding
    async with editing(command("pylsp"), tmp_path, "a.py", text) as (editor, document), editor.progress() as feed:
        await document.change(document.text + "\n")
        found = {one.message for one in await document.diagnostics()}
        assert {"'os' imported but unused", "undefined name 'undefined_name'"} <= found

        assert "progress" in editor.asked
        kinds = [(await anext(feed)).value for _ in range(2)]
        assert isinstance(kinds[0], types.WorkDoneProgressBegin)
        assert kinds[0].title.startswith("lint")

        hover = await editor.call(lsp.TEXT_DOCUMENT_HOVER, types.HoverParams(*at(document, "greet(name")))
        assert "Returns a greeting" in str(hover)
        params = types.ReferenceParams(types.ReferenceContext(include_declaration=True), *at(document, "greet(name"))
        places = await editor.call(lsp.TEXT_DOCUMENT_REFERENCES, params) or ()
        assert [document.slice(place.range) for place in places] == ["greet"] * 3


@needs_servers
@pytest.mark.parametrize(
    "server",
    [
        pytest.param(command("jedi-language-server"), id="on-pygls"),
        pytest.param(servers.jedi_on_becket(), id="on-becket"),
    ],
)
async def test_jedi_language_server_works_unchanged_on_either_link(tmp_path: Path, server: list[str]) -> None:
    async with editing(server, tmp_path, "a.py", PYTHON) as (editor, document):
        hover = await editor.call(lsp.TEXT_DOCUMENT_HOVER, types.HoverParams(*at(document, "greet(name")))
        assert "Returns a greeting" in str(hover)

        renamed = await editor.call(lsp.TEXT_DOCUMENT_RENAME, types.RenameParams(*at(document, "greet("), "welcome"))
        for uri, edits in edits_of(renamed):
            await editor.open[uri].apply(edits)
        assert 'print(welcome("\U0001d4b3"), welcome( "b"))' in document.text  # behind a character of two units

        symbols = await editor.call(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL, types.DocumentSymbolParams(document.identifier))
        assert "welcome" in [symbol.name for symbol in symbols or ()]


@needs_servers
@pytest.mark.loops
async def test_ruff_provides_diagnostics_and_code_actions(tmp_path: Path) -> None:
    watched = types.DidChangeWatchedFilesClientCapabilities(dynamic_registration=True)
    capabilities = Editor(tmp_path).build_capabilities()
    assert capabilities.workspace is not None
    capabilities.workspace.did_change_watched_files = watched
    ruff = editing(command("ruff", "server"), tmp_path, "a.py", PYTHON, capabilities=capabilities)
    async with ruff as (editor, document):
        found = await document.diagnostics()
        unused = next(one for one in found if one.code == "F401")
        assert document.slice(unused.range) == "os"

        context = types.CodeActionContext([unused])
        offered = await editor.call(
            lsp.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionParams(document.identifier, unused.range, context)
        )
        mend = next(one for one in offered or () if isinstance(one, types.CodeAction) and "Remove" in one.title)
        if mend.edit is None:
            mend = await editor.call(lsp.CODE_ACTION_RESOLVE, mend)
        for uri, edits in edits_of(mend.edit):
            await editor.open[uri].apply(edits)
        assert "import os" not in document.text
        assert "F401" not in [one.code for one in await document.diagnostics()]

        options = types.FormattingOptions(tab_size=4, insert_spaces=True)
        edits = await editor.call(
            lsp.TEXT_DOCUMENT_FORMATTING, types.DocumentFormattingParams(document.identifier, options)
        )
        await document.apply(edits or ())
        assert 'greet("b"))' in document.text

        assert editor.asked == ["register"]
        assert "workspace/didChangeWatchedFiles" in [one.method for one in editor.registrations.values()]


@needs_typescript
async def test_typescript_language_server_requests_edits(tmp_path: Path) -> None:
    text = 'import { b, a } from "./other";\nconst x: number = a("milk");\n'
    (tmp_path / "other.ts").write_text("export const a = (n: string) => n;\nexport const b = 1;\n", encoding="utf-8")
    async with editing(servers.typescript(), tmp_path, "a.ts", text, options=FRUGAL) as (editor, document):
        async with editor.published_diagnostics() as feed:
            await document.change(document.text + "\n")
            found = await anext(feed)
            while not found.diagnostics:  # it checks the syntax first
                found = await anext(feed)
        assert "Type 'string' is not assignable" in found.diagnostics[0].message

        hover = await editor.call(lsp.TEXT_DOCUMENT_HOVER, types.HoverParams(*at(document, "x: number")))
        assert "const x: number" in str(hover)

        path = str(lsp.path_of(document.uri))
        organize = types.ExecuteCommandParams("_typescript.organizeImports", [path])
        await editor.call(lsp.WORKSPACE_EXECUTE_COMMAND, organize)
        assert editor.asked.count("edit") == 1
        assert document.text.startswith('import { a } from "./other";')


async def test_a_server_on_the_stdio_of_pygls_is_called_and_cancelled(tmp_path: Path) -> None:
    program = f"import sys; sys.path.insert(0, {str(HERE)!r})\nimport pygls_server\npygls_server.build().start_io()"
    async with editing([sys.executable, "-c", program], tmp_path, "a.py", "first\n") as (editor, document):
        hover = await editor.call(lsp.TEXT_DOCUMENT_HOVER, types.HoverParams(*at(document, "first")))
        assert hover == types.Hover("first")

        indexed = types.ExecuteCommandParams("count.index", [4])
        async with editor.progress() as feed:
            assert await editor.call(lsp.WORKSPACE_EXECUTE_COMMAND, indexed) == 4
            assert [(await anext(feed)).value.kind for _ in range(2)] == ["begin", "end"]
        assert editor.asked == ["progress"]

        with anyio.move_on_after(0.1):
            await editor.call(lsp.TEXT_DOCUMENT_DEFINITION, types.DefinitionParams(*at(document, "first")))
        assert (await editor.peer.call("own/events", {}))["cancelled"] == 1
