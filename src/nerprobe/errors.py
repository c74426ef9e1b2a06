"""Errors that a user can mend: one class a cause, each with what, where, expected, got and what to do."""

from __future__ import annotations

from nerprobe.redact import visible


class NerprobeError(Exception):
    """Base of every error that ends a command with one clear line and no traceback.

    Args:
        what: What went wrong, a short sentence without a full stop.
        where: File and line, item id, encoder or key at fault.
        expected: What would have been right.
        got: What was found instead.
        todo: What the user can do about it.
    """

    def __init__(self, what: str, *, where: str = "", expected: str = "", got: str = "", todo: str = "") -> None:
        self.what, self.where, self.expected, self.got, self.todo = what, where, expected, got, todo
        super().__init__(self.line())

    def line(self) -> str:
        """Return the error as one line that cannot act in a terminal, whatever names it quotes."""
        parts = [f"{self.where}: {self.what}" if self.where else self.what]
        if self.expected:
            parts.append(f"expected {self.expected}")
        if self.got:
            parts.append(f"got {self.got}")
        if self.todo:
            parts.append(self.todo)
        return visible("; ".join(parts).replace("\n", " "))


class ConfigError(NerprobeError):
    """The configuration does not fit its schema or contradicts itself."""


class TaskFileError(NerprobeError):
    """A task file does not fit its schema."""


class UnknownModelError(NerprobeError):
    """A model name is neither in the registry nor a pinned hub id nor a folder."""


class UnpinnedModelError(NerprobeError):
    """A hub id comes without a full revision."""


class SlugClashError(NerprobeError):
    """Two encoders would write the same files."""


class CorpusFormatError(NerprobeError):
    """A corpus file breaks its format."""


class CorpusFileError(NerprobeError):
    """A corpus file is missing, empty or unreadable."""


class SubsetSizeError(NerprobeError):
    """More items are asked for than the pool has."""


class HubError(NerprobeError):
    """A file could not be had from the hub."""


class HubAccessError(HubError):
    """The hub refuses access (401, 403)."""


class HubMissingError(HubError):
    """The hub has no such repository, revision or file (404)."""


class HubOfflineError(HubError):
    """The hub cannot be reached and the file is not in the cache."""


class HashMismatchError(NerprobeError):
    """Bytes differ from the hash they were pinned to."""


class WheelError(NerprobeError):
    """A wheel cannot be had, or its content climbs out of its folder."""


class EncoderFolderError(NerprobeError):
    """A folder does not hold a loadable encoder."""


class AlignmentError(NerprobeError):
    """Sub-words cannot be aligned with characters of the text."""


class NonFiniteError(NerprobeError):
    """An encoder gives NaN or infinite vectors."""


class LeaseError(NerprobeError):
    """The locks that share out local GPUs cannot be kept."""


class ArtefactError(NerprobeError):
    """A file of an earlier stage is missing, damaged or of another schema."""


class StorageError(NerprobeError):
    """A file cannot be written: the disk is full, or its folder is read-only."""
