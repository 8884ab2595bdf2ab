"""`becket chat`: sends prompts to a model of an extension, once or interactively.

On a terminal the main thread reads input, so that line editing and Ctrl-C work as in a shell; the host runs in another
thread. The conversation is kept in memory only.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from becket.cli.support.exit_codes import ExitCode
from becket.cli.support.options import HostOptions, TerminationRequested, host_options, run_async
from becket.cli.support.output import console, is_terminal, json_option, print_message
from becket.errors import BecketError, NotDeclared

if TYPE_CHECKING:
    from concurrent.futures import Future

    from becket.contract.providers import Message, ProviderResult
    from becket.host.host import Host
    from becket.host.live_view import LiveView

__all__ = ["chat"]

PROMPT = "> "
CLEAR_LINE = "\r\x1b[K"
SIGNAL_POLL_INTERVAL = 0.25  # seconds
HELP = "/clear clears the conversation, /quit or Ctrl-D ends it, Ctrl-C stops a response."


class ChatOptions(Struct, frozen=True, kw_only=True):
    """Options of `becket chat`."""

    model: str | None
    system: str | None
    use_tools: bool
    thinking: bool
    temperature: float | None
    max_tokens: int | None
    as_json: bool


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--model", "-m", metavar="ID", help="extension:provider:model, or any part of it that is unique.")
@click.option("--system", "-s", metavar="TEXT", help="System prompt.")
@click.option("--tools", "use_tools", is_flag=True, help="Let the model use the tools of all extensions; no streaming.")
@click.option("--thinking", is_flag=True, help="Show the model's thinking.")
@click.option("--temperature", type=click.FloatRange(min=0), metavar="NUMBER", help="Sampling temperature.")
@click.option("--max-tokens", type=click.IntRange(min=1), metavar="NUMBER", help="Maximum length of a response.")
@json_option
@host_options()
@click.argument("prompt", nargs=-1)
def chat(options: HostOptions, prompt: tuple[str, ...], **values: Any) -> None:
    """Chat with a model that an extension provides; its response is streamed.

    With PROMPT, or if stdin is not a terminal, the model responds once. Otherwise every line you type is a prompt in a
    conversation, which is kept in memory: /clear clears it, /quit or Ctrl-D ends it, Ctrl-C stops a response. --model
    may be omitted if there is only one model. With --json each event is one line with a JSON object, whose `event` is
    its kind; the last line has the result.

    \b
    becket chat --root extensions "I need a holiday"
    git diff | becket chat -m eliza -s "Explain this"
    becket chat -m eliza:eliza:doctor

    Extensions' stderr output is shown on stderr.
    """
    how = ChatOptions(**values)
    if not prompt and sys.stdin.isatty() and is_terminal() and not how.as_json:
        run_interactive(options, how)
        return
    text = (" ".join(prompt) or sys.stdin.read()).strip()
    if not text:
        raise click.UsageError("The prompt is empty: give a PROMPT, or write it to stdin", click.get_current_context())
    run_async(complete_once, options, how, text)


async def complete_once(options: HostOptions, how: ChatOptions, text: str) -> None:
    """Sends one prompt to a model and prints the response."""
    from becket.cli.support.logs import show_logs
    from becket.contract.providers import user

    screen = ChatScreen()
    with show_logs(options.log_config(), screen.log):
        async with open_model(options, how) as (host, model):
            await stream_completion(screen.view, host, model, how, [user(text)])


class ChatScreen:
    """Writes streamed responses, the prompt and log lines to the terminal without mixing them."""

    def __init__(self) -> None:
        from becket.host.live_view import LiveView

        self.view = LiveView(console())
        self.is_prompting = False

    def log(self, line: str) -> None:
        """Writes a line to stderr, and repeats the prompt and the text typed so far below it."""
        if self.is_prompting and sys.stderr.isatty():
            click.echo(f"{CLEAR_LINE}{line}\n{PROMPT}{typed_so_far()}", err=True, nl=False)
        else:
            self.view.begin_line()
            click.echo(line, err=True)


# -- a model


@asynccontextmanager
async def open_model(options: HostOptions, how: ChatOptions) -> AsyncGenerator[tuple[Host, str], None]:
    """Starts the extension of the selected model; all extensions with `--tools` or an incomplete model id.

    Raises:
        NotDeclared: there is no such model.
    """
    from becket.cli.support.host_session import open_extension, open_host, wait_and_report

    parts = (how.model or "").split(":")
    if len(parts) == 3 and not how.use_tools:
        async with open_extension(options, parts[0]) as (host, _):
            yield host, choose_model(host.models(), how.model)
    else:
        async with open_host(options) as host:
            await wait_and_report(host)
            yield host, choose_model(host.models(), how.model)


class NoModels(click.ClickException):
    """No running extension has a model."""

    exit_code = ExitCode.NOT_FOUND

    def __init__(self) -> None:
        super().__init__("No running extension has a model: name a folder with one that does (--root PATH)")


def choose_model(models: Sequence[str], name: str | None) -> str:
    """Returns the model with this id or unique part of an id; without a name, the only model.

    Raises:
        NotDeclared, NoModels: no model matches.
        click.UsageError: several models match.
    """
    if name in models:
        return str(name)
    matches = [model for model in models if name is None or f":{name}:" in f":{model}:"]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise click.UsageError(
            f"Which model? --model can be: {', '.join(matches)}", click.get_current_context(silent=True)
        )
    if not models:
        raise NoModels
    raise NotDeclared("becket", "model", str(name), models)


async def stream_completion(
    view: LiveView, host: Host, model: str, how: ChatOptions, messages: Sequence[Message]
) -> ProviderResult:
    """Sends messages to a model, prints the response while it arrives, and returns it."""
    from becket.cli.support.stream_output import print_event, print_result, show_stream
    from becket.contract.providers import TextDelta, ThinkingDelta

    options: dict[str, Any] = {
        "system_prompt": how.system,
        "temperature": how.temperature,
        "max_tokens": how.max_tokens,
    }
    if how.use_tools or not host.providers.route(model).model.streaming:
        result = await host.complete(model, messages=messages, use_tools=how.use_tools, **options)
        if how.as_json:
            print_event(TextDelta(result.text))
        else:
            with view:
                view.show(TextDelta(result.text))
    else:
        async with host.stream(model, messages=messages, **options) as run:
            left_out = () if how.thinking else (ThinkingDelta,)
            result = await show_stream(run, as_json=how.as_json, leave_out=left_out, view=view)
    if how.as_json:
        print_result(result)
    return result


# -- a conversation


def run_interactive(options: HostOptions, how: ChatOptions) -> None:
    """Runs a conversation, one prompt per line, until `/quit` or the end of input."""
    from anyio.from_thread import start_blocking_portal

    from becket.cli.support.logs import show_logs

    screen = ChatScreen()
    with (
        raise_on_signals(),
        show_logs(options.log_config(), screen.log),
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(open_model(options, how)) as (host, model),
    ):
        print_message(f"{model}. {HELP}")

        def complete(messages: list[Message]) -> Future[ProviderResult]:
            return portal.start_task_soon(stream_completion, screen.view, host, model, how, messages)

        messages: list[Message] = []
        for line in read_typed_lines(screen):
            if line == "/clear":
                messages.clear()
                continue
            run_turn(complete, messages, line)


def run_turn(complete: Callable[[list[Message]], Future[ProviderResult]], messages: list[Message], line: str) -> None:
    """Adds a prompt and its response to a conversation, unless the call fails or is stopped."""
    from becket.contract.providers import Message, user

    future = complete([*messages, user(line)])
    try:
        result = future.result()
    except KeyboardInterrupt:
        cancel_and_wait(future)
        print_message("")
    except BecketError as error:
        print_message(f"error: {error}")
    else:
        messages += [user(line), Message("assistant", result.content)]


def cancel_and_wait(future: Future[Any]) -> None:
    """Cancels a call in the other thread and waits until it has ended."""
    from concurrent.futures import wait

    future.cancel()
    wait([future])


def read_typed_lines(screen: ChatScreen) -> Iterator[str]:
    """Yields non-empty typed lines until the end of input."""
    import importlib

    try:
        importlib.import_module("readline")  # gives `input` line editing and history
    except ImportError:
        pass
    while True:
        try:
            screen.is_prompting = True
            line = input(PROMPT).strip()
        except KeyboardInterrupt:
            print_message("")
            continue
        except EOFError:
            print_message("")
            return
        finally:
            screen.is_prompting = False
        if line == "/quit":
            return
        if line == "/help":
            print_message(HELP)
        elif line:
            yield line


def typed_so_far() -> str:
    readline = sys.modules.get("readline")
    return "" if readline is None else str(readline.get_line_buffer())


@contextmanager
def raise_on_signals() -> Generator[None]:
    """Raises `TerminationRequested` in this thread on SIGTERM and SIGHUP."""

    def end(number: int, frame: Any) -> None:
        raise TerminationRequested(signal.Signals(number))

    def wake(number: int, frame: Any) -> None:
        pass

    handlers: dict[int, Any] = {signal.SIGTERM: end, signal.SIGHUP: end, signal.SIGALRM: wake}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    # Python would handle a signal that arrives just before `input` blocks only at the next key; the timer wakes it.
    signal.setitimer(signal.ITIMER_REAL, SIGNAL_POLL_INTERVAL, SIGNAL_POLL_INTERVAL)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
