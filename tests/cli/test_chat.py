"""`becket chat`: one prompt and its response, or a conversation at a terminal."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tests.cli.commands import BECKET, EXTENSIONS, HOSTED, becket, here, json_lines, printed, write_extension
from tests.cli.terminals import CTRL_C, CTRL_D, Terminal

from becket.cli.chat import choose_model
from becket.cli.support.exit_codes import ExitCode
from becket.errors import NotDeclared

pytestmark = pytest.mark.process

ONLY_ELIZA = (*HOSTED, "--only", "eliza")

QUIET = """
from becket.extension import ExtensionServer

class Quiet(ExtensionServer):
    id, version = "quiet", "1.0.0"

Quiet().run()
"""
# Repeats the messages so far, calls tools, never ends, or fails.
PARROT = """
import asyncio
from becket import RpcError
from becket.contract.providers import Model, ProviderResult
from becket.extension import ExtensionServer, provider, tool

class Parrot(ExtensionServer):
    id = "parrot"
    version = "1.0.0"

    @tool
    def secret(self) -> str:
        "Tells a secret."
        return "the cake is a lie"

    @provider("cage", display_name="Cage", models=[Model("green", streaming=True, tool_use=True), Model("grey")])
    async def answer(self, request, out):
        "Repeats."
        last = request.messages[-1].content
        if last == "fly":
            await out.text("I fly ")
            await asyncio.Event().wait()
        if last == "squawk":
            print("squawk!")
        if str(last).startswith("interrupt "):
            await out.text("I was ")
            await asyncio.to_thread(wait_for, last.split()[1])
            print("interrupted")
            await asyncio.Event().wait()
        if str(last).startswith("later "):
            self.later = asyncio.create_task(self.squawk_after(last.split()[1]))
        if last == "die":
            raise RpcError(17, "it is an ex-parrot")
        if request.tools and isinstance(last, str):
            use = {"type": "tool_use", "id": "1", "name": request.tools[0]["name"], "input": {}}
            return ProviderResult([use], "tool_use")
        heard = [str(message.content) for message in request.messages if message.role == "user"]
        reply = f"{request.system_prompt or 'heard'}: {' / '.join(heard)}"
        await out.text(reply)
        return ProviderResult.of_text(reply)

    async def squawk_after(self, pipe):
        await asyncio.to_thread(wait_for, pipe)
        print("squawk!")

def wait_for(pipe):
    with open(pipe, encoding="utf-8") as file:
        file.read()

