"""The experiments of the paper that this library grew from, as library code; `onlinegp reproduce` runs them.

Van Vaerenbergh, Fernandez-Bes and Elvira, "On the relationship between online Gaussian process regression and kernel
least mean squares algorithms", MLSP 2016 (the paper).

An experiment is a module: `Settings`, `plan` (the jobs, which may run in any order and process), `gather` (their
results as one dictionary that JSON can hold), `claims` (what was said, the result) and `draw` (the figure, from that
dictionary alone).

    fig1    predictive variances of GP regression, beta = 0 and beta = 1
    fig2    learning curves on KIN40K, or on a robot arm of our own
    fig3    a nonlinear channel that changes at once
    beta    the choice of beta, which the paper leaves open
"""
