"""Yukawa, 2012: filters with several kernels.

fig1a    LMS, KNLMS and MKNLMS equalize a nonlinear channel
"""

CITATION = 'M. Yukawa, "Multikernel adaptive filtering", IEEE Trans. Signal Processing 60(9), 2012.'
EXPERIMENTS = ("fig1a",)
