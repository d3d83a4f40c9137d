"""Summaries added up as a tree by an engine: the bits of one process, whatever the engine, the order
and the groups, after a kill too; and what is refused.
"""

from importlib.util import find_spec

import numpy as np
import pytest

import tacit
from messages import stating
from tacit.compute.engines import engine
from tacit.compute.progress import reporting
from tacit.errors import InputError, ReleaseError
from tacit.releases import adding, adding_tree
from tacit.releases.adding import Adding
from tacit.releases.adding_tree import added_on_engine, group_size
from tacit.releases.combination import Declared
from tacit.releases.summary import Summary, added_up, assembled

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 5))
CLASSES = ["ant", "bee", "cow"]
LABELS = np.array(CLASSES)[np.arange(60) % 3]

# class lists of seven owners, of which two see no cows
LISTS = [CLASSES, CLASSES[:2], CLASSES, CLASSES[1::-1], CLASSES, CLASSES, CLASSES]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Seven summaries of 3 classes x 5 columns: some have more noise, and the last has no second
    moments.
    """
    folder = tmp_path_factory.mktemp("summaries")
    paths = []
    for number, classes in enumerate(LISTS):
        listed = np.isin(LABELS, classes)
        rho = 0.5 if number < 5 else 0.1
        fit = tacit.ClassSummary(
            f"rho={rho}", classes=classes, part=f"hospital {number}", moments=number < 6
        )
        summary = Summary.of(fit.fit(X[listed], LABELS[listed]), date=f"2026-01-0{number + 1}")
        paths.append(summary.save(folder / str(number)))
    return paths


@pytest.fixture
def small_groups(monkeypatch):
    """No more than two at the end: groups of two, two levels, and the rest."""
    monkeypatch.setattr(adding_tree, "MOST_AT_LAST", 2)


ENGINES = [
    ("joblib", 1),
    ("joblib", 2),
    ("slurm", 2),
    pytest.param("ray", 2, marks=pytest.mark.thorough),
]


@pytest.mark.parametrize(("name", "jobs"), ENGINES)
def test_every_engine_gives_the_bits_of_one_process(folders, tmp_path, name, jobs):
    library = {"ray": "ray", "slurm": "submitit"}.get(name)
    if library and find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    options = {"folder": tmp_path / "logs", "cluster": "local"} if name == "slurm" else {}
    amounts = []

    with reporting(lambda *facts: amounts.append(facts)):
        total = added_on_engine(
            folders[::-1], engine=engine(name, jobs, **options), jobs=jobs, folder=tmp_path / "work"
        )

    assert total.verify().files() == added_up(folders).files()
    assert amounts[-1] == ("summaries", 7, 7)
    assert list((tmp_path / "work").iterdir()) == []


def test_neither_order_nor_groups_change_a_bit(folders, monkeypatch):
    expected = added_up(folders).files()
    for size in range(2, 8):
        monkeypatch.setattr(adding_tree, "group_size", lambda n_summaries, size=size: size)
        for most in (1, 16):
            monkeypatch.setattr(adding_tree, "MOST_AT_LAST", most)
            shuffled = [folders[place] for place in RNG.permutation(7)]
            total = added_on_engine(shuffled, engine="joblib", jobs=1, folder=None)
            assert total.files() == expected


@pytest.mark.usefixtures("small_groups")
def test_second_moments_add_up_where_all_summaries_have_some(folders):
    total = added_on_engine(folders[5::-1], engine="joblib", jobs=1, folder=None)
    assert total.noisy_moments() is not None
    assert total.files() == added_up(folders[:6]).files()


def test_groups_grow_with_the_number_of_summaries_and_no_further():
    assert [group_size(n) for n in (1, 7, 100, 4096, 10**6)] == [2, 2, 10, 64, 64]


@pytest.mark.usefixtures("small_groups")
def test_a_killed_run_goes_on_from_its_partial_sums(folders, tmp_path, monkeypatch):
    calls = []

    def stopping_at(number):
        def counted(*arguments, **declared):
            calls.append(1)
            if len(calls) == number:
                raise KeyboardInterrupt
            return added_up(*arguments, **declared)

        monkeypatch.setattr(adding_tree, "added_up", counted)

    work = tmp_path / "work"
    stopping_at(6)
    with pytest.raises(KeyboardInterrupt):
        added_on_engine(folders, engine="joblib", jobs=1, folder=work)
    [partial_sums] = work.iterdir()
    assert len(list(partial_sums.glob("level-*"))) == 5

    stopping_at(0)
    total = added_on_engine(folders, engine="joblib", jobs=1, folder=work)
    assert total.files() == added_up(folders).files()
    # four groups, then two, then the rest: the first five were there
    assert len(calls) == 6 + 2
    assert list(work.iterdir()) == []


@pytest.mark.usefixtures("small_groups")
def test_partial_sums_of_other_files_are_not_taken_over(folders, tmp_path, monkeypatch):
    work = tmp_path / "work"

    def failing(*arguments, **declared):
        if len(list(work.glob("*/level-*"))) == 2:
            raise KeyboardInterrupt
        return added_up(*arguments, **declared)

    own = [Summary.load(folder).save(tmp_path / folder.name) for folder in folders]
    monkeypatch.setattr(adding_tree, "added_up", failing)
    with pytest.raises(KeyboardInterrupt):
        added_on_engine(own, engine="joblib", jobs=1, folder=work)
    monkeypatch.setattr(adding_tree, "added_up", added_up)

    overlapping = added_on_engine(
        own, engine="joblib", jobs=1, folder=work, declared=Declared(overlapping=True)
    )
    assert overlapping.files() == added_up(own, declared=Declared(overlapping=True)).files()
    assert len(list(work.iterdir())) == 1
    fit = tacit.ClassSummary("rho=0.5", classes=CLASSES, part="hospital 0").fit(X, LABELS)
    Summary.of(fit).save(own[0], force=True)
    total = added_on_engine(own, engine="joblib", jobs=1, folder=work)
    assert total.files() == added_up(own).files()


def test_a_release_of_an_engine_is_that_of_one_process(folders):
    day = "2026-02-01"
    here = tacit.combine(folders, date=day, keep_noisy=True)
    there = tacit.combine(folders[::-1], engine="joblib", date=day, keep_noisy=True)
    assert there.files() == here.files()
    assert len(there.document.pattern.combination.parts) == 7


def test_two_words_hold_sums_of_any_size(folders, monkeypatch):
    monkeypatch.setattr(adding, "BLOCK_ROWS", 2)
    monkeypatch.setattr(Summary, "verify", lambda summary: summary)
    rng = np.random.default_rng(1)
    total = Adding()
    expected = np.zeros((3, 6), dtype=object)
    for folder in folders:
        summary = Summary.load(folder)
        values = rng.integers(-(2**62), 2**62, (len(summary.classes), 6))
        values[0] = 2**62 - 1
        summary.arrays["sums"] = values
        total.add(summary)
        for label, row in zip(summary.classes, values, strict=True):
            expected[CLASSES.index(label)] += row.astype(object)

    arrays = total.total().arrays
    low = arrays["sums"]
    assert ((low >= 0) & (low < 2**32)).all()
    exact = arrays["sums_high"].astype(object) * 2**32 + low.astype(object)
    assert (exact == expected).all()


def test_class_lists_and_costs_are_kept_once_for_any_number_of_summaries(folders):
    total = Adding()
    for folder in folders:
        total.add(Summary.load(folder))
    assert len({id(part.classes) for part in total.summands}) == 3
    assert len({id(part.cost) for part in total.summands}) == 3
    assert total.sums.shape == (3, 6)


def forged(folder, to, **changes):
    """A copy of a summary with another recipe."""
    summary = Summary.load(folder)
    recipe = summary.recipe.model_copy(update=changes)
    document = summary.document.model_copy(update={"recipe": recipe})
    copy = Summary(document, summary.arrays, summary.sha256, summary.card_text)
    copy.card_text = copy.card()
    return copy.save(to)


@pytest.mark.usefixtures("small_groups")
def test_a_difference_between_groups_names_both_summaries(folders, tmp_path):
    last = forged(folders[6], tmp_path / "other", class_list="ICD-10")
    with pytest.raises(InputError, match=stating(str(folders[0]), str(last), "ICD-10")):
        added_on_engine([*folders[:6], last], engine="joblib", jobs=1, folder=None)


@pytest.mark.usefixtures("small_groups")
def test_a_poisoned_summary_is_named_by_a_worker(folders, tmp_path):
    summary = Summary.load(folders[6])
    document = summary.document
    # the last column counts records
    sums = summary.arrays["sums"] * np.array([10**4] * 5 + [1])
    arrays = {"sums": sums}
    poisoned = assembled(
        summary.recipe, document.combination, arrays, document.product, document.noise
    )
    poisoned.save(tmp_path / "poisoned")
    several = [*folders[:5], tmp_path / "poisoned"]
    with pytest.raises(ReleaseError, match=stating("poisoned", "beyond what noise explains")):
        added_on_engine(several, engine="joblib", jobs=1, folder=tmp_path / "work")


@pytest.mark.parametrize(
    ("summaries", "options", "said"),
    [
        (lambda paths: [], {}, "no summaries to add"),
        (lambda paths: [paths[0], paths[1], paths[2], paths[0]], {}, "'hospital 0' is there twice"),
        (lambda paths: [Summary.load(paths[0])], {}, stating("Summary", "pass folders")),
        (lambda paths: [*paths, "gone"], {}, stating("gone", "summary")),
        (lambda paths: paths, {"engine": "dask"}, stating("engine='dask'", "slurm")),
        (lambda paths: paths, {"engine": "slurm", "folder": None}, stating("slurm", "folder=")),
        (lambda paths: paths, {"jobs": 0}, stating("jobs=0", "at least 1")),
    ],
)
def test_input_that_is_wrong(folders, tmp_path, summaries, options, said):
    arguments = {"engine": "joblib", "jobs": 1, "folder": tmp_path / "work"} | options
    with pytest.raises((InputError, ReleaseError), match=said) as error:
        added_on_engine(summaries(folders), **arguments)
    assert "\n" not in str(error.value)
