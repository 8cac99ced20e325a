"""The part of Cloud Workflows' language that our own workflows are written in, run here: steps that
assign, decide, call and return, and the expressions in them. What is not known is an error, and so
is a call that Google's discovery documents do not allow."""

from __future__ import annotations

import ast
import base64
import json
import operator
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast
from zoneinfo import ZoneInfo

from tests.engine.gcp import documents

#: An expression has no more characters (cloud.google.com/workflows/quotas; recalled and so
#: unverified).
LONGEST = 400
CONNECTOR = "googleapis.compute.v1."
Call = Callable[[str, Mapping[str, Any]], Any]
OPERATORS: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.Gt: operator.gt,
    ast.Add: operator.add,
}


class Workflow:
    """One workflow and its environment. `call` answers what it asks of Compute Engine, by method
    and arguments; `said` are its log entries, as (severity, text)."""

    def __init__(self, source: str, settings: Mapping[str, str], call: Call, now: datetime) -> None:
        self._steps = json.loads(source)["main"]["steps"]
        self._call, self.said = call, list[tuple[str, str]]()
        self._functions: Mapping[str, Callable[..., Any]] = {
            "sys.get_env": settings.__getitem__,
            "sys.now": now.timestamp,
            "time.parse": _parsed,
            "time.format": _formatted,
            "text.substring": _part,
            "json.decode": json.loads,
            "base64.decode": base64.b64decode,
            "map.get": _got,
            "default": _or,
            "len": len,
            "string": str,
        }

    def run(self, event: Mapping[str, Any]) -> str:
        """What it returns for an event."""
        self._names: dict[str, Any] = {"event": event}
        (found,) = self._several(self._steps) or [""]
        return found

    def _several(self, steps: Sequence[Mapping[str, Any]]) -> list[str]:
        """What the steps return; nothing where they go on."""
        for step in steps:
            ((_name, does),) = step.items()
            if found := self._one(does):
                return found
        return []

    def _one(self, does: Mapping[str, Any]) -> list[str]:
        if unknown := does.keys() - {"assign", "switch", "call", "args", "result", "return"}:
            raise SyntaxError(f"no step has {sorted(unknown)}")
        for assigned in does.get("assign", ()):
            ((name, value),) = assigned.items()
            self._names[name] = self.value(value)
        if "call" in does:
            answer = self._called(does["call"], self.value(does["args"]))
            if "result" in does:
                self._names[does["result"]] = answer
        for way in does.get("switch", ()):
            if self._decided(way["condition"]):
                return [way["return"]] if "return" in way else self._several(way["steps"])
        return [self.value(does["return"])] if "return" in does else []

    def _decided(self, condition: str) -> bool:
        found = self.value(condition)
        if not isinstance(found, bool):
            raise TypeError(f"{condition} is {found!r}")
        return found

    def _called(self, name: str, args: Mapping[str, Any]) -> Any:
        if name == "sys.log":
            self.said.append((args["severity"], args["text"]))
            return None
        method = "compute." + name.removeprefix(CONNECTOR)
        if not name.startswith(CONNECTOR):
            raise SyntaxError(f"there is no {name}")
        allowed(method, args)
        return self._call(method, args)

    def value(self, written: Any) -> Any:
        """A value with its expressions worked out."""
        if isinstance(written, dict):
            return {k: self.value(v) for k, v in cast(dict[str, Any], written).items()}
        if not isinstance(written, str) or not written.startswith("${"):
            return written
        if len(written) > LONGEST:
            raise SyntaxError(f"an expression of {len(written)} characters: {written}")
        return self._of(ast.parse(written[2:-1], mode="eval").body)

    def _of(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self._names[name]
            case ast.List(elts=items):
                return [self._of(item) for item in items]
            case ast.Attribute(value=of, attr=name):
                return self._of(of)[name]
            case ast.Call(func=function, args=args):
                return self._functions[ast.unparse(function)](*map(self._of, args))
            case ast.UnaryOp(op=ast.Not(), operand=of):
                return not self._of(of)
            case ast.BoolOp(op=op, values=values):
                ends = isinstance(op, ast.Or)
                return next((ends for v in values if self._of(v) is ends), not ends)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return OPERATORS[type(op)](self._of(left), self._of(right))
            case ast.BinOp(left=left, op=op, right=right):
                return OPERATORS[type(op)](self._of(left), self._of(right))
            case _:
                raise SyntaxError(f"no such expression here: {ast.unparse(node)}")


def _parsed(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _part(text: str, start: int, end: int) -> str:
    return text[start:end]


def _got(found: Mapping[str, Any], key: str) -> Any:
    return found.get(key)


def _or(value: Any, other: Any) -> Any:
    return other if value is None else value


def _formatted(seconds: float, zone: str) -> str:
    return datetime.fromtimestamp(seconds, UTC).astimezone(ZoneInfo(zone)).isoformat()


def allowed(method: str, args: Mapping[str, Any]) -> None:
    """Raises `ValueError` for a call that the discovery document of the API does not have."""
    found = documents.method(method)
    asked = {key: value for key, value in args.items() if key != "body"}
    wrong = list(found.problems(asked))
    if "body" in args:
        form = documents.schema(found.document, found.body)
        wrong += [why for _, why in documents.check(found.document, form, args["body"])]
    if wrong:
        raise ValueError("; ".join(wrong))


def message(spent: float, *, budget: str, account: str, declared: float = 500.0,
            month: str = "2026-12-01T08:00:00Z") -> Mapping[str, Any]:  # fmt: skip
    """What a budget tells its topic, as Eventarc hands it on (docs.cloud.google.com/billing,
    programmatic notifications: notification format, 2025)."""
    told = {
        "budgetDisplayName": "b",
        "costAmount": spent,
        "costIntervalStart": month,
        "budgetAmount": declared,
        "budgetAmountType": "SPECIFIED_AMOUNT",
        "currencyCode": "USD",
    }
    data = base64.b64encode(json.dumps(told).encode()).decode()
    attributes = {"billingAccountId": account, "budgetId": budget, "schemaVersion": "1.0"}
    return {"data": {"message": {"data": data, "attributes": attributes}}}
