"""Equations of the classes as Markdown with typeset mathematics.

A class writes its equation in plain letters, as `onlinegp models` prints it: ``alpha <- alpha + step e k``. Words of
English stay text; everything else becomes LaTeX, in pieces that can break between two lines at a comma.
"""

from __future__ import annotations

import re

GREEK = ("alpha", "beta", "epsilon", "gamma", "lambda", "mu", "nu", "phi", "psi", "Sigma", "sigma")
FUNCTIONS = ("log", "log10", "sin", "cos", "exp", "max", "min", "mean", "clip", "sum", "sqrt", "N")
NAMES = (  # parameters and quantities that are written as words
    *("noise", "step", "leak", "penalty", "prior", "drift", "radius", "level", "bound", "std", "fade", "variance"),
    *("mixing_step", "evidence", "center", "scale", "features", "lags"),
)
TOKEN = re.compile(
    r"sqrt\((?P<root>[^()]*)\)|<-|<=|>=|\+=|-=|\.\.\.|\^-?(?:\w+|\([^)]*\))|'"
    r"|(?P<word>log10|[A-Za-z]+(?:_step)?)(?P<sub>_(?:\{[^}]*\}|\([^)]*\)|\w+))?|\d*\.?\d+|\s+|."
)
SIGNS = {
    "<-": r"\leftarrow ",
    "<=": r"\le ",
    ">=": r"\ge ",
    "...": r"\ldots ",
    "~": r"\sim ",
    "'": r"^\top ",
    "*": r"\cdot ",
    "{": r"\{",
    "}": r"\}",
}


def markdown(equation: str) -> str:
    """Return an equation as Markdown: words as they are, the rest between dollars."""
    pieces: list[str] = []
    math, depth = "", 0
    tokens = [match for match in TOKEN.finditer(equation) if match.group()]
    for i, match in enumerate(tokens):
        text = match.group()
        depth += (text in "([") - (text in ")]") if len(text) == 1 else 0
        english = _is_english(match, tokens, i)
        breaks = text in (",", ";") and depth == 0
        if english or breaks:
            pieces += [_dollars(math), text]
            math = ""
        elif text.isspace() and not math:
            pieces.append(" ")
        else:
            math += _latex(match)
    return re.sub(r"\s+", " ", "".join([*pieces, _dollars(math)])).replace(" ,", ",").replace(" ;", ";").strip()


def symbols(equation: str) -> set[str]:
    """Return the letters of an equation, Greek ones by name, without functions and parameters."""
    tokens = list(TOKEN.finditer(equation))
    words = {match["word"] for i, match in enumerate(tokens) if match["word"] and not _is_english(match, tokens, i)}
    inside = (symbols(match["root"]) for match in tokens if match["root"])
    return (words - {*FUNCTIONS, *NAMES}).union(*inside)


def _is_english(match: re.Match[str], tokens: list[re.Match[str]], i: int) -> bool:
    """Whether a token is a word of English: a long one that is nothing else, or "a" before such a word."""
    word = match["word"]
    if not word or match["sub"]:
        return False
    if word == "a":
        return i + 2 < len(tokens) and tokens[i + 1].group() == " " and _is_english(tokens[i + 2], tokens, i + 2)
    return len(word) > 1 and word not in (*GREEK, *FUNCTIONS, *NAMES)


def _latex(match: re.Match[str]) -> str:
    text, word = match.group(), match["word"]
    if match["root"]:
        return f"\\sqrt{{{''.join(map(_latex, TOKEN.finditer(match['root'])))}}}"
    if word:
        name = f"\\{word} " if word in (*GREEK, "log", "sin", "cos", "exp", "max", "min", "sum") else word
        if word == "log10":
            name = "\\log_{10}"
        elif len(word) > 1 and name == word:
            name = f"\\mathrm{{{word.replace('_', ' ')}}}"
        below = re.sub(r"[a-z]{3,}", r"\\mathrm{\g<0>}", match["sub"][1:].strip("{}()")) if match["sub"] else ""
        return name + (f"_{{{below}}}" if below else "")
    if text.startswith("^"):
        power = text[1:].strip("()")
        sign, power = ("-", power[1:]) if power.startswith("-") else ("", power)
        return f"^{{{sign}{_greek(power)}}}"
    return SIGNS.get(text, "\\," if text.isspace() else text)


def _greek(word: str) -> str:
    return f"\\{word} " if word in GREEK else word


def _dollars(math: str) -> str:
    inside = re.sub(r"\\,(?=[=+\-/;,)\]]|\\(?:leftarrow|le|sim)\b)", "", math)  # operators have spaces of their own
    inside = re.sub(r"(?<=[=+\-/(\[])\\,|(?<=\\leftarrow )\\,|(?<=\\le )\\,|(?<=\\sim )\\,", "", inside)
    inside = inside.strip().removesuffix("\\,").removeprefix("\\,").strip()
    spaces = " " if math.endswith(("\\,", " ")) else ""
    return f"${inside}${spaces}" if inside else spaces
