"""Van Vaerenbergh, Via and Santamaria, 2006: sliding-window kernel recursive least squares.

fig2    two lengths of the window on a channel that changes at once
"""

CITATION = (
    'S. Van Vaerenbergh, J. Via and I. Santamaria, "A sliding-window kernel RLS algorithm and its application to '
    'nonlinear channel identification", IEEE ICASSP 2006.'
)
EXPERIMENTS = ("fig2",)
