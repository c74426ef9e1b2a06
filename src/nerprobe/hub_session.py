"""Talking to the hub: bounded retries, and failures told in the project's own words.

The hub's client waits as long as a server asks and tries again on its own, with limits that cannot be set.
Here a failure that may pass leaves the client at once, so that one loop decides on waits and on the end.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import httpx2
from huggingface_hub import constants, set_client_factory
from huggingface_hub import errors as hub_errors
from huggingface_hub.utils._http import default_client_factory  # the only name of the client's own default

from nerprobe.errors import HubAccessError, HubError, HubMissingError, HubOfflineError
from nerprobe.log import logger
from nerprobe.redact import ScrubFilter, scrub

_Result = TypeVar("_Result")
_PASSING_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
_CLIMBS = re.compile(r"[/\\\0]|^\W*\.")
# A list that the client asks for once a day, for its usage statistics only; it does well without.
_NOT_ASKED_FOR = "/api/agent-harnesses"


@dataclass(frozen=True)
class RetryPolicy:
    """How often a request is tried and how long is waited in between.

    Attributes:
        attempts: Tries in all.
        base_seconds: Wait before the second try; it doubles with each further one.
        cap_seconds: Longest wait, also where the server asks for a longer one.
    """

    attempts: int = 4
    base_seconds: float = 1.0
    cap_seconds: float = 30.0

    def wait(self, *, attempt: int, asked: float | None) -> float:
        """Return the seconds to wait after a failed try.

        Args:
            attempt: Number of the failed try, from 0.
            asked: Seconds the server asked for, if it did.
        """
        planned = self.base_seconds * 2**attempt if asked is None else asked
        return min(planned, self.cap_seconds)


DEFAULT_POLICY = RetryPolicy()


@dataclass(frozen=True)
class Wanted:
    """What is asked from the hub, and what a user can do if it cannot be had."""

    repo: str
    repo_type: str
    revision: str
    filename: str = ""
    ways_out: str = ""

    @property
    def name(self) -> str:
        """The file, repository and revision in words."""
        part = self.filename or "the file list"
        return f"{part} of the {self.repo_type} {self.repo} at revision {self.revision}"

    @property
    def todo(self) -> str:
        """The ways out, in words."""
        ways = [
            f"set HF_ENDPOINT to a mirror (now {scrub(constants.ENDPOINT)})",
            "or set HF_HUB_OFFLINE=1 with a cache (HF_HOME) that was filled elsewhere",
        ]
        if self.ways_out:
            ways.append(f"or {self.ways_out}")
        elif self.repo_type == "dataset":
            ways.append(f"or pass --config data_dir=DIR with the file at DIR/<task>/{self.filename or '<file>'}")
        return "ways out: " + ", ".join(ways)

    def failure(self, kind: type[HubError], what: str, *, got: str = "", first: str = "") -> HubError:
        """Return an error that names the file and the ways out, free of secrets."""
        todo = f"{first}; {self.todo}" if first else self.todo
        return kind(scrub(what), where=self.name, got=scrub(got), todo=todo)


class TransientError(Exception):
    """A failure that may pass: worth another try.

    Args:
        reason: What happened.
        asked: Seconds the server wants to be left alone.
        unreachable: Whether no answer came at all.
    """

    def __init__(self, reason: str, *, asked: float | None = None, unreachable: bool = False) -> None:
        self.reason, self.asked, self.unreachable = scrub(reason), asked, unreachable
        super().__init__(self.reason)


def _asked_seconds(response: httpx2.Response) -> float | None:
    """Return the seconds of ``Retry-After``; its other form, a date, counts as not given."""
    text = response.headers.get("Retry-After", "").strip()
    return float(text) if text.isdecimal() else None


def _bounded(chunks: Callable[..., Iterator[bytes]], most: int, **kwargs: int) -> Iterator[bytes]:
    """Give the chunks of a body as long as they are no more than was announced."""
    for chunk in chunks(**kwargs):
        most -= len(chunk)
        if most < 0:
            raise TransientError("more bytes come than were announced")
        yield chunk


class _Session(httpx2.Client):
    """The client's HTTP session with failures that may pass handed to the caller at once."""

    def __init__(self) -> None:
        # The default session's hook refuses requests in offline mode and must stay. The default timeout is
        # for requests that name none: nothing may hang for ever.
        super().__init__(
            event_hooks=default_client_factory().event_hooks,
            follow_redirects=True,
            timeout=float(constants.HF_HUB_DOWNLOAD_TIMEOUT),
        )
        self._sent: set[tuple[str, str, str]] = set()
        self._announced: int | None = None

    def send(self, request: httpx2.Request, **kwargs: Any) -> httpx2.Response:  # noqa: ANN401
        """Send a request; a repeated one means that the client saw a failure and tries again by itself.

        A client that goes on after new bytes asks for another range, which is no repetition.
        """
        if request.url.path.endswith(_NOT_ASKED_FOR):
            raise TransientError("only what is wanted is asked for")
        key = (request.method, str(request.url), request.headers.get("range", ""))
        if key in self._sent:
            raise TransientError("the connection was cut or stood still while the file came")
        self._sent.add(key)
        try:
            response = super().send(request, **kwargs)
        except httpx2.TransportError as error:
            raise TransientError(f"{type(error).__name__} {error}".strip(), unreachable=True) from error
        self._check_answer(request.method, response)
        if response.status_code in _PASSING_STATUS:
            asked = _asked_seconds(response)
            response.close()
            wish = "" if asked is None else f", which asks to wait {asked:g} s"
            raise TransientError(f"status {response.status_code} of the hub{wish}", asked=asked)
        return response

    def _check_answer(self, method: str, response: httpx2.Response) -> None:
        """Refuse a hash that is a path, and keep a file from growing over the size announced for it.

        The client names a file of its cache by the ETag, wherever that leads, and writes as many bytes as come.
        """
        names = [response.headers.get(name, "") for name in ("ETag", "X-Linked-ETag")]
        if any(_CLIMBS.search(name.removeprefix("W/")) for name in names):
            response.close()
            raise ValueError("an ETag that is a path")
        length = response.headers.get("X-Linked-Size") or response.headers.get("Content-Length") or ""
        if method == "HEAD":
            self._announced = int(length) if length.isdecimal() else None
        elif self._announced is not None:
            response.iter_bytes = partial(_bounded, response.iter_bytes, self._announced)  # type: ignore[method-assign]


