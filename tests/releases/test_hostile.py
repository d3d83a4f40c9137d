import json
import os
import pickle
import time

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import tacit
from messages import stating
from tacit.errors import ReleaseError
from tacit.releases.card import render_card
from tacit.releases.release import Release, Utility
from tacit.releases.schema import Document

ROWS = np.random.default_rng(0).normal(size=(60, 6))
LABELS = np.arange(60) % 3
NOISY = Release.of(tacit.NoisySumPrototypes(classes=3).fit(ROWS, LABELS))
LINEAR = Release.of(
    tacit.LeastSquares(classes=3, public=ROWS[:9], allow_overlap=True).fit(ROWS, LABELS)
)
CHOOSING = tacit.PublicPrototypes("epsilon=1", classes=3, k=2, public=ROWS[:9], allow_overlap=True)
CHOSEN = Release.of(CHOOSING.fit(ROWS, LABELS))


@pytest.fixture
def folder(tmp_path):
    return NOISY.save(tmp_path / "out")


def edited(folder, *path, value):
    """Change one value of the document and write the card that goes with it, as a careful forger
    would.
    """
    file = folder / "release.json"
    document = json.loads(file.read_text())
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    file.write_text(json.dumps(document))
    return document


def forged(folder, *path, value):
    document = edited(folder, *path, value=value)
    (folder / "CARD.md").write_text(render_card(Document.model_validate_json(json.dumps(document))))
    return folder


def refuses_to_load(folder, message):
    with pytest.raises(ReleaseError, match=message) as error:
        Release.load(folder)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 1000


def refuses_to_verify(folder, message):
    release = Release.load(folder)
    with pytest.raises(ReleaseError, match=message) as error:
        release.verify()
    assert "\n" not in str(error.value)
    assert str(folder) in str(error.value)


def test_a_forged_but_unchanged_release_passes(folder):
    Release.load(forged(folder, "product", "name", value="other name")).verify()


def test_any_other_file_is_named_and_never_opened(folder):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(folder.parent / "exploded"),)

    (folder / "model.pkl").write_bytes(pickle.dumps(Bomb()))
    refuses_to_load(
        folder,
        r"'model.pkl' is not a file of a release \(release.json, arrays.safetensors, CARD.md\)",
    )
    assert not (folder.parent / "exploded").exists()


def test_a_pickle_in_place_of_the_arrays_is_refused(folder):
    (folder / "arrays.safetensors").write_bytes(pickle.dumps({"prototypes": np.ones((3, 6))}))
    refuses_to_load(folder, "states a header of")


def test_names_with_line_breaks_stay_on_one_line(folder):
    (folder / "a\nb").write_text("x")
    refuses_to_load(folder, r"'a\\nb' is not a file")


@pytest.mark.parametrize("name", ["release.json", "arrays.safetensors", "CARD.md"])
def test_links_folders_pipes_and_missing_files_are_refused(folder, name):
    kept = folder.parent / "kept"
    (folder / name).rename(kept)
    refuses_to_load(folder, f"{name} cannot be read")
    (folder / name).symlink_to(kept)
    refuses_to_load(folder, f"'{name}' is a link or not a plain file")
    (folder / name).unlink()
    os.mkfifo(folder / name)
    refuses_to_load(folder, f"'{name}' is a link or not a plain file")
    (folder / name).unlink()
    (folder / name).mkdir()
    refuses_to_load(folder, f"'{name}' is a link or not a plain file")


def test_no_folder(tmp_path):
    refuses_to_load(tmp_path / "nothing", "is not a folder; give the folder of a release")


def test_a_document_that_is_too_large_is_not_parsed(folder):
    (folder / "release.json").write_bytes(b" " * (4 * 2**20 + 1))
    refuses_to_load(folder, "has 4194305 bytes, at most 4194304 are read")


@pytest.mark.parametrize("length", [2**20 + 1, 2**63, 2**64 - 1])
def test_a_header_length_beyond_the_limit_is_refused(folder, length):
    (folder / "arrays.safetensors").write_bytes(length.to_bytes(8, "little") + b"{}" * 2**20)
    refuses_to_load(folder, f"states a header of {length} bytes, at most 1048576 can be")


