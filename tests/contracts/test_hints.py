"""What messages propose: never a larger budget, never private labels as the class list, never a
test set to train on.

The walk reads every text in the source that is not a docstring. Texts that name an amount of a
budget are listed below, each after a person read it; a message about a budget that was passed asks
`Budget.hint` instead.
"""

import ast
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import tacit
from messages import stating
from tacit.data.imports import read_data
from tacit.data.labels import encode_labels
from tacit.errors import BudgetError, InputError
from tacit.privacy.budget import Budget
from tacit.privacy.events import PureDP

SOURCE = Path(tacit.__file__).parent

LARGER = re.compile(
    r"(larger|greater|bigger|higher|more) (privacy )?budget|larger"
    r" (one|epsilon|rho|allowance)|spend (more|at least)"
    r"|(raise|increase) (the |your )?(budget|epsilon|rho)"
)
FROM_LABELS = re.compile(
    r"declare (every class|it in classes|the class values)|add it to --classes"
)
TO_TRAIN_ON_TESTS = re.compile(r"(give|choose|pass|fit) \S+/test\b")
AMOUNT = re.compile(r"\b(epsilon|rho|mu)=\.?\d")

# file: (part of the text, why its amount is no larger than what was passed)
REVIEWED = {
    ("cli/options.py", "Methods with budget groups"): "the help of --budget",
    (
        "privacy/budget.py",
        "write epsilon=1 (pure)",
    ): "the forms of a budget, where what was passed is none",
    ("cli/learner.py", "--budget is missing"): "no budget was passed",
    ("cli/summarise.py", "--budget is missing"): "no budget was passed",
    (
        "cli/combine.py",
        "must name a part and its budget",
    ): "the form of an allowance, where what was passed names no part",
    ("cli/options.py", "For a method: epsilon=1"): "the help of --budget",
    ("cli/options.py", "What may be spent of the test rows"): "the help of --budget",
    ("cli/choose.py", "a choice has a price"): "no budget was passed",
    ("cli/exact_evaluation.py", "pay for figures with --budget"): "no budget was passed",
    ("cli/exact_evaluation.py", "pays for figures that may be shown"): "no budget was passed",
    ("cli/paid_evaluation.py", "--record needs a finite budget"): "the budget was infinite",
    ("cli/paid_evaluation.py", "is for figures that are paid for"): "no budget was passed",
    ("cli/prediction_sets.py", "which is paid for; add --budget"): "no budget was passed",
    ("measure/forecast_arguments.py", "budgets is empty"): "a forecast spends nothing",
    ("measure/forecast_arguments.py", "budgets are of several kinds"): "a forecast spends nothing",
    ("releases/predicting.py", "carries no prediction sets"): "no budget was passed",
    (
        "experiments/plan.py",
        "or a=1,b=2;delta=1e-5",
    ): "the forms of a budget, in the schema of plans",
    (
        "experiments/cells.py",
        "or {groups: {a: 1, b: 2}",
    ): "the forms of a budget, where what was written is none",
    ("report/demo_page.py", "--budget rho=0.1"): "a second fit, after one that costs more",
    (
        "report/demo_page.py",
        "--budget rho=0.5 --out release",
    ): "commands for data that were never used",
}


def texts():
    """Every text of the source beside docstrings, with its file; the values in an f-string are left
    out.
    """
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        aside = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                aside.add(node.value)
            if isinstance(node, ast.JoinedStr):
                aside.update(node.values)
        for node in ast.walk(tree):
            if node in aside:
                continue
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield path.relative_to(SOURCE).as_posix(), node.value
            if isinstance(node, ast.JoinedStr):
                parts = [
                    part.value if isinstance(part, ast.Constant) else "{}" for part in node.values
                ]
                yield path.relative_to(SOURCE).as_posix(), "".join(parts)


@cache
def proposals():
    """The texts that may be sentences, each with its file."""
    return [(file, text) for file, text in texts() if " " in text]


@pytest.mark.parametrize(
    "rule", [LARGER, FROM_LABELS, TO_TRAIN_ON_TESTS], ids=["larger", "labels", "tests"]
)
def test_no_message_proposes_it(rule):
    assert [(file, text) for file, text in proposals() if rule.search(text)] == []


def test_the_rules_find_what_messages_used_to_say():
    for said in (
        "pass a larger budget",
        "is too small; pass a larger one",
        "spend at least 1e-9",
        "spend more or ask",
    ):
        assert LARGER.search(said)
    assert FROM_LABELS.search("declare every class in classes=, or correct that row")
    assert TO_TRAIN_ON_TESTS.search(
        "holds the stores test, train; give both/test, or choose a split"
    )
    assert AMOUNT.search("pass epsilon=1,delta=1e-6")


def test_every_amount_of_a_budget_in_a_message_was_reviewed():
    amounts = [(file, text) for file, text in proposals() if AMOUNT.search(text)]
    unknown = [
        (file, text)
        for file, text in amounts
        if not any(file == place and part in text for place, part in REVIEWED)
    ]
    assert unknown == [], "use Budget.hint, or list them in REVIEWED with a reason"


