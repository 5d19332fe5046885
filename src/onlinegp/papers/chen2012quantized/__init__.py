"""Chen, Zhao, Zhu and Principe, 2012: quantized kernel least mean squares.

static    a static function: error and centers against the radius, and the excess error against the step
"""

CITATION = (
    'B. Chen, S. Zhao, P. Zhu and J. C. Principe, "Quantized kernel least mean square algorithm", IEEE Trans. Neural '
    "Networks and Learning Systems 23(1), 2012."
)
EXPERIMENTS = ("static",)
