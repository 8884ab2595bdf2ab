"""The conversation of a case is bounded, and keeps its beginning and its end."""

from __future__ import annotations

from becket.conformance.conversation import MAX_FIRST, MAX_LAST, MAX_TEXT, CaseConversation, Sender


def test_a_short_conversation_is_kept_in_whole() -> None:
    conversation = record(MAX_FIRST + MAX_LAST)

    assert [entry.text for entry in conversation.entries] == [str(n) for n in range(MAX_FIRST + MAX_LAST)]
    assert conversation.dropped == 0


def test_of_a_long_conversation_the_middle_is_left_out_and_counted() -> None:
    conversation = record(1_000)

    texts = [entry.text for entry in conversation.entries]
    left_out = 1_000 - MAX_FIRST - MAX_LAST
    assert conversation.dropped == left_out
    assert texts[:MAX_FIRST] == [str(n) for n in range(MAX_FIRST)]
    assert texts[MAX_FIRST] == f"{left_out} entries are left out"
    assert texts[MAX_FIRST + 1 :] == [str(n) for n in range(1_000 - MAX_LAST, 1_000)]


def test_a_long_text_is_truncated_with_its_length() -> None:
    conversation = CaseConversation()
    conversation.note("x" * (MAX_TEXT + 1))

    assert conversation.entries[0].text == "x" * MAX_TEXT + f"... ({MAX_TEXT + 1} characters)"


def record(count: int) -> CaseConversation:
    conversation = CaseConversation()
    for n in range(count):
        conversation.add(Sender.SUITE, str(n))
    return conversation
