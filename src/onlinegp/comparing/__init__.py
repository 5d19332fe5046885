"""Compare algorithms over many runs. Each algorithm is tuned separately, on rows that are in no run.

runs        the runs: simulations by seed, or permutations or blocks of given rows
entrants    the algorithms: classes, which are tuned, and model instances, which are not
compare     `compare`: tune, then run every algorithm on every run
time_limit  one stream with a time limit, as `onlinegp compare` has it
ranking     its results in order
intervals   means over runs and paired differences, with Student's t
results     the results: curves with bands, a table, costs
tables      the table as text, CSV and LaTeX
figures     learning curves, and error against cost
"""

from onlinegp.comparing.compare import compare
from onlinegp.comparing.results import Comparison
from onlinegp.comparing.runs import Blocks, Permutations

__all__ = ["Blocks", "Comparison", "Permutations", "compare"]
