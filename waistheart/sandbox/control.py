"""The control address: people and tests set faults here and read what happened. Nothing of it exists in real life."""

import html
from functools import wraps
from typing import Any
from urllib.parse import urlsplit

from waistheart.sandbox import fal_work, faults
from waistheart.sandbox.server import Handler, Request, Response, Router, html_response, json_response
from waistheart.sandbox.world import World

router = Router()
LONGEST_DELAY_SECONDS = 86400
# Multiples of 32 give whole and even widths at 9:16.
FILM_HEIGHTS = range(320, 1921, 32)
MONEY_FAULTS = ("status_402", "locked_403")


@router.route("GET", "/livez")
def livez(world: World, request: Request) -> Response:
    """Says that the process answers."""
    return Response(200, b"ok\n", {"Content-Type": "text/plain"})


def checked(handler: Handler) -> Handler:
    """What a handler cannot read in a body is answered with 400 and the reason."""

    @wraps(handler)
    def answer(world: World, request: Request, **groups: str) -> Response:
        try:
            return handler(world, request, **groups)
        except (ValueError, TypeError, OverflowError) as error:
            return json_response(400, {"detail": str(error)})

    return answer


@router.route("POST", "/control/faults")
@checked
def push_fault(world: World, request: Request) -> Response:
    """Push one fault; 400 with the known names when it has none of them."""
    return json_response(201, world.faults.push(_object(request)).as_json())


@router.route("GET", "/control/faults")
def list_faults(world: World, request: Request) -> Response:
    """The faults in force and the names there are."""
    return json_response(200, {"faults": world.faults.as_json(), "known": faults.KNOWN})


@router.route("DELETE", "/control/faults")
def clear_faults(world: World, request: Request) -> Response:
    """Clear all faults, or those of one name (`?fault=`)."""
    world.faults.clear(*([request.query["fault"]] if "fault" in request.query else []))
    return json_response(200, {"faults": world.faults.as_json()})


@router.route("GET", "/control/state")
def state(world: World, request: Request) -> Response:
    """Everything the sandbox knows."""
    return json_response(200, world.as_json())


@router.route("POST", "/control/settings")
@checked
def settings(world: World, request: Request) -> Response:
    """Change `delay_seconds`, `film_height` or `shop_url`: all that is named, or nothing."""
    asked, now = _object(request), world.settings
    body = {"delay_seconds": now.delay_seconds, "film_height": now.film_height, "shop_url": now.shop_url}
    if unknown := set(asked) - set(body):
        return json_response(400, {"detail": f"cannot be changed: {', '.join(sorted(unknown))}"})
    body |= asked
    delay, height, url = body["delay_seconds"], body["film_height"], body["shop_url"]
    if isinstance(delay, bool) or not isinstance(delay, int | float) or not 0 <= delay <= LONGEST_DELAY_SECONDS:
        return json_response(400, {"detail": f"delay_seconds is a number from 0 to {LONGEST_DELAY_SECONDS}"})
    if isinstance(height, bool) or not isinstance(height, int) or height not in FILM_HEIGHTS:
        return json_response(400, {"detail": "film_height is a multiple of 32 from 320 to 1920"})
    if not isinstance(url, str) or (url and urlsplit(url).scheme not in ("http", "https")):
        return json_response(400, {"detail": "shop_url is an address, or empty"})
    now.delay_seconds, now.film_height, now.shop_url = float(delay), height, url
    return json_response(200, body)


@router.route("POST", "/control/reset")
def reset(world: World, request: Request) -> Response:
    """Forget all work, events and faults."""
    world.reset()
    return json_response(200, {"reset": True})


@router.route("POST", "/control/topup")
def topup(world: World, request: Request) -> Response:
    """The operator paid the provider: the answers about an empty account end."""
    world.faults.clear(*MONEY_FAULTS)
    return json_response(200, {"faults": world.faults.as_json()})


@router.route("POST", r"/control/fal/(?P<request_id>[^/]+)")
@checked
def force(world: World, request: Request, request_id: str) -> Response:
    """Make one video request come to an outcome at once: `{"status": "done"}` and so on."""
    outcome, found = str(_object(request).get("status", "")), world.fal.get(request_id)
    if found is None:
        return json_response(404, {"detail": "no such request"})
    if outcome not in fal_work.OUTCOMES:
        return json_response(400, {"detail": f"status is one of {', '.join(fal_work.OUTCOMES)}"})
    fal_work.force(world, found, outcome=outcome)
    return json_response(200, {"request_id": request_id, "status": outcome})


@router.route("GET", "/control/?")
def page(world: World, request: Request) -> Response:
    """A page for people: every switch with its meaning and what is in force."""
    rows = "".join(
        f"<tr><th><code>{html.escape(name)}</code><td>{html.escape(meaning)}"
        for name, meaning in sorted(faults.KNOWN.items())
    )
    active = ", ".join(f"{row['fault']} ({row['times']})" for row in world.faults.as_json() if row["times"]) or "none"
    return html_response(
        200,
        PAGE.format(rows=rows, active=html.escape(active), accepted=len(world.fal), here=html.escape(request.base_url)),
    )


def _object(request: Request) -> dict[str, Any]:
    body = request.json() if request.body else {}
    if not isinstance(body, dict):
        raise TypeError("a JSON object is expected")
    return body


PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Sandbox switches</title>
<style>body{{font:16px/1.5 system-ui;max-width:60rem;margin:2rem auto;padding:0 1rem;overflow-wrap:anywhere}}
th{{text-align:left;padding-right:1rem;vertical-align:top}}pre{{background:#f3f0ee;padding:1rem;overflow:auto}}</style>
<h1>Sandbox switches</h1>
<p>In force: <strong>{active}</strong>. Accepted video requests: {accepted}.
Everything: <a href="/control/state">state</a>.</p>
<pre>curl -X POST {here}/control/faults -d '{{"fault": "drop_after_accept", "times": 1}}'
curl -X DELETE {here}/control/faults
curl -X POST {here}/control/settings -d '{{"delay_seconds": 10}}'
curl -X POST {here}/control/topup</pre>
<p>The shop tries an empty account again by itself every 15 minutes, or within a minute of “Ask again now” in its staff console
(Provider accounts).</p>
<p>“times” is a number or “all”; “match” narrows a fault to requests whose model or image address contains it. What is counted are
requests, and the shop may ask for one video several times: “all” until the faults are deleted is the plainest.</p>
<table>{rows}</table></html>
"""
