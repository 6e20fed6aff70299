"""The metadata of an answer, from its headers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Mapping, Optional, TypeVar
from urllib.parse import parse_qs, urlsplit

from .address import parse_time

Body = TypeVar("Body")


@dataclass(frozen=True)
class Facts:
    """Absent headers give None."""

    #: The newest time in the data.
    as_of: Optional[datetime]
    #: Whether that is older than twice the refresh cadence of the data.
    is_stale: bool
    #: Number of matching records, independent of the limit.
    total: Optional[int]
    #: The cursor of the next page; None on the last one.
    next: Optional[str]
    #: The interval of a series, its points, its due buckets without an observation, and those with coarser ones.
    interval: Optional[str]
    points: Optional[int]
    missing: Optional[int]
    coarse: Optional[int]
    #: The entity tag: equal tags mean equal bytes.
    tag: Optional[str]
    #: The id to quote when reporting an error.
    request_id: Optional[str]


@dataclass(frozen=True)
class Answer(Generic[Body]):
    """An answer with the metadata from its headers."""

    data: Body
    facts: Facts


def to_facts(headers: Mapping[str, str]) -> Facts:
    def number(name: str) -> Optional[int]:
        return int(headers[name]) if name in headers else None

    as_of = headers.get("x-data-as-of")
    return Facts(
        as_of=None if as_of is None else parse_time(as_of),
        is_stale=headers.get("x-data-stale") == "true",
        total=number("x-total-count"),
        next=_to_cursor(headers.get("link", "")),
        interval=headers.get("x-series-interval"),
        points=number("x-series-points"),
        missing=number("x-series-missing"),
        coarse=number("x-series-coarse"),
        tag=headers.get("etag"),
        request_id=headers.get("x-request-id"),
    )


def _to_cursor(link: str) -> Optional[str]:
    """Behind a proxy the link's path may differ from the client's, so only its cursor is used."""
    found = re.search(r'<([^>]+)>\s*;\s*rel="next"', link)
    cursors = parse_qs(urlsplit(found.group(1)).query).get("cursor") if found else None
    return cursors[0] if cursors else None
