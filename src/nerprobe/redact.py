"""Secrets out of texts: what a message, a log or a page may show of an error."""

from __future__ import annotations

import logging
import os
import re
import unicodedata
from contextlib import suppress
from pathlib import Path

_MASK = "***"
_HUB_TOKEN = re.compile(r"(?<![A-Za-z0-9])(?:hf|api_org)_(?:oauth_|jwt_)?[A-Za-z0-9]{10,}(?:[._-][A-Za-z0-9]+)*")
_BEARER = re.compile(r"(?i)(bearer\s+|authorization['\"]?\s*[:=]\s*)(?!bearer)(?:[A-Za-z]+\s+)?[A-Za-z0-9._~+/=-]+")
# Up to the last @ before the path: a password may hold one itself.
_USER_IN_URL = re.compile(r"(?<=://)[^/\s'\"]+@")
_SIGNATURE = re.compile(r"(?i)([?&](?:[a-z-]*signature|[a-z-]*token|[a-z-]*credential|policy|key-pair-id)=)[^&\s'\"]+")
_SHORTEST_SECRET = 4
_TOKEN_VARIABLE = re.compile(r"(HF|HUGGING_?FACE|HUGGINGFACEHUB)_(\w+_)?TOKEN")
_URL_VARIABLE = re.compile(r"(?i)HF_ENDPOINT|PIP_(EXTRA_)?INDEX_URL|PIP_FIND_LINKS|(HTTPS?|ALL|PIP)_PROXY")
_PASSWORD = re.compile(r"://[^/\s:@]*:(\S+)@")


def visible(text: str) -> str:
    """Return a text with control characters and line ends shown as escapes, so that it cannot act."""
    return "".join(
        char if unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp") else f"\\u{ord(char):04x}"
        for char in text
    )


def _token_file() -> Path:
    """Return where the hub's client stores a token, by the client's own rules."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    home = os.environ.get("HF_HOME") or str(Path(cache) / "huggingface")
    return Path(os.environ.get("HF_TOKEN_PATH") or Path(home) / "token").expanduser()


def _known_secrets() -> list[str]:
    """Return the tokens of this user, longest first so that no part of one stays behind."""
    found = [value for name, value in os.environ.items() if _TOKEN_VARIABLE.fullmatch(name)]
    urls = [value for name, value in os.environ.items() if _URL_VARIABLE.fullmatch(name)]
    found += [password for url in urls for password in _PASSWORD.findall(url)]
    with suppress(OSError, ValueError):  # no stored token is the usual case
        found.append(_token_file().read_text(encoding="utf-8"))
    secrets = {value.strip() for value in found}
    return sorted((s for s in secrets if len(s) >= _SHORTEST_SECRET), key=len, reverse=True)


def scrub(text: str) -> str:
    """Return a text with every token of the hub, password in a URL and URL signature masked.

    Args:
        text: Any text, such as the message of an exception of another library.

    Returns:
        The text with ``***`` in place of secrets: the values of ``HF_TOKEN`` and its kin, the stored token,
        passwords in the addresses of hub, package index and proxy, and all that looks like a token.
    """
    for secret in _known_secrets():
        text = text.replace(secret, _MASK)
    text = _HUB_TOKEN.sub(_MASK, text)
    text = _BEARER.sub(rf"\1{_MASK}", text)
    text = _USER_IN_URL.sub(f"{_MASK}@", text)
    return _SIGNATURE.sub(rf"\1{_MASK}", text)


class ScrubFormatter(logging.Formatter):
    """Mask secrets and show control characters in all that a handler writes, tracebacks included."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's text without secrets and without what could act in a terminal."""
        return "\n".join(map(visible, scrub(super().format(record)).split("\n")))


class ScrubFilter(logging.Filter):
    """Mask secrets in the records that pass a log handler."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the record in place; all records pass."""
        record.msg, record.args = scrub(record.getMessage()), ()
        return True
