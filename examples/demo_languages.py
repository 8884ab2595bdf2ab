"""The last part of the demonstration: an extension in each language whose toolchain is there."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import anyio
from msgspec import Struct

from becket import Host
from demo_screen import Screen

__all__ = ["LANGUAGES", "Language", "show_languages"]

PATIENCE = 20  # seconds for one language
EXAMPLES = Path(__file__).resolve().parent
KITS = EXAMPLES.parent / "sdk"
GRANTS = ["config.write", "memory.read", "memory.write", "providers.register", "tools.intercept", "tools.register"]


class Language(Struct, frozen=True):
    """An extension in a language, the programs that it needs, a call of its tool, and the pattern of the response.

    `built` is the file of an extension that must be built first: `make demo` does it."""

    folder: Path
    needs: tuple[str, ...]
    tool: str
    input: dict[str, str]
    response: str
    built: str = ""


ADA = {"name": "Ada"}
TEXT = {"text": "two words"}
LANGUAGES: dict[str, Language] = {
    "typescript": Language(KITS / "typescript/example", ("node",), "typescript_greet", ADA, "Hello, Ada!"),
    "go": Language(KITS / "go/example", ("go",), "go_greet", ADA, "Hello, Ada!", "build/example"),
    "rust": Language(KITS / "rust/example", ("cargo",), "rust_greet", ADA, "Hello, Ada!", "build/bin/rust-example"),
    "java": Language(EXAMPLES / "other_languages/java", ("java", "mvn"), "words_count", TEXT, "2", "target/dependency"),
    "python": Language(EXAMPLES / "other_languages/python", ("python3",), "pages_count", TEXT, "2"),
    "shell": Language(EXAMPLES / "other_languages/shell", ("bash", "jq", "uptime"), "uptime_uptime", {}, "up .*"),
}


async def show_languages(screen: Screen) -> None:
    screen.section(
        "Other languages", "Extensions in each language that is installed here, the last three without a kit."
    )
    are_expected: list[bool] = []
    for name, language in LANGUAGES.items():
        if reason := find_reason_to_skip(language):
            screen.line(name, f"is skipped: {reason}")
            continue
        id, _, _ = language.tool.partition("_")
        with anyio.fail_after(PATIENCE):
            async with Host([language.folder], grants={id: GRANTS}, data=None) as host:
                await host.ready(id)
                response = await host.call_tool(language.tool, language.input)
        screen.line(name, f"{language.tool} responds: {response}")
        are_expected.append(re.fullmatch(language.response, response) is not None)
    screen.check(all(are_expected), "Each responds like any other extension.")


def find_reason_to_skip(language: Language) -> str:
    """Returns why an extension cannot run here, or an empty text."""
    missing = [program for program in language.needs if shutil.which(program) is None]
    if missing:
        return f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed"
    if language.built and not (language.folder / language.built).exists():
        return "it is not built (`make demo` builds it)"
    return ""
