"""When a failed request is sent again."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import Callable, Optional, TypeVar

from .errors import DaoDataError, NoAnswerError, ProblemError

T = TypeVar("T")

FIRST_WAIT_SECONDS = 0.25
LONGEST_BACKOFF_SECONDS = 15.0


@dataclass(frozen=True)
class Retries:
    #: Maximum number of retries.
    retries: int = 3
    #: If the next attempt would be later, the error is raised, with the time to retry.
    longest_wait_seconds: float = 60.0


def is_transient(status: int) -> bool:
    """A rate limit, a gateway without a service, an overloaded service. Other errors would repeat."""
    return status in (429, 502, 503, 504)


def to_wait_seconds(
    error: DaoDataError, attempt: int, passes: Callable[[int], bool] = is_transient
) -> Optional[float]:
    """
    Seconds before the next attempt; None if a retry would not help. `Retry-After` has priority. Otherwise the wait
    grows exponentially with jitter between half and the full value, so that clients do not retry simultaneously.
    """
    if isinstance(error, ProblemError):
        if not passes(error.status):
            return None
        if error.retry_after is not None:
            return error.retry_after
    elif not isinstance(error, NoAnswerError):
        return None
    return min(LONGEST_BACKOFF_SECONDS, FIRST_WAIT_SECONDS * 2.0 ** min(attempt, 10)) * random.uniform(0.5, 1)


def with_retries(send: Callable[[], T], options: Retries) -> T:
    """Sends until there is an answer, a permanent error, or no attempt left."""
    attempt = 0
    while True:
        try:
            return send()
        except DaoDataError as error:
            seconds = to_wait_seconds(error, attempt)
            if seconds is None or attempt >= options.retries or seconds > options.longest_wait_seconds:
                raise
        time.sleep(seconds)
        attempt += 1
