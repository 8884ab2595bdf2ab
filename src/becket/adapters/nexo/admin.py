"""Builds nexo admin methods and maps their capabilities to permissions and errors.

These are the only requests that such an extension makes, and their ids begin with `app:`. Which methods there are is
the host's: `admin_method` names one, a handler under it serves it, and the extension's grants decide. The capability
`agents_crud` is the permission `nexo.agents_crud` to everybody but the other side of the link.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar, overload

from becket.errors import PermissionDenied, RpcError
from becket.methods.descriptors import Method

__all__ = ["ADMIN_PREFIX", "NOT_GRANTED_CODE", "admin_method", "encode_error", "to_capability", "to_permission"]

P = TypeVar("P")
R = TypeVar("R")

ADMIN_PREFIX: Final = "nexo/admin/"
PERMISSION_PREFIX: Final = "nexo."
NOT_GRANTED_CODE: Final = -32004
NOT_GRANTED_TEXT: Final = "capability_not_granted"


def to_permission(capability: str) -> str:
    """Returns the permission that a capability is."""
    return PERMISSION_PREFIX + capability


def to_capability(permission: str) -> str:
    """Returns the capability that a permission is to the other side."""
    return permission.removeprefix(PERMISSION_PREFIX)


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
        ADMIN_PREFIX + path,
        params,
        result,
        requires=to_permission(capability),
        direction="to-host",
        summary=summary,
    )


def encode_error(error: RpcError) -> RpcError:
    """Returns an error of the host in the words of nexo: a denied permission is a capability that is not granted."""
    if not isinstance(error, PermissionDenied):
        return error
    data = {
        "capability": to_capability(error.permission),
        "microapp_id": error.extension,
        "method": error.method,
    }
    return RpcError(NOT_GRANTED_CODE, NOT_GRANTED_TEXT, data)
