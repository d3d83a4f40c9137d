"""Plans: what they multiply out to, and that a wrong one says where it is wrong before anything
runs.
"""

import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from experiments.conftest import SMALL
from messages import lacking, stating
from tacit.experiments.plan import load
from tacit.experiments.run import prepare, sweep
from tacit.experiments.yaml_lines import PlanError


def test_axes_multiply(plan, tmp_path):
    asked = prepare(plan(), tmp_path / "runs")
    assert len(asked.cells) == 3 * 2 * 2 * 2
    assert {cell.learner for cell in asked.cells} == {"sums", "Top-K, k=1", "Top-K, k=3"}
    assert len({cell.key for cell in asked.cells}) == 24
    assert not (tmp_path / "runs").exists()


def test_keys_are_of_the_content_alone(plan, tmp_path):
    def keys(path):
        return [cell.key for cell in prepare(path, tmp_path / "runs").cells]

    before = keys(plan())
    assert keys(plan(SMALL.replace("name: small", "name: another"), "other.yaml")) == before
    more = keys(plan(SMALL.replace("rho=0.1, inf", "rho=0.1, rho=0.2, inf")))
    assert set(before) < set(more)
    assert len(more) == len(before) * 3 / 2
    assert not set(keys(plan(SMALL + "subset_seed: 1\n"))) & set(before)
    assert not set(keys(plan(SMALL + "unit: replace\n"))) & set(before)


def test_published_names_of_methods_make_the_same_cells(plan, tmp_path):
    ours, theirs = (
        prepare(plan(SMALL.replace("noisy-sum", name)), tmp_path / "runs").cells
        for name in ("coinpress", "DPPL-Mean")
    )
    assert [cell.key for cell in theirs] == [cell.key for cell in ours]
    assert theirs[0].method == "coinpress"


def test_keys_follow_the_data(plan, tmp_path):
    rng = np.random.default_rng(0)

    def key(change):
        for name in ("train", "test"):
            np.savez(
                tmp_path / f"{name}.npz",
                x=rng.normal(size=(20, 3)) * 0 + 1 + change,
                y=np.arange(20) % 2,
            )
        path = plan(
            "name: own\ndata:\n  - {name: d, train: train.npz, test: test.npz}\n"
            "learners:\n  - {name: sums, method: noisy-sum}\nbudgets: [rho=1]\n"
        )
        return prepare(path, tmp_path / "runs").cells[0].key

    assert key(0) == key(0) != key(1)


@pytest.mark.parametrize(("sizes", "cut"), [([9, 9], False), ([9, 12], True)])
def test_a_cell_has_another_key_only_where_imbalance_1_leaves_out_records(
    plan, tmp_path, sizes, cut
):
    labels = np.repeat([0, 1], sizes)
    for name in ("train", "test"):
        np.savez(tmp_path / f"{name}.npz", x=np.ones((len(labels), 3)), y=labels)
    path = plan(
        "name: own\ndata:\n  - {name: d, train: train.npz, test: test.npz}\n"
        "learners:\n  - {name: sums, method: noisy-sum}\nbudgets: [rho=1]\nimbalance: [1]\n"
    )
    (cell,) = prepare(path, tmp_path / "runs").cells
    # an earlier result of this key was measured on all records
    assert cell.balanced == cut
    assert (cell.key != replace(cell, balanced=False).key) == cut