Parrot().run()
"""


@pytest.fixture
def parrot(tmp_path: Path) -> tuple[str, ...]:
    """Returns the options for a host of the parrot."""
    asks = ["providers.register", "tools.register"]
    place = write_extension(tmp_path / "extensions", "parrot", PARROT, permissions=asks)
    return ("--root", str(place), "--no-data", "--yes")


# -- once


def test_without_models_the_message_is_plain(tmp_path: Path) -> None:
    root = write_extension(tmp_path / "extensions", "quiet", QUIET)

    for words in (["hi"], ["-m", "eliza", "hi"]):
        done = becket("chat", "--root", str(root), "--no-data", "--yes", *words)

        assert (done.returncode, done.stdout) == (ExitCode.NOT_FOUND, "")
        assert done.stderr.startswith("error: No running extension has a model")
        assert len(done.stderr.splitlines()) == 1


def test_the_response_to_a_prompt_is_on_stdout() -> None:
    assert printed("chat", *ONLY_ELIZA, "I need", "a holiday") == "Why do you need a holiday?\n"


def test_stderr_of_the_extension_is_shown_on_stderr(parrot: tuple[str, ...]) -> None:
    done = becket("chat", *parrot, "-m", "green", "squawk")
    assert (done.stdout, done.stderr) == ("heard: squawk\n", "info: parrot: squawk!\n")


def test_the_prompt_may_come_from_stdin_and_thoughts_may_be_shown() -> None:
    out = printed("chat", *HOSTED, "-m", "eliza:eliza:doctor", "--thinking", input="I am tired\n")

    assert out.splitlines() == ["The patient said: I am tired", "How long have you been tired?"]


def test_in_json_each_delta_is_a_line_and_the_last_has_the_response() -> None:
    events = json_lines("chat", "--json", *HOSTED, "-m", "eliza:eliza:doctor", "I need tea")

    assert "".join(event["text"] for event in events if event["event"] == "text_delta") == "Why do you need tea?"
    assert events[-1]["event"] == "result"
    assert events[-1]["result"]["content"] == [{"type": "text", "text": "Why do you need tea?"}]


def test_a_model_that_does_not_stream_is_called_for_the_complete_response(parrot: tuple[str, ...]) -> None:
    assert printed("chat", *parrot, "-m", "grey", "-s", "it said", "hello") == "it said: hello\n"
    events = json_lines("chat", "--json", *parrot, "-m", "grey", "hello")
    assert events[0] == {"event": "text_delta", "text": "heard: hello"}


def test_a_model_may_use_the_tools_of_all_extensions(parrot: tuple[str, ...]) -> None:
    assert "the cake is a lie" in printed("chat", *parrot, "-m", "green", "--tools", "tell me")


@pytest.mark.parametrize(
    ("words", "code", "output"),
    [
        pytest.param(["-m", "blue", "hi"], 3, "no model 'blue', it has: parrot:cage:green", id="no-such-model"),
        pytest.param(["-m", "parrot:cage:blue", "hi"], 3, "no model 'parrot:cage:blue'", id="no-such-id"),
        pytest.param(["-m", "nobody:a:b", "hi"], 3, "no extension 'nobody'", id="no-such-extension"),
        pytest.param(["hi"], 2, "--model can be: parrot:cage:green, parrot:cage:grey", id="two-models"),
        pytest.param(["-m", "green", "die"], 1, "it is an ex-parrot", id="failed"),
    ],
)
def test_an_error_is_reported_in_a_line(parrot: tuple[str, ...], words: list[str], code: int, output: str) -> None:
    done = becket("chat", *parrot, *words)

    assert done.returncode == code
    assert output in done.stderr


def test_without_a_prompt_there_is_nothing_to_do() -> None:
    assert here("chat", input=" \n").exit_code == 2


def test_help_has_an_example() -> None:
    assert 'becket chat --root extensions "I need a holiday"' in here("chat", "--help").stdout


# -- which model


MODELS = ("eliza:eliza:doctor", "parrot:cage:green", "parrot:cage:grey", "parrot:cage2:grey")


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        ("parrot:cage:grey", "parrot:cage:grey"),
        ("eliza", "eliza:eliza:doctor"),
        ("green", "parrot:cage:green"),
        ("cage:grey", "parrot:cage:grey"),
        ("cage2", "parrot:cage2:grey"),
    ],
)
def test_a_part_of_an_id_selects_the_only_model_that_has_it(wanted: str, chosen: str) -> None:
    assert choose_model(MODELS, wanted) == chosen


def test_where_there_is_one_model_it_need_not_be_named() -> None:
    assert choose_model(MODELS[:1], None) == MODELS[0]


@pytest.mark.parametrize("wanted", ["cag", "", "x:y:z"])
def test_an_unknown_model_is_not_found(wanted: str) -> None:
    with pytest.raises(NotDeclared):
        choose_model(MODELS, wanted)


# -- a conversation


def test_a_conversation_includes_earlier_messages_until_it_is_cleared(parrot: tuple[str, ...]) -> None:
    with Terminal([*BECKET, "chat", *parrot, "-m", "green"]) as terminal:
        terminal.expect("parrot:cage:green")
        for line, received in [("one", "one"), ("two", "one / two"), ("/clear", ""), ("three", "three")]:
            terminal.expect("> ")
            terminal.enter(line)
            if received:
                terminal.expect(f"heard: {received}\n")
        terminal.expect("> ")
        terminal.type(CTRL_D)
        assert terminal.end() == 0


def test_ctrl_c_stops_a_response_and_the_conversation_continues(parrot: tuple[str, ...]) -> None:
    with Terminal([*BECKET, "chat", *parrot, "-m", "green"]) as terminal:
        terminal.expect("> ")
        terminal.enter("fly")
        terminal.expect("I fly")
        terminal.type(CTRL_C)
        terminal.expect("> ")
        terminal.enter("hello")
        terminal.expect("heard: hello\n")  # and nothing of what was stopped
        terminal.expect("> ")
        terminal.enter("/quit")
        assert terminal.end() == 0
    assert "Traceback" not in terminal.text


def test_a_response_that_fails_is_reported_and_the_conversation_continues(parrot: tuple[str, ...]) -> None:
    with Terminal([*BECKET, "chat", *parrot, "-m", "green"]) as terminal:
        terminal.expect("> ")
        terminal.enter("die")
        terminal.expect("it is an ex-parrot")
        terminal.expect("> ")
        terminal.type(CTRL_C)  # at the prompt it only begins a new line
        terminal.expect("> ")
        terminal.enter("/help")
        terminal.expect("Ctrl-D ends")
        terminal.expect("> ")
        terminal.enter("hello")
        terminal.expect("heard: hello\n")
        terminal.expect("> ")
        terminal.enter("/quit")
        assert terminal.end() == 0


def test_typed_lines_are_in_the_history(parrot: tuple[str, ...]) -> None:
    with Terminal([*BECKET, "chat", *parrot, "-m", "green"]) as terminal:
        terminal.expect("> ")
        terminal.enter("hello")
        terminal.expect("heard: hello\n")
        terminal.expect("> ")
        terminal.type("\x1b[A\n")  # the arrow upwards
        terminal.expect("heard: hello / hello\n")
        terminal.expect("> ")
        terminal.type(CTRL_D)
        assert terminal.end() == 0


def test_stderr_of_the_extension_is_on_its_own_lines(parrot: tuple[str, ...], tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with Terminal([*BECKET, "chat", *parrot, "-m", "green"]) as terminal:
        terminal.expect("> ")
        terminal.enter(f"interrupt {pipe}")
        terminal.expect("I was ")
        pipe.write_text("now", encoding="utf-8")
        terminal.expect_seen("""
            |I was
            |info: parrot: interrupted
        """)
        terminal.type(CTRL_C)
        terminal.expect("> ")
        terminal.enter(f"later {pipe}")
        terminal.expect("heard: later")
        terminal.expect("> ")
        terminal.type("hel")
        terminal.expect("hel")
        pipe.write_text("now", encoding="utf-8")
        terminal.expect_seen("""
            |info: parrot: squawk!
            |> hel
        """)
        terminal.enter("lo")
        terminal.expect("/ hello\n")
        terminal.expect("> ")
        terminal.type(CTRL_D)
        assert terminal.end() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_conversation_in_good_order(parrot: tuple[str, ...], number: int) -> None:
    with Terminal([*BECKET, "chat", *parrot, "-m", "green"]) as terminal:
        terminal.expect("> ")
        terminal.send_signal(number)
        assert terminal.end() == 143


def test_the_user_is_prompted_before_an_extension_is_started(tmp_path: Path) -> None:
    options = ["--root", str(EXTENSIONS), "--data", str(tmp_path), "-m", "eliza:eliza:doctor"]
    with Terminal([*BECKET, "chat", *options]) as terminal:
        terminal.expect("[y/N]")
        terminal.enter("y")
        terminal.expect("> ")
        terminal.enter("I need tea")
        terminal.expect("Why do you need tea?")
        terminal.expect("> ")
        terminal.type(CTRL_D)
        assert terminal.end() == 0
