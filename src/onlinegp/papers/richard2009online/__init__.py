"""Richard, Bermudez and Honeine, 2009: KNLMS, with the coherence criterion.

fig1    a nonlinear autoregression, observed in noise
fig2    a nonlinear system with memory, in much noise
"""

CITATION = (
    'C. Richard, J. C. M. Bermudez and P. Honeine, "Online prediction of time series data with kernels", IEEE Trans. '
    "Signal Processing 57(3), 2009."
)
EXPERIMENTS = ("fig1", "fig2")