def test_the_order_of_parameters_does_not_matter(plan, tmp_path):
    pair = [
        SMALL.replace("method: noisy-sum", f"method: coinpress\n    parameters: {{{text}}}")
        for text in ("pooling: 3, radius: 1.5", "radius: 1.5, pooling: 3")
    ]
    one, other = (
        [cell.key for cell in prepare(plan(text), tmp_path / "runs").cells] for text in pair
    )
    assert one == other


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("method: noisy-sum", "method: noisy-sums", 9, ("'noisy-sums'", "'noisy-sum'")),
        ("method: noisy-sum", "method: top-k", 9, ("write method: public, parameters: {k: 5}",)),
        ("method: noisy-sum", "method: GNMax", 9, ("method: pate", "voting: {kind: gnmax}")),
        ("method: noisy-sum", "method: wgnmax", 9, ("method: pate", "collector: weighting")),
        (
            "method: noisy-sum",
            "method: pate\n    parameters: {sigma: 4}",
            10,
            ("of pate; write voting: {sigma: ...}",),
        ),
        (
            "method: noisy-sum",
            "method: pate\n    parameters: {n_queries: 4}",
            10,
            ("of pate; write queries: {n_queries: ...}",),
        ),
        ("seeds: 2", "seed: 2", 16, ("'seed'", "'seeds'")),
        ("method: noisy-sum", "method: dp-sgd", 9, ("'dp-sgd' is tacit.DPSGD", "global-adapt")),
        ("    method: noisy-sum", "    metod: noisy-sum", 9, ("'metod'", "'method'")),
        ("rho=0.1, inf", "rho=0.1, epsilon=1", 14, ("budget epsilon=1 is pure",)),
        ("rho=0.1, inf", "rho=0.1, rho=-1", 14, ("rho=-1.0", "positive")),
        ("rho=0.1, inf", "rho=0.1, sigma=1", 14, ("sigma=1",)),
        ("rho=0.1, inf", "rho=0.1, rho=0.1", 14, ("budgets has 'rho=0.1' twice",)),
        ("rho=0.1, inf", "rho=0.1, [1]", 14, ("is not a budget",)),
        ("[rho=0.1, inf]", "[]", 8, ("'sums' has no budgets",)),
        ("imbalance: [1, 10]", "imbalance: [1, 1]", 15, ("imbalance has 1.0 twice",)),
        (
            "imbalance: [1, 10]",
            "imbalance: [1, 0.5]",
            15,
            ("imbalance 0.5 must be a finite ratio >= 1",),
        ),
        ("imbalance: [1, 10]", "imbalance: [1, .nan]", 15, ("imbalance nan",)),
        ("imbalance: [1, 10]", "imbalance: [null, null]", 15, ("imbalance has null twice",)),
        ("imbalance: [1, 10]", "imbalance: []", 15, ("imbalance",)),
        (
            "imbalance: [1, 10]",
            "imbalance: [1, 10]\nimbalance: [1]",
            16,
            ("'imbalance' is given twice",),
        ),
        ("seeds: 2", "seeds: 0", 16, ("seeds",)),
        ("seeds: 2", "seeds: [1, 1]", 16, ("seeds has 1 twice",)),
        ("seeds: 2", "seeds: 2\nunit: person", 17, ("unit.0",)),
        ("seeds: 2", "seeds: 2\nunit: change-label\ndelta: 2", 18, ("delta",)),
        ("grid: {k: [1, 3]}", "grid: {k: []}", 13, ("grid of k is empty",)),
        ("grid: {k: [1, 3]}", "grid: {k: [1, 1]}", 13, ("twice",)),
        ("grid: {k: [1, 3]}", "grid: {l: [1, 3]}", 13, ("'l' is not a parameter of public",)),
        ("grid: {k: [1, 3]}", "parameters: {budget: 1}", 13, ("budget", "plan")),
        ("grid: {k: [1, 3]}", "parameters: {d_min: 5}", 13, ("d_min=5",)),
        ("grid: {k: [1, 3]}", "parameters: {k: 2020-01-01}", 10, ("not plain text",)),
        ("grid: {k: [1, 3]}", "public_rows: [0]", 13, ("public_rows 0",)),
        (
            "grid: {k: [1, 3]}",
            "public_rows: [5, 398]",
            13,
            ("public_rows", "398", "397 rows", "'own'"),
        ),
        ("grid: {k: [1, 3]}", "grid: {k: [1, 398]}", 13, ("k=398", "397 public rows")),
        ("imbalance: [1, 10]", "imbalance: [1, 5000]", 15, ("'digits'", "ratio=5000")),
        (
            "method: noisy-sum",
            "method: coinpress\n    parameters: {pooling: 65}",
            10,
            ("pooling=65",),
        ),
        (
            "method: noisy-sum",
            "method: coinpress\n    parameters: {counts: [1, 2]}",
            10,
            ("10 classes",),
        ),
        ("method: noisy-sum", "method: projected\n    grid: {counts: [9, -1]}", 10, ("counts=-1",)),
        (
            "method: noisy-sum",
            "method: noisy-sum\n    parameters: {counts: realised}",
            10,
            ("'counts' is not a",),
        ),
        (
            "method: noisy-sum",
            "method: newton\n    parameters: {counts: many}",
            10,
            ("counts='many'",),
        ),
        ("    public: [own]\n", "    public: [own, own]\n", 12, ("twice",)),
        (
            "method: noisy-sum",
            "method: noisy-sum\n    public: [own]\n    shares: {a: 1}",
            11,
            ("budget groups",),
        ),
        ("name: Top-K", "name: sums", 10, ("two entries named 'sums'",)),
        ("builtin: digits", "builtin: letters", 6, ("'digits'",)),
        ("builtin: digits", "train: nowhere", 4, ("has no test set",)),
        ("builtin: digits", "train: nowhere\n    test: nothing", 4, ("nowhere does not exist",)),
        ("builtin: digits", "encoder: x", 6, ("'encoder' is given twice",)),
        ("name: small", "name: [", 4, ("this is not YAML",)),
        ("data:", "other:", 3, ("'other' is not a key here",)),
        ("name: small\n", "", 2, ("name is missing; add it",)),
    ],
)
def test_wrong_plans_name_the_line_and_run_nothing(plan, tmp_path, old, new, line, says):
    assert old in SMALL
    path = plan(SMALL.replace(old, new, 1))
    with pytest.raises(PlanError) as caught:
        sweep(path, tmp_path / "runs")
    message = str(caught.value)
    assert not lacking(message, *says)
    assert f"plan {path}, line {line}:" in message
    assert "\n" not in message
    assert not (tmp_path / "runs").exists()