def test_a_pointer_of_git_lfs_is_called_so(folder):
    (folder / "arrays.safetensors").write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
    )
    refuses_to_load(
        folder, "is a pointer of git-lfs, not the file; install git-lfs and run git lfs pull"
    )


@pytest.mark.parametrize("data", [b"", b"\x01", (100).to_bytes(8, "little") + b"{}"])
def test_a_header_beyond_the_file_is_refused(folder, data):
    (folder / "arrays.safetensors").write_bytes(data)
    refuses_to_load(folder, "states a header of|not a valid safetensors file")


@pytest.mark.parametrize(
    "header",
    [
        b"not json!",
        b"[]",
        b'{"prototypes": {"dtype": "F64", "shape": [3, 6], "data_offsets": [0, 144]}}',
        (
            b'{"prototypes": {"dtype": "F64", "shape": [9223372036854775807, 6], "data_offsets":'
            b" [0, 8]}}"
        ),
        b'{"prototypes": {"dtype": "OBJECT", "shape": [1], "data_offsets": [0, 8]}}',
        b'{"prototypes": {"dtype": "F8_E5M2", "shape": [8], "data_offsets": [0, 8]}}',
    ],
)
def test_a_malformed_header_is_refused(folder, header):
    (folder / "arrays.safetensors").write_bytes(
        len(header).to_bytes(8, "little") + header + b"\0" * 8
    )
    refuses_to_load(folder, "not a valid safetensors file")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not valid JSON"),
        ("{", "is not valid JSON"),
        ("[" * 100000, "is not valid JSON"),
        ('{"format": NaN}', "NaN is not JSON"),
        ('{"format": -Infinity}', "-Infinity is not JSON"),
        ('{"format": 1e999}', stating("1e999", "range")),
        ('{"format": ' + "9" * 5000 + "}", "is not valid JSON"),
        ("[]", stating('"format": "tacit-release"')),
        ('{"format": "pickle"}', stating('"format": "tacit-release"')),
        (
            '{"format": "tacit-release", "version": 1}',
            stating("version 1", "3, 4, 5, 6, 7, 8, 9 and 10"),
        ),
        ('{"format": "tacit-release"}', "format version None"),
        ('{"format": "tacit-release", "version": 3}', "Field required"),
    ],
)
def test_a_document_that_is_no_document_is_refused(folder, text, message):
    (folder / "release.json").write_text(text)
    refuses_to_load(folder, message)


def test_a_document_that_is_not_utf8_is_refused(folder):
    (folder / "release.json").write_bytes(b"\xff\xfe")
    refuses_to_load(folder, "is not valid JSON")
    NOISY.save(folder, force=True)
    (folder / "CARD.md").write_bytes(b"\xff\xfe")
    refuses_to_load(folder, "is not UTF-8 text")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("files",), ["../../etc/passwd"], stating("files", "Extra inputs")),
        (("product", "date"), "2026-01-01\n", "product.date"),
        (("product", "name"), "a\n## 5. Privacy parameters", "product.name"),
        (("product", "name"), "a\u202eb", "product.name"),
        (("product", "name"), 3, "should be a valid string"),
        (("product", "name"), "x" * 5000, "at most 4000 characters"),
        (("parameters", "rho"), "0.1", "parameters.rho"),
        (("parameters", "rho"), -1.0, "parameters.rho"),
        (("parameters", "rho"), None, "parameters.rho"),
        (("contents", "width"), 0, "contents.width"),
        (("contents", "width"), True, "contents.width"),
        (("contents", "classes"), [0, 1, "2"], stating("ints", "floats", "strings", "bools")),
        (("contents", "classes"), [0, 1, 1], "a label is named twice"),
        (("contents", "classes"), [0, 1, [2]], "contents.classes"),
        (("contents", "classes"), [0, 1, 2**63], "contents.classes"),
        (("contents", "decision", "metric"), "__import__", "should be 'cosine' or 'euclidean'"),
        (("contents", "decision", "pooling"), 0, "contents.decision.*pooling"),
        (("contents", "decision", "rule"), "pickle", "contents.decision"),
        (
            ("contents", "decision", "rule"),
            "linear",
            "contents.decision.*Unexpected keyword argument",
        ),
        (("contents", "decision"), {"rule": "nearest prototype"}, "Field required"),
        (("contents", "decision"), {}, "contents.decision"),
        (("contents", "sha256"), "../../x", "contents.sha256"),
        (("contents",), "text", "contents"),
        (("contents",), None, "contents"),
        (
            ("contents", "arrays"),
            [{"name": "a", "dtype": "object", "shape": [3]}],
            "contents.arrays",
        ),
        (("stamp",), "fine", "stamp"),
        (("mechanisms", "noise"), "none", "mechanisms.noise"),
    ],
)
def test_a_document_outside_the_schema_is_refused(folder, path, value, message):
    edited(folder, *path, value=value)
    refuses_to_load(folder, message)


