"""Van Vaerenbergh, Lazaro-Gredilla and Santamaria, 2012: the kernel recursive least-squares tracker.

fig3    trackers on a communication channel that changes abruptly
"""

CITATION = (
    'S. Van Vaerenbergh, M. Lazaro-Gredilla and I. Santamaria, "Kernel recursive least-squares tracker for '
    'time-varying regression", IEEE Trans. Neural Networks and Learning Systems 23(8), 2012.'
)
EXPERIMENTS = ("fig3",)
