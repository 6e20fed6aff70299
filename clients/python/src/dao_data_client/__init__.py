"""
Typed client of dao-data: data about DAOs, their tokens and an index of them. `help(dao_data_client.DaoData)` lists the
groups of operations.
"""

from .address import format_time, parse_time
from .client import DaoData
from .errors import DaoDataError, NoAnswerError, ProblemError, UnexpectedAnswerError
from .facts import Answer, Facts
from .query import Query, TableQuery
from .stream import ResetEvent, StoredChange, StreamEvent

__all__ = [
    "Answer",
    "DaoData",
    "DaoDataError",
    "Facts",
    "NoAnswerError",
    "ProblemError",
    "Query",
    "ResetEvent",
    "StoredChange",
    "StreamEvent",
    "TableQuery",
    "UnexpectedAnswerError",
    "format_time",
    "parse_time",
]
