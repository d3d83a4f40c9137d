"""Scale: the speed of each operation as a share of the best that the machine reaches in the run.

python benchmarks/scale.py [--data ../shared/data/embeddings/...] [--paper FOLDER] [--peer PYTHON]
[--quick]

Prints Markdown. The ceilings are matrix products of each type at the best of several shapes,
reading memory, and reading a file. --paper makes synthetic stores of the paper's size in FOLDER
(3.5 GB) and learns from them by command. --peer is the Python of an environment made by: python -m
venv ff; ff/bin/pip install "dp-learning-ff==0.0.8".
"""

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from timing import table, watched

import tacit
from tacit.compute.progress import reporting
from tacit.compute.threads import in_threads
from tacit.learners.prototypes import scores as scoring
from tacit.learners.prototypes.coinpress import PAPER_STEPS
from tacit.learners.prototypes.scores.arithmetic import scoring as scoring_of
from tacit.learners.prototypes.scores.arithmetic import speed
from tacit.mechanisms import exponential, gaussian, top_k
from tacit.mechanisms.noise import SecureNoise
from tacit.privacy.unit import Unit

# clip windows of scores: a narrow one, and one that clips nothing
NARROW = (1.54, 1.58)
WIDE = (0.0, 2.0)

# sizes of the paper: private rows, public rows, columns, classes
PAPER = {"n": 50_000, "m": 1_281_167, "d": 1280, "C": 100}

# sizes of each part, as its function takes them
FULL = {
    "operations": (5_000, 200_000, 1280, 100),
    "selection": (PAPER["C"], PAPER["m"]),
    "on_device": (PAPER["n"], 400_000, 1280, 100),
    "errors": (2_000, 4_000, 1280, 20),
    "growth": (2_000, 16_384, 256, 20),
    "by_person": (50_000, 5_000, 1280, 100),
    "columns": (4_000, 16_384, 7_000, 8_192),
    "against_peer": (50_000, 1280, 100),
}
QUICK = {
    "operations": (200, 3000, 256, 5),
    "selection": (4, 5000),
    "on_device": (100, 3000, 64, 5),
    "errors": (100, 500, 64, 5),
    "growth": (100, 4096, 32, 4),
    "by_person": (600, 60, 64, 5),
    "columns": (200, 500, 64, 72),
    "against_peer": (500, 32, 5),
}
PEER = Path(__file__).with_name("peers") / "learning_ff.py"

Row = list[str]


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description="Scale.")
    parser.add_argument(
        "--data", type=Path, help="folder with cifar100/ and tiny_imagenet/ of embeddings"
    )
    parser.add_argument("--paper", type=Path, help="folder for the stores of the paper's size")
    parser.add_argument("--peer", type=Path, help="Python of an environment with dp-learning-ff")
    parser.add_argument("--quick", action="store_true", help="small arrays, for the tests")
    arguments = parser.parse_args()
    for path in (arguments.data, arguments.peer):
        if path is not None and not path.exists():
            parser.error(f"{path} is not there")

    sizes = FULL
    ceilings = Ceilings(width=1280, size=2**29)
    if arguments.quick:
        sizes = QUICK
        ceilings = Ceilings(width=256, size=2**22)
    ceilings.show()
    operations(ceilings, *sizes["operations"])
    selection(*sizes["selection"])
    on_device(*sizes["on_device"])
    errors(*sizes["errors"])
    growth(*sizes["growth"])
    by_person(*sizes["by_person"])
    columns(*sizes["columns"])
    if arguments.data is not None:
        accuracy(arguments.data)
    if arguments.paper is not None:
        paper(arguments.paper, ceilings)
    if arguments.peer is not None:
        against_peer(arguments.peer, *sizes["against_peer"])


def timed(work: Callable[[], object], runs: int = 1) -> float:
    """Return the shortest time of a call in seconds.

    Before several runs there is a call that is not counted.
    """
    if runs > 1:
        work()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


