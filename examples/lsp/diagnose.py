"""What a language server finds in a file, with a progress bar while it works: `python diagnose.py FILE [SERVER ...]`.

SERVER is the command of any language server; `pylsp`, for Python, if there is none. The exit code is 1 if it found
something.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from lsprotocol.types import Diagnostic, DiagnosticSeverity, WorkDoneProgressBegin, WorkDoneProgressEnd
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from becket import StartFailed
from becket.adapters import lsp

SHOWN = {DiagnosticSeverity.Error: "error", DiagnosticSeverity.Warning: "warning"}


async def show_progress(client: lsp.LanguageClient, bars: Progress) -> None:
    """Draws a bar for each task that the server reports."""
    drawn: dict[int | str, TaskID] = {}
    async with client.progress() as reports:
        async for report in reports:
            value = report.value
            if isinstance(value, WorkDoneProgressBegin):
                total = None if value.percentage is None else 100
                drawn[report.token] = bars.add_task(value.title, total=total)
            elif report.token not in drawn:
                continue
            elif isinstance(value, WorkDoneProgressEnd):
                bars.update(drawn[report.token], total=100, completed=100)
            else:
                bars.update(drawn[report.token], completed=value.percentage)


async def diagnose(path: Path, text: str, server: list[str]) -> list[tuple[lsp.TextDocument, Diagnostic]]:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    client = lsp.LanguageClient(root=path.parent)
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        async with client.connect_process(server), asyncio.TaskGroup() as group:
            drawing = group.create_task(show_progress(client, bars))
            async with client.open_document(path, text) as document:
                found = await document.diagnostics()
            drawing.cancel()
    return [(document, one) for one in found]


def main(file: str = "", *server: str) -> int:
    if not file:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        path = Path(file).absolute()
        found = asyncio.run(diagnose(path, path.read_text(encoding="utf-8"), list(server) or ["pylsp"]))
    except StartFailed as error:
        print(f"{error} (`pip install python-lsp-server` installs one for Python)", file=sys.stderr)
        return 2
    except OSError as error:
        print(error, file=sys.stderr)
        return 2
    for document, one in sorted(found, key=lambda each: each[1].range.start):
        start = one.range.start
        severity = SHOWN.get(one.severity or DiagnosticSeverity.Warning, "note")
        print(f"{file}:{start.line + 1}:{start.character + 1}: {severity}: {one.message.splitlines()[0]}")
        print(f"    {document.text.splitlines()[start.line].strip()}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
