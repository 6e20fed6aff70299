"""The client: every operation of the service, in groups."""

from __future__ import annotations

from pathlib import Path
from typing import Optional, Union

from .cache import FolderCache
from .connection import Connection
from .operations import Operations
from .retry import Retries


class DaoData(Operations):
    """
    A client of a service.

    base_url: address of the service, with the path of a proxy.
    api_key: sent as `X-API-Key`.
    timeout: seconds for one attempt of a JSON answer; for tables and streams, the longest pause between bytes. None is
        unlimited.
    retries: number of retries of a request.
    longest_wait: if the service requires a longer wait before a retry, in seconds, the error is raised.
    memory_bytes: size of the cache of JSON answers in memory.
    cache_folder: also stores answers and tables here, for later programs. They are sent again only if they changed.
    cache_bytes: size of the folder; the least recently used answers are deleted above it.

    Raises ValueError if base_url is no absolute http(s) URL.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: Optional[str] = None,
        timeout: Optional[float] = 60.0,
        retries: int = 3,
        longest_wait: float = 60.0,
        memory_bytes: int = 16_000_000,
        cache_folder: Union[str, Path, None] = None,
        cache_bytes: int = 2_000_000_000,
    ) -> None:
        super().__init__(
            Connection(
                base_url,
                api_key=api_key,
                timeout=timeout,
                retries=Retries(retries, longest_wait),
                memory_bytes=memory_bytes,
                folder=None if cache_folder is None else FolderCache(cache_folder, cache_bytes),
            )
        )
