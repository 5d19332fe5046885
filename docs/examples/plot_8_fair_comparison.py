"""
A comparison for a paper: five filters, many runs, intervals
============================================================

For a researcher: a new algorithm is to be compared with others. Each is tuned for itself on a stream of its own, with
the same effort, runs on the same streams, and is shown with its intervals and its cost.
"""

from functools import partial

import onlinegp as ogp
from onlinegp.datasets import channel_switch

# %%
# A nonlinear channel that changes in the middle: another one for every seed.


def channel(seed):
    return channel_switch(400, switch=200, seed=seed)


# %%
# Classes are tuned; `partial` holds a parameter fixed. KRLS-T is given a memory of about 200 rows, which a
# search with so little effort would not find.

models = {
    "KLMS": ogp.KLMS,
    "KNLMS": ogp.KNLMS,
    "SW-KRLS, 40": partial(ogp.kafbox.SWKRLS, budget=40),
    "KRLS-T, 40": partial(ogp.KRLST, budget=40, forgetting=0.995),
    "RLS": ogp.LinearRLS,
}
found = ogp.compare(models, channel, runs=8, since=200, effort=6000, jobs=1)
print(found)

# %%
# On the left, learning curves: the mean error over the runs, with 95% bands. On the right, the error at the end against
# the time per sample; the dashed line joins the algorithms that none beats in both.

found.plot()

# %%
# Is the best really better? Over the same runs, in dB; an interval that holds zero says that eight runs do not tell.

best, second = (entry.name for entry in found.ranked[:2])
value, low, high = found.behind(second)
print(f"{second} is {value:.1f} dB behind {best}, from {low:.1f} to {high:.1f}")

# %%
# The table for the paper:

print(found.latex())
