"""Form bodies with bracket nesting, as the card processor's library sends them."""

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl

from waistheart.sandbox.card_errors import CardError, invalid

PART = re.compile(r"\[([^\]]*)\]")


def parse(text: str) -> dict[str, Any]:
    """`a[b][0][c]=1&expand[]=x` becomes `{"a": {"b": [{"c": "1"}]}, "expand": ["x"]}`; every leaf stays a string."""
    return nested(parse_qsl(text, keep_blank_values=True))


def nested(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The same for names and values already taken apart."""
    tree: dict[str, Any] = {}
    for name, value in pairs:
        _put(tree, _steps(name), value)
    return {name: _listed(branch) for name, branch in tree.items()}


def whole_number(params: dict[str, Any], name: str, *, default: int) -> int:
    """The parameter as an integer, or `default` when absent; anything else is refused by name."""
    value = params.get(name)
    if value is None:
        return default
    if not isinstance(value, str) or not re.fullmatch(r"-?\d+", value):
        raise CardError(f"Invalid integer: {value}", code="parameter_invalid_integer", param=name)
    return int(value)


def mapping(params: dict[str, Any], name: str) -> dict[str, Any]:
    value = params.get(name, {})
    if not isinstance(value, dict):
        raise invalid(name, "Invalid object")
    return value


def texts(params: dict[str, Any], name: str) -> list[str]:
    value = params.get(name, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise invalid(name, "Invalid array")
    return value


def _steps(name: str) -> list[str]:
    head, bracket, rest = name.partition("[")
    return [head, *PART.findall(bracket + rest)]


def _put(tree: dict[str, Any], steps: list[str], value: str) -> None:
    for step in steps[:-1]:
        branch = tree.setdefault(step, {})
        if not isinstance(branch, dict):
            raise invalid(step, "Invalid object")
        tree = branch
    last = steps[-1] or str(len(tree))
    tree[last] = value


def _listed(branch: Any) -> Any:
    if not isinstance(branch, dict):
        return branch
    if branch and all(key.isdigit() for key in branch):
        return [_listed(branch[key]) for key in sorted(branch, key=int)]
    return {key: _listed(value) for key, value in branch.items()}
