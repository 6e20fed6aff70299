"""The response cache: answers with a tag, in memory or in a folder."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import threading
from collections import OrderedDict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Dict, Optional, Union, cast


@dataclass(frozen=True)
class CachedHead:
    """The tag and the media type of a cached answer. Its body is bytes, or a file."""

    tag: str
    media_type: str


@dataclass(frozen=True)
class CachedAnswer:
    head: CachedHead
    body: bytes


class MemoryCache:
    """Answers by URL, with a budget in bytes and least-recently-used eviction. Threads may share it."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._answers: OrderedDict[str, CachedAnswer] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, url: str) -> Optional[CachedAnswer]:
        with self._lock:
            found = self._answers.get(url)
            if found is not None:
                self._answers.move_to_end(url)
            return found

    def set(self, url: str, answer: CachedAnswer) -> None:
        with self._lock:
            before = self._answers.pop(url, None)
            self._bytes -= 0 if before is None else len(before.body)
            if len(answer.body) > self._most_bytes:
                return
            self._answers[url] = answer
            self._bytes += len(answer.body)
            while self._bytes > self._most_bytes:
                _, oldest = self._answers.popitem(last=False)
                self._bytes -= len(oldest.body)


class FolderCache:
    """
    Answers in a folder: for each URL a file with the body and one with its head. Several processes may share the
    folder: a body has the hash of its tag in its name, so a head never belongs to other bytes, and files are renamed
    into place. The least recently used answers are deleted above the budget.
    """

    def __init__(self, folder: Union[str, Path], most_bytes: int) -> None:
        self._folder = Path(folder)
        self._most_bytes = most_bytes
        self._folder.mkdir(parents=True, exist_ok=True)

    def _name(self, text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def _head(self, url: str) -> Path:
        return self._folder / f"{self._name(url)}.json"

    def _body(self, url: str, head: CachedHead) -> Path:
        return self._folder / f"{self._name(url)}.{self._name(head.tag)[:16]}.body"

    def find(self, url: str) -> Optional[CachedHead]:
        """The head of a stored answer; None if there is none, or if its files are incomplete."""
        try:
            found: Dict[str, str] = json.loads(self._head(url).read_bytes())
            head = CachedHead(tag=found["tag"], media_type=found["media_type"])
            os.utime(self._body(url, head))
            return head
        except (FileNotFoundError, ValueError, KeyError):
            return None

    def open(self, url: str, head: CachedHead) -> Optional[IO[bytes]]:
        """The body of a stored answer; None if another process has deleted it."""
        try:
            return self._body(url, head).open("rb")
        except FileNotFoundError:
            return None

    def new_file(self) -> IO[bytes]:
        """A file for a body that is still arriving; `store` or `discard` ends it."""
        return cast("IO[bytes]", tempfile.NamedTemporaryFile(dir=self._folder, suffix=".part", delete=False))

    def store(self, url: str, head: CachedHead, file: IO[bytes]) -> None:
        # Windows renames only closed files.
        file.close()
        os.replace(file.name, self._body(url, head))
        with tempfile.NamedTemporaryFile("w", dir=self._folder, suffix=".part", delete=False) as next_head:
            json.dump(asdict(head), next_head)
        os.replace(next_head.name, self._head(url))
        self._evict(self._body(url, head))

    def discard(self, file: IO[bytes]) -> None:
        file.close()
        Path(file.name).unlink()

    def _evict(self, newest: Path) -> None:
        bodies = []
        for path in self._folder.glob("*.body"):
            try:
                bodies.append((path.stat(), path))
            except FileNotFoundError:
                # Another process has deleted it.
                continue
        stem = newest.name.split(".")[0]
        rest = sum(stat.st_size for stat, _ in bodies)
        for stat, path in sorted(bodies, key=lambda one: one[0].st_mtime):
            # The newest answer is kept at any size, and replaces the older ones of its URL.
            is_replaced = path.name.startswith(stem)
            if path == newest or (rest <= self._most_bytes and not is_replaced):
                continue
            path.unlink(missing_ok=True)
            rest -= stat.st_size
            if not is_replaced:
                (self._folder / f"{path.name.split('.')[0]}.json").unlink(missing_ok=True)
