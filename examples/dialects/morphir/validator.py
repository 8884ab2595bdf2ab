"""An extension as authors of Morphir write them, in plain Python: it looks through a model for names in lower case.

Try it by hand: `echo '{"id":1,"method":"capabilities","params":{}}' | python3 validator.py`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

settings: dict[str, Any] = {}
seen: list[int] = []


def initialize(params: Any) -> Any:
    settings.update(params or {})
    if settings.get("style", "dense") not in ("dense", "loose"):
        raise ValueError(f"no such style: {settings['style']}")
    return {"status": "ready"}


def capabilities(params: Any) -> Any:
    model = {"type": "object", "properties": {"ir": {"type": "object"}}, "required": ["ir"]}
    return [
        {"name": "validate", "description": "Looks for names that break the rules.", "params_schema": model},
        {"name": "transform", "description": "Gives back what it got."},
        {"name": "forget", "description": "Forgets what was validated."},
    ]


def validate(params: Any) -> Any:
    modules = params["ir"].get("modules", [])
    seen.append(len(modules))
    log("info", f"looking through {len(modules)} modules")
    wrong = [module["name"] for module in modules if not module["name"][:1].isupper()]
    return {"valid": not wrong, "errors": [f"module {name} should begin in upper case" for name in wrong]}


def transform(params: Any) -> Any:
    return {"result": params}


def forget(params: Any) -> Any:
    seen.clear()


def health_check(params: Any) -> Any:
    if len(seen) > 1000:
        return {"status": "degraded", "message": "it remembers too much"}
    return {"status": "healthy"}


HANDLERS = {
    "initialize": initialize,
    "capabilities": capabilities,
    "validate": validate,
    "transform": transform,
    "forget": forget,
    "health_check": health_check,
}


def log(level: str, message: str) -> None:
    write({"method": "log", "params": {"level": level, "message": message}})


def write(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


def main() -> None:
    """Responds line by line until there are no more."""
    print("validator started", file=sys.stderr, flush=True)
    for line in sys.stdin:
        try:
            request = json.loads(line)
            number, method = request["id"], request["method"]
        except (ValueError, LookupError, TypeError) as error:
            print(f"not a request: {error}", file=sys.stderr, flush=True)
            continue
        handler = HANDLERS.get(method)
        if handler is None:
            write({"id": number, "error": f"Unknown method: {method}"})
            continue
        try:
            write({"id": number, "result": handler(request.get("params"))})
        except Exception as error:
            write({"id": number, "error": f"{type(error).__name__}: {error}"})


if __name__ == "__main__":
    main()
