"""URLs of operations, and times as parameters."""

from __future__ import annotations

import datetime
from typing import Any, Iterable, Mapping, Tuple
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

Values = Mapping[str, Any]


def format_time(value: datetime.date) -> str:
    """
    A time as the service reads it: an aware datetime in UTC with milliseconds, a date as its first moment in UTC.

    Raises ValueError for a datetime without a time zone, because its moment is unknown.
    """
    if not isinstance(value, datetime.datetime):
        return value.isoformat()
    if value.tzinfo is None or value.utcoffset() is None:
        raise ValueError(f"{value!r} has no time zone: add tzinfo, for example datetime.timezone.utc")
    utc = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return utc.isoformat(timespec="milliseconds") + "Z"


def parse_time(text: str) -> datetime.datetime:
    """A time of an answer (ISO 8601 in UTC) as an aware datetime."""
    return datetime.datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)


def to_base(url: str) -> str:
    """
    The base URL with a slash at its end; paths are relative to it, with the path prefix of a proxy.

    Raises ValueError if it is no absolute http(s) URL.
    """
    scheme, host, path, _, _ = urlsplit(url)
    if scheme not in ("http", "https") or not host:
        raise ValueError(f"base_url: expected an absolute http(s) URL, got {url!r}")
    return urlunsplit((scheme, host, path.rstrip("/") + "/", "", ""))


def to_url(base: str, path: str, values: Values) -> str:
    """
    The URL of a path with its parameters: path parameters are filled in, the others go into the query, lists are
    repeated. None is omitted. An empty list is sent as an empty value, which the service rejects: without the
    parameter, no ids would select everything.
    """
    query = []
    for name, value in values.items():
        for one in _each(value):
            place = "{" + name + "}"
            if place in path:
                path = path.replace(place, quote(_to_text(one), safe=""))
            else:
                query.append((name, _to_text(one)))
    return base + path.lstrip("/") + ("?" + urlencode(query) if query else "")


def _each(value: Any) -> Iterable[Any]:
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Iterable):
        return (value,)
    several: Tuple[Any, ...] = tuple(value)
    return several or ("",)


def _to_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.date):
        return format_time(value)
    return str(value)
