"""Tables of pandas, Polars and Arrow, from Parquet or CSV. The packages are imported when a table is read."""

from __future__ import annotations

import importlib.util
import json
from typing import IO, TYPE_CHECKING, Any, Dict, Iterable, List, Sequence, Tuple

from .query import Column

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

#: Pandas has several units of time; nanoseconds are in all versions.
TIME = "datetime64[ns, UTC]"
PANDAS_TYPES: Dict[Tuple[str, bool], str] = {
    ("number", True): "float64",
    ("number", False): "float64",
    ("integer", True): "Int64",
    ("integer", False): "int64",
    ("boolean", True): "boolean",
    ("boolean", False): "bool",
    ("time", True): TIME,
    ("time", False): TIME,
}


def has_pyarrow() -> bool:
    return importlib.util.find_spec("pyarrow") is not None


def to_arrow(files: Iterable[IO[bytes]]) -> pyarrow.Table:
    import pyarrow
    import pyarrow.parquet

    tables = [pyarrow.parquet.read_table(file) for file in files]
    return tables[0] if len(tables) == 1 else pyarrow.concat_tables(tables)


def to_polars(files: Iterable[IO[bytes]]) -> polars.DataFrame:
    import polars

    frames = [polars.read_parquet(file) for file in files]
    return frames[0] if len(frames) == 1 else polars.concat(frames)


def to_pandas(files: Iterable[IO[bytes]], format: str, columns: Sequence[Column]) -> pandas.DataFrame:
    import pandas

    if format == "parquet":
        return _from_arrow(to_arrow(files), columns)
    frames = [_read_csv(file, columns) for file in files]
    return frames[0] if len(frames) == 1 else pandas.concat(frames, ignore_index=True)


def _from_arrow(table: pyarrow.Table, columns: Sequence[Column]) -> pandas.DataFrame:
    import pandas
    import pyarrow

    # Without these, unknown values would make integers floating, and booleans objects.
    integers = [pyarrow.int64(), pyarrow.int32(), pyarrow.int16(), pyarrow.int8()]
    integers += [pyarrow.uint64(), pyarrow.uint32(), pyarrow.uint16(), pyarrow.uint8()]
    types: Dict[Any, Any] = {**{one: pandas.Int64Dtype() for one in integers}, pyarrow.bool_(): pandas.BooleanDtype()}
    known = _known_types(table.column_names, columns)
    lists = [name for name in table.column_names if pyarrow.types.is_nested(table.schema.field(name).type)]
    frame = table.drop(lists).to_pandas(types_mapper=types.get)
    for name in lists:
        values = pandas.Series(table.column(name).to_pylist(), index=frame.index, dtype="object")
        frame.insert(table.column_names.index(name), name, values)
    return _finish(_cast(frame, known), columns)


def _read_csv(file: IO[bytes], columns: Sequence[Column]) -> pandas.DataFrame:
    import pandas

    names = file.readline().decode().strip().replace('"', "").split(",")
    file.seek(0)
    known = _known_types(names, columns)
    never_unknown = {name for name, type, nullable in columns if type == "string" and not nullable}
    frame = pandas.read_csv(
        file,
        # Times are parsed as such; texts and the `id` and `name` of owners in tables of several remain texts.
        dtype={name: known.get(name, "str") for name in names if known.get(name) != TIME},
        parse_dates=[name for name in names if known.get(name) == TIME],
        keep_default_na=False,
        na_values={name: [""] for name in names if name not in never_unknown},
        true_values=["true"],
        false_values=["false"],
    )
    return _finish(_cast(frame, known), columns)


def _cast(frame: pandas.DataFrame, known: Dict[str, str]) -> pandas.DataFrame:
    import pandas

    for name, type in known.items():
        if type == TIME and frame[name].dtype.kind != "M":
            # Pandas parses no column whose values are all unknown.
            frame[name] = pandas.to_datetime(frame[name], utc=True)
    changes = {name: type for name, type in known.items() if str(frame[name].dtype) != type}
    return frame.astype(changes) if changes else frame


def _finish(frame: pandas.DataFrame, columns: Sequence[Column]) -> pandas.DataFrame:
    """Parses JSON texts, and makes unknown texts None; pandas 3 has a type of its own for texts."""
    import pandas

    for name, type, nullable in columns:
        if name not in frame.columns or type not in ("json", "string"):
            continue
        if type == "json":
            values = [json.loads(value) if isinstance(value, str) else _to_none(value) for value in frame[name]]
            frame[name] = pandas.Series(values, index=frame.index, dtype="object")
        elif nullable and frame[name].dtype == "object":
            frame[name] = frame[name].where(frame[name].notna(), None)
    return frame


def _to_none(value: Any) -> Any:
    return None if isinstance(value, float) else value


def _known_types(names: List[str], columns: Sequence[Column]) -> Dict[str, str]:
    present = set(names)
    return {
        name: PANDAS_TYPES[(type, nullable)]
        for name, type, nullable in columns
        if name in present and (type, nullable) in PANDAS_TYPES
    }