class Ceilings:
    """The best speeds of this machine; each call of a method measures again.

    Parameters
    ----------
    width : int
        Number of columns in the matrix products.
    size : int
        Number of bytes that are read.
    """

    def __init__(self, width: int, size: int) -> None:
        self.width = width
        # not zeros: reading a page that was never written does not read memory
        self.bytes = np.ones(size, np.uint8)

    def product(self, name: str) -> tuple[float, str]:
        """Return operations per second of a product of two matrices, and the fastest shape."""
        shapes = [(256, 1024)]
        # int8 without support by the processor would take minutes
        if speed(name, *shapes[0], self.width) > 2e10:
            shapes += [(1024, 1024), (2048, 2048), (4096, 4096)]

        rates = {}
        for n_left, n_right in shapes:
            rates[f"{n_left} x {n_right} x {self.width}"] = speed(name, n_left, n_right, self.width)
        fastest = max(rates, key=rates.__getitem__)
        return rates[fastest], fastest

    def product_rate(self, name: str) -> float:
        """Return operations per second of a product of two matrices, at the fastest shape."""
        rate, _ = self.product(name)
        return rate

    def thin_product_rate(self, n_classes: int) -> float:
        """Return operations per second of the float64 product of many rows with a few.

        Scores and predictions are such products.
        """
        class_rows = np.ones((n_classes, self.width))
        rows = np.ones((4096, self.width))
        n_operations = 2 * n_classes * len(rows) * self.width
        return n_operations / timed(lambda: class_rows @ rows.T, 3)

    def memory(self) -> float:
        """Return bytes per second that a plain pass in all threads reads."""
        parts = np.array_split(self.bytes, 64)
        return len(self.bytes) / timed(lambda: max(in_threads(np.max, parts)), 3)

    def disk(self) -> float:
        """Return bytes per second when reading a file that is not cached in memory."""
        with tempfile.NamedTemporaryFile() as file:
            file.write(self.bytes.data)
            file.flush()
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            file.seek(0)
            start = time.perf_counter()
            while file.read(2**22):
                pass
            return len(self.bytes) / (time.perf_counter() - start)

    def show(self) -> None:
        """Measure and print all ceilings."""
        rows = []
        for name in ("float32", "float64", *int8_if_possible()):
            rate, shape = self.product(name)
            rows.append([f"{name} product, {shape}", f"{rate / 1e9:.0f} G operations/s"])
        rows.append(["memory read", f"{self.memory() / 1e9:.1f} GB/s"])
        rows.append(["disk read", f"{self.disk() / 1e9:.1f} GB/s"])
        table("Ceilings", ["what", "rate"], rows)


def has_torch() -> bool:
    """Return true if torch is installed, which int8 needs."""
    return find_spec("torch") is not None


def int8_if_possible() -> list[str]:
    """Return the arithmetic int8, if torch is installed."""
    return ["int8"] if has_torch() else []


