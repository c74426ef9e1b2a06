"""Secrets out of texts: what a message, a log or a page may show of an error."""

from __future__ import annotations

import logging
import os
import re
from contextlib import suppress
from pathlib import Path

_MASK = "***"
_HUB_TOKEN = re.compile(r"(?<![A-Za-z0-9])(?:hf|api_org)_(?:oauth_|jwt_)?[A-Za-z0-9]{10,}(?:[._-][A-Za-z0-9]+)*")
_BEARER = re.compile(r"(?i)(bearer\s+|authorization['\"]?\s*[:=]\s*)(?!bearer)(?:[A-Za-z]+\s+)?[A-Za-z0-9._~+/=-]+")
_USER_IN_URL = re.compile(r"(?<=://)[^/\s@]+@")
_SIGNATURE = re.compile(r"(?i)([?&](?:[a-z-]*signature|[a-z-]*token|[a-z-]*credential|policy|key-pair-id)=)[^&\s'\"]+")
_SHORTEST_SECRET = 4


def _token_file() -> Path:
    """Return where the hub's client stores a token, by the client's own rules."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    home = os.environ.get("HF_HOME") or str(Path(cache) / "huggingface")
    return Path(os.environ.get("HF_TOKEN_PATH") or Path(home) / "token").expanduser()


def _known_secrets() -> list[str]:
    """Return the tokens of this user, longest first so that no part of one stays behind."""
    found = [os.environ.get(name, "") for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")]
    with suppress(OSError, ValueError):  # no stored token is the usual case
        found.append(_token_file().read_text(encoding="utf-8"))
    secrets = {value.strip() for value in found}
    return sorted((s for s in secrets if len(s) >= _SHORTEST_SECRET), key=len, reverse=True)


def scrub(text: str) -> str:
    """Return a text with every token of the hub, password in a URL and URL signature masked.

    Args:
        text: Any text, such as the message of an exception of another library.

    Returns:
        The text with ``***`` in place of secrets: the values of ``HF_TOKEN`` and
        ``HUGGING_FACE_HUB_TOKEN``, the stored token, and all that looks like a token.
    """
    for secret in _known_secrets():
        text = text.replace(secret, _MASK)
    text = _HUB_TOKEN.sub(_MASK, text)
    text = _BEARER.sub(rf"\1{_MASK}", text)
    text = _USER_IN_URL.sub(f"{_MASK}@", text)
    return _SIGNATURE.sub(rf"\1{_MASK}", text)


class ScrubFormatter(logging.Formatter):
    """Mask secrets in all that a handler writes, tracebacks included."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's text without secrets."""
        return scrub(super().format(record))


class ScrubFilter(logging.Filter):
    """Mask secrets in the records that pass a log handler."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the record in place; all records pass."""
        record.msg, record.args = scrub(record.getMessage()), ()
        return True
