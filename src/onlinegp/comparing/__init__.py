"""Compare algorithms over many runs. Each algorithm is tuned separately, on rows that are not in any run.

runs        the runs: simulations by seed, or permutations or blocks of given rows
entrants    the algorithms: classes, which are tuned, and model instances, which are not tuned
compare     `compare`: tune, then run every algorithm on every run
time_limit  one stream with a time limit, for `onlinegp compare`
ranking     the ranking of these results
intervals   means over runs and paired differences, with Student's t
results     the results: curves with bands, a table, costs
tables      the table as text, CSV and LaTeX
figures     learning curves, and error against cost
"""

from onlinegp.comparing.compare import compare
from onlinegp.comparing.results import Comparison
from onlinegp.comparing.runs import Blocks, Permutations

__all__ = ["Blocks", "Comparison", "Permutations", "compare"]
