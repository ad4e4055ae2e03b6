"""`.env.example` and the settings name the same things, with the same defaults."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
READ_ELSEWHERE = {"PORT"}  # by waistheart/run
NOT_FOR_THE_FILE = {"READ_DOT_ENV"}  # decides whether the file is read at all
LINE = re.compile(r"#(?P<name>[A-Z][A-Z0-9_]*)=(?P<value>.*)")


def test_every_setting_is_in_the_example_and_nothing_else():
    assert set(example()) == (set(settings_read()) | READ_ELSEWHERE) - NOT_FOR_THE_FILE


def test_every_setting_is_explained_in_one_line():
    lines = (ROOT / ".env.example").read_text().splitlines()
    for above, line in zip(["", *lines], lines, strict=False):
        if LINE.fullmatch(line):
            assert re.match(r"# \w.{10,}", above), f"{line} has no explanation above it"


def test_the_example_shows_the_defaults():
    shown, read = example(), settings_read()
    wrong = {name: (shown[name], default) for name, default in read.items() if default is not None and name in shown}
    assert {name: pair for name, pair in wrong.items() if pair[0] != pair[1]} == {}


def example() -> dict[str, str]:
    """The names of the example with the values shown."""
    matches = [LINE.fullmatch(line) for line in (ROOT / ".env.example").read_text().splitlines()]
    return {match["name"]: match["value"] for match in matches if match}


def settings_read() -> dict[str, str | None]:
    """The names that settings.py reads, with their defaults where those are constants."""
    tree = ast.parse((ROOT / "waistheart" / "settings.py").read_text())
    return {call.args[0].value: default_of(call) for call in reads(tree)}  # type: ignore[attr-defined]


def reads(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.Constant):
            continue
        function = ast.unparse(node.func)
        if re.fullmatch(r"strict_bool|env\.[a-z_]+", function) and isinstance(node.args[0].value, str):
            yield node


def default_of(call: ast.Call) -> str | None:
    """A default as it would be written in the file; None for one that depends on other settings."""
    if ast.unparse(call.func) == "strict_bool":
        return "0"
    default = next((keyword.value for keyword in call.keywords if keyword.arg == "default"), None)
    if default is None or any(isinstance(node, ast.Name | ast.Call) for node in ast.walk(default)):
        return None
    value = eval(ast.unparse(default), {"__builtins__": {}})
    return ",".join(value) if isinstance(value, list) else str(value)