def clustered(n: int, d: int, n_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return rows around class centres, with cosines of about .55, in float16 as in a store."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    centres = 1.1 + 0.4 * rng.normal(size=(n_classes, d))
    x = np.empty((n, d), np.float16)
    # in blocks, so that the float32 noise of all rows is never in memory at once
    for start in range(0, n, 4096):
        block = slice(start, start + 4096)
        x[block] = centres[y[block]] + rng.standard_normal((len(y[block]), d), dtype=np.float32)
    return x, y


def score(
    public: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    n_classes: int,
    bounds: tuple[float, float],
    name: str,
) -> np.ndarray:
    """Return scores in units of the sensitivity, (C, m), by the arithmetic of this name."""
    plan = scoring_of(public, *bounds, name=name)
    with scoring.scores(plan, public, x, y, n_classes) as scores:
        return np.asarray(scores) / plan.sensitivity


def operations(ceilings: Ceilings, n: int, m: int, d: int, n_classes: int) -> None:
    """Time scores, sums, prediction and evaluation beside their ceilings.

    Ceilings are measured before and after an operation, since the machine's speed changes.
    """
    x, y = clustered(n, d, n_classes)
    public, _ = clustered(m, d, n_classes, seed=1)
    rows = clipped_scores(ceilings, public, x, y, n_classes)
    rows += unclipped_scores(ceilings, public, x, y, n_classes)

    many_x, many_y = clustered(10 * n, d, n_classes)
    rows.append(exact_sums(ceilings, many_x, many_y, n_classes))
    rows += predictions(ceilings, many_x, many_y, n_classes)
    table(
        f"Share of the ceiling ({n} private x {m} public x {d}, {n_classes} classes)",
        ["operation", "time", "ceiling", "share"],
        rows,
    )


def clipped_scores(
    ceilings: Ceilings, public: np.ndarray, x: np.ndarray, y: np.ndarray, n_classes: int
) -> list[Row]:
    """Time clipped scores in each arithmetic, beside the matrix product of the same type."""
    n_operations = 2 * len(x) * len(public) * x.shape[1]
    rows = []
    seconds = {}
    for name in ("float32", "float64", "int8"):
        if name == "int8" and not int8_is_fast(ceilings):
            reason = "slower than float32 on this machine, or torch is not there: not chosen"
            rows.append(["clipped scores, int8", "-", reason, "-"])
            continue

        # compiles before the clock starts
        score(public[:4096], x, y, n_classes, NARROW, name)
        before = ceilings.product_rate(name)
        seconds[name] = timed(partial(score, public, x, y, n_classes, NARROW, name))
        ceiling = (before + ceilings.product_rate(name)) / 2
        share = n_operations / seconds[name] / ceiling
        rows.append(
            [
                f"clipped scores, {name}",
                f"{seconds[name]:.1f} s",
                f"{name} product",
                f"{share:.0%}",
            ]
        )

    if "int8" in seconds:
        # measured after only: the product before is in the first row
        ceiling = ceilings.product_rate("float32")
        share = n_operations / seconds["int8"] / ceiling
        over_float32 = seconds["float32"] / seconds["int8"]
        time_text = f"{seconds['int8']:.1f} s"
        rows.append(["the same", time_text, "float32 product", f"{share:.0%}"])
        rows.append(["the same", time_text, "clipped scores, float32", f"{over_float32:.0%}"])
    return rows


def int8_is_fast(ceilings: Ceilings) -> bool:
    """Return true if products of int8 are as fast as those of float32 on this machine."""
    if not has_torch():
        return False
    return ceilings.product_rate("int8") >= ceilings.product_rate("float32")


def unclipped_scores(
    ceilings: Ceilings, public: np.ndarray, x: np.ndarray, y: np.ndarray, n_classes: int
) -> list[Row]:
    """Time unclipped scores, which need products with the class sums alone."""
    d = x.shape[1]
    before = ceilings.product_rate("float64")
    thin_before = ceilings.thin_product_rate(n_classes)
    seconds = timed(lambda: score(public, x, y, n_classes, WIDE, "auto"), 2)
    ceiling = (before + ceilings.product_rate("float64")) / 2
    thin_ceiling = (thin_before + ceilings.thin_product_rate(n_classes)) / 2

    rows = []
    # rows that each public row is multiplied with
    for label, ceiling_name, n_factors, rate in (
        ("as if each pair were computed", "float64 product", len(x), ceiling),
        ("products with class sums alone", "float64 product", n_classes, ceiling),
        ("products with class sums alone", thin_name(n_classes, d), n_classes, thin_ceiling),
    ):
        share = 2 * (n_factors / rate) * len(public) * d / seconds
        rows.append(
            [f"unclipped scores, {label}", f"{seconds:.2f} s", ceiling_name, f"{share:.0%}"]
        )
    return rows


def thin_name(n_classes: int, d: int) -> str:
    """Return the name of the thin product's ceiling."""
    return f"float64 product, {n_classes} x 4096 x {d}"


def exact_sums(ceilings: Ceilings, x: np.ndarray, y: np.ndarray, n_classes: int) -> Row:
    """Time exact sums of unit rows, beside reading the rows from memory."""
    blocks = [(x[i : i + 8192], y[i : i + 8192]) for i in range(0, len(x), 8192)]
    memory_rate = ceilings.memory()
    seconds = timed(
        lambda: gaussian.class_sums(blocks, n_classes=n_classes, width=x.shape[1], unit_rows=True),
        3,
    )
    share = x.nbytes / seconds / memory_rate
    return [
        f"sums of {len(x)} unit rows, exact",
        f"{seconds:.3f} s",
        "memory read (float16)",
        f"{share:.0%}",
    ]


def predictions(ceilings: Ceilings, x: np.ndarray, y: np.ndarray, n_classes: int) -> list[Row]:
    """Time prediction and evaluation, beside the product of the rows with one row a class."""
    d = x.shape[1]
    model = tacit.NoisySumPrototypes("rho=0.5", classes=n_classes, noise="research")
    model.fit(x[:2000], y[:2000])
    works = {
        "predict": lambda: model.predict(x),
        "score, as evaluate does": lambda: model.score(x, y),
    }
    rows = []
    for label, work in works.items():
        before = ceilings.thin_product_rate(n_classes)
        seconds = timed(work, 2)
        ceiling = (before + ceilings.thin_product_rate(n_classes)) / 2
        share = 2 * n_classes * len(x) * d / seconds / ceiling
        rows.append(
            [
                f"{label}, {len(x)} rows",
                f"{seconds:.3f} s",
                thin_name(n_classes, d),
                f"{share:.0%}",
            ]
        )
    return rows


def on_device(n: int, m: int, d: int, n_classes: int) -> None:
    """Time clipped scores on a CUDA device, if there is one, beside its int8 product.

    The processor's times stand beside them.
    """
    if not has_torch():
        return
    import torch

    if not torch.cuda.is_available():
        return

    ceiling = device_product_rate(d)
    x, y = clustered(n, d, n_classes)
    public, _ = clustered(m, d, n_classes, seed=1)
    seconds = {}
    for name, runs in {"int8-cuda": 2, "int8": 1, "float32": 1}.items():
        # compiles before the clock starts
        score(public[:4096], x, y, n_classes, NARROW, name)
        seconds[name] = timed(partial(score, public, x, y, n_classes, NARROW, name), runs)

    rows = []
    for name in seconds:
        share = 2 * n * m * d / seconds[name] / ceiling
        over_device = seconds[name] / seconds["int8-cuda"]
        rows.append([name, f"{seconds[name]:.2f} s", f"{share:.0%}", f"{over_device:.1f}"])
    title = (
        f"Clipped scores on {torch.cuda.get_device_name()} and on {os.cpu_count()} cores of its"
        " machine"
    )
    header = [
        "arithmetic",
        "time",
        f"share of the device's int8 product, 8192 x 8192 x {d}",
        "time over int8-cuda",
    ]
    table(f"{title} ({n} private x {m} public x {d}, {n_classes} classes)", header, rows)


def device_product_rate(d: int) -> float:
    """Return operations per second of the CUDA device's int8 product, 8192 x 8192 x d."""
    import torch

    matrix = torch.randint(-127, 128, (8192, d), dtype=torch.int8, device="cuda")

    def products() -> None:
        for _ in range(100):
            torch._int_mm(matrix, matrix.T)
        # products run behind the program: wait for the last
        torch.cuda.synchronize()

    return 100 * 2 * 8192**2 * d / timed(products, 3)


def selection(n_classes: int, m: int) -> None:
    """Time secure selection by integer scores."""
    scores = np.random.default_rng(0).integers(0, 500 * 2**20, m)
    common = {"sensitivity": 2**20, "epsilon": 1.0, "noise": SecureNoise()}
    works = {
        "k = 1": partial(exponential.select, scores, selection="exponential", **common),
        "k = 1, permute-and-flip": partial(
            exponential.select, scores, selection="permute-and-flip", **common
        ),
        "k = 5": partial(top_k.select_set, scores, 5, **common),
    }
    rows = []
    for label, work in works.items():
        start = time.perf_counter()
        for _ in range(n_classes):
            work()
        rows.append([label, f"{time.perf_counter() - start:.1f} s"])
    table(f"Secure selection, {n_classes} classes x {m} candidates", ["what", "time"], rows)


def errors(n: int, m: int, d: int, n_classes: int) -> None:
    """Measure the error of scores against float64 arithmetic.

    Errors are in units of the sensitivity, which is the effect of one record.
    """
    x, y = clustered(n, d, n_classes)
    public, _ = clustered(m, d, n_classes, seed=1)
    exact = score(public, x, y, n_classes, NARROW, "float64")
    rows = []
    for name in ("float32", *int8_if_possible()):
        arithmetic = scoring_of(public, *NARROW, name=name).arithmetic
        scores = score(public, x, y, n_classes, NARROW, name)
        error = np.abs(scores - exact)
        same_best = (scores.argmax(axis=1) == exact.argmax(axis=1)).mean()
        rows.append(
            [
                name,
                f"{arithmetic.scale:.0f}",
                f"{arithmetic.error(*NARROW):.2%}",
                f"{error.max():.3f}",
                f"{error.mean():.4f}",
                f"{exact.max():.0f}",
                f"{same_best:.0%}",
            ]
        )
    header = [
        "arithmetic",
        "norm of a row",
        "error of a cosine, of the window",
        "largest error",
        "mean error",
        "largest score",
        "classes with the same best",
    ]
    table(f"Scores against float64 ({n} x {m} x {d}, window {list(NARROW)})", header, rows)


def growth(n: int, m: int, d: int, n_classes: int) -> None:
    """Print the time at four times one size over the time at that size.

    A ratio of 4 means proportional, 1 means no growth.
    """
    sizes = {"n": n, "m": m, "d": d, "C": n_classes}
    works: dict[str, Callable[..., float]] = {
        "clipped scores": partial(scores_seconds, NARROW),
        "unclipped scores": partial(scores_seconds, WIDE),
        "exact sums": sums_seconds,
    }
    rows = []
    for label, seconds_at in works.items():
        base = seconds_at(**sizes)
        row = [label]
        for name, size in sizes.items():
            larger = sizes | {name: 4 * size}
            row.append(f"{seconds_at(**larger) / base:.1f}")
        rows.append(row)
    header = ["operation", *(f"4 {name}" for name in sizes)]
    table(f"Growth: time ratio at four times the size, from {sizes}", header, rows)


def scores_seconds(bounds: tuple[float, float], n: int, m: int, d: int, C: int) -> float:
    """Return the seconds of scores at these sizes."""
    x, y = clustered(n, d, C)
    public, _ = clustered(m, d, C, seed=1)
    return timed(lambda: score(public, x, y, C, bounds, "float32"), 3)


def sums_seconds(n: int, m: int, d: int, C: int) -> float:
    """Return the seconds of exact sums at these sizes, of which public rows are none."""
    x, y = clustered(n, d, C)
    return timed(lambda: gaussian.class_sums([(x, y)], n_classes=C, width=d, unit_rows=True), 5)


def by_person(n: int, n_persons: int, d: int, n_classes: int) -> None:
    """Print the time of fits that protect persons over that of the same fit per record.

    One table is by the place of a person's records, one by their number.
    """
    learners: dict[str, Callable[..., Any]] = {
        "noisy-sum": tacit.NoisySumPrototypes,
        "least-squares": tacit.LeastSquares,
        "gradient-descent, 5 steps": partial(tacit.GradientDescent, steps=5),
    }
    x, y = clustered(n, d, n_classes)
    ids = scattered_ids(n, n // n_persons)
    record_counts = [count for count in (1, 2, 5, 100, 1000) if count <= n // 5]
    place_rows = []
    count_rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        np.save(path, x)
        mapped_x = np.load(path, mmap_mode="r")
        # rows and ids of each fit; those without ids are protected per record
        inputs = [(x, None), (x, np.sort(ids)), (x, ids), (mapped_x, ids)]
        inputs += [(x, scattered_ids(n, count)) for count in record_counts]
        for name, learner in learners.items():
            works = [
                partial(fit_once, learner, rows, y, n_classes, persons) for rows, persons in inputs
            ]
            per_record, *per_person = shortest_in_turn(works)
            ratios = [f"{seconds / per_record:.2f}" for seconds in per_person]
            place_rows.append([name, f"{per_record:.2f} s", *ratios[:3]])
            count_rows.append([name, *ratios[3:]])

    title = (
        f"Persons: time over that per record ({n} x {d} float16, {n_classes} classes, research"
        " noise)"
    )
    header = ["fit", "per record", "persons sorted", "scattered", "scattered, memory mapped"]
    table(f"{title}, {n_persons} persons", header, place_rows)
    header = ["fit", *map(str, record_counts)]
    table(f"{title}, scattered, by records per person", header, count_rows)


def scattered_ids(n: int, records_per_person: int) -> np.ndarray:
    """Return ids of persons whose records are anywhere among n."""
    return np.random.default_rng(0).permutation(np.arange(n) // records_per_person)


def fit_once(
    learner: Callable[..., Any],
    x: np.ndarray,
    y: np.ndarray,
    n_classes: int,
    persons: np.ndarray | None,
) -> None:
    """Fit a learner, per person if there are ids."""
    unit = Unit.ADD_REMOVE if persons is None else Unit.ADD_REMOVE_PERSON
    learner("rho=0.5", classes=n_classes, noise="research", unit=unit).fit(x, y, persons)


def shortest_in_turn(works: Sequence[Callable[[], object]]) -> list[float]:
    """Return the shortest of three times of each call, in seconds.

    Calls take turns, so that what slows the machine slows all of them.
    """
    rounds = [[timed(work) for work in works] for _ in range(3)]
    return [min(times) for times in zip(*rounds, strict=True)]


def accuracy(data: Path) -> None:
    """Print the effect of each arithmetic's rounding on a model.

    The clip window is the narrowest, and there is no noise. Models learn from all records, and from
    each fifth of them, since rounding changes a model only at near ties.
    """
    folder = data / "cifar100"
    x = np.load(folder / "train_x.npy")
    y = np.load(folder / "train_y.npy")
    test_x = np.load(folder / "test_x.npy")
    test_y = np.load(folder / "test_y.npy")
    public = np.load(data / "tiny_imagenet" / "test_x.npy", mmap_mode="r")
    parts = [slice(None), *(slice(start, start + 10_000) for start in range(0, len(x), 10_000))]

    accuracies: dict[str, np.ndarray] = {}
    rows = []
    for name in ("float32", "float64", *int8_if_possible()):
        model = tacit.PublicPrototypes(
            "epsilon=inf",
            public=public,
            classes=100,
            d_min=NARROW[0],
            d_max=NARROW[1],
            arithmetic=name,
        )
        accuracies[name] = np.array(
            [model.fit(x[part], y[part]).score(test_x, test_y) for part in parts]
        )
        of_all, *of_fifths = accuracies[name]
        difference = np.abs(accuracies[name] - accuracies["float32"]).max()
        rows.append([name, f"{of_all:.4f}", f"{np.mean(of_fifths):.4f}", f"{difference:.4f}"])
    header = [
        "arithmetic",
        f"{len(x)} records",
        "10000 records, mean of five",
        "farthest from float32 of the six",
    ]
    table(f"Accuracy on CIFAR-100 at the window {list(NARROW)}, without noise", header, rows)


def paper(folder: Path, ceilings: Ceilings) -> None:
    """Time the command line from stores on disk to a release, at the size of the paper.

    A command resumes the work of an interrupted run, so its time counts from there.
    """
    n, m, d, n_classes = PAPER.values()
    if not (folder / "private").exists():
        write_store(folder / "private", n, d, n_classes, has_labels=True)
    if not (folder / "public").exists():
        write_store(folder / "public", m, d, n_classes, has_labels=False)

    # files are read once before, so that neither command waits for the disk
    for store in ("private", "public"):
        for path in (folder / store).rglob("*"):
            if path.is_file():
                path.read_bytes()

    rows = []
    seconds = {}
    for label, bounds in {"unclipped": WIDE, "clipped": NARROW}.items():
        public = tacit.EmbeddingStore.open(folder / "public").x
        name = scoring_of(public, *bounds).arithmetic.name
        before = ceilings.product_rate(name)
        line = (
            f"fit public {folder}/private --public {folder}/public --budget epsilon=1 --classes"
            f" {n_classes} --d-min {bounds[0]} --d-max {bounds[1]} --out {folder}/release-{label}"
            " --force"
        )
        seconds[label], peak = watched(line.split())
        ceiling = (before + ceilings.product_rate(name)) / 2
        share = 2 * n * m * d / seconds[label] / ceiling
        memory = f"{peak / 2**30:.2f} GiB"
        rows.append([f"{label}, {name}", f"{seconds[label]:.0f} s", f"{share:.0%}", memory])

    header = [
        "scores",
        "whole command",
        "share of the product's ceiling, as if each pair were computed",
        "peak anonymous memory",
    ]
    title = f"{n} private x {m} public x {d}, {n_classes} classes, from stores to a release"
    table(title, header, rows)
    quotient = seconds["clipped"] / seconds["unclipped"]
    print(f"\nUnclipped takes 1/{quotient:.0f} of clipped.", flush=True)


def columns(n: int, m: int, auto_width: int, least_squares_width: int) -> None:
    """Print the peak memory of methods with d x d matrices at many columns d.

    The stores are not in it, since they are mapped.
    """
    rows = []
    for method, d in {"auto": auto_width, "least-squares": least_squares_width}.items():
        with tempfile.TemporaryDirectory() as folder:
            write_store(Path(folder) / "private", n, d, 10, has_labels=True)
            write_store(Path(folder) / "public", m, d, 10, has_labels=False)
            line = (
                f"fit {method} {folder}/private --public {folder}/public --out {folder}/release"
                " --budget rho=8 --classes 10 --noise research --seed 0 --allow-research"
            )
            seconds, peak = watched(line.split())
        rows.append([method, f"{d}", f"{seconds:.0f} s", f"{peak / 2**30:.2f} GiB"])
    title = f"Many columns: {n} records, {m} public rows, 10 classes, from stores to a release"
    table(title, ["method", "columns", "whole command", "peak anonymous memory"], rows)


def write_store(folder: Path, n: int, d: int, n_classes: int, has_labels: bool) -> None:
    """Write a store of synthetic rows, through a memory-mapped file."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    raw_file = folder.with_suffix(".raw")
    x = np.memmap(raw_file, np.float16, "w+", shape=(n, d))
    y = np.empty(n, np.int64)
    for start in range(0, n, 65536):
        block = slice(start, min(start + 65536, n))
        # other seeds for rows with labels, so that private and public rows differ
        block_x, block_y = clustered(block.stop - start, d, n_classes, seed=start + has_labels)
        x[block] = block_x
        y[block] = block_y

    if has_labels:
        tacit.EmbeddingStore.write(folder, x, y, classes=n_classes)
    else:
        tacit.EmbeddingStore.write(folder, x)
    raw_file.unlink()


def against_peer(python: Path, n: int, d: int, n_classes: int) -> None:
    """Time prototypes and least squares of dp-learning-ff and of tacit on the same rows.

    Each is the best of three.
    """
    x, y = clustered(n, d, n_classes)
    x = x.astype(np.float64)
    research = {"classes": n_classes, "noise": "research"}
    counts = n // n_classes

    # name, method of the peer, and learner of each comparison
    comparisons: list[tuple[str, str, Any]] = [
        (
            "prototypes: CoinPress",
            "prototypes",
            tacit.CoinPressPrototypes("rho=0.5", counts=counts, steps=PAPER_STEPS, **research),
        ),
        (
            "prototypes: noisy sum",
            "prototypes",
            tacit.NoisySumPrototypes("rho=0.5", **research),
        ),
        (
            "prototypes: noisy sum, secure noise",
            "prototypes",
            tacit.NoisySumPrototypes("rho=0.5", classes=n_classes),
        ),
        ("least squares", "least-squares", tacit.LeastSquares("rho=0.5", **research)),
    ]
    seconds_of_peer = peer_seconds(python, x, y)
    rows = []
    for name, method, learner in comparisons:
        runs = [seconds_by_stage(partial(learner.fit, x, y)) for _ in range(3)]
        ours, stages = min(runs, key=lambda run: run[0])
        longer_stages = [
            f"{label} {seconds:.2f}" for label, seconds in stages.items() if seconds > 0.005
        ]
        theirs = seconds_of_peer[method]
        rows.append(
            [
                name,
                f"{ours:.2f} s",
                ", ".join(longer_stages),
                f"{theirs:.2f} s",
                f"{theirs / ours:.1f}",
            ]
        )
    table(
        f"Against dp-learning-ff 0.0.8 ({n} x {d}, {n_classes} classes, float64 rows)",
        ["learner", "ours", "its stages, in s", "theirs", "times as fast"],
        rows,
    )


def peer_seconds(python: Path, x: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return the seconds of each method of the peer on these rows, in an environment of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npz"
        np.savez(path, x=x, y=y)
        process = subprocess.run([python, PEER, path], check=True, capture_output=True, text=True)
    seconds = {}
    for line in process.stdout.splitlines():
        method, value = line.rsplit(" ", 1)
        seconds[method] = float(value)
    return seconds


def seconds_by_stage(work: Callable[[], object]) -> tuple[float, dict[str, float]]:
    """Return the seconds of a call, and of each stage that reports progress.

    The remaining time is "the rest".
    """
    stages: dict[str, float] = {}
    start = time.perf_counter()
    last_report = start

    def add_stage(label: str, done: int, total: int) -> None:
        """Count the time since the last report for the stage that reports now."""
        nonlocal last_report
        now = time.perf_counter()
        stages[label] = stages.get(label, 0.0) + now - last_report
        last_report = now

    with reporting(add_stage):
        work()
    seconds = time.perf_counter() - start
    return seconds, stages | {"the rest": seconds - sum(stages.values())}


if __name__ == "__main__":
    main()