def test_public_sets_must_be_there(plan, tmp_path):
    np.savez(tmp_path / "d.npz", x=np.ones((4, 2)), y=np.arange(4) % 2)
    np.savez(tmp_path / "wide.npz", x=np.ones((4, 3)), y=np.arange(4) % 2)
    np.save(tmp_path / "plain.npy", np.ones((4, 2)))
    np.savez(tmp_path / "none.npz", train_x=np.ones((0, 2)), train_y=np.ones(0, dtype=int))
    base = """
    name: own
    data:
      - {name: d, train: d.npz, test: d.npz, public: {pool: d.npz}}
    learners:
      - {name: one, method: public, public: [pool]}
    budgets: [rho=1]
    """
    assert len(prepare(plan(base), tmp_path / "runs").cells) == 1
    for old, new, says in (
        ("public: [pool]", "public: [pol]", "did you mean 'pool'"),
        ("method: public", "method: label-private", "takes no"),
        ("{pool: d.npz}", "{pool: wide.npz}", "3 columns"),
        ("test: d.npz", "test: plain.npy", "holds no labels"),
        ("train: d.npz", "train: none.npz", "at least one row"),
    ):
        with pytest.raises(PlanError, match=says):
            prepare(plan(base.replace(old, new)), tmp_path / "runs")


