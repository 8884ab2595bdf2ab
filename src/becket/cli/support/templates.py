"""Templates of `becket new`: for each a manifest, the code and its test; and the files that all of them share.

Placeholders of `string.Template`: `$id`, `$quoted_id`, `$module`, `$name` (of the class) and `$command`.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

__all__ = ["IGNORED", "PROGRAM", "README", "TEMPLATES", "ProjectTemplate"]


class ProjectTemplate(Struct, frozen=True, kw_only=True):
    """The files of one template; `about` describes the extension, `tries` are commands that try it."""

    about: str
    manifest: str
    code: str
    test: str
    tries: str


# -- a tool and a command

TOOL: Final = ProjectTemplate(
    about="Has a tool that greets people and stores their names, and a command that lists them.",
    manifest="""\
id = $quoted_id
version = "0.1.0"
description = "Greets people and remembers their names."
command = ["./run"]
permissions = ["memory.read", "memory.write", "tools.register"]

[config.greeting]
type = "string"
default = "Hello"
description = "The first word of the greeting."

[[commands]]
name = "$command"
description = "Lists all people who were greeted."
read_only = true
""",
    code='''\
"""$id: an extension of becket."""

from __future__ import annotations

from becket import ExtensionServer, command, tool
from becket.extension import CommandOutput


class $name(ExtensionServer):
    id = $quoted_id
    version = "0.1.0"

    @tool
    async def greet(self, name: str) -> str:
        """Greets a person and stores the name.

        Args:
            name: Name of the person.
        """
        await self.host.memory.append(name)
        times = len(await self.host.memory.query(name))
        return f"{self.config.get('greeting', 'Hello')}, {name}! ({times})"

    @command("$command")
    async def show_greeted(self, args: list[str], out: CommandOutput) -> None:
        records = await self.host.memory.query()
        await out.table(["name"], [[record.content] for record in records])


if __name__ == "__main__":
    $name().run()
''',
    test='''\
"""The extension with a host, in one program: run it with `python -m unittest`, or with pytest."""

from __future__ import annotations

import asyncio
import unittest

from $module import $name

from becket.contract.commands import Table
from becket.testing import connected

GRANTS = ["memory.read", "memory.write", "tools.register"]
CONFIG = {"greeting": "Good morning"}


async def greet(*names: str) -> tuple[list[str], list[object]]:
    """Greets people, and returns the greetings and the output of the command."""
    async with connected($name(), grants=GRANTS, config=CONFIG) as (host, _):
        greetings = [await host.call_tool("greet", {"name": name}) for name in names]
        async with host.invoke_command("$command") as run:
            return greetings, [event async for event in run]


class Greeting(unittest.TestCase):
    def test_greeting_counts_earlier_greetings(self) -> None:
        greetings, _ = asyncio.run(greet("Ada", "Ada"))

        self.assertEqual(greetings, ["Good morning, Ada! (1)", "Good morning, Ada! (2)"])

    def test_command_lists_greeted_people(self) -> None:
        _, output = asyncio.run(greet("Ada", "Grace"))

        self.assertIn(Table(("name",), (("Grace",), ("Ada",))), output)


if __name__ == "__main__":
    unittest.main()
''',
    tries="""\
becket call --yes $id greet '{"name": "Ada"}'
becket invoke --yes $id $command
""",
)


# -- a command with progress

COMMAND: Final = ProjectTemplate(
    about="Has a command that counts the letters of words, with a progress bar and a table.",
    manifest="""\
id = $quoted_id
version = "0.1.0"
description = "Counts the letters of words."
command = ["./run"]

[[commands]]
name = "$command"
description = "Counts the letters of words: $command WORD..."
read_only = true
""",
    code='''\
"""$id: an extension of becket."""

from __future__ import annotations

from becket import ExtensionServer, command
from becket.extension import CommandOutput


class $name(ExtensionServer):
    id = $quoted_id
    version = "0.1.0"

    @command("$command")
    async def count_letters(self, args: list[str], out: CommandOutput) -> dict[str, int]:
        counted: dict[str, int] = {}
        async with out.task("Counting letters", total=len(args)) as task:
            for word in args:
                counted[word] = len(word)
                await task.advance(message=word)
        if not counted:
            await out.system("Usage: $command WORD...")
        await out.table(["word", "letters"], [[word, str(letters)] for word, letters in counted.items()])
        return counted


if __name__ == "__main__":
    $name().run()
''',
    test='''\
"""The extension with a host, in one program: run it with `python -m unittest`, or with pytest."""

from __future__ import annotations

import asyncio
import unittest

from $module import $name

from becket.contract.commands import SystemText, Table
from becket.testing import connected


async def count(*words: str) -> tuple[list[object], object]:
    """Runs the command, and returns its output and its result."""
    async with connected($name()) as (host, _), host.invoke_command("$command", words) as run:
        return [event async for event in run], await run.result()


class Counting(unittest.TestCase):
    def test_command_counts_the_letters_of_each_word(self) -> None:
        output, result = asyncio.run(count("tea", "milk"))

        self.assertIn(Table(("word", "letters"), (("tea", "3"), ("milk", "4"))), output)
        self.assertEqual(result, {"tea": 3, "milk": 4})

    def test_command_without_words_shows_its_usage(self) -> None:
        output, _ = asyncio.run(count())

        self.assertIn(SystemText("Usage: $command WORD..."), output)


if __name__ == "__main__":
    unittest.main()
''',
    tries="becket invoke --yes $id $command tea milk\n",
)


# -- a provider of models

PROVIDER: Final = ProjectTemplate(
    about="Provides a model that needs no network: it repeats its prompt, word by word.",
    manifest="""\