@pytest.mark.parametrize(
    "event",
    [
        None,
        [],
        {},
        "Gaussian",
        {"type": "os.system"},
        {"type": "Gaussian"},
        {"type": "Gaussian", "noise_multiplier": "1"},
        {"type": "Gaussian", "noise_multiplier": -1.0},
        {"type": "Gaussian", "noise_multiplier": 10**400},
        {"type": "Gaussian", "noise_multiplier": []},
        {"type": "Parallel", "event": 3.0, "over": "classes"},
        [{"count": "many", "event": {"type": "Gaussian", "noise_multiplier": 1.0}}],
        [{"count": 10**400, "event": {"type": "Gaussian", "noise_multiplier": 1.0}}],
        [{"event": {"type": "Gaussian", "noise_multiplier": 1.0}}],
    ],
)
def test_events_that_say_nothing_are_refused(folder, event):
    edited(folder, "guarantee", "event", value=event)
    with pytest.raises(ReleaseError) as error:
        Release.load(folder).verify()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("count", [10**6, 10**9, 10**12])
def test_events_that_take_too_long_to_account_are_refused(folder, count):
    laplace = {"count": 1, "event": {"type": "Laplace", "noise_multiplier": 10.0}}
    many = {"count": count, "event": {"type": "Exponential", "epsilon": 1e-9}}
    edited(folder, "guarantee", "event", value=[laplace, many])
    refuses_to_load(folder, "more than 50 events or 1000000 uses")


def nested_event(depth):
    event = {"type": "Gaussian", "noise_multiplier": 1.0}
    for _ in range(depth):
        event = {"type": "Parallel", "event": event, "over": "classes"}
    return event


@pytest.mark.parametrize("depth", [150, 400])
def test_events_nested_too_deep_are_refused(folder, depth):
    edited(folder, "guarantee", "event", value=nested_event(depth))
    with pytest.raises(ReleaseError) as error:
        Release.load(folder).verify()
    assert "\n" not in str(error.value)


