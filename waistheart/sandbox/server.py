"""What the sandbox is asked and answers: requests, a tiny router, and answers that may misbehave on purpose."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from waistheart.sandbox.world import World


@dataclass
class Request:
    """One request as a handler sees it; `path` is decoded and has no query, header names are found in any case."""

    method: str
    path: str
    query: dict[str, str]
    headers: Mapping[str, str]
    body: bytes
    base_url: str

    def form(self) -> dict[str, str]:
        """The body as a flat form; bracketed names stay as they were sent (`line_items[0][quantity]`)."""
        return dict(parse_qsl(self.body.decode("utf-8", "replace"), keep_blank_values=True))

    def json(self) -> Any:
        """The body as JSON; raises ValueError for anything else, an empty body and numbers that are none included."""
        return json.loads(self.body, parse_constant=_no_number)


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no number in JSON")


@dataclass
class Response:
    """One answer. The switches after `headers` are the ways in which an answer can go wrong.

    drop: close the connection without a byte. announce: the Content-Length to claim (None: the true one of a bytes
    body). no_length: claim none and end by closing. pause_seconds: wait between the chunks of the body.
    """

    status: int = 200
    body: bytes | Iterable[bytes] = b""
    headers: dict[str, str] = field(default_factory=dict)
    drop: bool = False
    announce: int | None = None
    no_length: bool = False
    pause_seconds: float = 0.0


def json_response(status: int, obj: Any, headers: Mapping[str, str] | None = None) -> Response:
    """An answer in JSON."""
    return Response(status, json.dumps(obj).encode(), {"Content-Type": "application/json", **(headers or {})})


def html_response(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    """An answer in HTML."""
    return Response(status, text.encode(), {"Content-Type": "text/html; charset=utf-8", **(headers or {})})


Handler = Callable[..., Response]


class Router:
    """Routes by method and whole path; handlers are called as `handler(world, request, **named_groups)`."""

    def __init__(self) -> None:
        self.routes: list[tuple[str, re.Pattern[str], Handler]] = []

    def route(self, method: str, pattern: str) -> Callable[[Handler], Handler]:
        """Register the decorated handler; the first route that matches wins."""

        def register(handler: Handler) -> Handler:
            self.routes.append((method, re.compile(pattern), handler))
            return handler

        return register

    def include(self, other: "Router") -> None:
        """Append all routes of another router."""
        self.routes.extend(other.routes)

    def answer(self, world: World, request: Request) -> Response:
        """Call the handler that fits: 404 for an unknown path, 405 for a known path with another method."""
        path_known = False
        for method, pattern, handler in self.routes:
            match = pattern.fullmatch(request.path)
            if match is None:
                continue
            if method == request.method:
                return handler(world, request, **match.groupdict())
            path_known = True
        return json_response(
            405 if path_known else 404, {"detail": "Method Not Allowed" if path_known else "Not Found"}
        )
