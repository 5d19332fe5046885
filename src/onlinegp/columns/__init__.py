"""Encode categories, dates and missing values as numbers, with rules learned from the first rows."""

from onlinegp.columns.encoding import Encoding

__all__ = ["Encoding"]
