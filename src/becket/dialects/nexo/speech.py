"""The contract in the words of nexo: tools and hooks. There are none for providers, commands, memory or configuration;
an extension's own notifications have no meaning there either.
"""

from __future__ import annotations

from typing import Any, Final

from becket.contract.hooks import HOOK_HANDLE
from becket.contract.shapes import is_object
from becket.contract.tools import TOOL_CALL, ToolCall
from becket.dialects.nexo.handshake import WELCOME, greet, say_goodbye
from becket.dialects.nexo.hooks import answer_hook, hear_hook, read_hook, say_hook
from becket.dialects.nexo.session_meta import seal_call, without_meta
from becket.dialects.nexo.words import HOOK_METHODS, TOOLS_CALL, CallParams
from becket.dialects.phrases import Phrase, Saying, Scene
from becket.dialects.speech import Speech
from becket.errors import InvalidParams

__all__ = ["SPEECH"]


def say_call(call: ToolCall, scene: Scene) -> Saying:
    return Saying(TOOLS_CALL, CallParams(call.name, call.input))


def hear_call(saying: Saying, scene: Scene) -> ToolCall:
    """Returns which tool is to run on what; what the host says of the session is no part of that."""
    asked: CallParams = saying.params
    arguments: Any = {} if asked.arguments is None else asked.arguments
    if not is_object(arguments):
        raise InvalidParams([("/arguments", "must be an object")])
    return ToolCall(asked.name, without_meta(arguments))


SPEECH: Final = Speech(
    dialect="nexo",
    greet=greet,
    welcome=WELCOME,
    phrases={
        TOOL_CALL.name: Phrase(say=say_call, heard_as=lambda _: (TOOLS_CALL,), hear=hear_call),
        HOOK_HANDLE.name: Phrase(
            say=say_hook,
            read=read_hook,
            heard_as=lambda _: tuple(HOOK_METHODS.values()),
            hear=hear_hook,
            answer=answer_hook,
        ),
    },
    goodbye=say_goodbye,
    seal=seal_call,
)
