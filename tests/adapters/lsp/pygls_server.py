"""A language server as its author wrote it, with pygls and nothing else; becket runs it: `python pygls_server.py`."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer


class Counting(LanguageServer):
    """A server that records the events of its lifecycle."""

    def __init__(self) -> None:
        super().__init__("counting", "1.0")
        self.cancelled = 0
        self.events: list[str] = []
        self.settings: Any = None


def build() -> Counting:
    """Returns a new server."""
    server = Counting()

    @server.feature(types.INITIALIZE)
    def initialize(ls: Counting, params: types.InitializeParams) -> None:
        @ls.feature("late/echo")  # many servers add features here
        def echo(params: Any) -> Any:
            return {"late": params.text}

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(ls: Counting, params: types.HoverParams) -> types.Hover:
        document = ls.workspace.get_text_document(params.text_document.uri)
        return types.Hover(document.lines[params.position.line].strip())

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    async def never(ls: Counting, params: types.DefinitionParams) -> None:
        ls.events.append("begun")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ls.cancelled += 1
            raise

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    async def references(ls: Counting, params: types.ReferenceParams) -> list[types.Location]:
        place = types.Location(params.text_document.uri, types.Range(params.position, params.position))
        if params.work_done_token is not None:
            ls.work_done_progress.begin(params.work_done_token, types.WorkDoneProgressBegin("Search", percentage=0))
            ls.work_done_progress.report(params.work_done_token, types.WorkDoneProgressReport(percentage=50))
            ls.work_done_progress.end(params.work_done_token, types.WorkDoneProgressEnd())
        if params.partial_result_token is not None:
            ls.protocol.notify(types.PROGRESS, types.ProgressParams(params.partial_result_token, [place]))
            return []
        return [place]

    @server.feature(types.TEXT_DOCUMENT_COMPLETION)
    @server.thread()
    def complete(params: types.CompletionParams) -> list[types.CompletionItem]:
        return [types.CompletionItem(threading.current_thread().name)]

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(ls: Counting, params: types.DidOpenTextDocumentParams) -> None:
        found = types.Diagnostic(types.Range(types.Position(0, 0), types.Position(0, 1)), "opened")
        ls.text_document_publish_diagnostics(types.PublishDiagnosticsParams(params.text_document.uri, [found]))

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def configured(ls: Counting, params: types.DidChangeConfigurationParams) -> None:
        ls.settings = params.settings

    @server.command("count.index")
    async def index(ls: Counting, files: int) -> int:
        token = "index"
        await ls.work_done_progress.create_async(token)
        ls.work_done_progress.begin(token, types.WorkDoneProgressBegin("Index"))
        ls.work_done_progress.end(token, types.WorkDoneProgressEnd())
        return files

    @server.command("count.rename")
    async def rename(ls: Counting) -> bool:
        edit = types.WorkspaceEdit(changes={"file:///a.py": []})
        return (await ls.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(edit))).applied

    @server.command("count.ask")
    async def ask(ls: Counting) -> str | None:
        actions = [types.MessageActionItem("yes")]
        requested = types.ShowMessageRequestParams(types.MessageType.Info, "sure?", actions)
        chosen = await ls.window_show_message_request_async(requested)
        return None if chosen is None else chosen.title

    @server.feature("own/settings")
    async def settings(ls: Counting, params: Any) -> Any:
        items = [types.ConfigurationItem(section=params.section)]
        return {"found": (await ls.workspace_configuration_async(types.ConfigurationParams(items)))[0]}

    @server.feature("own/give up")
    async def give_up(ls: Counting, params: Any) -> str:
        """Calls the client, and stops waiting for the response."""
        pending = ls.workspace_configuration_async(types.ConfigurationParams([types.ConfigurationItem(section="slow")]))
        try:
            await asyncio.wait_for(pending, 0.02)
        except TimeoutError:
            return "gave up"
        return "answered"

    @server.feature("own/burst")
    def burst(ls: Counting, params: Any) -> None:
        """Sends requests and notifications without waiting for anything."""
        for number in (1, 2):
            ls.protocol.send_request("demo/asked", {"n": number})
            ls.protocol.notify("demo/told", {"n": number})

    @server.feature("own/publish")
    def publish(ls: Counting, params: Any) -> None:
        """Publishes without waiting for anything."""
        for number in range(params.times):
            found = types.Diagnostic(types.Range(types.Position(0, 0), types.Position(0, 1)), params.text)
            ls.text_document_publish_diagnostics(types.PublishDiagnosticsParams(f"file:///{number}.py", [found]))

    @server.feature("own/unwritable")
    def unwritable(params: Any) -> Any:
        return {"number": float("nan")}

    @server.feature("own/object")
    def plain_object(params: Any) -> Any:
        class Found:
            def __init__(self) -> None:
                self.where = "here"

        return Found()

    @server.feature("own/fails")
    def fails(params: Any) -> Any:
        raise ValueError("a secret of the server")

    @server.feature("own/print")
    def prints(params: Any) -> str:
        print("this is not for the wire")
        return "printed"

    @server.feature("own/told")
    def on_told(ls: Counting, params: Any) -> None:
        ls.events.append(f"told {params.n}")

    @server.feature("own/events")
    def events(ls: Counting, params: Any) -> Any:
        return {
            "events": ls.events,
            "cancelled": ls.cancelled,
            "kept": len(ls.protocol._request_futures),
            "settings": ls.settings,
        }

    return server


if __name__ == "__main__":
    from becket.adapters import lsp

    lsp.run(build())
