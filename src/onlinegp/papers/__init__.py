"""Reproductions of papers: one folder for each, code and expected numbers together; `onlinegp reproduce` runs them.

A folder is named as its paper is cited. It has a `CITATION` and lists its `EXPERIMENTS`, each of which is a module:
`TITLE`, `Settings`, `plan` (the jobs, which may run in any order and process), `gather` (their results as one
dictionary that JSON can hold), and from that dictionary alone `claims` (what was said, the result), `tables` and
`draw` (the figure).

    common, curves    jobs, claims, numbers for JSON; learning curves over repeats
    channels          a channel that changes, with test sets, and one to be equalized
    style, report     the look of the figures, and the page that holds them against their claims
    reproduction      runs experiments by name, and writes what they give
"""

FIRST = "vanvaerenbergh2016relationship"  # the paper that this library grew from
PAPERS = (
    FIRST,
    "vanvaerenbergh2012kernel",
    "vanvaerenbergh2012estimation",
    "chen2012quantized",
    "richard2009online",
    "vanvaerenbergh2006sliding",
    "liu2010kernel",
    "yukawa2012multikernel",
)
