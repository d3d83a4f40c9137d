"""Parameters of PATE that group several fields: read and set as values, as dicts and by field."""

import pytest

import tacit
from messages import stating
from tacit.errors import InputError
from tacit.learners.pate.grouped import FLAT_NAMES, GROUPS

CHANGES = {
    "teachers__number": 30,
    "voting__sigma": 8.0,
    "student__validation": 0.2,
    "queries__n_queries": 10,
    "run__jobs": 2,
}
NOISE = {"voting": tacit.pate.GNMax(40.0)}


def test_every_field_has_a_name_on_the_command_line():
    deep = tacit.PATE(voting=tacit.pate.Interactive(1.0, 2.0, 3.0, 0.9)).get_params()
    fields = {name for name in deep if name.partition("__")[0] in GROUPS and "__" in name}
    assert fields <= set(FLAT_NAMES.values())
    assert set(FLAT_NAMES) <= set(tacit.PATE.flat_parameters())


@pytest.mark.parametrize("name", CHANGES)
def test_a_field_is_changed_in_a_copy_of_its_group(name):
    model = tacit.PATE(**NOISE)
    group, _, field = name.partition("__")
    before = getattr(model, group)
    model.set_params(**{name: CHANGES[name]})
    assert getattr(getattr(model, group), field) == CHANGES[name] == model.get_params()[name]
    assert getattr(model, group) is not before
    assert before in (None, tacit.pate.GNMax(40.0))


@pytest.mark.parametrize("kind", [dict, tacit.pate.Queries])
def test_queries_bound_the_promise_in_either_form(kind):
    queries = kind(n_queries=50, n_labels=10)
    promise = tacit.PATE("rho=0.1", queries=queries, **NOISE).promise()
    assert promise.rho == pytest.approx(10 / 1600)
    assert (
        promise
        == tacit.PATE.of_flat(
            budget="rho=0.1", aggregator="gnmax", sigma=40.0, n_queries=50, n_labels=10
        ).promise()
    )


def test_the_folder_of_a_run_is_that_of_its_checkpoint():
    assert tacit.PATE().checkpoint_folder() is None
    assert tacit.PATE(run={"folder": "here"}).checkpoint_folder() == "here"
    assert tacit.PATE.of_flat(folder="here").checkpoint_folder() == "here"


@pytest.mark.parametrize(
    ("group", "method", "fields"),
    [
        ("queries", "promise", ("n_queries", "limits")),
        ("run", "checkpoint_folder", ("folder", "jobs")),
    ],
)
def test_a_field_that_is_none_of_the_group_is_refused_with_those_that_are(group, method, fields):
    model = tacit.PATE(classes=2, **{group: {"number": 5}})
    with pytest.raises(InputError, match=stating(group, "number", *fields)):
        getattr(model, method)()
