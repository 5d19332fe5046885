"""The experiments of the paper that this library grew from, as library code; `onlinegp reproduce` runs them.

Van Vaerenbergh, Fernandez-Bes and Elvira, "On the relationship between online Gaussian process regression and kernel
least mean squares algorithms", MLSP 2016 (the paper).

    fig1      predictive variances of GP regression, beta = 0 and beta = 1
    fig2      learning curves on KIN40K, or on a robot arm of our own
    fig3      a nonlinear channel that changes at once
    beta      the choice of beta, which the paper leaves open
    residual  its other open question: a better algorithm of low complexity, on the data of figure 2
"""

CITATION = (
    'S. Van Vaerenbergh, J. Fernandez-Bes and V. Elvira, "On the relationship between online Gaussian process '
    'regression and kernel least mean squares algorithms", IEEE MLSP 2016.'
)
EXPERIMENTS = ("fig1", "fig2", "fig3", "beta", "residual")
ON_THE_ARM = ("fig2", "beta", "residual")  # those that need KIN40K or its stand-in
