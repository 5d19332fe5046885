"""Figure 3: reconvergence on a nonlinear channel that switches at sample 500.

Paper     Van Vaerenbergh, Fernandez-Bes and Elvira, "On the relationship between online Gaussian process regression
          and kernel least mean squares algorithms", IEEE MLSP 2016
Seed      0
Run time  21 s of processor time on the Python engine, shared by two processes on two cores
Options   those of `onlinegp reproduce`: --out DIR --kin40k FILE --repeats N --seed S
"""

import sys

from onlinegp.cli import main

if __name__ == "__main__":
    raise SystemExit(main(["reproduce", "fig3", *sys.argv[1:]]))
