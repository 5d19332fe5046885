"""Reproductions of papers, one folder per paper, with code and expected numbers. `onlinegp reproduce` runs them.

A folder has the citation key of its paper as its name. It has a `CITATION` and lists its `EXPERIMENTS`. Each experiment
is a module with `TITLE`, `Settings`, `plan` (the jobs, which may run in any order and process) and `gather` (their
results as one JSON-compatible dictionary). From this dictionary alone, `claims` compares the paper's statements with
the results, and `tables` and `draw` make the tables and the figure.

    common, curves    jobs, claims, numbers for JSON; learning curves over repeats
    channels          a channel that changes, with test sets, and a channel to equalize
    style, report     the style of the figures, and the page that compares them with the claims
    reproduction      runs experiments by name and writes their results
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
