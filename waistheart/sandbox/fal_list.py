"""fal's list of requests by model: the only way to find a request whose id was lost."""

from datetime import UTC, datetime, timedelta
from typing import Any

from waistheart.sandbox import fal_faults
from waistheart.sandbox.fal import key_fits, unauthorized
from waistheart.sandbox.fal_outcomes import video_of
from waistheart.sandbox.server import Request, Response, Router, json_response
from waistheart.sandbox.world import FalRequest, World

router = Router()


@router.route("GET", "/fal/api/v1/models/requests/by-endpoint")
def requests_by_endpoint(world: World, request: Request) -> Response:
    """The account's requests to one model, newest first; inputs are shown only with `expand=payloads`."""
    if not key_fits(world, request):
        return unauthorized()
    endpoint = request.query.get("endpoint_id", "")
    if refused := fal_faults.refusal(world, on="list", texts=(endpoint,)):
        return refused[0]
    try:
        start = _moment(request.query.get("start"), datetime.now(UTC) - timedelta(hours=24))
        end = _moment(request.query.get("end"), datetime.now(UTC) + timedelta(seconds=1))
        limit, skip = min(int(request.query.get("limit", "50")), 100), int(request.query.get("cursor", "0"))
    except ValueError as error:
        return json_response(422, {"detail": [{"loc": ["query"], "msg": str(error), "type": "value_error"}]})
    if not endpoint or limit < 1 or skip < 0:
        return json_response(422, {"detail": [{"loc": ["query"], "msg": "endpoint_id, limit", "type": "value_error"}]})
    hidden = world.faults.take("list_empty", "list_hides_open", texts=(endpoint,))
    with world.lock:
        rows = [row for row in world.fal.values() if row.endpoint == endpoint and start <= row.sent_at <= end]
    if hidden is not None:
        rows = [row for row in rows if hidden.name == "list_hides_open" and row.ended_at is not None]
    rows.sort(key=lambda row: row.sent_at, reverse=True)
    shown, more = rows[skip : skip + limit], len(rows) > skip + limit
    payloads = "payloads" in request.query.get("expand", "").split(",")
    items = [_row(row, base_url=request.base_url, payloads=payloads) for row in shown]
    return json_response(200, {"items": items, "next_cursor": str(skip + limit) if more else None, "has_more": more})


def _row(row: FalRequest, *, base_url: str, payloads: bool) -> dict[str, Any]:
    ended = row.ended_at is not None
    answer: dict[str, Any] = {
        "request_id": row.request_id,
        "endpoint_id": row.endpoint,
        "sent_at": _iso(row.sent_at),
        "started_at": _iso(row.started_at),
        "ended_at": _iso(row.ended_at),
        "status_code": row.status_code if ended else None,
        "duration": round((row.ended_at or 0) - (row.started_at or row.sent_at), 3) if ended else None,
    }
    if payloads:
        output = video_of(row, base_url=base_url) if row.outcome == "done" else row.error
        answer |= {"json_input": row.input, "json_output": output if ended else None}
    return answer


def _iso(moment: float | None) -> str | None:
    return None if moment is None else datetime.fromtimestamp(moment, UTC).isoformat().replace("+00:00", "Z")


def _moment(text: str | None, default: datetime) -> float:
    moment = datetime.fromisoformat(text) if text else default
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
