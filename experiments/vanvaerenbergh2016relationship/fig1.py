"""Figure 1: predictive variance of GP regression, beta = 0 and beta = 1 after 3, 8 and 25 points.

Paper     Van Vaerenbergh, Fernandez-Bes and Elvira, "On the relationship between online Gaussian process regression
          and kernel least mean squares algorithms", IEEE MLSP 2016
Seed      0
Run time  2 s of processor time
Options   those of `onlinegp reproduce`: --out DIR --kin40k FILE --repeats N --seed S
"""

import sys

from onlinegp.cli import main

if __name__ == "__main__":
    raise SystemExit(main(["reproduce", "fig1", *sys.argv[1:]]))
