"""What JSON schemas let pass and nothing can work with: endless YAML, NaN, half characters, last line ends."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema

_DEEPEST = 32
_MOST_VALUES = 100_000


def misshapen(value: object) -> tuple[str, str, str] | None:
    """Return place, expectation and find of what schemas let pass and nothing can work with.

    References of YAML (``&a``, ``*a``) can make a value of a few lines endlessly deep or large.
    """
    waiting: list[tuple[str, int, object]] = [("", 0, value)]
    for _ in range(_MOST_VALUES):
        if not waiting:
            return None
        place, depth, part = waiting.pop()
        if depth > _DEEPEST:
            return place[:80], f"at most {_DEEPEST} levels", "more"
        if isinstance(part, float) and not math.isfinite(part):
            return place, "a finite number", str(part)
        if isinstance(part, int) and part.bit_length() > 63:
            return place, "a number below 2^63", "a larger one"
        if isinstance(part, str) and any(char == "\0" or "\ud800" <= char <= "\udfff" for char in part):
            return place, "a text that UTF-8 can hold, without NUL", ascii(part[:80])
        inner = part.items() if isinstance(part, Mapping) else enumerate(part) if isinstance(part, list) else ()
        waiting += [(f"{place}.{name}".lstrip("."), depth + 1, own) for name, own in inner]
    return "", f"at most {_MOST_VALUES:,} values", "more"


def _whole_match(
    validator: Any,  # noqa: ANN401
    pattern: str,
    instance: object,
    schema: Mapping[str, Any],
) -> Iterator[jsonschema.ValidationError]:
    """Check ``pattern`` as schemas mean it: in Python ``$`` also fits before a last line end."""
    if isinstance(instance, str) and re.search(re.sub(r"\$$", r"\\Z", pattern), instance) is None:
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


Validator = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator, {"pattern": _whole_match}
)
"""Draft 2020-12, with patterns that mean the whole text."""
