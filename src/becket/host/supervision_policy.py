"""How an extension is supervised: when it is restarted, when its calls are refused, and how it is checked."""

from __future__ import annotations

from msgspec import Struct

from becket.host.breaker import BreakerPolicy
from becket.host.heartbeat import HeartbeatPolicy
from becket.host.restart import RestartPolicy

__all__ = ["SupervisionPolicy"]


class SupervisionPolicy(Struct, frozen=True, kw_only=True):
    """How an extension is supervised. Without a heartbeat, only exits and timeouts show that it is dead.

    With `restarts_on_errors` a process that responds with an error is ended, and the call sent once more to the next
    one; so is a call whose process has died. The hosts of one system do so, and a tool that rejects an input runs twice
    there. With `resends_hooks` a hook whose process has died is sent once more; None means as in the extension's own
    system. With `starts_on_demand` the first call starts it, unless it was stopped."""

    restart: RestartPolicy = RestartPolicy()
    breaker: BreakerPolicy = BreakerPolicy()
    heartbeat: HeartbeatPolicy | None = HeartbeatPolicy()
    drain_timeout: float = 10.0
    restarts_on_errors: bool = False
    resends_hooks: bool | None = None
    starts_on_demand: bool = False
