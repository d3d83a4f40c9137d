"""The data sets of a game differ by what the unit hides and by nothing else."""

import numpy as np
import pytest

from tacit.errors import InputError
from tacit.measure.auditing.game import RECORDS_OF_PERSON, draw_coins, game_of
from tacit.privacy.unit import Unit

ROWS = np.arange(120.0)[:, None] * [1, 1]
LABELS = np.arange(120) % 3


def game(unit, **changes):
    given = {"n_classes": 3, "needs_public": True, "records": 50} | changes
    return game_of(ROWS, LABELS, unit, rng=np.random.default_rng(0), **given)


def records(data):
    """Rows with their labels and persons, as sortable tuples."""
    rows, labels, persons = data
    if persons is None:
        persons = np.zeros(len(rows), dtype=int)
    return sorted(zip(rows[:, 0], labels.tolist(), persons.tolist(), strict=True))


@pytest.mark.parametrize("unit", Unit)
def test_one_coin_changes_what_the_unit_hides(unit):
    this = game(unit)
    coins = draw_coins(this.n_canaries, np.random.default_rng(1))
    other = coins.copy()
    other[2] = ~other[2]
    before, after = (records(this.data(of)) for of in (coins, other))
    only_before = [record for record in before if record not in after]
    only_after = [record for record in after if record not in before]
    n_records = RECORDS_OF_PERSON if unit.per_person else 1

    if unit in (Unit.ADD_REMOVE, Unit.ADD_REMOVE_PERSON):
        assert sorted((len(only_before), len(only_after))) == [0, n_records]
    else:
        assert len(only_before) == len(only_after) == n_records
    if unit.rows_public:
        assert [row for row, _, _ in before] == [row for row, _, _ in after]
        assert all(x[1] != y[1] for x, y in zip(only_before, only_after, strict=True))
    if unit.per_person:
        # all of them are of one person, who has no other records
        (person,) = {person for _, _, person in only_before + only_after}
        assert sum(record[2] == person for record in before) in (0, n_records)


def test_canaries_contradict_their_class_and_no_part_shares_a_row():
    this = game(Unit.ADD_REMOVE)
    labels_of_rows = {row[0]: label for row, label in zip(ROWS, LABELS, strict=True)}
    canaries = this.ins.rows[:, 0, 0]
    assert all(
        labels_of_rows[row] != label
        for row, label in zip(canaries, this.ins.labels[:, 0], strict=True)
    )
    # few canaries are in one class
    assert np.bincount(this.ins.labels[:, 0]).max() <= 6
    parts = [canaries, this.rows[:, 0], this.reference_rows[:, 0], this.public[:, 0]]
    together = np.concatenate(parts)
    assert len(set(together.tolist())) == len(together)


def test_sets_of_labels_become_their_complements():
    sets = np.random.default_rng(0).random((120, 4)) < 0.5
    this = game_of(
        ROWS,
        sets,
        Unit.CHANGE_LABEL,
        n_classes=4,
        needs_public=False,
        records=50,
        rng=np.random.default_rng(0),
    )
    assert (this.ins.labels == ~this.outs.labels).all()
    _, labels, _ = this.data(draw_coins(this.n_canaries, np.random.default_rng(0)))
    assert labels.shape == (50 + this.n_canaries, 4)


def test_coins_are_fair_and_too_few_rows_are_refused():
    coins = draw_coins(10_000, np.random.default_rng(0))
    assert abs(coins.mean() - 0.5) < 0.02
    with pytest.raises(InputError, match="public has 20 rows"):
        game_of(
            ROWS[:20],
            LABELS[:20],
            Unit.REPLACE,
            n_classes=3,
            needs_public=False,
            records=50,
            rng=np.random.default_rng(0),
        )
