"""Maps the contract to synaps: unchanged methods, and reduced memory and configuration.

A host of this system has neither ids of records nor revisions of values, and sends no changes of the
configuration, and takes params as loosely as `decode_append` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Raw
from msgspec.structs import replace

from becket.adapters.synaps.handshake import SERVER_HANDSHAKE, client_handshake, find_plugin_id
from becket.contract.commands import COMMAND_INVOKE, COMMAND_OUTPUT, CommandOutputParams
from becket.contract.config import (
    CONFIG_GET,
    CONFIG_SET,
    CONFIG_SUBSCRIBE,
    ConfigGet,
    ConfigSaved,
    ConfigSet,
    ConfigSubscribe,
    ConfigSubscribed,
    ConfigValue,
    find_key_problem,
)
from becket.contract.handshake import SHUTDOWN
from becket.contract.hooks import HOOK_HANDLE, HookEvent, HookResult, decode_any_result
from becket.contract.info import INFO_GET, SIDECAR_SPAWN_ARGS
from becket.contract.json_narrowing import is_array
from becket.contract.memory import (
    MEMORY_APPEND,
    MEMORY_QUERY,
    Append,
    Appended,
    Query,
    Records,
    check_owner,
    decode_append,
    decode_object,
    decode_query,
    require_text,
)
from becket.contract.providers import PROVIDER_COMPLETE, PROVIDER_STREAM, PROVIDER_STREAM_EVENT, build_event_params
from becket.contract.settings import (
    SETTINGS_EDITOR_CLOSE,
    SETTINGS_EDITOR_COMMIT,
    SETTINGS_EDITOR_COMMITTED,
    SETTINGS_EDITOR_KEY,
    SETTINGS_EDITOR_OPEN,
    SETTINGS_EDITOR_RENDER,
)
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
from becket.dialects.link_state import LinkState, WireNotification, WireRequest
from becket.dialects.mapping import ContractMapping, MethodMapping, NotificationMapping, identity
from becket.errors import InvalidParams, Meaning, NotSupported, RpcError
from becket.jsonrpc.json_values import encode_json
from becket.methods.descriptors import Method, Notification

__all__ = ["MAPPING"]


# -- methods of the extension: unchanged


EVENT_NOTIFICATIONS: Final[Mapping[type, Notification[Any]]] = {
    TaskStarted: TASK_START,
    TaskUpdated: TASK_UPDATE,
    TaskLogged: TASK_LOG,
    TaskEnded: TASK_DONE,
}


def encode_event(event: Any, request: WireRequest, state: LinkState) -> WireNotification:
    """Returns the notification of an event, with the id of its run for commands."""
    for kind, notification in EVENT_NOTIFICATIONS.items():
        if isinstance(event, kind):
            return WireNotification(notification.name, event)
    if request.method is COMMAND_INVOKE:
        return WireNotification(COMMAND_OUTPUT.name, CommandOutputParams(request.params.request_id, event))
    return WireNotification(PROVIDER_STREAM_EVENT.name, build_event_params(event))


def build_identity_mapping(
    method: Method[Any, Any], read: Callable[[Any, WireRequest, LinkState], Any] = identity
) -> MethodMapping:
    """Returns the mapping of a method that is sent unchanged."""
    return MethodMapping(
        encode_request=lambda params, state: WireRequest(method, params),
        decode_result=read,
        wire_methods=lambda state: (method,),
        decode_request=lambda request, state: request.params,
        encode_event=encode_event,
    )


def decode_hook_result(result: Raw, request: WireRequest, state: LinkState) -> HookResult | Raw:
    """Returns the result, or the raw result if it is malformed: its meaning then depends on its action.

    The input of a `modify` may be any JSON value: SynapsCLI passes it on."""
    reading = decode_any_result(result, any_input=True)
    return reading.result if reading.problem is None else result


RAW_HOOK_HANDLE: Final[Method[HookEvent, Raw]] = Method(
    HOOK_HANDLE.name, HookEvent, Raw, timeout=HOOK_HANDLE.timeout, direction="to-extension"
)
UNCHANGED_METHODS: Final = (
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


# -- methods of the host: params are decoded leniently, and results have fewer members


def build_host_method_mapping(
    method: Method[Any, Any],
    encode_params: Callable[[Any], Any],
    decode_params: Callable[[Raw, LinkState], Any],
    encode_result: Callable[[Any, LinkState], Any],
    encode_failure: Callable[[RpcError, WireRequest, LinkState], Any] | None = None,
) -> MethodMapping:
    """Returns the mapping of a method of the host; `encode_failure` gets errors that occur after decoding."""
    raw: Method[Any, Any] = Method(method.name, Raw, method.result)
    return MethodMapping(
        encode_request=lambda params, state: WireRequest(method, encode_params(params)),
        wire_methods=lambda state: (raw,),
        decode_request=lambda request, state: decode_params(request.params, state),
        encode_result=lambda result, request, state: encode_result(result, state),
        encode_failure=encode_failure,
    )


def encode_append(append: Append) -> Append:
    return replace(append, idem=None)


def decode_wire_append(raw: Raw, state: LinkState) -> Append:
    decode_wire_query(raw, state)  # checks the namespace first
    return replace(decode_append(raw), namespace=state.extension)


def reject_append(error: RpcError, request: WireRequest, state: LinkState) -> Any:
    """Raises the error of an append. SynapsCLI reports a record above a limit as an error of the store."""
    if isinstance(error, InvalidParams) and error.problems:
        raise RpcError(Meaning.TOO_LARGE, error.problems[0][1]) from error
    raise error


def encode_append_result(appended: Appended, state: LinkState) -> Appended:
    return Appended(appended.ok, appended.timestamp_ms)


def decode_wire_query(raw: Raw, state: LinkState) -> Query:
    query = decode_query(raw)
    check_owner(query.namespace, find_plugin_id(state))
    return replace(query, namespace=state.extension)


def encode_query_result(found: Records, state: LinkState) -> Records:
    return Records(tuple(replace(record, id=None, namespace=find_plugin_id(state)) for record in found.records))


def decode_config_get(raw: Raw, state: LinkState) -> ConfigGet:
    return ConfigGet(require_text(decode_object(raw), "key"))


def encode_config_get_result(found: ConfigValue, state: LinkState) -> ConfigValue:
    return ConfigValue(found.value)


def encode_config_set(change: ConfigSet) -> ConfigSet:
    if change.if_revision is not None:
        raise NotSupported("`if_revision`", "the dialect `synaps` has no revisions")
    return change


def decode_config_set(raw: Raw, state: LinkState) -> ConfigSet:
    params = decode_object(raw)
    return ConfigSet(require_text(params, "key"), require_text(params, "value"))


def encode_config_set_result(saved: ConfigSaved, state: LinkState) -> ConfigSaved:
    return ConfigSaved(saved.ok)


def encode_subscribe(params: ConfigSubscribe) -> ConfigSubscribe:
    return ConfigSubscribe(params.keys)


def decode_subscribe(raw: Raw, state: LinkState) -> ConfigSubscribe:
    # SynapsCLI acknowledges any params.
    value = decode_object(raw).get("keys")
    keys = [key for key in value if isinstance(key, str) and find_key_problem(key) is None] if is_array(value) else None
    return ConfigSubscribe(None if keys is None else tuple(keys))


def encode_subscribe_result(subscribed: ConfigSubscribed, state: LinkState) -> ConfigSubscribed:
    return ConfigSubscribed(subscribed.ok)


def pass_params(params: Any) -> Any:
    return params


# -- notifications of the extension


def build_notification_mapping(notification: Notification[Any]) -> NotificationMapping:
    """Returns the mapping of a notification that is sent unchanged."""
    return NotificationMapping(
        wire_name=notification.name,
        encode=lambda params, state: WireNotification(notification.name, params),
        decode=lambda params, state: Raw(encode_json(params)),  # the contract decodes it leniently
    )


UNCHANGED_NOTIFICATIONS: Final = (
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


MAPPING: Final = ContractMapping(
    requests_info=True,
    dialect="synaps",
    client_handshake=client_handshake,
    server_handshake=SERVER_HANDSHAKE,
    encode_shutdown=lambda state: WireRequest(SHUTDOWN),
    methods={
        **{method.name: build_identity_mapping(method) for method in UNCHANGED_METHODS},
        HOOK_HANDLE.name: build_identity_mapping(RAW_HOOK_HANDLE, decode_hook_result),
        MEMORY_APPEND.name: build_host_method_mapping(
            MEMORY_APPEND, encode_append, decode_wire_append, encode_append_result, reject_append
        ),
        MEMORY_QUERY.name: build_host_method_mapping(MEMORY_QUERY, pass_params, decode_wire_query, encode_query_result),
        CONFIG_GET.name: build_host_method_mapping(
            CONFIG_GET, pass_params, decode_config_get, encode_config_get_result
        ),
        CONFIG_SET.name: build_host_method_mapping(
            CONFIG_SET, encode_config_set, decode_config_set, encode_config_set_result
        ),
        CONFIG_SUBSCRIBE.name: build_host_method_mapping(
            CONFIG_SUBSCRIBE, encode_subscribe, decode_subscribe, encode_subscribe_result
        ),
    },
    notifications={
        notification.name: build_notification_mapping(notification) for notification in UNCHANGED_NOTIFICATIONS
    },
)
