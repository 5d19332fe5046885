"""The experiments of the main paper of this library. `onlinegp reproduce` runs them.

Van Vaerenbergh, Fernandez-Bes and Elvira, "On the relationship between online Gaussian process regression and kernel
least mean squares algorithms", MLSP 2016 (the paper).

    fig1      predictive variances of GP regression, beta = 0 and beta = 1
    fig2      learning curves on KIN40K, or on a simulated robot arm
    fig3      a nonlinear channel that changes abruptly
    beta      the choice of beta, an open question of the paper
    residual  another open question: a better algorithm of low complexity, on the data of figure 2
"""

CITATION = (
    'S. Van Vaerenbergh, J. Fernandez-Bes and V. Elvira, "On the relationship between online Gaussian process '
    'regression and kernel least mean squares algorithms", IEEE MLSP 2016.'
)
EXPERIMENTS = ("fig1", "fig2", "fig3", "beta", "residual")
ON_THE_ARM = ("fig2", "beta", "residual")  # the experiments that need KIN40K or the simulated arm
