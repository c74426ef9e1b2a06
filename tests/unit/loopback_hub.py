"""A small HTTP server on 127.0.0.1 that answers the hub's client as the hub does, and fails on order.

    with LoopbackHub() as hub:
        hub.add_repo("org/name", "model", "a" * 40, {"config.json": b"{}"})
        hub.fail_next("config.json", status=500, times=2)
        ...  # run a client with HF_ENDPOINT=hub.url

Files whose names end in .safetensors, .bin, .parquet or .model are large files (ETag is their SHA-256), the
others plain git files (ETag is the git blob SHA-1).
"""

from __future__ import annotations

import hashlib
import json
import re
import socket
import struct
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

_LARGE = (".safetensors", ".bin", ".parquet", ".model")
_API = re.compile(r"/api/(models|datasets)/(.+?)(?:/revision/([^/]+))?")
_RESOLVE = re.compile(r"/(datasets/)?([^/]+/[^/]+|[^/]+)/resolve/([^/]+)/(.+)")


def git_sha1(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass
class _Rule:
    """Something to do to requests whose path holds a text; ``times`` None means always."""

    kind: str
    path: str
    times: int | None
    method: str | None = None
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    after: int = 0
    in_body: bool = False


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up early is part of the tests, anything else is told."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class LoopbackHub:
    """The server; a context manager. ``log`` holds (method, path with query), ``tokens`` the tokens seen, ``flooded`` bytes."""

    def __init__(self) -> None:
        self.log: list[tuple[str, str]] = []
        self.tokens: list[str] = []
        self.flooded = 0
        self.closing = threading.Event()
        self._repos: dict[tuple[str, str], dict[str, dict[str, bytes]]] = {}
        self._rules: list[_Rule] = []
        self._lock = threading.Lock()

    def __enter__(self) -> LoopbackHub:
        hub = self

        class Handler(_Handler):
            owner = hub

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def add_repo(self, repo: str, repo_type: str, revision: str, files: dict[str, bytes]) -> None:
        """Serve files at a revision; the revision added last is also ``main``."""
        self._repos.setdefault((repo_type, repo), {})[revision] = dict(files)

    def fail_next(
        self,
        path_substring: str,
        *,
        status: int,
        headers: dict[str, str] | None = None,
        times: int | None = 1,
        method: str | None = None,
        body: bytes = b"",
    ) -> None:
        """Answer with an error status."""
        self._rules.append(
            _Rule("fail", path_substring, times, method, status=status, headers=headers or {}, body=body)
        )

    def cut_next(self, path_substring: str, *, after: int = 1, times: int | None = 1, reset: bool = False) -> None:
        """Send the first ``after`` bytes of a body and close the connection, or reset it."""
        kind = "reset" if reset else "cut"
        self._rules.append(_Rule(kind, path_substring, times, "GET", after=after))

    def corrupt(self, path_substring: str, *, times: int | None = None) -> None:
        """Send wrong bytes of the right size."""
        self._rules.append(_Rule("corrupt", path_substring, times, "GET"))

    def hang(
        self,
        path_substring: str,
        *,
        times: int | None = None,
        method: str | None = None,
        in_body: bool = False,
    ) -> None:
        """Keep the connection open and say nothing, from the start or after the headers."""
        method = "GET" if in_body else method
        self._rules.append(_Rule("hang", path_substring, times, method, in_body=in_body))

    def lie(self, path_substring: str, headers: dict[str, str]) -> None:
        """Answer as usual but for some headers."""
        self._rules.append(_Rule("lie", path_substring, None, headers=headers))

    def flood(self, path_substring: str) -> None:
        """Send a body without announced length that goes on until the client hangs up, or to 300 MB."""
        self._rules.append(_Rule("flood", path_substring, None, "GET"))

    def mend(self) -> None:
        """Forget all orders."""
        self._rules.clear()

    def take_rule(self, method: str, path: str) -> _Rule | None:
        with self._lock:
            for rule in self._rules:
                if rule.path in path and rule.method in (None, method) and rule.times != 0:
                    if rule.times is not None:
                        rule.times -= 1
                    return rule
        return None

    def find(self, repo_type: str, repo: str, revision: str | None) -> tuple[str, dict[str, bytes]] | str:
        """Return revision and files, or the hub's code for what is missing."""
        revisions = self._repos.get((repo_type, repo))
        if revisions is None:
            return "RepoNotFound"
        if revision in (None, "main"):
            revision = list(revisions)[-1]
        if revision not in revisions:
            return "RevisionNotFound"
        return str(revision), revisions[str(revision)]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: LoopbackHub
    rule: _Rule | None = None

    def log_message(self, *_: object) -> None:
        """Say nothing on standard error."""

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        hub = self.owner
        hub.log.append((self.command, self.path))
        hub.tokens.append(self.headers.get("Authorization", ""))
        self.rule = hub.take_rule(self.command, self.path)
        if self.rule and self.rule.kind == "hang" and not self.rule.in_body:
            hub.closing.wait()
            self.close_connection = True
            return
        if self.rule and self.rule.kind == "fail":
            self.send(self.rule.status, self.rule.body, self.rule.headers)
            return
        path = unquote(urlsplit(self.path).path)
        if match := _API.fullmatch(path):
            self.info("dataset" if match[1] == "datasets" else "model", match[2], match[3])
        elif match := _RESOLVE.fullmatch(path):
            self.resolve("dataset" if match[1] else "model", match[2], match[3], match[4])
        else:
            self.missing("EntryNotFound")

    def missing(self, code: str, commit: str = "") -> None:
        extra = {"X-Repo-Commit": commit} if commit else {}
        self.send(404, b"", {"X-Error-Code": code, "X-Error-Message": code, **extra})

    def info(self, repo_type: str, repo: str, revision: str | None) -> None:
        found = self.owner.find(repo_type, repo, revision)
        if isinstance(found, str):
            self.missing(found)
            return
        commit, files = found
        blobs = "blobs=" in self.path.lower()
        siblings = [self.sibling(name, data, blobs) for name, data in sorted(files.items())]
        answer: dict[str, object] = {"_id": "0", "id": repo, "sha": commit}
        if "expand=" not in self.path:
            answer |= {"private": False, "tags": [], "siblings": siblings}
        self.send(200, json.dumps(answer).encode(), {"Content-Type": "application/json"})

    @staticmethod
    def sibling(name: str, data: bytes, blobs: bool) -> dict[str, object]:
        entry: dict[str, object] = {"rfilename": name}
        if blobs:
            entry |= {"size": len(data), "blobId": git_sha1(data)}
            if name.endswith(_LARGE):
                entry["lfs"] = {"sha256": sha256(data), "size": len(data), "pointerSize": 134}
        return entry

    def resolve(self, repo_type: str, repo: str, revision: str, name: str) -> None:
        found = self.owner.find(repo_type, repo, revision)
        if isinstance(found, str):
            self.missing(found)
            return
        commit, files = found
        if name not in files:
            self.missing("EntryNotFound", commit)
            return
        data = files[name]
        headers = {"X-Repo-Commit": commit, "Accept-Ranges": "bytes", "ETag": f'"{git_sha1(data)}"'}
        if name.endswith(_LARGE):
            headers |= {"X-Linked-Etag": f'"{sha256(data)}"', "X-Linked-Size": str(len(data))}
        if self.rule and self.rule.kind == "corrupt":
            data = bytes(byte ^ 1 for byte in data)
        status, wish = 200, re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if wish:
            start = int(wish[1])
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
            status, data = 206, data[start:]
        self.send(status, data, headers)

    def flood(self) -> None:
        """Write chunks of 1 MB until the client has had enough."""
        self.close_connection = True
        while self.owner.flooded < 300_000_000:
            self.wfile.write(b"%x\r\n%s\r\n" % (1_000_000, b"x" * 1_000_000))
            self.owner.flooded += 1_000_000

    def send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        flood = self.rule is not None and self.rule.kind == "flood"
        if self.rule and self.rule.kind == "lie":
            headers = headers | self.rule.headers
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if flood:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.flood()
            return
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if self.rule and self.rule.kind in ("cut", "reset"):
            self.wfile.write(body[: self.rule.after])
            if self.rule.kind == "reset":
                # Closing with a linger time of 0 s sends a reset.
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.close_connection = True
        elif self.rule and self.rule.kind == "hang":
            self.wfile.write(body[:1])
            self.owner.closing.wait()
            self.close_connection = True
        else:
            self.wfile.write(body)
