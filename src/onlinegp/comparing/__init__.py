"""Algorithms compared over many runs, each tuned for itself on data of its own.

runs        where the runs come from: simulations of a seed, permutations or blocks of some rows
entrants    what takes part: classes, which are tuned, and models as they are
compare     `compare`: tunes, then runs every algorithm on every run
intervals   means over runs and paired differences, with Student's t
results     what was found: curves with bands, a table, costs
tables      the same as text, CSV and LaTeX
figures     learning curves, and error against cost
"""

from onlinegp.comparing.compare import compare
from onlinegp.comparing.results import Comparison
from onlinegp.comparing.runs import Blocks, Permutations

__all__ = ["Blocks", "Comparison", "Permutations", "compare"]
