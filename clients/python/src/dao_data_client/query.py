"""A request that is sent when its answer is read."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Dict, Generic, Iterator, Literal, Optional, Tuple, TypeVar, Union

from .address import Values, to_url
from .connection import Connection
from .errors import NoAnswerError
from .facts import Answer, Facts

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

Body = TypeVar("Body")
Record = TypeVar("Record")
Format = Literal["csv", "ndjson", "parquet", "arrow"]

MEDIA_TYPES: Dict[str, str] = {
    "csv": "text/csv",
    "ndjson": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
    "arrow": "application/vnd.apache.arrow.stream",
}
SUFFIXES: Dict[str, Format] = {
    ".csv": "csv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
}

#: A column of a table: its name, its type and whether values may be unknown.
Column = Tuple[str, Literal["string", "number", "integer", "boolean", "time", "json"], bool]


@dataclass
class _Position:
    """Parameters of a page, and the cursor of the next one; None on the last page."""

    values: Dict[str, Any]
    next: Optional[str] = None


@dataclass(frozen=True)
class Operation:
    """An operation of the service. Generated code has one for each."""

    path: str
    #: Largest `limit` of an answer if answers have a smaller default; else None, and an answer without it is complete.
    page_limit: Optional[int] = None
    columns: Tuple[Column, ...] = ()


class Query(Generic[Body]):
    """A request with JSON, text or bytes as answer."""

    def __init__(self, connection: Connection, operation: Operation, values: Values) -> None:
        self._connection = connection
        self._operation = operation
        self._values = dict(values)

    def url(self) -> str:
        """The address of the answer, for a link, `curl` or DuckDB."""
        return self._url()

    def get(self) -> Body:
        """The body of one answer."""
        return self.answer().data

    def answer(self) -> Answer[Body]:
        """One answer with the facts of its headers."""
        return self._connection.answer(self._url())

    def _url(self, **more: Any) -> str:
        return to_url(self._connection.base, self._operation.path, {**self._values, **more})


class TableQuery(Query[Body], Generic[Body, Record]):
    """
    A request for records, also as a table. With `limit` every method reads one answer with at most so many records;
    without it, iteration and tables read all records.
    """

    def __iter__(self) -> Iterator[Record]:
        """All records; pages are fetched as the iteration reaches them."""
        for page in self.pages():
            yield from page if isinstance(page, list) else page["data"]  # type: ignore[index]

    def pages(self, size: Optional[int] = None) -> Iterator[Body]:
        """All answers, page by page; of `limit` records, or of `size` without an end."""
        for position in self._positions(size):
            answer = self._connection.answer(self._url(**position.values))
            yield answer.data
            position.next = answer.facts.next

    def download(self, format: Format) -> IO[bytes]:
        """One answer as a file, complete and at its beginning."""
        return self._download(self._url(format=format), format)[0]

    def save(self, path: Union[str, Path], format: Optional[Format] = None) -> Facts:
        """Writes one answer to a file. The format follows from the suffix: .csv, .ndjson, .parquet or .arrow."""
        chosen = format or SUFFIXES.get(Path(path).suffix.lower())
        if chosen is None:
            raise ValueError(f"{path}: expected one of {', '.join(SUFFIXES)} at the end, or a format")
        body, facts = self._download(self._url(format=chosen), chosen)
        with body, open(path, "wb") as file:
            shutil.copyfileobj(body, file, 1 << 20)
        return facts

    def to_arrow(self) -> pyarrow.Table:
        """All records as a table of Arrow; needs pyarrow."""
        from . import tables

        return tables.to_arrow(self._table_files("parquet"))

    def to_pandas(self) -> pandas.DataFrame:
        """
        All records as a data frame; needs pandas. With pyarrow the service sends Parquet, otherwise CSV. The columns
        have the same types: times are aware, and unknown values are missing, never 0.
        """
        from . import tables

        format: Format = "parquet" if tables.has_pyarrow() else "csv"
        columns = self._operation.columns
        if self._values.get("fill") is not None:
            # Rows of buckets without an observation have unknown values in every column.
            columns = tuple((name, type, True) for name, type, _ in columns)
        return tables.to_pandas(self._table_files(format), format, columns)

    def to_polars(self) -> polars.DataFrame:
        """All records as a data frame of Polars, from Parquet; needs polars."""
        from . import tables

        return tables.to_polars(self._table_files("parquet"))

    def _download(self, url: str, format: Format) -> Tuple[IO[bytes], Facts]:
        return self._connection.download(url, MEDIA_TYPES[format])

    def _table_files(self, format: Format) -> Iterator[IO[bytes]]:
        for position in self._positions(None):
            file, facts = self._download(self._url(**position.values, format=format), format)
            with file:
                yield file
            position.next = facts.next

    def _positions(self, size: Optional[int]) -> Iterator[_Position]:
        """The parameters of each page; the caller sets the cursor of the next one."""
        one = self._values.get("limit") is not None and size is None
        limit = size or (None if one else self._operation.page_limit)
        values = {} if limit is None else {"limit": limit}
        position = _Position(values)
        while True:
            yield position
            if position.next is None or one:
                return
            # Following the same cursor again would never end.
            if position.next == position.values.get("cursor"):
                raise NoAnswerError(self.url(), "a page names itself as the next")
            position = _Position({**values, "cursor": position.next})