FORGERIES = {
    "epsilon": (
        ("parameters", "epsilons", 0, "epsilon"),
        1.0,
        r"parameters.epsilons\[0\].epsilon is stated as 1 and",
    ),
    "a little": (
        ("parameters", "epsilons", 1, "epsilon"),
        4.88650,
        "is stated as 4.8865 and the events give 4.88655",
    ),
    "delta": (("parameters", "epsilons", 0, "delta"), 1e-7, "delta is stated as"),
    "pure epsilon": (("parameters", "pure_epsilon"), 1.0, "parameters.pure_epsilon"),
    "rho": (("parameters", "rho"), 0.1, "parameters.rho is stated as 0.1 and the events give 0.5"),
    "mu": (("profile", "mu"), 0.5, "profile.mu is stated as 0.5"),
    "advantage": (
        ("profile", "advantage"),
        0.1,
        "profile.advantage is stated as 0.1 and the events give 0.3829",
    ),
    "words": (
        ("accounting", "in_words"),
        "All is well.",
        "accounting.in_words is stated as 'All is well.'",
    ),
    "attack": (("profile", "attack_rates", 1, "true_positive_rate"), 0.01, "true_positive_rate"),
    "replace": (
        ("parameters", "conversions", 0, "rho"),
        0.5,
        r"conversions\[0\].rho is stated as 0.5",
    ),
    "label": (
        ("parameters", "conversions", 1, "epsilons", 0, "epsilon"),
        1.0,
        r"conversions\[1\].epsilons",
    ),
    "dropped": (("parameters", "conversions"), [], "parameters.conversions"),
    "variant": (("variant", "variant"), "pure", "variant.variant"),
    "unit": (("privacy_unit", "adjacency"), "replace", "privacy_unit.adjacency"),
    "recorded unit": (("guarantee", "unit"), "replace", "privacy_unit|variant"),
    "learner's unit": (
        ("mechanisms", "learner", "parameters", "unit"),
        "replace",
        "the learner is stated under unit 'replace' and the guarantee is under add-remove",
    ),
    "unprotected": (
        ("guarantee", "unprotected"),
        ["class counts"],
        "variant.unprotected_quantities",
    ),
    "events": (
        ("guarantee", "event", "event", "noise_multiplier"),
        2.0,
        "parameters.epsilons|parameters.rho",
    ),
    "scope": (("accesses", "covered"), "everything ever done", "accesses.covered"),
    "statement": (("accounting", "statement"), "It is perfectly private.", "accounting.statement"),
    "stamp": (
        ("stamp",),
        "NOT FOR RELEASE",
        "stamp 'NOT FOR RELEASE' does not agree with secure noise",
    ),
    "noise": (("mechanisms", "noise"), "research", "stamp None does not agree with research noise"),
    "hash": (
        ("contents", "sha256"),
        "0" * 64,
        "arrays.safetensors has another hash than release.json states",
    ),
}


def test_an_audit_in_words_alone_is_refused(folder):
    edited(folder, "audit", "result", value="passed by experts")
    refuses_to_load(folder, "an audit is stated by its bounds, or not stated")


@pytest.mark.parametrize(("path", "value", "message"), FORGERIES.values(), ids=FORGERIES.keys())
def test_a_forged_statement_is_found(folder, path, value, message):
    refuses_to_verify(forged(folder, *path, value=value), message)


def test_libraries_may_differ_a_little(folder):
    epsilon = NOISY.document.parameters.epsilons[0].epsilon
    document = edited(folder, "parameters", "epsilons", 0, "epsilon", value=epsilon * (1 + 1e-8))
    assert document
    Release.load(folder).verify()


@pytest.mark.parametrize("factor", [1 - 2e-6, 1 + 2e-4])
def test_a_bound_is_stated_as_the_true_one_or_a_little_above(folder, factor):
    place = ("parameters", "conversions", 1, "epsilons", 0, "epsilon")
    epsilon = NOISY.document.parameters.conversions[1].epsilons[0].epsilon
    Release.load(forged(folder, *place, value=epsilon * (1 + 5e-5))).verify()
    refuses_to_verify(
        forged(folder, *place, value=epsilon * factor),
        r"conversions\[1\].epsilons\[0\].epsilon is stated",
    )


def test_a_changed_card_is_found(folder):
    card = folder / "CARD.md"
    card.write_text(card.read_text().replace("rho: 0.5", "rho: 0.05"))
    refuses_to_verify(folder, "CARD.md does not say what release.json says")


def test_a_changed_document_without_its_card_is_found(folder):
    edited(folder, "product", "curator", value="somebody else")
    refuses_to_verify(folder, "CARD.md does not say what release.json says")


def test_one_changed_bit_of_the_arrays_is_found(folder):
    file = folder / "arrays.safetensors"
    data = bytearray(file.read_bytes())
    data[-3] ^= 1
    file.write_bytes(data)
    refuses_to_verify(folder, "another hash")


def test_a_hidden_minority_accuracy_is_found(tmp_path):
    utility = Utility(
        test_set="t",
        rows=1,
        accuracy=1.0,
        balanced_accuracy=1.0,
        per_class={},
        interval=(0.1, 1.0),
        interval_of="accuracy",
    )
    folder = NOISY.with_utility(utility).save(tmp_path / "out")
    refuses_to_verify(
        forged(folder, "utility", "minority_accuracy", value=0.5), "not listed as unprotected"
    )


