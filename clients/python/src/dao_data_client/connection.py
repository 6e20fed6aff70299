"""Sends requests: key, timeouts, retries, and answers that are sent again only if they changed."""

from __future__ import annotations

import errno
import gzip
import http.client
import json
import re
import shutil
import tempfile
import time
import urllib.request
import zlib
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import IO, Any, Callable, Dict, Iterator, Mapping, Optional, Tuple
from urllib.parse import urlsplit

from .address import to_base
from .cache import CachedAnswer, CachedHead, FolderCache, MemoryCache
from .errors import NoAnswerError, ProblemError, UnexpectedAnswerError
from .facts import Answer, Facts, to_facts
from .retry import Retries, with_retries

Headers = Mapping[str, str]

#: Errors of sockets, TLS and HTTP, and of a compressed body that is incomplete.
BROKEN = (OSError, http.client.HTTPException, EOFError, zlib.error)
#: These come from the file of a download, and a retry would not help.
FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
READ_BYTES = 1 << 16
LOCAL = ("127.0.0.1", "localhost", "::1")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """A key is sent to the service only."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request is not None and urlsplit(newurl)[:2] != urlsplit(req.full_url)[:2]:
            request.remove_header("X-api-key")
        return request


class _Answers(urllib.request.HTTPErrorProcessor):
    """Returns answers of every status except redirects."""

    def http_response(self, request: Any, response: Any) -> Any:
        is_redirect = response.status in (301, 302, 303, 307, 308)
        return super().http_response(request, response) if is_redirect else response

    https_response = http_response


def _user_agent() -> str:
    try:
        return f"dao-data-client-python/{version('dao-data-client')}"
    except PackageNotFoundError:
        # The sources are on the path without being installed.
        return "dao-data-client-python"


class Connection:
    """The connection of a client. Threads may share it."""

    def __init__(
        self,
        base_url: str,
        *,
        api_key: Optional[str],
        timeout: Optional[float],
        retries: Retries,
        memory_bytes: int,
        folder: Optional[FolderCache],
    ) -> None:
        self.base = to_base(base_url)
        self._timeout = timeout
        self._retries = retries
        self._memory = MemoryCache(memory_bytes)
        self._folder = folder
        self._headers = {"User-Agent": _user_agent()}
        if api_key is not None:
            self._headers["X-API-Key"] = api_key
        self._opener = urllib.request.build_opener(_Redirects, _Answers)
        # Over a local connection compression takes longer than it saves.
        self._encoding = {} if urlsplit(self.base).hostname in LOCAL else {"Accept-Encoding": "gzip"}

    def answer(self, url: str) -> Answer[Any]:
        """
        The answer at a URL: parsed JSON, or the text of an image or a feed.

        Raises ProblemError if the service returns an error, NoAnswerError if there is no answer, each after the last
        attempt; UnexpectedAnswerError immediately if another server answers.
        """
        return with_retries(lambda: self._answer(url), self._retries)

    def download(self, url: str, media_type: str) -> Tuple[IO[bytes], Facts]:
        """
        A file with the complete body, at its beginning. It is deleted when it is closed, unless it is in the cache.

        Raises as `answer`.
        """
        return with_retries(lambda: self._download(url, media_type), self._retries)

    @contextmanager
    def open(self, url: str, headers: Headers, timeout: Optional[float]) -> Iterator[Tuple[Any, Dict[str, str]]]:
        """
        A response with an unread body, and its headers in lower case. No retries.

        Raises ProblemError for an error of the service; NoAnswerError for broken connections, also while the body is
        read.
        """
        request = urllib.request.Request(url, headers={**self._headers, **headers})
        try:
            with self._opener.open(request, timeout=timeout) as response:
                received = {name.lower(): value for name, value in response.headers.items()}
                if response.status >= 400:
                    raise ProblemError(url, response.status, received, _decode(received, response.read()))
                yield response, received
        except BROKEN as error:
            if getattr(error, "errno", None) in FULL_DISK:
                raise
            raise NoAnswerError(url, str(error) or type(error).__name__) from error

    def _answer(self, url: str) -> Answer[Any]:
        cached = self._memory.get(url) or self._read_folder(url)
        headers = {"Accept": "application/json, */*;q=0.5", "Accept-Encoding": "gzip"}
        if cached is not None:
            headers["If-None-Match"] = cached.head.tag
        with self.open(url, headers, self._timeout) as (response, received):
            facts = to_facts(received)
            if response.status == 304 and cached is not None:
                return Answer(_parse(url, 304, cached), facts)
            body = _decode(received, self._read(url, response))
            status: int = response.status
        head = CachedHead(facts.tag or "", received.get("content-type", ""))
        answer = CachedAnswer(head, body)
        data = _parse(url, status, answer)
        if facts.tag is not None:
            self._memory.set(url, answer)
            self._write_folder(url, answer)
        return Answer(data, facts)

    def _read(self, url: str, response: Any) -> bytes:
        """The body, within the timeout in total."""
        end = None if self._timeout is None else time.monotonic() + self._timeout
        chunks = []
        while chunk := response.read1(READ_BYTES):
            chunks.append(chunk)
            if end is not None and time.monotonic() > end:
                raise NoAnswerError(url, f"not complete after {self._timeout} s")
        if response.length:
            raise http.client.IncompleteRead(b"".join(chunks), response.length)
        return b"".join(chunks)

    def _read_folder(self, url: str) -> Optional[CachedAnswer]:
        head = None if self._folder is None else self._folder.find(url)
        file = None if self._folder is None or head is None else self._folder.open(url, head)
        if head is None or file is None:
            return None
        with file:
            return CachedAnswer(head, file.read())

    def _write_folder(self, url: str, answer: CachedAnswer) -> None:
        if self._folder is None:
            return
        file = self._folder.new_file()
        file.write(answer.body)
        self._folder.store(url, answer.head, file)

    def _download(self, url: str, media_type: str) -> Tuple[IO[bytes], Facts]:
        folder = self._folder
        head = None if folder is None else folder.find(url)
        conditions = {} if head is None else {"If-None-Match": head.tag}
        with self.open(url, {**self._encoding, **conditions}, self._timeout) as (response, received):
            facts = to_facts(received)
            if response.status == 304 and folder is not None and head is not None:
                file = folder.open(url, head)
                if file is None:
                    raise NoAnswerError(url, "its cached file was deleted")
                return file, facts
            if not received.get("content-type", "").startswith(media_type):
                raise UnexpectedAnswerError(url, response.status, received.get("content-type", ""), response.read(60))
            is_kept = folder is not None and facts.tag is not None
            file = folder.new_file() if folder is not None and is_kept else _new_file()
            discard: Callable[[IO[bytes]], None] = folder.discard if folder is not None and is_kept else _close
            try:
                source = gzip.GzipFile(fileobj=response) if received.get("content-encoding") == "gzip" else response
                shutil.copyfileobj(source, file, 1 << 20)
                if response.length:
                    raise http.client.IncompleteRead(b"", response.length)
            except BaseException:
                discard(file)
                raise
        if folder is not None and is_kept:
            head = CachedHead(facts.tag or "", received.get("content-type", ""))
            folder.store(url, head, file)
            kept = folder.open(url, head)
            if kept is None:
                raise NoAnswerError(url, "its cached file was deleted")
            return kept, facts
        file.seek(0)
        return file, facts


def _new_file() -> IO[bytes]:
    return tempfile.TemporaryFile()


def _close(file: IO[bytes]) -> None:
    file.close()


def _decode(headers: Headers, body: bytes) -> bytes:
    return gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body


def _parse(url: str, status: int, answer: CachedAnswer) -> Any:
    media_type = answer.head.media_type
    if re.match(r"application/octet-stream\b", media_type):
        return answer.body
    if re.match(r"(?:image/svg\+xml|application/atom\+xml|text/calendar)\b", media_type):
        return answer.body.decode()
    if not re.match(r"application/(?:[\w.]+\+)?json\b", media_type):
        raise UnexpectedAnswerError(url, status, media_type, answer.body)
    try:
        return json.loads(answer.body)
    except ValueError as error:
        raise NoAnswerError(url, f"its JSON is incomplete: {error}") from error