@contextmanager
def _hub_session() -> Iterator[None]:
    """Let the hub's client use our session, and its logs mask secrets, while the block runs."""
    mask = ScrubFilter()
    # Records of the client's many loggers meet at its handlers; the HTTP library has one logger.
    places: list[logging.Filterer] = [
        *logging.getLogger("huggingface_hub").handlers,
        logging.getLogger("httpx2"),
    ]
    for place in places:
        place.addFilter(mask)
    set_client_factory(_Session)
    try:
        yield
    finally:
        set_client_factory(default_client_factory)
        for place in places:
            place.removeFilter(mask)


def _explain_status(error: hub_errors.HfHubHTTPError, wanted: Wanted) -> HubError:
    status = error.response.status_code
    got = f"status {status}" + (f" ({error.server_message})" if error.server_message else "")
    if status in (401, 403) or isinstance(error, (hub_errors.GatedRepoError, hub_errors.DisabledRepoError)):
        first = (
            "if it is gated or private, ask for access on its page and set HF_TOKEN to a token that may "
            "read it; if HF_TOKEN is set, it may be wrong or out of date"
        )
        return wanted.failure(HubAccessError, "the hub refuses access", got=got, first=first)
    if isinstance(error, hub_errors.RevisionNotFoundError):
        return wanted.failure(HubMissingError, "the hub has no such revision", got=got)
    if isinstance(error, hub_errors.RemoteEntryNotFoundError):
        return wanted.failure(HubMissingError, "the hub has no such file", got=got)
    if isinstance(error, hub_errors.RepositoryNotFoundError):
        first = "check its name; a private one needs HF_TOKEN"
        return wanted.failure(HubMissingError, "the hub has no such repository", got=got, first=first)
    if status == 404:
        return wanted.failure(HubMissingError, "the hub has no such repository, revision or file", got=got)
    return wanted.failure(HubError, "the hub does not give it", got=got)


def _explain(error: BaseException, wanted: Wanted) -> HubError | TransientError:
    """Turn an exception of the client, or what caused it, into an error of ours or into another try."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, TransientError):
            return cause
        if isinstance(cause, hub_errors.HfHubHTTPError):
            return _explain_status(cause, wanted)
        if isinstance(cause, hub_errors.OfflineModeIsEnabled):
            return wanted.failure(
                HubOfflineError,
                "offline mode is on and it is not in the cache",
                got=f"HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE set, cache {constants.HF_HUB_CACHE}",
                first="unset it to download",
            )
        if isinstance(cause, (httpx2.TransportError, ConnectionError, TimeoutError)):
            return TransientError(f"{type(cause).__name__} {cause}".strip())
        if isinstance(cause, hub_errors.HFValidationError):
            return wanted.failure(HubMissingError, "this is no valid name on the hub", got=str(cause))
        if isinstance(cause, hub_errors.FileMetadataError):
            return wanted.failure(HubError, "the answer is not that of a hub", got=str(cause))
        if isinstance(cause, ValueError):
            return wanted.failure(HubError, "the name or the answer makes no sense to the client", got=str(cause))
        if isinstance(cause, OSError) and cause.errno is not None:
            first = "free space, or set HF_HOME to a folder with room that can be written"
            return wanted.failure(HubError, "it cannot be written into the cache", got=str(cause), first=first)
        cause = cause.__cause__
    return TransientError(f"{type(error).__name__}: {error}")


def ask_hub(call: Callable[[], _Result], wanted: Wanted, *, policy: RetryPolicy) -> _Result:
    """Call the hub's client, with retries for what may pass.

    Args:
        call: The one call of the client.
        wanted: What it asks for, for messages.
        policy: Number of tries and waits.

    Raises:
        HubError: Or one of its kinds, if it cannot be had.
    """
    last = TransientError("not tried")
    for attempt in range(policy.attempts):
        try:
            with _hub_session():
                return call()
        except Exception as error:
            # Any exception of the client, native transfer code included, must end in a clear line.
            told = _explain(error, wanted)
        if isinstance(told, HubError):
            raise told
        last = told
        if attempt + 1 < policy.attempts:
            seconds = policy.wait(attempt=attempt, asked=told.asked)
            logger.info("%s: %s; again in %.1f s", wanted.name, told.reason, seconds)
            time.sleep(seconds)
    if last.unreachable:
        what = f"the hub cannot be reached ({policy.attempts} tries) and it is not in the cache"
        raise wanted.failure(HubOfflineError, what, got=last.reason)
    first = "try later; if only large files fail, HF_HUB_DISABLE_XET=1 takes the plain way"
    raise wanted.failure(HubError, f"the download failed ({policy.attempts} tries)", got=last.reason, first=first)
