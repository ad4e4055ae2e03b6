"""The staff console as tests press it: forms are sent as they were shown."""

import re
from html.parser import HTMLParser
from typing import Any

from django.test import Client

from waistheart.models import User


class Console:
    """A signed-in member of staff in front of a browser without scripts."""

    def __init__(self) -> None:
        self.user = User.objects.create_superuser("staff@example.com", "a-long-password")
        self.client = Client()
        self.client.force_login(self.user)

    def get(self, path: str, **query: Any) -> str:
        answer = self.client.get(f"/admin/{path}", query)
        assert answer.status_code == 200, (answer.status_code, path)
        return answer.content.decode()

    def choose(self, path: str, action: str, *row_ids: int, shown: str) -> str:
        """Tick rows of a list as it was shown and send the action; answers the page that asks."""
        data = {**inputs(shown), "action": action, "index": "0", "_selected_action": list(row_ids)}
        answer = self.client.post(f"/admin/{path}", data)
        assert answer.status_code == 200, answer.status_code
        return answer.content.decode()

    def confirm(self, path: str, asked: str, **more: str) -> list[str]:
        """Press the button of the page that asks; answers what the console says afterwards."""
        answer = self.client.post(f"/admin/{path}", {**inputs(asked), **more}, follow=True)
        return [str(message) for message in answer.context["messages"]]

    def act(self, path: str, action: str, *row_ids: int, **more: str) -> list[str]:
        """Both, on the list as it is now."""
        return self.confirm(path, self.choose(path, action, *row_ids, shown=self.get(path)), **more)


class Inputs(HTMLParser):
    """Collects what a browser would send of a page's hidden inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, list[str]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "input" and given.get("type") == "hidden" and given.get("name"):
            self.values.setdefault(str(given["name"]), []).append(given.get("value") or "")


def inputs(page: str) -> dict[str, Any]:
    """The hidden inputs of a page."""
    parser = Inputs()
    parser.feed(page)
    return {name: values for name, values in parser.values.items() if name != "csrfmiddlewaretoken"}


def text_of(page: str) -> str:
    """A page without its tags, in one line."""
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())
