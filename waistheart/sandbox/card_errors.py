"""The card processor's errors, in the JSON shape its library reads."""

from typing import Any


class CardError(Exception):
    """An answer other than 2xx: HTTP status, error type and, where one exists, code and parameter."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        kind: str = "invalid_request_error",
        code: str | None = None,
        param: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.kind = kind
        self.code = code
        self.param = param

    def body(self) -> dict[str, Any]:
        error: dict[str, Any] = {"type": self.kind, "message": self.message}
        if self.code:
            error["code"] = self.code
        if self.param:
            error["param"] = self.param
        return {"error": error}


def missing(what: str, ident: str, *, param: str) -> CardError:
    return CardError(f"No such {what}: '{ident}'", status=404, code="resource_missing", param=param)


def required(param: str) -> CardError:
    return CardError(f"Missing required param: {param}.", code="parameter_missing", param=param)


def unknown(param: str) -> CardError:
    return CardError(f"Received unknown parameter: {param}", code="parameter_unknown", param=param)


def invalid(param: str, message: str) -> CardError:
    return CardError(message, param=param)
