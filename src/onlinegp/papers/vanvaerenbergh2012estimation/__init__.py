"""Van Vaerenbergh, Santamaria and Lazaro-Gredilla, 2012: the forgetting factor from the likelihood.

recovery    recover the hyperparameters of streams that were drawn from the model
"""

CITATION = (
    'S. Van Vaerenbergh, I. Santamaria and M. Lazaro-Gredilla, "Estimation of the forgetting factor in kernel '
    'recursive least squares", IEEE MLSP 2012.'
)
EXPERIMENTS = ("recovery",)
