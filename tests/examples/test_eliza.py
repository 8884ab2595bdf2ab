"""The provider responds whole and streamed, and stops when it is cancelled."""

from __future__ import annotations

import asyncio

import pytest
from examples.extensions.eliza.eliza import Eliza, last_words, reflect
from tests.examples.example_programs import manifest_of, started

from becket.contract.providers import Message, ProviderDone, TextDelta, ThinkingDelta, Usage, assistant, user
from becket.testing import connected

GRANTS = manifest_of("eliza").permissions
MESSAGES = [user("I am tired of my old code.")]
REPLY = "How long have you been tired of your old code?"


async def test_a_response_is_streamed_by_word_and_then_returned_whole() -> None:
    async with connected(Eliza(), grants=GRANTS) as (host, _):
        async with host.stream("eliza", "doctor", messages=MESSAGES) as response:
            events = [event async for event in response]
        words = [event.text for event in events if isinstance(event, TextDelta)]
        assert words[:3] == ["How ", "long ", "have "]
        assert "".join(words) == REPLY
        assert isinstance(events[0], ThinkingDelta)
        assert events[-2:] == [Usage({"input_tokens": 7, "output_tokens": 10}), ProviderDone()]
        assert (await response.result()).text == REPLY


async def test_a_complete_response_is_the_same() -> None:
    async with connected(Eliza(), grants=GRANTS) as (host, _):
        assert (await host.complete("eliza", "doctor", messages=MESSAGES)).text == REPLY


async def test_the_response_stops_when_the_stream_is_cancelled() -> None:
    async with connected(Eliza(), grants=GRANTS, config={"pace": 0.001}) as (host, _):
        async with host.stream("eliza", "doctor", messages=MESSAGES) as response:
            await anext(response)
        async with asyncio.timeout(5):  # the next one is served, and nothing of the first is left over
            assert (await host.complete("eliza", "doctor", messages=[user("hello")])).text == "Please go on."


@pytest.mark.parametrize(
    ("received", "reply"),
    [
        ("I need a holiday", "Why do you need a holiday?"),
        ("What is your name?", "Why do you ask?"),
        ("It was my mother", "Tell me more about your mother."),
        ("No!", "You are being a bit negative."),
        ("I am my own enemy, and you?", "How long have you been your own enemy, and me?"),
        ("", "Please go on."),
    ],
)
def test_statements_become_questions(received: str, reply: str) -> None:
    assert reflect(received) == reply


def test_the_last_user_message_is_used() -> None:
    blocks = Message("user", ({"type": "text", "text": "hello"}, {"type": "image"}))
    assert last_words((user("first"), assistant("second"))) == "first"
    assert last_words((blocks,)) == "hello"
    assert last_words(()) == ""


@pytest.mark.process
async def test_eliza_runs_as_a_process() -> None:
    async with started("eliza", config={"pace": 0.001}) as eliza:
        (provider,) = eliza.providers
        assert provider.description == "A therapist who turns what you say into a question."
        async with eliza.stream("eliza", "doctor", messages=MESSAGES) as response:
            assert "".join([event.text async for event in response if isinstance(event, TextDelta)]) == REPLY