def test_files_that_are_no_plans(tmp_path):
    with pytest.raises(PlanError, match="cannot be read"):
        load(tmp_path / "none.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PlanError, match="not UTF-8"):
        load(tmp_path / "binary.yaml")
    for text in ("", "- 1\n", "just text"):
        (tmp_path / "list.yaml").write_text(text)
        with pytest.raises(PlanError, match="line 1: a plan is a mapping"):
            load(tmp_path / "list.yaml")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("? [a, b]\n: 1\n", "a key is a list or a mapping"),
        ("name: x\nbudgets: &b [*b]\n", "plan"),
        ("name: !!int abc\n", "not YAML of plain values"),
        ("name: 2020-13-45\n", "not YAML of plain values"),
        ("name: a\0b\n", "not YAML"),
        ("name: !!python/object:os.system x\n", "not YAML"),
    ],
)
def test_yaml_of_other_things_is_one_line(tmp_path, text, says):
    (tmp_path / "odd.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(PlanError, match=says) as caught:
        load(tmp_path / "odd.yaml")
    assert "\n" not in str(caught.value)


PARTS = """
name: parts
data:
  - {name: d, train: TRAIN, test: TEST, public: {NAME: PUBLIC}}
learners:
  - {name: one, method: public, public: [NAME]}
budgets: [rho=1]
imbalance: [2]
"""


def test_keys_tell_parts_of_a_file_and_public_sets_from_private_ones(plan, tmp_path):
    rng = np.random.default_rng(0)
    parts = {
        f"{name}_{what}": rng.normal(size=(30, 3)) if what == "x" else np.arange(30) % 2
        for name in ("train", "test", "own")
        for what in "xy"
    }
    np.savez(tmp_path / "d.npz", **parts)
    np.savez(tmp_path / "t.npz", x=rng.normal(size=(30, 3)), y=np.arange(30) % 2)

    def key(train="d.npz", test="d.npz", public="d.npz#own", name="pool"):
        text = (
            PARTS.replace("TRAIN", f"'{train}'")
            .replace("TEST", f"'{test}'")
            .replace("PUBLIC", f"'{public}'")
        )
        (cell,) = prepare(plan(text.replace("NAME", name)), tmp_path / "runs").cells
        return cell.key

    keys = [
        key(),
        key("d.npz#test", "d.npz#train"),
        key(public="d.npz#test"),
        key(public="t.npz"),
        key("t.npz"),
        key(test="t.npz"),
        key(name="train", public="d.npz"),
        key("t.npz", name="train", public="d.npz"),
    ]
    assert len(set(keys)) == len(keys)
    with pytest.raises(PlanError, match="no array other_x"):
        key(public="d.npz#other")


def test_published_pairs_are_data_of_a_plan(plan, tmp_path):
    rng = np.random.default_rng(0)
    for name, labelled in (
        ("cifar10_train", True),
        ("cifar10_test", True),
        ("imagenet_train", False),
    ):
        np.save(tmp_path / f"{name}.npy", rng.normal(size=(30, 3)))
        if labelled:
            np.save(tmp_path / f"{name}_targets.npy", np.arange(30) % 2)

    def key(train, test="cifar10_test.npy"):
        text = (
            PARTS.replace("TRAIN", f"'{train}'")
            .replace("TEST", f"'{test}'")
            .replace("NAME", "pool")
        )
        (cell,) = prepare(
            plan(text.replace("PUBLIC", "imagenet_train.npy")), tmp_path / "runs"
        ).cells
        return cell.key

    assert key("cifar10_train.npy") == key(".#cifar10_train") == key(".#cifar10_train", ".")
    with pytest.raises(PlanError, match=stating("'train'", "cifar10_train", "imagenet_train")):
        key(".")
    with pytest.raises(PlanError, match=stating("imagenet_train.npy", "labels")):
        key("imagenet_train.npy")
    with pytest.raises(PlanError, match=r"has no split 'other'"):
        key(".#other")


SEARCHED = "{method: public, public: [own], search: {how: grid, candidates: []}}"


@pytest.mark.parametrize(
    ("learner", "budget", "says"),
    [
        (
            "{method: pate, public: [own], shares: {a: -1, b: 2}}",
            "{groups: {a: 1, b: 2}, delta: 1.0e-5}",
            "shares.a",
        ),
        (
            "{method: pate, public: [own], shares: {a: .nan}}",
            "{groups: {a: 1}, delta: 1.0e-5}",
            "shares.a",
        ),
        (
            "{method: pate, public: [own], shares: {a: 1, c: 2}}",
            "{groups: {a: 1, b: 2}, delta: 1.0e-5}",
            "same groups",
        ),
        (
            "{method: pate, public: [own]}",
            "{groups: {a: 1, b: 2}, delta: 1.0e-5}",
            "shares of no group",
        ),
        (
            "{method: pate, public: [own], shares: {a: 1}}",
            "'epsilon=1,delta=1e-5'",
            "budget of no group",
        ),
        ("{method: pate}", "rho=1", "needs public rows"),
        ("{method: public}", "rho=1", "needs public rows"),
        ("{method: projected, parameters: {prototypes: public}}", "rho=1", "needs public rows"),
        ("{method: noisy-sum}", "{groups: {a: 1}, delta: 1.0e-5}", "has no personal budgets"),
        ("{method: noisy-sum, public_rows: [5]}", "rho=1", "name one with public"),
        ("{method: noisy-sum}", "-.inf", "is not a budget"),
        (
            "{method: pate, public: [own], parameters: {student: {model: tree}}}",
            "rho=1",
            "model 'tree' is unknown",
        ),
        (
            "{method: pate, public: [own], parameters: {teachers: {number: 1001}}}",
            "rho=1",
            "teachers=1001",
        ),
        ("{method: noisy-sum, keep: [__class__]}", "rho=1", "keep"),
        (SEARCHED.replace("[]", "[{k: 1}], options: {foo: 1}"), "rho=1", "'foo'"),
        (SEARCHED, "rho=1", "candidates"),
        (SEARCHED.replace("[]", "3"), "rho=1", stating("candidates=3", "dicts")),
        (SEARCHED.replace("[]", "[3]"), "rho=1", "candidate 3 must be a dict"),
        (SEARCHED.replace("[]", "{k: [1, 5]}"), "rho=1", "must be a list of dicts"),
        (
            SEARCHED.replace("[]", "{k: [1]}, options: {trials: 5}"),
            "rho=1",
            "'trials' is not an option",
        ),
    ],
)
def test_what_only_a_fit_would_refuse_is_refused_before(plan, tmp_path, learner, budget, says):
    unit = "replace" if "pate" in learner else "add-remove"
    text = f"""
    name: odd
    unit: {unit}
    data: [{{name: digits, builtin: digits}}]
    learners: [{learner.replace("{", "{name: one, ", 1)}]
    budgets: [{budget}]
    """
    with pytest.raises(PlanError, match=says):
        prepare(plan(text), tmp_path / "runs")


def test_ranges_of_trials_are_checked_before(plan, tmp_path):
    pytest.importorskip("optuna", reason="optuna is a development dependency")
    search = "{how: unpaid, candidates: {k: CHOICE}, options: {trials: 5}}"
    text = """
    name: odd
    data: [{name: digits, builtin: digits}]
    learners: [{name: one, method: public, public: [own], search: SEARCH}]
    budgets: [rho=1]
    """.replace("SEARCH", search)
    for choice, says in (
        ("3", "neither a list of values nor a range"),
        ("{low: 1}", "neither a list of values nor a range"),
        ("{low: 5, high: 1}", "low must be below high"),
        ("[1, 0]", "k=0 must be a whole number"),
    ):
        with pytest.raises(PlanError, match=f"line 4: .*{says}"):
            prepare(plan(text.replace("CHOICE", choice)), tmp_path / "runs")
    assert (
        len(prepare(plan(text.replace("CHOICE", "{low: 1, high: 5}")), tmp_path / "runs").cells)
        == 1
    )


OF_FILES = """
name: x
data: [{{name: d, train: {}, test: {}}}]
learners: [{{name: s, method: noisy-sum}}]
budgets: [rho=1]
"""


def test_labels_of_two_kinds_are_refused(plan, tmp_path):
    np.savez(tmp_path / "a.npz", x=np.ones((4, 2)), y=np.arange(4) % 2)
    np.savez(tmp_path / "b.npz", x=np.ones((4, 2)), y=np.array(list("abab")))
    with pytest.raises(PlanError, match="use one type for both"):
        prepare(plan(OF_FILES.format("a.npz", "b.npz")), tmp_path / "runs")


def test_damaged_arrays_are_one_line(plan, tmp_path):
    np.savez(tmp_path / "o.npz", train_x=np.array([{}], dtype=object), train_y=np.zeros(1))
    with pytest.raises(PlanError, match="line 3: .*o.npz holds pickled objects"):
        prepare(plan(OF_FILES.format("o.npz", "o.npz")), tmp_path / "runs")


def test_aliases_without_end_are_refused_at_once(tmp_path):
    file = tmp_path / "laughs.yaml"
    names = "abcdefghij"
    lines = ["a: &a [l,l,l,l,l,l,l,l,l]"]
    lines += [f"{new}: &{new} [{','.join(['*' + old] * 9)}]" for old, new in pairwise(names)]
    file.write_text("\n".join(lines))
    assert file.stat().st_size < 442
    start = time.process_time()
    with pytest.raises(PlanError, match=stating("10000 parts", "alias")) as error:
        load(file)
    assert time.process_time() - start < 1
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: " + "x" * 201, "a value has 201 letters, at most 200"),
        ("x" * 201 + ": 1", "a key has 201 letters, at most 200"),
        ("#" * 200_000, "more than 131072 bytes"),
        ("[" * 5000, "not YAML"),
    ],
)
def test_plans_beyond_the_limits_are_refused(tmp_path, text, says):
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(PlanError, match=says) as error:
        load(tmp_path / "p.yaml")
    assert len(str(error.value)) < 600


def test_too_many_cells_are_refused_before_any_is_made(plan, tmp_path):
    base = """
    name: own
    data: [{name: digits, builtin: digits}]
    learners: [{name: one, method: coinpress, grid: {radius: [1, 2, 3]}}]
    budgets: [rho=1]
    seeds: 50000
    """
    with pytest.raises(PlanError, match="has 150000 cells, more than 50000"):
        prepare(plan(base), tmp_path / "runs")
