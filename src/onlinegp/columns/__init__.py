"""Columns as they come: categories, dates and missing values become numbers, by what the first rows show."""

from onlinegp.columns.columns import Columns

__all__ = ["Columns"]
