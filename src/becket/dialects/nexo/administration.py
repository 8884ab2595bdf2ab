"""Administration: what an extension of nexo may ask its host, each method behind a capability of its own.

These are the only requests that such an extension makes, and their ids begin with `app:`. Which methods there are is
the host's: `admin_method` names one, a handler under it serves it, and the extension's grants decide. The capability
`agents_crud` is the permission `nexo.agents_crud` to everybody but the other side of the link.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar, overload

from becket.errors import PermissionDenied, RpcError
from becket.methods.descriptors import Method

__all__ = ["ADMIN", "NOT_GRANTED", "admin_method", "capability_of", "permission_of", "say_error"]

P = TypeVar("P")
R = TypeVar("R")

ADMIN: Final = "nexo/admin/"
NAMESPACE: Final = "nexo."
NOT_GRANTED: Final = -32004
NOT_GRANTED_TEXT: Final = "capability_not_granted"


def permission_of(capability: str) -> str:
    """Returns the permission that a capability is."""
    return NAMESPACE + capability


def capability_of(permission: str) -> str:
    """Returns the capability that a permission is to the other side."""
    return permission.removeprefix(NAMESPACE)


@overload
def admin_method(
    path: str, capability: str, params: type[P], result: type[R], *, summary: str = ""
) -> Method[P, R]: ...
@overload
def admin_method(
    path: str, capability: str, params: Any = None, result: Any = Any, *, summary: str = ""
) -> Method[Any, Any]: ...
def admin_method(
    path: str, capability: str, params: Any = None, result: Any = Any, *, summary: str = ""
) -> Method[Any, Any]:
    """Returns a method of administration: `admin_method("agents/list", "agents_crud", Filter, Agents)`.

    Raises:
        ValueError: the path or the capability is empty.
    """
    if not path or not capability:
        raise ValueError("a method of administration has a path such as `agents/list` and a capability")
    return Method(
        ADMIN + path,
        params,
        result,
        requires=permission_of(capability),
        direction="to-host",
        summary=summary,
    )


def say_error(error: RpcError) -> RpcError:
    """Returns an error of the host in the words of nexo: a denied permission is a capability that is not granted."""
    if not isinstance(error, PermissionDenied):
        return error
    data = {
        "capability": capability_of(error.permission),
        "microapp_id": error.extension,
        "method": error.method,
    }
    return RpcError(NOT_GRANTED, NOT_GRANTED_TEXT, data)
