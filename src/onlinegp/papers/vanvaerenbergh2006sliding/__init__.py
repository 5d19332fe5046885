"""Van Vaerenbergh, Via and Santamaria, 2006: sliding-window kernel recursive least squares.

fig2    two window lengths on a channel that changes abruptly
"""

CITATION = (
    'S. Van Vaerenbergh, J. Via and I. Santamaria, "A sliding-window kernel RLS algorithm and its application to '
    'nonlinear channel identification", IEEE ICASSP 2006.'
)
EXPERIMENTS = ("fig2",)
