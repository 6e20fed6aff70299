"""The change stream: server-sent events, resumed after a broken connection."""

from __future__ import annotations

import json
import time
from typing import Any, Dict, Iterator, List, Literal, Optional, TypedDict, Union, cast

from .address import Values, to_url
from .connection import Connection
from .errors import DaoDataError
from .retry import to_wait_seconds

RETRY_SECONDS = 2.0


class ChangeEvent(TypedDict):
    """Data was stored. None means unknown: any data of the dataset may then have changed."""

    type: Literal["change"]
    #: The id to resume after this event.
    id: str
    dataset: str
    #: The time of the newest value, ISO 8601 UTC.
    asOf: Optional[str]
    #: Number of affected tokens or DAOs.
    entities: Optional[int]


#: The affected time range, `to` exclusive; `from` is a keyword of Python.
ChangedRange = TypedDict("ChangedRange", {"from": Optional[str], "to": Optional[str]})


class StoredChange(ChangeEvent, ChangedRange):
    """A change event with its range."""


class ResetEvent(TypedDict):
    """Change events may have been missed: any data may have changed."""

    type: Literal["reset"]
    id: str


StreamEvent = Union[StoredChange, ResetEvent]


def _passes(status: int) -> bool:
    """A subscription lasts for days: errors of the service are temporary, errors of the request are not."""
    return status == 429 or status >= 500


def _read_blocks(response: Any) -> Iterator[Dict[str, str]]:
    """The fields of each block of lines (HTML standard, "server-sent events")."""
    fields: Dict[str, List[str]] = {}
    while line := response.readline():
        text = line.decode().rstrip("\r\n")
        if text == "":
            yield {name: "\n".join(values) if name == "data" else values[-1] for name, values in fields.items()}
            fields = {}
            continue
        name, _, value = text.partition(":")
        fields.setdefault(name, []).append(value[1:] if value.startswith(" ") else value)


def follow_changes(
    connection: Connection,
    path: str,
    values: Values,
    *,
    last_event_id: Optional[str],
    silence_seconds: float,
) -> Iterator[StreamEvent]:
    """
    Change events as they happen. A broken or silent connection is opened again and resumed after the last event,
    without a limit of attempts.

    Raises ProblemError if the service rejects the request itself.
    """
    url = to_url(connection.base, path, values)
    state = _State(last_event_id)
    while True:
        error: Optional[DaoDataError] = None
        try:
            headers = {"Accept": "text/event-stream", **state.headers}
            with connection.open(url, headers, silence_seconds) as (response, _):
                for block in _read_blocks(response):
                    event = state.take(block)
                    if event is not None:
                        yield event
        except DaoDataError as failure:
            error = failure
        time.sleep(state.to_pause(error))


class _State:
    """The position in the stream, and the pause before the next attempt."""

    def __init__(self, last_event_id: Optional[str]) -> None:
        self._id = last_event_id
        self._retry_seconds = RETRY_SECONDS
        self._failures = 0

    @property
    def headers(self) -> Dict[str, str]:
        return {} if self._id is None else {"Last-Event-ID": self._id}

    def take(self, block: Dict[str, str]) -> Optional[StreamEvent]:
        self._failures = 0
        self._id = block.get("id", self._id)
        retry = block.get("retry", "")
        if retry.isdigit():
            self._retry_seconds = int(retry) / 1000
        kind = block.get("event", "message")
        if kind not in ("change", "reset") or "data" not in block:
            return None
        return cast("StreamEvent", {**json.loads(block["data"]), "type": kind, "id": self._id or ""})

    def to_pause(self, error: Optional[DaoDataError]) -> float:
        if error is None:
            return self._retry_seconds
        seconds = to_wait_seconds(error, self._failures, _passes)
        if seconds is None:
            raise error
        self._failures += 1
        return max(seconds, self._retry_seconds)

