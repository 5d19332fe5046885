"""Liu, Principe and Haykin, 2010: the book on kernel adaptive filtering.

fig2_12    LMS and KLMS equalize a nonlinear channel
"""

CITATION = (
    'W. Liu, J. C. Principe and S. Haykin, "Kernel adaptive filtering: a comprehensive introduction", Wiley, 2010.'
)
EXPERIMENTS = ("fig2_12",)
