"""Builds nexo admin methods and maps their capabilities to permissions and errors.

Admin methods are the only requests of a nexo extension; their ids begin with `app:`. The host defines them with
`admin_method` and a handler, and the extension's grants decide. The capability `agents_crud` on the wire is the
permission `nexo.agents_crud` in becket.
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
    """Returns the permission of a capability."""
    return PERMISSION_PREFIX + capability


def to_capability(permission: str) -> str:
    """Returns the capability of a permission."""
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
    """Returns an admin method: `admin_method("agents/list", "agents_crud", Filter, Agents)`.

    Raises:
        ValueError: the path or the capability is empty.
    """
    if not path or not capability:
        raise ValueError("an admin method needs a path such as `agents/list` and a capability")
    return Method(
        ADMIN_PREFIX + path,
        params,
        result,
        requires=to_permission(capability),
        direction="to-host",
        summary=summary,
    )


def encode_error(error: RpcError) -> RpcError:
    """Returns an error of the host for nexo: a denied permission becomes `capability_not_granted`."""
    if not isinstance(error, PermissionDenied):
        return error
    data = {
        "capability": to_capability(error.permission),
        "microapp_id": error.extension,
        "method": error.method,
    }
    return RpcError(NOT_GRANTED_CODE, NOT_GRANTED_TEXT, data)
