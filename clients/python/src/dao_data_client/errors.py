"""The errors of the client. Each is a DaoDataError."""

from __future__ import annotations

import json
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, List, Mapping, Optional, cast

if TYPE_CHECKING:
    from .schema import Candidate, Problem


class DaoDataError(Exception):
    """Base class of all errors of this package."""


class ProblemError(DaoDataError):
    """The service returned an error; the attributes are the members of its problem details (RFC 9457)."""

    def __init__(self, url: str, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.url = url
        #: The HTTP status.
        self.status = status
        #: The complete problem details; None if an intermediary such as a proxy answered.
        self.problem: Optional[Problem] = _parse_problem(headers.get("content-type", ""), body)
        #: Seconds from `Retry-After`, if the answer has it.
        self.retry_after: Optional[float] = _parse_retry_after(headers.get("retry-after"))
        #: The id to quote when reporting the error.
        self.request_id: Optional[str] = headers.get("x-request-id")
        super().__init__(self.detail or f"The service answered {status}")

    def _member(self, name: str) -> Any:
        return None if self.problem is None else cast("Mapping[str, Any]", self.problem).get(name)

    @property
    def code(self) -> Optional[str]:
        """The error code for programs, such as `not_found`."""
        return cast("Optional[str]", self._member("code"))

    @property
    def title(self) -> Optional[str]:
        return cast("Optional[str]", self._member("title"))

    @property
    def detail(self) -> Optional[str]:
        return cast("Optional[str]", self._member("detail"))

    @property
    def param(self) -> Optional[str]:
        """The invalid parameter, by its name in the service's reference."""
        return cast("Optional[str]", self._member("param"))

    @property
    def allowed(self) -> List[str]:
        """Accepted values; empty if unknown."""
        return cast("Optional[List[str]]", self._member("allowed")) or []

    @property
    def candidates(self) -> List[Candidate]:
        """The entities with the requested name, if there are several."""
        return cast("Optional[List[Candidate]]", self._member("candidates")) or []


class NoAnswerError(DaoDataError):
    """No answer or only an incomplete one arrived; `__cause__` is the error of the connection."""

    def __init__(self, url: str, reason: str) -> None:
        self.url = url
        super().__init__(f"No complete answer from {url}: {reason}")


class UnexpectedAnswerError(DaoDataError):
    """Another server answered instead of the service, such as the login page of a proxy."""

    def __init__(self, url: str, status: int, media_type: str, body: bytes) -> None:
        self.url = url
        self.status = status
        #: The media type of the answer; an empty text if it has none.
        self.media_type = media_type
        start = body.lstrip()[:60].decode("utf-8", "replace")
        super().__init__(
            f"{url} answered {status} with {media_type or 'no media type'}, beginning with {start!r}: "
            "check base_url and the proxy before it"
        )


def _parse_problem(media_type: str, body: bytes) -> Optional[Problem]:
    if not media_type.startswith("application/problem+json"):
        return None
    try:
        return cast("Problem", json.loads(body))
    except ValueError:
        # An incomplete problem; the status is still known.
        return None


def _parse_retry_after(text: Optional[str]) -> Optional[float]:
    """`Retry-After` in seconds; the header may also contain a date."""
    if text is None:
        return None
    if text.isdigit():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
