"""Figure 2: learning curves on KIN40K, or on the robot arm without --kin40k FILE.

Paper     Van Vaerenbergh, Fernandez-Bes and Elvira, "On the relationship between online Gaussian process regression
          and kernel least mean squares algorithms", IEEE MLSP 2016
Seed      0
Run time  51 s of processor time on the Python engine, shared by two processes on two cores
Options   those of `onlinegp reproduce`: --out DIR --kin40k FILE --repeats N --seed S
"""

import sys

from onlinegp.cli import main

if __name__ == "__main__":
    raise SystemExit(main(["reproduce", "fig2", *sys.argv[1:]]))
