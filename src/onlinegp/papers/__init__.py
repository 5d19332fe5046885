"""Reproductions of papers, one folder per paper. `onlinegp reproduce` runs them.

The name of a folder is the citation key of its paper. It contains a `CITATION` and the list of `EXPERIMENTS`. Each
experiment is a module with `TITLE`, `Settings`, `plan` (the jobs, which may run in any order and process) and `gather`
(their results as a JSON-compatible dictionary). From this dictionary, `claims` compares the statements of the paper
with the results, and `tables` and `draw` create the tables and the figure.

    common, curves    jobs, claims, numbers for JSON; learning curves over repeats
    channels          a channel that changes, with test sets, and a channel to equalize
    style, report     the style of the figures, and the page that compares them with the claims
    reproduction      runs experiments by name and writes their results
"""

FIRST = "vanvaerenbergh2016relationship"  # the main paper of this library
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