def test_every_reviewed_message_is_there():
    for place, part in REVIEWED:
        assert any(file == place and part in text for file, text in proposals()), (place, part)


def commands():
    """Every command line of tacit in a message, with its file."""
    for file, text in proposals():
        for line in text.splitlines():
            for command in re.findall(r"\btacit (?:[a-z]+) [^;)]*", line):
                yield file, command


def test_commands_are_found():
    assert len(list(commands())) > 10


@pytest.mark.parametrize("verb", ["fit", "encode pictures", "import rows"])
def test_commands_on_private_data_state_the_classes(verb):
    found = [
        command
        for file, command in commands()
        if command.startswith(f"tacit {verb}") and "--out" in command
    ]
    assert found
    assert [command for command in found if "--classes" not in command] == []


def test_no_command_takes_private_data_as_public_or_learns_from_a_test_split():
    for _, command in commands():
        assert not re.search(r"--(public|names|validation) \S*(private|train)", command), command
        assert not re.search(r"tacit fit \S+ \S*test", command), command


def test_no_command_allows_a_stated_amount():
    assert [command for _, command in commands() if re.search(r"--allow \S*\d", command)] == []


PURE_OR_APPROXIMATE = ["epsilon=1", "epsilon=0.123456789", "epsilon=20", "epsilon=0.3,delta=1e-9"]
WITH_A_CURVE = ["rho=0.5", "rho=0.0012345678", "mu=1", "mu=0.0333333333"]


@pytest.mark.parametrize("text", PURE_OR_APPROXIMATE)
@pytest.mark.parametrize("kind", ["pure", "approx"])
def test_a_hint_from_epsilon_is_the_same_epsilon(text, kind):
    budget = Budget.parse(text)
    proposed = Budget.parse(budget.hint(kind))
    assert proposed.kind == kind
    assert proposed.epsilon == budget.epsilon


@pytest.mark.parametrize(
    ("text", "kind"),
    [(text, "approx") for text in WITH_A_CURVE]
    + [(text, "zcdp") for text in WITH_A_CURVE if "mu" in text],
)
def test_a_hint_allows_no_less_noise(text, kind):
    budget = Budget.parse(text)
    proposed = Budget.parse(budget.hint(kind))
    assert proposed.kind == kind
    assert budget.gaussian() * (1 - 1e-9) <= proposed.gaussian() <= budget.gaussian() * 1.001


@pytest.mark.parametrize("text", WITH_A_CURVE)
def test_a_pure_hint_is_within_the_budget(text):
    budget = Budget.parse(text)
    proposed = Budget.parse(budget.hint("pure"))
    assert budget.permits(PureDP(proposed.epsilon))
    assert proposed.epsilon >= budget.largest_pure() * (1 - 1e-5)


def test_a_hint_outside_the_range_of_budgets_states_no_amount():
    assert Budget.gdp(1e-9).hint("zcdp") == "rho=..."


def proposed_in(error):
    """The budgets that a message proposes after what it refuses."""
    remedy = str(error).partition("; ")[2]
    return re.findall(r"(?:epsilon|rho|mu)=[\d.e-]*\d(?:,delta=[\d.e-]*\d)?", remedy)


REFUSED = {
    "Gaussian noise, pure": (
        lambda: Budget.parse("epsilon=1").gaussian(),
        ["epsilon=1,delta=1e-6"],
    ),
    "Gaussian noise, pure of many digits": (
        lambda: Budget.parse("epsilon=0.123456789").gaussian(),
        ["epsilon=0.123456789,delta=1e-6"],
    ),
    "Laplace noise, zCDP": (
        lambda: Budget.parse("rho=0.005").laplace(),
        [Budget.parse("rho=0.005").hint("pure")],
    ),
    "votes, pure": (
        lambda: tacit.PATE(budget="epsilon=0.5", classes=2).promise(),
        ["epsilon=0.5,delta=1e-6"],
    ),
    "permute-and-flip, zCDP": (
        lambda: tacit.PublicPrototypes(
            "rho=0.005", classes=2, selection="permute-and-flip"
        ).promise(),
        [Budget.parse("rho=0.005").hint("pure")],
    ),
    "random search, zCDP": (
        lambda: tacit.RandomSearch(
            tacit.PublicPrototypes(public=np.eye(2)), [{"k": 1}], budget="rho=0.001", classes=2
        ).promise(),
        [Budget.parse("rho=0.001").hint("approx")],
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_error_proposes_what_costs_no_more(case):
    call, wanted = REFUSED[case]
    with pytest.raises(BudgetError) as caught:
        call()
    assert proposed_in(caught.value) == wanted, str(caught.value)


def test_a_missing_split_does_not_propose_the_test_split(tmp_path):
    (tmp_path / "both").mkdir()
    for name in ("test", "train"):
        tacit.EmbeddingStore.write(tmp_path / "both" / name, np.eye(4), np.arange(4) % 2, classes=2)
    with pytest.raises(InputError, match=stating("stores", "test", "train", "never")):
        read_data(tmp_path / "both")


def test_an_undeclared_label_does_not_invite_copying_labels():
    with pytest.raises(InputError, match=stating("public knowledge", "labels")):
        encode_labels(np.array(["a", "c"]), ["a", "b"])