def replaced_arrays(release, folder, **arrays):
    """Change arrays and their hash, as a careful forger would; None removes one."""
    file = release.save(folder) / "arrays.safetensors"
    kept = {name: array for name, array in (load_file(file) | arrays).items() if array is not None}
    save_file(kept, file)
    import hashlib

    return forged(folder, "contents", "sha256", value=hashlib.sha256(file.read_bytes()).hexdigest())


@pytest.mark.parametrize(
    "arrays",
    [
        {"prototypes": np.ones((3, 2, 6), dtype=np.float32)},
        {"prototypes": np.ones((3, 2, 5))},
        {"indices": None},
        {"extra": np.ones(3)},
    ],
)
def test_arrays_other_than_stated_are_refused(tmp_path, arrays):
    refuses_to_load(
        replaced_arrays(CHOSEN, tmp_path / "out", **arrays),
        "do not have the names, types and shapes",
    )


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (
            ("contents", "width"),
            7,
            stating("prototypes", "(3, 2, 6)", "3 classes", "7 columns"),
        ),
        (("contents", "decision", "pooling"), 2, "3 classes and 3 columns"),
        (("contents", "decision", "pooling"), 100, "3 classes and 0 columns"),
        (("contents", "classes"), [0, 1], "2 classes and 6 columns"),
    ],
)
def test_arrays_that_do_not_fit_the_decision_are_refused(tmp_path, path, value, message):
    refuses_to_load(forged(CHOSEN.save(tmp_path / "out"), *path, value=value), message)


def restated_arrays(folder, release=CHOSEN, **arrays):
    replaced_arrays(release, folder, **arrays)
    stated = [
        {"name": name, "dtype": array.dtype.name, "shape": list(array.shape)}
        for name, array in load_file(folder / "arrays.safetensors").items()
    ]
    return forged(folder, "contents", "arrays", value=stated)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"prototypes": None}, "no floating-point array 'prototypes'"),
        ({"prototypes": np.ones((3, 6), dtype=np.int64)}, "no floating-point array 'prototypes'"),
        ({"prototypes": np.ones(3)}, "no floating-point array 'prototypes'"),
        ({"indices": np.zeros(3, dtype=np.int64)}, stating("indices", "(3,)")),
        ({"indices": np.zeros((3, 2))}, "indices of shape"),
    ],
)
def test_arrays_that_cannot_decide_are_refused(tmp_path, arrays, message):
    refuses_to_load(restated_arrays(tmp_path / "out", **arrays), message)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"coefficients": None}, "there is no array 'coefficients'"),
        ({"intercepts": None}, "there is no array 'intercepts'"),
        ({"coefficients": np.ones((3, 6), dtype=np.int64)}, "coefficients of type int64"),
        ({"intercepts": np.ones((3, 1))}, "intercepts of type float64"),
        ({"centre": np.ones(5)}, "centre of type float64"),
        ({"prototypes": np.ones((3, 6))}, stating("prototypes", "decision")),
    ],
)
def test_arrays_that_cannot_decide_linearly_are_refused(tmp_path, arrays, message):
    refuses_to_load(restated_arrays(tmp_path / "out", LINEAR, **arrays), message)


def test_a_decision_by_other_arrays_is_refused(tmp_path):
    refuses_to_load(
        forged(CHOSEN.save(tmp_path / "out"), "contents", "decision", value={"rule": "linear"}),
        "no array 'coefficients'",
    )


@pytest.mark.parametrize("name", ["coefficients", "intercepts", "centre"])
def test_linear_values_that_are_not_finite_are_found(tmp_path, name):
    broken = LINEAR.arrays[name].copy()
    broken.flat[1] = np.inf
    refuses_to_verify(
        restated_arrays(tmp_path / "out", LINEAR, **{name: broken}),
        f"'{name}' holds values that are not",
    )


def test_values_that_are_not_finite_are_found(tmp_path):
    prototypes = np.ones((3, 2, 6))
    prototypes[1, 1, 1] = np.nan
    refuses_to_verify(
        restated_arrays(tmp_path / "out", prototypes=prototypes),
        "'prototypes' holds values that are not",
    )


