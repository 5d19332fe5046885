"""What a newcomer types by mistake, and that the answer says what to do instead."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import onlinegp as ogp
from onlinegp.batch.parameter_search import BUDGET
from onlinegp.cli import main
from onlinegp.kernels import RBF
from onlinegp.models.kafbox_names import RENAMED

X, Y = np.linspace(-3, 3, 30)[:, None], np.sin(np.linspace(-3, 3, 30))


@pytest.mark.parametrize("learned", [False, True])
def test_many_rows_where_one_is_meant(learned):
    model = ogp.KRLST().fit(X, Y) if learned else ogp.KRLST()
    for call in (lambda: model.learn_one([[1.0]], 1.0), lambda: model.predict_one([[1.0]])):
        with pytest.raises(
            ValueError, match=r"got \(1, 1\)\. Pass one row, such as x\[0\], or use partial_fit and predict"
        ):
            call()
    assert not learned or model.n_samples_seen_ == len(X)


@pytest.mark.parametrize("learned", [False, True])
def test_text_where_a_number_is_meant(learned):
    model = ogp.KRLST().fit(X, Y) if learned else ogp.KRLST()
    for name, call in (("x", lambda: model.learn_one("ab", 1.0)), ("y", lambda: model.learn_one([1.0], "ab"))):
        with pytest.raises(ValueError, match=rf"^{name} must hold numbers, got the text 'ab'\. Convert it, or leave"):
            call()
    with pytest.raises(TypeError, match=r"^y must hold numbers, got \{\} \(dict\): an argument must be free of"):
        model.learn_one([1.0], np.array({}, dtype=object))
    assert not learned or model.n_samples_seen_ == len(X)


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (lambda: ogp.Auto(200), "budget; all are passed by name"),
        (lambda: ogp.KRLST(RBF(), 0.1), "engine; all but the first are passed by name"),
        (lambda: ogp.KRLST(nois=0.1), "engine; all but the first are passed by name"),
    ],
)
def test_parameters_that_are_passed_by_name(call, rule):
    with pytest.raises(TypeError, match=rule):
        call()


def test_names_of_kafbox():
    with pytest.raises(TypeError, match=r"'M'\. M is called budget here\. The parameters are kernel, "):
        ogp.KRLST(RBF(), M=100)
    with pytest.raises(TypeError, match="Here nu is 1 - coherence"):
        ogp.kafbox.FBKLMS(nu=0.1)
    with pytest.raises(TypeError, match="lambda is called leak here"):
        ogp.kafbox.NORMA(**{"lambda": 0.1})
    with pytest.raises(TypeError, match="KAFBOX's M has no equivalent here"):
        ogp.KLMS(M=100)
    with pytest.raises(TypeError, match=r"Here kernelpar is the parameter of the kernel, as in RBF\(kernelpar\)"):
        ogp.KLMS(eta=0.1, kernelpar=32)


def test_the_names_of_kafbox_are_those_of_its_page():
    """Each entry of the table, and each of its parameters here, exists."""
    page = (Path(__file__).parents[1] / "docs" / "coming_from" / "kafbox.md").read_text("utf-8")
    for name, there in RENAMED.items():
        parameters = getattr(ogp.kafbox, name).parameter_names()
        row = next(line for line in page.splitlines() if f"| `{name}` |" in line and ": " in line)
        for theirs, ours in there.items():
            assert theirs in row
            assert ours == "none" or any(word in parameters for word in ours.split()), (name, theirs)
            assert not ours.isidentifier() or ours == "none" or f"`{ours}`" in row


@pytest.mark.parametrize(
    ("cls", "name", "remedy"),
    [
        (ogp.LinearRLS, "lam", "lam is called forgetting here"),
        (ogp.KRLST, "forgetting_factor", "forgetting_factor is called forgetting here"),
        (ogp.NLMS, "step_size", "step_size is called step here"),
        (ogp.NLMS, "taps", "Here taps is the number of columns of X, from onlinegp.datasets.embed"),
        (ogp.QKLMS, "sigma", r"Here sigma is a parameter of the kernel, such as RBF\(length_scale\)"),
        (ogp.kafbox.PHYPASS, "sigma", "sigma is called coherence here"),
        (ogp.LinearRLS, "sigma", "argument 'sigma'. The parameters are noise"),
        (ogp.LinearRLS, "mu", "argument 'mu'. The parameters are noise"),
    ],
)
def test_names_of_parameters_in_other_books(cls, name, remedy):
    with pytest.raises(TypeError, match=remedy):
        cls(**{name: 1.0})


def test_numbers_of_numpy_are_shown_as_numbers():
    assert repr(ogp.KRLST(noise=np.float64(0.5), budget=np.int64(20))) == "KRLST(noise=0.5, budget=20)"


def test_names_that_are_elsewhere():
    for name, there in (("embed", "datasets.embed"), ("RBF", "kernels.RBF")):
        with pytest.raises(AttributeError, match=rf"Use onlinegp\.{there}\.$"):
            getattr(ogp, name)
    with pytest.raises(TypeError, match=r"got <class .*RBF'>\. Make one: RBF\(\)\.$"):
        ogp.KLMS(RBF).fit(X, Y)


def test_a_parameter_that_changes_while_a_model_learns():
    """The change has no effect until `fit`, and says so; with `load(dump())` it has an effect at once."""
    kept, late, now = (ogp.NLMS(step=1.0).fit(X[:10], Y[:10]) for _ in range(3))
    for model in (late, now):
        with pytest.warns(
            UserWarning, match=r"^step takes effect at the next fit: NLMS .*model\.load\(model\.dump\(\)"
        ):
            model.step = 0.1
    now.load(now.dump())
    assert now.coef_ == late.coef_ == kept.coef_
    (weight,), x, y = kept.coef_, float(X[10, 0]), float(Y[10])
    error = y - kept.predict_one(X[10])
    for model, step in ((kept, 1.0), (late, 1.0), (now, 0.1)):
        model.learn_one(X[10], y)
        assert model.coef_[0] == pytest.approx(weight + step * error * x / (1e-6 + x * x + 1.0), rel=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # as in scikit-learn, `fit` follows
        ogp.Scaled(ogp.NLMS()).fit(X, Y).set_params(model__step=0.1).fit(X, Y)
    with pytest.warns(UserWarning, match=r"start\.$"):  # what was learned belongs to its kernel
        ogp.KRLST().fit(X, Y).kernel = RBF(2.0)


def test_a_class_where_a_model_is_meant():
    with pytest.raises(TypeError, match=r"got the class KRLST\. Pass KRLST\(\)"):
        ogp.run(ogp.KRLST, X, Y)


def test_the_length_scale_of_no_kernel():
    with pytest.raises(
        ValueError, match=r"while kernel is None.*set_params\(kernel=onlinegp\.kernels\.RBF\(\), kernel__len"
    ):
        ogp.KRLST().set_params(kernel__length_scale=2.0)
    with pytest.raises(ValueError, match="while kernel is None"):
        ogp.KRLST().scaled().set_params(model__kernel__length_scale=2.0)
    assert ogp.KRLST().set_params(kernel=RBF(), kernel__length_scale=2.0).kernel == RBF(2.0)


def test_inspecting_the_folder_of_a_checkpoint(tmp_path, capsys):
    rows = "\n".join(f"{x},{y}" for x, y in zip(X[:, 0], Y, strict=True))
    (tmp_path / "data.csv").write_text(f"x,y\n{rows}\n")
    out, folder = str(tmp_path / "out.csv"), tmp_path / "safe"
    fixed = ["--kernel", "rbf(1.0)", "--noise", "0.01", "--quiet"]
    assert main(["run", str(tmp_path / "data.csv"), *fixed, "--out", out, "--checkpoint", str(folder)]) == 0
    assert main(["inspect", str(folder)]) == 0
    assert "rows done: 30" in capsys.readouterr().out
    assert main(["inspect", str(tmp_path)]) == 4
    assert "is a folder without a checkpoint (checkpoint.ogp). Pass a model file" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "compare", "tune"])
def test_the_help_names_the_defaults_that_are_taken(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help-all" if command == "run" else "--help"])
    told = re.sub(r"\s+", " ", capsys.readouterr().out)
    own = "with --tune 0 the default of the model: {} for krlst)"
    assert f"noise on the target (tuned; {own.format(ogp.KRLST().noise)}" in told
    assert f"largest number of centers ({BUDGET}; {own.format(ogp.KRLST().budget)}" in told


def test_the_defaults_without_tuning_are_those(tmp_path, capsys):
    (tmp_path / "data.csv").write_text("x,y\n1,1\n2,2\n3,1\n")
    assert main(["run", str(tmp_path / "data.csv"), "--tune", "0", "--out", str(tmp_path / "out.csv")]) == 0
    told = capsys.readouterr().err
    assert f"noise = {ogp.KRLST().noise}; budget = {ogp.KRLST().budget}" in told


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ogp.KLMS(kerneltype="gauss"), r"'kerneltype'\. .* The parameters are kernel, step, .*passed by name"),
        (lambda: ogp.QKLMS(RBF(), 0.5), r"positional .*\. The parameters are kernel, step, radius, .*by name"),
        (lambda: ogp.Lagged(lags=3), r"'model'\. The parameters are model, lags, horizon;"),
    ],
)
def test_a_wrong_parameter_names_the_right_ones(call, message):
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize("outer", [ogp.Scaled, ogp.Calibrated, ogp.Conformal, ogp.Lagged])
def test_a_model_around_one_that_breaks_down_gives_its_advice(outer):
    with pytest.raises(ogp.BreakdownError, match=r"Lower the step \(LMS is stable below 2 / x'x\)"):
        ogp.run(outer(ogp.LMS(step=50.0)), np.sin(np.arange(400.0))[:, None], np.cos(np.arange(400.0)))


def test_a_series_without_inputs():
    for call in (lambda: ogp.run(ogp.KRLST(), None, Y), lambda: ogp.KRLST().learn_one(None, 1.0)):
        with pytest.raises(
            TypeError, match=r"^[Xx] must be given, got None\. .* use onlinegp\.Lagged\(model, lags=10\)"
        ):
            call()


def test_a_file_where_something_else_is_meant(tmp_path):
    path = tmp_path / "model.ogp"
    ogp.KRLST().save(path)
    with pytest.raises(TypeError, match=r"contents must come from dump\(\), .* For a file, use onlinegp\.load\(path\)"):
        ogp.KRLST().load(str(path))
    with pytest.raises(TypeError, match=r"path must name a file, got bytes\. Use from_bytes\(data\) for bytes"):
        ogp.load(path.read_bytes())


@pytest.mark.parametrize(
    ("call", "here"),
    [
        (lambda: ogp.KRLS_T, "onlinegp.KRLST."),
        (lambda: ogp.rls, "onlinegp.LinearRLS."),
        (lambda: ogp.EX_KRLS, "onlinegp.kafbox.EXKRLS."),
        (lambda: ogp.kafbox.QKLMS_FB, "onlinegp.kafbox.QKLMSFB."),
        (lambda: ogp.kafbox.aldkrls, "onlinegp.kafbox.KRLS."),
        (lambda: ogp.kernels.gauss, "onlinegp.kernels.RBF(length_scale)."),
        (lambda: ogp.kernels.rbf, "onlinegp.kernels.RBF."),
        (lambda: ogp.kernels.Matern, "onlinegp.kernels.Matern12, Matern32 or Matern52."),
    ],
)
def test_names_in_another_spelling(call, here):
    with pytest.raises(AttributeError) as raised:
        call()
    assert str(raised.value).endswith(f" Use {here}")


def test_names_that_nothing_here_is_called():
    for module in (ogp, ogp.kafbox, ogp.kernels):
        with pytest.raises(AttributeError) as raised:
            _ = module.Volterra
        assert "Use " not in str(raised.value)


def test_the_name_of_a_kernel_where_a_kernel_is_meant():
    with pytest.raises(TypeError, match=r"got 'gauss'\. Use onlinegp\.kernels\.RBF\(length_scale\)\."):
        ogp.KLMS("gauss").fit(X, Y)


def test_a_word_that_python_reserves():
    with pytest.raises(TypeError, match=r"lambda_ is called leak here"):
        ogp.kafbox.NORMA(lambda_=0.1)


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (["run", "x.csv", "--modle", "klms"], "Write the names of options in full. Did you mean --model"),
        (["run", "x.csv", "--step=0.5"], "If it is a parameter of the model: --set step=VALUE."),
        (["run", "my", "data.csv"], "Put quotes around a name with blanks."),
        (["info", "--fast"], "Write the names of options in full."),
        ([], "`onlinegp --help` lists the commands."),
    ],
)
def test_a_command_that_is_not_understood(words, remedy, capsys):
    with pytest.raises(SystemExit) as raised:
        main(words)
    told = capsys.readouterr().err
    assert raised.value.code == 2
    assert remedy in told
    assert told.count("\n") == 1  # without twenty lines of usage


@pytest.mark.parametrize(("name", "meant"), [("klsm", "klms"), ("rls", "linearrls"), ("volterra", None)])
def test_a_model_that_does_not_exist(name, meant, capsys):
    assert main(["models", name]) == 1
    guess = capsys.readouterr().err.partition(" Models: ")[0].partition("Did you mean ")[2]
    assert (meant in guess.rstrip("?").split(" or ")) if meant else not guess


def test_the_command_knows_the_names_of_kafbox(tmp_path, capsys):
    (tmp_path / "data.csv").write_text("x,y\n1,1\n2,2\n3,1\n")
    assert main(["run", str(tmp_path / "data.csv"), "--model", "klms(eta=0.5)"]) == 1
    assert "klms has no parameter 'eta'. eta is called step here. Its parameters: kernel," in capsys.readouterr().err
    assert main(["run", str(tmp_path / "data.csv"), "--kernel", "gauss"]) == 1
    assert "Kernels: rbf, matern12, " in capsys.readouterr().err


def test_samples_in_columns_as_in_matlab():
    with pytest.raises(ValueError, match=r"same number of rows, got 1 and 30\. A row of X is one sample: pass X\.T\.$"):
        ogp.run(ogp.KRLST(), X.T, Y)
    with pytest.raises(ValueError, match=r"same number of rows, got 30 and 29\.$"):
        ogp.run(ogp.KRLST(), X, Y[1:])