id = $quoted_id
version = "0.1.0"
description = "A model that repeats its prompt."
command = ["./run"]
permissions = ["providers.register"]
""",
    code='''\
"""$id: an extension of becket."""

from __future__ import annotations

import re

from becket import ExtensionServer, provider
from becket.contract import Model, ProviderRequest, ProviderResult
from becket.extension import ProviderStream


class $name(ExtensionServer):
    id = $quoted_id
    version = "0.1.0"

    @provider("$command", models=[Model("parrot", streaming=True)])
    async def respond(self, request: ProviderRequest, out: ProviderStream) -> ProviderResult:
        """Repeats the prompt. Call a model of your own here."""
        reply = f"You said: {text_of(request)}"
        for word in re.findall(r"\\S+\\s*", reply):
            await out.text(word)  # shown at once by a host that streams
        await out.usage({"output_tokens": len(reply.split())})
        return ProviderResult.of_text(reply)


def text_of(request: ProviderRequest) -> str:
    """Returns the text of the last user message, whose content is a string or a list of blocks."""
    content = next((message.content for message in reversed(request.messages) if message.role == "user"), "")
    if isinstance(content, str):
        return content
    return " ".join(str(block["text"]) for block in content if block.get("type") == "text")


if __name__ == "__main__":
    $name().run()
''',
    test='''\
"""The extension with a host, in one program: run it with `python -m unittest`, or with pytest."""

from __future__ import annotations

import asyncio
import unittest

from $module import $name

from becket.contract import Message, TextDelta
from becket.testing import connected

GRANTS = ["providers.register"]
MESSAGES = [Message("user", "good morning")]


async def complete() -> str:
    async with connected($name(), grants=GRANTS) as (host, _):
        return (await host.complete("$command", "parrot", messages=MESSAGES)).text


async def stream() -> str:
    async with (
        connected($name(), grants=GRANTS) as (host, _),
        host.stream("$command", "parrot", messages=MESSAGES) as run,
    ):
        return "".join([event.text async for event in run if isinstance(event, TextDelta)])


class Completing(unittest.TestCase):
    def test_model_repeats_the_prompt(self) -> None:
        self.assertEqual(asyncio.run(complete()), "You said: good morning")

    def test_model_streams_the_same_text(self) -> None:
        self.assertEqual(asyncio.run(stream()), "You said: good morning")


if __name__ == "__main__":
    unittest.main()
''',
    tries='becket chat --yes "good morning"\n',
)


# -- a hook

HOOK: Final = ProjectTemplate(
    about="Has a hook that blocks tool calls whose input has a forbidden word; the words are configurable.",
    manifest="""\
id = $quoted_id
version = "0.1.0"
description = "Blocks tool calls with forbidden words in their input."
command = ["./run"]
permissions = ["tools.intercept"]

[config.forbidden]
type = "string"
default = "rm -rf, mkfs"
description = "Forbidden words, separated by commas."
""",
    code='''\
"""$id: an extension of becket."""

from __future__ import annotations

import json

from becket import ExtensionServer, hook
from becket.contract import Block, Continue, HookEvent, HookResult


class $name(ExtensionServer):
    id = $quoted_id
    version = "0.1.0"

    @hook("before_tool_call", inline=True)
    def check_input(self, event: HookEvent) -> HookResult:
        """Runs before every tool call of the host, for tools of all extensions."""
        input = json.dumps(event.tool_input, ensure_ascii=False)
        for word in str(self.config.get("forbidden", "")).split(","):
            if word.strip() and word.strip() in input:
                return Block(f"{event.tool_name}: `{word.strip()}` is forbidden")
        return Continue()


if __name__ == "__main__":
    $name().run()
''',
    test='''\
"""The extension with a host, in one program: run it with `python -m unittest`, or with pytest."""

from __future__ import annotations

import asyncio
import unittest

from $module import $name

from becket.contract import Block, Continue, HookEvent, HookResult
from becket.testing import connected

GRANTS = ["tools.intercept"]
CONFIG = {"forbidden": "rm -rf, mkfs"}


async def call_hook(command: str) -> HookResult:
    """Returns the hook's result for a tool call."""
    async with connected($name(), grants=GRANTS, config=CONFIG) as (host, _):
        return await host.handle_hook(HookEvent.before_tool_call("bash", {"command": command}))


