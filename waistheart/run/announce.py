"""Says where everything is, once it answers."""

import threading
from collections.abc import Mapping

from waistheart.run.children import Children
from waistheart.run.environment import is_live
from waistheart.run.ports import NotReady, wait_for

READY_SECONDS = 120.0


def announce(*, children: Children, environ: Mapping[str, str], with_sandbox: bool) -> None:
    """Return at once; a thread prints the addresses, then "WaistHeart is ready at ...", when all of them answer."""
    shop = f"http://127.0.0.1:{environ['WEB_PORT']}"
    sandbox = f"http://127.0.0.1:{environ['SANDBOX_PORT']}"
    wanted = [f"{shop}/livez", *([f"{sandbox}/livez"] if with_sandbox else [])]
    places = [f"shop           {shop}/", f"staff console  {shop}/admin/"]
    if with_sandbox:
        places.append(f"sandbox        {sandbox}/control/   what the provider and the bank saw, and their faults")
    if not is_live(environ) and not environ.get("EMAIL_URL"):
        places.append(f"mail           {environ['VAR_DIR']}/mail/")
    places.append(f"data           {'at DATABASE_URL' if environ.get('DATABASE_URL') else environ['VAR_DIR'] + '/'}")
    threading.Thread(target=_say_when_ready, args=(children, wanted, places, shop), daemon=True).start()


def _say_when_ready(children: Children, wanted: list[str], places: list[str], shop: str) -> None:
    try:
        for url in wanted:
            wait_for(url, seconds=READY_SECONDS, stopped=lambda: children.first_dead() is not None)
    except NotReady as missing:
        children.say(f"{missing} does not answer; the lines above say why")
        return
    for place in [*places, "Ctrl+C stops everything."]:
        children.say(place)
    children.say_alone(f"WaistHeart is ready at {shop}")