def with_events(folder, event, groups=None):
    """Other events, and every number as it was."""
    edited(folder, "guarantee", "groups", value=groups or {})
    edited(folder, "guarantee", "event", value=event)


def laplace(noise):
    return {"type": "Laplace", "noise_multiplier": noise}


def gaussian(noise):
    return {"type": "Gaussian", "noise_multiplier": noise}


def search(event, shape=1.0):
    return {"type": "RepeatAndSelect", "event": event, "mean": 5.0, "shape": shape}


SAMPLED = {"type": "SampledGaussian", "noise_multiplier": 1.0, "sampling_rate": 1e-300}
SLOW = {
    "a group of no noise": ([], {"a": gaussian(1e-6), "b": laplace(3.0)}),
    "a search of almost nothing": (search({"type": "PureDP", "epsilon": 1e-300}), None),
    "a search of rare samples": (search(SAMPLED), None),
    "many searches": ([{"count": 1, "event": search(gaussian(2.0 + i))} for i in range(24)], None),
    "many uses": (
        [{"count": 10**6 - 1, "event": laplace(1000.0)}, {"count": 1, "event": gaussian(9.0)}],
        None,
    ),
    "many groups": (
        {"type": "Exponential", "epsilon": 0.1},
        {str(i): gaussian(3.0 + i) for i in range(20)},
    ),
    "many kinds": ([{"count": 1, "event": laplace(10.0 + i)} for i in range(25)], None),
}


@pytest.mark.parametrize(("event", "groups"), SLOW.values(), ids=SLOW.keys())
def test_events_that_would_take_long_are_refused_soon(folder, event, groups, recwarn):
    with_events(folder, event, groups)
    start = time.process_time()
    with pytest.raises(ReleaseError) as error:
        Release.load(folder).verify()
    assert time.process_time() - start < 2
    assert "\n" not in str(error.value)
    assert not recwarn


def test_work_is_refused_by_a_bound_that_is_stated(folder):
    with_events(folder, *SLOW["many uses"])
    refuses_to_verify(folder, "would take more than about 2 s to account")


def test_noise_without_end_costs_nothing():
    from tacit.privacy.events import Exponential, Gaussian, Laplace
    from tacit.privacy.guarantee import Guarantee
    from tacit.privacy.unit import Unit
    from tacit.releases.statement import privacy_items

    groups = (("a", Laplace(np.inf)), ("b", Gaussian(1000.0)))
    guarantee = Guarantee(Unit.ADD_REMOVE, Gaussian(1000.0), (), groups)
    assert guarantee.epsilon(1e-6) == Guarantee(Unit.ADD_REMOVE, 2 * Gaussian(1000.0)).epsilon(1e-6)
    assert privacy_items(guarantee)["parameters"].groups[0].epsilons[0].epsilon < guarantee.epsilon(
        1e-6
    )
    mixed = Guarantee(Unit.ADD_REMOVE, 2 * Exponential(0.1) + Laplace(np.inf))
    assert mixed.epsilon(1e-6) == Guarantee(Unit.ADD_REMOVE, 2 * Exponential(0.1)).epsilon(1e-6)


def test_parameters_beyond_any_use_are_refused(folder):
    with_events(folder, laplace(1e-300))
    refuses_to_load(folder, "noise_multiplier is 1e-300, not from 1e-30 to 1e\\+30, nor 0 or inf")
    with_events(folder, laplace(10**31))
    refuses_to_load(folder, "noise_multiplier is 1e\\+31, not from")
    with_events(folder, {"type": "Gaussian", "noise_multiplier": "A" * 5000})
    refuses_to_load(folder, "cannot be read")
    with_events(folder, [{"count": 10**400, "event": laplace(1.0)}])
    refuses_to_load(folder, "count 10{190,}")


def test_names_of_files_are_printed_whatever_they_are(folder):
    (folder / os.fsdecode(b"caf\xe9\x1b[31m")).write_text("x")
    with pytest.raises(ReleaseError, match="is not a file of a release") as error:
        Release.load(folder)
    assert str(error.value).isprintable()
