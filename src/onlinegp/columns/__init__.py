"""Turn categories, dates and missing values into numbers, with rules learned from the first rows."""

from onlinegp.columns.columns import Columns

__all__ = ["Columns"]
