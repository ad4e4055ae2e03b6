"""House rules that a reader should not have to check by eye."""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
APPS = ("waistheart", "orders", "generation", "billing")
STATE_MODELS = {
    "Job": "generation/moves.py",
    "Payment": "billing/moves.py",
    "Order": "orders/moves.py",
    "Mail": "orders/moves.py",
}
LONGEST_FILE = 250
# Split so that this file does not contain what it looks for.
FORBIDDEN = (
    "pypi" + ".org",
    "pythonhosted" + ".org",
    "npmjs" + ".org",
    "--index" + "-url",
    "/work" + "/",
    "/root" + "/",
)


def test_a_status_is_written_only_by_the_moves_of_its_app():
    assert [place for path in shop_files() for place in foreign_status_writes(path)] == []


@pytest.mark.parametrize("source", [
    "Job.objects.filter(pk=1).update(status='failed')",
    "job.status = 'failed'",
    "setattr(job, 'status', 'failed')",
    "Job.objects.bulk_update(jobs, ['status'])",
    "rows.update(**{'status': 'failed'})",
    "Job.objects.filter(pk=1).exclude(pk=2).update(version=F('version') + 1, status=target)",
])  # fmt: skip
def test_every_way_to_write_a_status_is_seen(source: str):
    assert list(writes_in(ast.parse(source)))


def test_the_sandbox_imports_nothing_of_the_shop():
    """It stands for strangers: what it knows of us it must have heard over HTTP."""
    sandbox = [path for path in shop_files() if path.is_relative_to(ROOT / "waistheart" / "sandbox")]
    inner = re.compile(
        r"^(?:from|import) (?!waistheart\.sandbox\b)(?:waistheart|orders|generation|billing)\b", re.MULTILINE
    )
    assert [str(path) for path in sandbox if inner.search(path.read_text())] == []


def test_state_rows_are_never_saved_whole():
    """`save()` writes every column back as it was read, also the ones that somebody else has moved on meanwhile."""
    assert [place for path in shop_files() for place in saves(path)] == []


def test_no_address_of_a_registry_and_no_path_of_a_machine_is_committed():
    found = [f"{path}: {word}" for path, text in tracked_texts() for word in FORBIDDEN if word in text]
    assert found == []


def test_python_files_stay_small():
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in shop_files()}
    assert {name: length for name, length in lengths.items() if length > LONGEST_FILE} == {}


def test_every_story_of_a_failure_names_a_test_that_exists():
    told = stories()
    assert told, "docs/failures.md tells no story"
    open_ones = set(re.findall(r"tests/\S+?\.py::\w+", text_of("docs/remaining.md")))
    missing = [f"{title}: {test or 'names no test'}" for title, test in told if not test or not exists(test)]
    assert [line for line in missing if line.split(": ", 1)[1] not in open_ones] == []


def test_what_remains_open_has_no_test_yet():
    """A story whose test has been written is not open any more, and its line must go."""
    assert [test for test in re.findall(r"tests/\S+?\.py::\w+", text_of("docs/remaining.md")) if exists(test)] == []


@cache
def shop_files() -> list[Path]:
    """The Python files of the shop itself, without migrations."""
    files = [path for app in APPS for path in sorted((ROOT / app).rglob("*.py"))]
    return [path for path in files if "migrations" not in path.parts]


def foreign_status_writes(path: Path) -> Iterator[str]:
    """The lines of a file that write the status of a model whose moves stand elsewhere, or of an unknown model."""
    name = str(path.relative_to(ROOT))
    if name.startswith("waistheart/sandbox/"):
        return  # it has no tables; its statuses are the words of others
    for line, model in writes_in(ast.parse(path.read_text())):
        # Moves may name their own model in another line; other models with a status have no moves file.
        if name != STATE_MODELS.get(model, name if model or name in STATE_MODELS.values() else ""):
            yield f"{name}:{line} {model or 'unknown model'}"


def writes_in(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The lines that write a column named status into a row, with the model where the line itself names it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Attribute) and target.attr == "status" for target in targets):
                yield node.lineno, ""
        elif isinstance(node, ast.Call) and names_status(node):
            yield node.lineno, model_of(ast.unparse(node.func), tree)


def model_of(receiver: str, tree: ast.AST) -> str:
    """The model whose rows an expression means: named in it, or where its variable was given them; "" when unclear."""
    if named := re.match(r"(\w+)\.objects\b", receiver):
        return named[1]
    variable = receiver.split(".", maxsplit=1)[0]
    given = [
        re.match(r"(\w+)\.objects\b", ast.unparse(node.value))
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [variable]
    ]
    models = {match[1] if match else "" for match in given}
    return models.pop() if len(models) == 1 else ""


def names_status(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in {"setattr", "bulk_update", "update_or_create"}:
        return any(isinstance(node, ast.Constant) and node.value == "status" for node in ast.walk(call))
    return name == "update" and any(
        keyword.arg == "status" or (keyword.arg is None and "'status'" in ast.unparse(keyword.value))
        for keyword in call.keywords
    )


def saves(path: Path) -> Iterator[str]:
    """The lines that call save() on a variable named after a model with a state."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "save":
            owner = ast.unparse(node.func.value).split(".")[-1].lower()
            if owner in {model.lower() for model in STATE_MODELS} | {"submission"}:
                yield f"{path.relative_to(ROOT)}:{node.lineno}"


def tracked_texts() -> Iterator[tuple[str, str]]:
    """Every file that is or may be committed, with its text; pictures and other binaries are left out."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if path.is_file() and b"\0" not in (data := path.read_bytes())[:8000]:
            yield name, data.decode("utf-8", "replace")


def stories() -> list[tuple[str, str]]:
    """The stories of docs/failures.md: each is a second-level heading with a line "Test: `path.py::name`" below it."""
    parts = re.split(r"^## ", text_of("docs/failures.md"), flags=re.MULTILINE)[1:]
    found = [(part.splitlines()[0], re.search(r"^Test: `(tests/\S+?\.py::\w+)`", part, re.MULTILINE)) for part in parts]
    return [(title, match[1] if match else "") for title, match in found]


@cache
def text_of(name: str) -> str:
    path = ROOT / name
    return path.read_text() if path.exists() else ""


def exists(test: str) -> bool:
    name, function = test.split("::")
    path = ROOT / name
    if not path.exists():
        return False
    return any(
        isinstance(node, ast.FunctionDef) and node.name == function for node in ast.walk(ast.parse(path.read_text()))
    )
