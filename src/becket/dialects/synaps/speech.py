"""How the contract is spoken: in its own words, but for the memory and the configuration, which are simpler here.

A host of this system knows neither the ids of records nor the revisions of values, tells of no change of the
configuration, and takes params as loosely as `read_append` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Raw
from msgspec.structs import replace

from becket.contract.commands import COMMAND_INVOKE, COMMAND_OUTPUT, OutputFrame
from becket.contract.config import (
    CONFIG_GET,
    CONFIG_SET,
    CONFIG_SUBSCRIBE,
    ConfigGet,
    ConfigSaved,
    ConfigSet,
    ConfigValue,
    Subscribe,
    Subscribed,
    find_key_problem,
)
from becket.contract.handshake import SHUTDOWN
from becket.contract.hooks import HOOK_HANDLE, HookEvent, HookResult, decode_result
from becket.contract.info import INFO_GET, SIDECAR_SPAWN_ARGS
from becket.contract.memory import (
    MEMORY_APPEND,
    MEMORY_QUERY,
    Append,
    Appended,
    Query,
    Records,
    check_query,
    read_append,
    read_object,
    read_query,
    require_text,
)
from becket.contract.providers import PROVIDER_COMPLETE, PROVIDER_STREAM, PROVIDER_STREAM_EVENT, event_params
from becket.contract.settings import (
    SETTINGS_EDITOR_CLOSE,
    SETTINGS_EDITOR_COMMIT,
    SETTINGS_EDITOR_COMMITTED,
    SETTINGS_EDITOR_KEY,
    SETTINGS_EDITOR_OPEN,
    SETTINGS_EDITOR_RENDER,
)
from becket.contract.shapes import is_array
from becket.contract.tasks import (
    TASK_DONE,
    TASK_LOG,
    TASK_START,
    TASK_UPDATE,
    TaskEnded,
    TaskLogged,
    TaskStarted,
    TaskUpdated,
)
from becket.contract.tools import TOOL_CALL
from becket.contract.widgets import WIDGET_DISMISS, WIDGET_UPSERT
from becket.dialects.phrases import Phrase, Saying, Scene, Tale, as_it_is
from becket.dialects.speech import Speech, TalePhrase
from becket.dialects.synaps.handshake import WELCOME, greet, name_of
from becket.errors import InvalidParams, Meaning, NotSupported, RpcError
from becket.methods.descriptors import Method, Notification
from becket.rpc.json_values import encode_json

__all__ = ["SPEECH"]


# -- what the host asks: nothing is translated


TOLD_AS: Final[Mapping[type, Notification[Any]]] = {
    TaskStarted: TASK_START,
    TaskUpdated: TASK_UPDATE,
    TaskLogged: TASK_LOG,
    TaskEnded: TASK_DONE,
}


def tell_as_it_is(event: Any, saying: Saying, scene: Scene) -> Tale:
    """Returns the notification of an event, with the id of the run that it belongs to where that travels."""
    for kind, notification in TOLD_AS.items():
        if isinstance(event, kind):
            return Tale(notification.name, event)
    if saying.method is COMMAND_INVOKE:
        return Tale(COMMAND_OUTPUT.name, OutputFrame(saying.params.request_id, event))
    return Tale(PROVIDER_STREAM_EVENT.name, event_params(event))


def unchanged(method: Method[Any, Any], read: Callable[[Any, Saying, Scene], Any] = as_it_is) -> Phrase:
    """Returns the phrase of a method that is said as the contract says it."""
    return Phrase(
        say=lambda params, scene: Saying(method, params),
        read=read,
        heard_as=lambda scene: (method,),
        hear=lambda saying, scene: saying.params,
        tell=tell_as_it_is,
    )


def read_hook(answer: Raw, saying: Saying, scene: Scene) -> HookResult | Raw:
    """Returns the response, left raw where it is malformed: what it comes to then depends on what it wanted to do.

    The input of a `modify` may be any JSON value: that system passes it on."""
    reading = decode_result(answer, any_input=True)
    return reading.result if reading.problem is None else answer


RAW_HOOK: Final[Method[HookEvent, Raw]] = Method(
    HOOK_HANDLE.name, HookEvent, Raw, timeout=HOOK_HANDLE.timeout, direction="to-extension"
)
ASKED: Final = (
    TOOL_CALL,
    PROVIDER_COMPLETE,
    PROVIDER_STREAM,
    COMMAND_INVOKE,
    INFO_GET,
    SIDECAR_SPAWN_ARGS,
    SETTINGS_EDITOR_OPEN,
    SETTINGS_EDITOR_KEY,
    SETTINGS_EDITOR_COMMIT,
)


# -- what the extension asks: the host reads it with its own patience, and answers with less


def asked_of_host(
    method: Method[Any, Any],
    say: Callable[[Any], Any],
    hear: Callable[[Raw, Scene], Any],
    answer: Callable[[Any, Scene], Any],
    fail: Callable[[RpcError, Saying, Scene], Any] | None = None,
) -> Phrase:
    """Returns the phrase of a method of the host's; `hear` gets the raw params, and `fail` what the host failed with
    once it had read them."""
    raw: Method[Any, Any] = Method(method.name, Raw, method.result)
    return Phrase(
        say=lambda params, scene: Saying(method, say(params)),
        heard_as=lambda scene: (raw,),
        hear=lambda saying, scene: hear(saying.params, scene),
        answer=lambda result, saying, scene: answer(result, scene),
        fail=fail,
    )


def say_append(append: Append) -> Append:
    return replace(append, idem=None)


def hear_append(raw: Raw, scene: Scene) -> Append:
    hear_query(raw, scene)  # whose namespace it is comes before the rest
    return replace(read_append(raw), namespace=scene.extension)


def reject_append(error: RpcError, saying: Saying, scene: Scene) -> Any:
    """Raises the error of a record. One above a limit is for that system a failure of the store."""
    if isinstance(error, InvalidParams) and error.problems:
        raise RpcError(Meaning.TOO_LARGE, error.problems[0][1]) from error
    raise error


def answer_append(appended: Appended, scene: Scene) -> Appended:
    return Appended(appended.ok, appended.timestamp_ms)


def hear_query(raw: Raw, scene: Scene) -> Query:
    query = read_query(raw)
    check_query(query, name_of(scene))
    return replace(query, namespace=scene.extension)


def answer_query(found: Records, scene: Scene) -> Records:
    return Records(tuple(replace(record, id=None, namespace=name_of(scene)) for record in found.records))


def hear_get(raw: Raw, scene: Scene) -> ConfigGet:
    return ConfigGet(require_text(read_object(raw), "key"))


def answer_get(found: ConfigValue, scene: Scene) -> ConfigValue:
    return ConfigValue(found.value)


def say_set(change: ConfigSet) -> ConfigSet:
    if change.if_revision is not None:
        raise NotSupported("`if_revision`", "the dialect `synaps` has no revisions")
    return change


def hear_set(raw: Raw, scene: Scene) -> ConfigSet:
    params = read_object(raw)
    return ConfigSet(require_text(params, "key"), require_text(params, "value"))


def answer_set(saved: ConfigSaved, scene: Scene) -> ConfigSaved:
    return ConfigSaved(saved.ok)


def say_subscribe(wanted: Subscribe) -> Subscribe:
    return Subscribe(wanted.keys)


def hear_subscribe(raw: Raw, scene: Scene) -> Subscribe:
    # It is acknowledged, whatever it asks for, and nothing more comes of it.
    given = read_object(raw).get("keys")
    keys = [key for key in given if isinstance(key, str) and find_key_problem(key) is None] if is_array(given) else None
    return Subscribe(None if keys is None else tuple(keys))


def answer_subscribe(subscribed: Subscribed, scene: Scene) -> Subscribed:
    return Subscribed(subscribed.ok)


def as_given(params: Any) -> Any:
    return params


# -- what the extension tells


def told(notification: Notification[Any]) -> TalePhrase:
    """Returns how a notification is told: as the contract tells it."""
    return TalePhrase(
        heard_as=notification.name,
        tell=lambda params, scene: Tale(notification.name, params),
        hear=lambda params, scene: Raw(encode_json(params)),  # with all its oddities, which the contract's readers know
    )


TOLD: Final = (
    PROVIDER_STREAM_EVENT,
    COMMAND_OUTPUT,
    TASK_START,
    TASK_UPDATE,
    TASK_LOG,
    TASK_DONE,
    SETTINGS_EDITOR_RENDER,
    SETTINGS_EDITOR_COMMITTED,
    SETTINGS_EDITOR_CLOSE,
    WIDGET_UPSERT,
    WIDGET_DISMISS,
)


# -- all of it

SPEECH: Final = Speech(
    probes_info=True,
    dialect="synaps",
    greet=greet,
    welcome=WELCOME,
    goodbye=lambda scene: Saying(SHUTDOWN),
    phrases={
        **{method.name: unchanged(method) for method in ASKED},
        HOOK_HANDLE.name: unchanged(RAW_HOOK, read_hook),
        MEMORY_APPEND.name: asked_of_host(MEMORY_APPEND, say_append, hear_append, answer_append, reject_append),
        MEMORY_QUERY.name: asked_of_host(MEMORY_QUERY, as_given, hear_query, answer_query),
        CONFIG_GET.name: asked_of_host(CONFIG_GET, as_given, hear_get, answer_get),
        CONFIG_SET.name: asked_of_host(CONFIG_SET, say_set, hear_set, answer_set),
        CONFIG_SUBSCRIBE.name: asked_of_host(CONFIG_SUBSCRIBE, say_subscribe, hear_subscribe, answer_subscribe),
    },
    tales={notification.name: told(notification) for notification in TOLD},
)
