"""Language servers that others have written, where they are installed: `make language-servers node`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SERVERS = ROOT / ".venv-lsp"
MODULES = ROOT / ".node_cache" / "node_modules"
TYPESCRIPT = MODULES / "typescript-language-server" / "lib" / "cli.mjs"
NODE = shutil.which("node")

needs_servers = pytest.mark.skipif(
    not (SERVERS / ".ready").exists(), reason="no language servers are installed: run `make language-servers`"
)
needs_typescript = pytest.mark.skipif(
    NODE is None or not TYPESCRIPT.exists(), reason="typescript-language-server is not installed: run `make node`"
)


def command(name: str, *arguments: str) -> list[str]:
    """Returns what starts a server that is written in Python, or installed by pip."""
    return [str(SERVERS / "bin" / name), *arguments]


def typescript() -> list[str]:
    """Returns what starts the server of TypeScript."""
    return [NODE or "node", str(TYPESCRIPT), "--stdio"]


def jedi_on_becket() -> list[str]:
    """Returns what starts jedi-language-server, its object served by becket in place of pygls."""
    program = "\n".join(
        (
            "import sys; sys.path += sys.argv[1:]",
            "from jedi_language_server.server import SERVER",
            "from becket.adapters import lsp",
            "lsp.run(SERVER)",
        )
    )
    ours = [str(ROOT / "src"), *(path for path in sys.path if "site-packages" in path)]
    return [*command("python", "-c", program), *ours]
