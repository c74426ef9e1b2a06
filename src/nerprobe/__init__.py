"""Rank frozen text encoders by a token probe for named entities."""

__version__ = "0.1.0"