class Checking(unittest.TestCase):
    def test_a_forbidden_word_blocks_the_call(self) -> None:
        self.assertEqual(asyncio.run(call_hook("rm -rf /")), Block("bash: `rm -rf` is forbidden"))

    def test_other_calls_continue(self) -> None:
        self.assertEqual(asyncio.run(call_hook("ls")), Continue())


if __name__ == "__main__":
    unittest.main()
''',
    tries="""\
# needs an extension with a tool in the parent folder, such as: becket new ../greeter
becket call --yes --root .. greeter greet '{"name": "rm -rf"}'
""",
)


# -- a setting with a custom editor

SETTINGS: Final = ProjectTemplate(
    about="Has a setting with a custom editor, and a tool that uses its value.",
    manifest="""\
id = $quoted_id
version = "0.1.0"
description = "Has a favourite colour."
command = ["./run"]
permissions = ["tools.register"]

[config.colour]
type = "string"
default = "white"
choices = ["white", "blue", "red"]
description = "The favourite colour."

[[settings]]
id = "$command"
label = "$name"

[[settings.fields]]
key = "colour"
label = "Colour"
editor = "custom"
help = "Up and Down select, Enter saves."
""",
    code='''\
"""$id: an extension of becket."""

from __future__ import annotations

from becket import ExtensionServer, tool
from becket.contract import EditorClosed, EditorCommitted, EditorKey, EditorOpen, EditorRender, EditorRow

COLOURS = ("white", "blue", "red")


class $name(ExtensionServer):
    id = $quoted_id
    version = "0.1.0"
    cursor = 0

    @tool("Returns the favourite colour.", read_only=True)
    async def tell_colour(self) -> str:
        return str(self.config.get("colour", COLOURS[0]))

    def on_editor_open(self, opened: EditorOpen) -> EditorRender:
        """Shows all colours when the user opens the field."""
        self.cursor = 0
        return self.draw()

    def on_editor_key(self, pressed: EditorKey) -> EditorRender | EditorCommitted | EditorClosed | None:
        """Handles a key. The host stores the value of `EditorCommitted`."""
        match pressed.key:
            case "Up" | "Down":
                self.cursor = (self.cursor + (1 if pressed.key == "Down" else -1)) % len(COLOURS)
                return self.draw()
            case "Enter":
                return EditorCommitted(COLOURS[self.cursor])
            case "Esc":
                return EditorClosed("nothing has changed")
            case _:
                return None

    def draw(self) -> EditorRender:
        rows = tuple(EditorRow(colour, data=colour) for colour in COLOURS)
        return EditorRender(rows, self.cursor, "Enter saves, Esc cancels")


if __name__ == "__main__":
    $name().run()
''',
    test='''\
"""The extension with a host, in one program: run it with `python -m unittest`, or with pytest."""

from __future__ import annotations

import asyncio
import unittest

from $module import $name

from becket.contract import EditorClosed, EditorCommitted
from becket.testing import connected

GRANTS = ["tools.register"]


async def press(*keys: str) -> list[object]:
    """Opens the editor, presses keys, and returns the notifications to the host."""
    received: list[object] = []
    async with connected($name(), grants=GRANTS) as (host, _):
        host.on(EditorCommitted, EditorClosed)(received.append)
        await host.open_editor("$command", "colour")
        for key in keys:
            await host.press_editor_key("$command", "colour", key)
    return received


async def call_tool(config: dict[str, str]) -> str:
    async with connected($name(), grants=GRANTS, config=config) as (host, _):
        return await host.call_tool("tell_colour")


class Choosing(unittest.TestCase):
    def test_enter_saves_the_selected_colour(self) -> None:
        self.assertEqual(asyncio.run(press("Down", "Enter")), [EditorCommitted("blue")])

    def test_escape_changes_nothing(self) -> None:
        self.assertEqual(asyncio.run(press("Down", "Esc")), [EditorClosed("nothing has changed")])

    def test_tool_returns_the_saved_colour(self) -> None:
        self.assertEqual(asyncio.run(call_tool({"colour": "red"})), "red")


if __name__ == "__main__":
    unittest.main()
''',
    tries="""\
becket config set $id colour red
becket call --yes $id tell_colour
""",
)

TEMPLATES: Final = {"tool": TOOL, "command": COMMAND, "provider": PROVIDER, "hook": HOOK, "settings": SETTINGS}
"""Templates by the value of `--template`; the first is the default."""


# -- shared files

PROGRAM: Final = """\
#!/bin/sh
# Starts the extension in its folder. -I: neither the environment nor the folder can shadow installed modules.
# -B: writes no .pyc files, because consent covers exactly the files that are here.
cd "$$(dirname "$$0")" && exec python3 -I -B $module.py "$$@"
"""
IGNORED: Final = """\
__pycache__/
*.pyc
.pytest_cache/
.mypy_cache/
.ruff_cache/
.venv/
"""
README: Final = """\
# $id

$about

| file | what it is |
|---|---|
| `becket.toml` | the manifest: id, command and requested permissions |
| `$module.py` | the extension |
| `run` | the program that a host starts |
| `test_$module.py` | its test, with a host in the same program |

To try it, in this folder:

```sh
python -m unittest
becket check -- ./run
$tries```
"""
