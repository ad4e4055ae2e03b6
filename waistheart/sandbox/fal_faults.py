"""The faults of the video provider: their names, and the answers of those that refuse or lose a request."""

import json
import time
from typing import Any

from waistheart.sandbox.faults import Fault, declare
from waistheart.sandbox.server import Response, html_response, json_response
from waistheart.sandbox.world import World

MODERATION = {
    "loc": ["body", "image_url"],
    "msg": "The content checker did not let this input pass.",
    "type": "content_policy_violation",
}
# Decided while the request is accepted, kept on it under the fault's name, acted on later.
RESULT_QUIRKS = (
    "never_finishing",
    "content_policy_result",
    "completed_then_422",
    "completed_with_error",
    "result_without_url",
    "image_unreachable",
)
FILE_QUIRKS = ("hevc_video", "wrong_aspect", "moov_last", "corrupt_frames", "half_video")
WEBHOOK_QUIRKS = (
    "webhook_lost",
    "webhook_doubled",
    "webhook_early",
    "webhook_late",
    "webhook_lying",
    "webhook_bad_signature",
    "webhook_old_timestamp",
)
QUIRKS = RESULT_QUIRKS + FILE_QUIRKS + WEBHOOK_QUIRKS
_ON = "on: submit (default), status, result, cancel, list, media or any; accepted: true takes the request all the same"

declare("status_402", f"402, the account is empty; {_ON}", on="submit", accepted=False)
declare("locked_403", f"403 User is locked; reason: another reason; {_ON}", on="submit", accepted=False)
declare("unauthorized_401", f"401, as if the key were wrong; {_ON}", on="submit", accepted=False)
declare("rate_limited_429", f"429; retry_after: seconds for the Retry-After header; {_ON}", on="submit", accepted=False)
declare("content_policy_422", f"422 content_policy_violation at once; {_ON}", on="submit", accepted=False)
declare("model_retired", "404 for every request to a model; model: its whole path")
for _status in (500, 502, 503, 504):
    declare(f"error_{_status}", f"{_status}; html: true for a gateway's page; {_ON}", on="submit", accepted=False)
declare("drop_before_accept", "closes the connection and takes nothing; on: as above", on="submit")
declare("drop_after_accept", "takes the request and closes the connection without an answer")
declare("no_id", "takes the request and answers 200 without an id")
declare("garbled_answer", "takes the request and answers 200 with a page instead of JSON")
declare("slow_answer", "takes the request and answers late; seconds (default 5)")
declare("dripping_answer", "takes the request and answers a byte at a time; seconds for the whole (default 90)")
declare("redirect_on_submit", "307 to another host instead of taking the request; host")
declare("unknown_status", "a status word nobody knows; word (default PONDERING)")
declare("never_finishing", "the request stays in progress for ever")
declare("content_policy_result", "COMPLETED, then 422 content_policy_violation on the result; billed: true")
declare("completed_then_422", "COMPLETED, then 422 on the result; type (default no_media_generated), billed: true")
declare("completed_with_error", "COMPLETED with an error, 500 on the result; type (default runner_server_error)")
declare("result_without_url", "a result whose video has no address")
declare("result_expired", "404 on the result, as after its hour")
declare("image_unreachable", "acts as if the image address did not answer")
declare("list_empty", "the list of requests comes back empty")
declare("list_hides_open", "the list shows only ended requests")
declare("webhook_lost", "no webhook is sent")
declare("webhook_doubled", "every webhook is sent twice")
declare("webhook_early", "the webhook is sent before the answer to the submit, and never again")
declare("webhook_late", "the webhook is late; seconds (default 30)")
declare("webhook_lying", "says OK at once, while it still runs; or names another request; request_id")
declare("webhook_bad_signature", "the signature is not ours")
declare("webhook_old_timestamp", "rightly signed an hour ago")
declare("slow_body", "the file comes slowly; seconds for the whole (default 20)")
declare("truncated_body", "the file ends before its Content-Length; share (default 0.5)")
declare("gzip_body", "Content-Encoding gzip with the compressed Content-Length, though identity was asked for")
declare("no_content_length", "no Content-Length; share below 1 cuts the file as well")
declare("html_instead_of_video", "a page instead of the file; content_type (default text/html)")
declare("media_expires", "this address of the file dies, reading the result gives a new one; status, seconds of age")
declare("redirect_other_host", "302 to another host; host (default 169.254.169.254), url: a whole address")
declare("hevc_video", "a healthy file in H.265")
declare("wrong_aspect", "a healthy file that lies on its side")
declare("moov_last", "a healthy file with its index at the end")
declare("corrupt_frames", "a file of the right size whose second half holds no frames")
declare("half_video", "only the first half of the file, honestly announced")


def refusal(world: World, *, on: str, texts: tuple[str, ...]) -> tuple[Response, Fault] | None:
    """The answer of a fault that refuses this act, and the fault; or None."""
    fault = world.faults.take(*REFUSALS, texts=texts, on=on)
    return None if fault is None else (_refuse(fault), fault)


def lost_answer(world: World, *, texts: tuple[str, ...], answer: dict[str, Any]) -> Response | None:
    """What is answered instead of the true answer to an accepted submit, or None."""
    fault = world.faults.take(*LOST_ANSWERS, texts=texts)
    if fault is None:
        return None
    if fault.name == "drop_after_accept":
        return Response(drop=True)
    if fault.name == "no_id":
        return json_response(200, {"status": "IN_QUEUE", "queue_position": answer["queue_position"]})
    if fault.name == "garbled_answer":
        return html_response(200, "<!doctype html><title>All is well</title><p>Your request is being looked after.")
    body = json.dumps(answer).encode()
    if fault.name == "slow_answer":
        time.sleep(fault.seconds("seconds", 5))
        return json_response(200, answer)
    pause = fault.seconds("seconds", 90) / len(body)
    drops = (body[place : place + 1] for place in range(len(body)))
    return Response(200, drops, {"Content-Type": "application/json"}, announce=len(body), pause_seconds=pause)


LOST_ANSWERS = ("drop_after_accept", "no_id", "garbled_answer", "slow_answer", "dripping_answer")
REFUSALS = (
    "status_402",
    "locked_403",
    "unauthorized_401",
    "rate_limited_429",
    "content_policy_422",
    "error_500",
    "error_502",
    "error_503",
    "error_504",
    "drop_before_accept",
)


def _refuse(fault: Fault) -> Response:
    if fault.name == "drop_before_accept":
        return Response(drop=True)
    if fault.name == "status_402":
        return json_response(402, {"detail": "Payment required: the balance of this account is used up."})
    if fault.name == "locked_403":
        reason = fault.params.get("reason", "Exhausted balance. Top up your balance to go on.")
        return json_response(403, {"detail": f"User is locked. Reason: {reason}"})
    if fault.name == "unauthorized_401":
        return json_response(401, {"detail": "Authentication is required to access this application."})
    if fault.name == "rate_limited_429":
        wait = fault.params.get("retry_after")
        headers = {"X-Fal-Needs-Retry": "1"} | ({} if wait is None else {"Retry-After": str(wait)})
        return json_response(429, {"detail": "Too many requests.", "error_type": "concurrent_requests_limit"}, headers)
    if fault.name == "content_policy_422":
        return json_response(422, {"detail": [MODERATION]}, {"X-Fal-Retryable": "false"})
    status = int(fault.name.removeprefix("error_"))
    if fault.params.get("html"):
        return html_response(status, f"<html><head><title>{status}</title></head><body>gateway</body></html>")
    return json_response(status, {"detail": "The server has trouble.", "error_type": "runner_server_error"})
