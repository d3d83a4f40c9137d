"""Scale: the speed of each operation as a share of the best that this machine reaches in the same
run.

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
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from timing import table, watched

import tacit
from tacit.compute.progress import reporting
from tacit.compute.threads import in_threads
from tacit.learners.prototypes import scores as scoring
from tacit.learners.prototypes.scores.arithmetic import scoring as scoring_of
from tacit.learners.prototypes.scores.arithmetic import speed
from tacit.mechanisms import exponential, gaussian, top_k
from tacit.mechanisms.noise import SecureNoise
from tacit.privacy.unit import Unit

NARROW = (1.54, 1.58)
WIDE = (0.0, 2.0)
PAPER = {"n": 50_000, "m": 1_281_167, "d": 1280, "C": 100}
PEER = Path(__file__).with_name("peers") / "learning_ff.py"


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description="Scale.")
    parser.add_argument(
        "--data", type=Path, help="folder with cifar100/ and tiny_imagenet/ of embeddings"
    )
    parser.add_argument("--paper", type=Path, help="folder for the stores of the paper's size")
    parser.add_argument("--peer", type=Path, help="Python of an environment with dp-learning-ff")
    parser.add_argument("--quick", action="store_true", help="small arrays, for the tests")
    given = parser.parse_args()
    for path in (given.data, given.peer):
        if path is not None and not path.exists():
            parser.error(f"{path} is not there")
    quick = given.quick
    ceilings = Ceilings(256 if quick else 1280, 2**22 if quick else 2**29)
    ceilings.show()
    operations(ceilings, *((200, 3000, 256, 5) if quick else (5_000, 200_000, 1280, 100)))
    selection(*((4, 5000) if quick else (PAPER["C"], PAPER["m"])))
    on_device(*((100, 3000, 64, 5) if quick else (PAPER["n"], 400_000, 1280, 100)))
    errors(*((100, 500, 64, 5) if quick else (2_000, 4_000, 1280, 20)))
    growth(*((100, 4096, 32, 4) if quick else (2_000, 16_384, 256, 20)))
    by_person(*((600, 60, 64, 5) if quick else (50_000, 5_000, 1280, 100)))
    columns(*((200, 500, 64, 72) if quick else (4_000, 16_384, 7_000, 8_192)))
    if given.data is not None:
        accuracy(given.data)
    if given.paper is not None:
        paper(given.paper, ceilings)
    if given.peer is not None:
        against_peer(given.peer, *((500, 32, 5) if quick else (50_000, 1280, 100)))


def timed(work: Callable[[], object], runs: int = 1) -> float:
    """The shortest time of a call in seconds. If there are several runs, the first call is not
    counted.
    """
    times = []
    for _ in range(runs if runs == 1 else runs + 1):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times if runs == 1 else times[1:])


class Ceilings:
    """The best speeds of this machine; each call of `product` measures again.

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
        """Operations per second of a product of two matrices, and the fastest shape."""
        shapes = [(256, 1024)]
        if speed(name, *shapes[0], self.width) > 2e10:  # int8 without support would take minutes
            shapes += [(n, n) for n in (1024, 2048, 4096)]
        return max(
            (speed(name, *shape, self.width), "{} x {} x {}".format(*shape, self.width))
            for shape in shapes
        )

    def thin(self, n_classes: int) -> float:
        """Operations per second of the float64 product of rows with few other rows, as in scores
        and predictions.
        """
        few, rows = np.ones((n_classes, self.width)), np.ones((4096, self.width))
        return 2 * n_classes * len(rows) * self.width / timed(lambda: few @ rows.T, 3)

    def memory(self) -> float:
        """Bytes per second that a plain pass in all threads reads."""
        parts = np.array_split(self.bytes, 64)
        return len(self.bytes) / timed(lambda: max(in_threads(np.max, parts)), 3)

    def disk(self) -> float:
        """Bytes per second when reading a file that is not cached in memory."""
        with tempfile.NamedTemporaryFile() as file:
            file.write(self.bytes.data)
            file.flush()
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            file.seek(0)
            started = time.perf_counter()
            while file.read(2**22):
                pass
            return len(self.bytes) / (time.perf_counter() - started)

    def show(self) -> None:
        """Measure and print all ceilings."""
        rows = []
        for name in ("float32", "float64", *(["int8"] if has_torch() else [])):
            rate, shape = self.product(name)
            rows.append([f"{name} product, {shape}", f"{rate / 1e9:.0f} G operations/s"])
        rows.append(["memory read", f"{self.memory() / 1e9:.1f} GB/s"])
        rows.append(["disk read", f"{self.disk() / 1e9:.1f} GB/s"])
        table("Ceilings", ["what", "rate"], rows)


def has_torch() -> bool:
    """Whether torch is installed, which int8 needs."""
    from importlib.util import find_spec

    return find_spec("torch") is not None


def clustered(n: int, d: int, n_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows around class centres, with cosines of about .55, in float16 as in a store."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    centres = 1.1 + 0.4 * rng.normal(size=(n_classes, d))
    x = np.empty((n, d), np.float16)
    for start in range(0, n, 4096):
        part = slice(start, start + 4096)
        x[part] = centres[y[part]] + rng.standard_normal((len(y[part]), d), dtype=np.float32)
    return x, y


def score(
    public: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    n_classes: int,
    bounds: tuple[float, float],
    name: str,
) -> np.ndarray:
    """Scores in units of the sensitivity."""
    how = scoring_of(public, *bounds, name=name)
    with scoring.scores(how, public, x, y, n_classes) as found:
        return np.asarray(found) / how.sensitivity


def operations(ceilings: Ceilings, n: int, m: int, d: int, n_classes: int) -> None:
    """Time scores, sums, prediction and evaluation beside their ceilings; products are measured
    before and after.
    """
    (x, y), (public, _) = clustered(n, d, n_classes), clustered(m, d, n_classes, 1)
    rows, rates = [], {}
    for name in ("float32", "float64", "int8"):
        if name == "int8" and (
            not has_torch() or ceilings.product("int8")[0] < ceilings.product("float32")[0]
        ):
            why = "slower than float32 on this machine, or torch is not there: not chosen"
            rows.append(["clipped scores, int8", "-", why, "-"])
            continue
        score(public[:4096], x, y, n_classes, NARROW, name)  # compiles
        before = ceilings.product(name)[0]
        seconds = timed(lambda name=name: score(public, x, y, n_classes, NARROW, name))
        ceiling = (before + ceilings.product(name)[0]) / 2
        rate = rates[name] = 2 * n * m * d / seconds
        rows.append(
            [
                f"clipped scores, {name}",
                f"{seconds:.1f} s",
                f"{name} product",
                f"{rate / ceiling:.0%}",
            ]
        )
        if name == "int8":
            # measured after only; the first row has the product before
            ceiling = ceilings.product("float32")[0]
            rows.append(
                ["the same", f"{seconds:.1f} s", "float32 product", f"{rate / ceiling:.0%}"]
            )
            rows.append(
                [
                    "the same",
                    f"{seconds:.1f} s",
                    "clipped scores, float32",
                    f"{rate / rates['float32']:.0%}",
                ]
            )
    before, thin = ceilings.product("float64")[0], ceilings.thin(n_classes)
    seconds = timed(lambda: score(public, x, y, n_classes, WIDE, "auto"), 2)
    ceiling, thin = (
        (before + ceilings.product("float64")[0]) / 2,
        (thin + ceilings.thin(n_classes)) / 2,
    )
    of_shape = f"float64 product, {n_classes} x 4096 x {d}"
    for what, name, rate in (
        ("as if each pair were computed", "float64 product", n / ceiling),
        ("products with class sums alone", "float64 product", n_classes / ceiling),
        ("products with class sums alone", of_shape, n_classes / thin),
    ):
        rows.append(
            [
                f"unclipped scores, {what}",
                f"{seconds:.2f} s",
                name,
                f"{2 * rate * m * d / seconds:.0%}",
            ]
        )
    x, y = clustered(10 * n, d, n_classes)
    parts = [(x[i : i + 8192], y[i : i + 8192]) for i in range(0, len(x), 8192)]
    memory = ceilings.memory()
    seconds = timed(
        lambda: gaussian.class_sums(parts, n_classes=n_classes, width=d, unit_rows=True), 3
    )
    rows.append(
        [
            f"sums of {len(x)} unit rows, exact",
            f"{seconds:.3f} s",
            "memory read (float16)",
            f"{x.nbytes / seconds / memory:.0%}",
        ]
    )
    model = tacit.NoisySumPrototypes("rho=0.5", classes=n_classes, noise="research").fit(
        x[:2000], y[:2000]
    )
    for what, work in (
        ("predict", lambda: model.predict(x)),
        ("score, as evaluate does", lambda: model.score(x, y)),
    ):
        thin = ceilings.thin(n_classes)
        seconds = timed(work, 2)
        rate = 2 * n_classes * len(x) * d / seconds
        thin = (thin + ceilings.thin(n_classes)) / 2
        rows.append([f"{what}, {len(x)} rows", f"{seconds:.3f} s", of_shape, f"{rate / thin:.0%}"])
    table(
        f"Share of the ceiling ({n} private x {m} public x {d}, {n_classes} classes)",
        ["operation", "time", "ceiling", "share"],
        rows,
    )


def on_device(n: int, m: int, d: int, n_classes: int) -> None:
    """Time clipped scores on a CUDA device, if there is one, beside its int8 product and the
    processor.
    """
    if not has_torch():
        return
    import torch

    if not torch.cuda.is_available():
        return
    square = torch.randint(-127, 128, (8192, d), dtype=torch.int8, device="cuda")

    def products() -> None:
        for _ in range(100):
            torch._int_mm(square, square.T)
        torch.cuda.synchronize()

    ceiling = 100 * 2 * 8192**2 * d / timed(products, 3)
    (x, y), (public, _) = clustered(n, d, n_classes), clustered(m, d, n_classes, 1)
    found = {}
    for name in ("int8-cuda", "int8", "float32"):
        score(public[:4096], x, y, n_classes, NARROW, name)  # compiles
        found[name] = timed(
            partial(score, public, x, y, n_classes, NARROW, name), 2 if name == "int8-cuda" else 1
        )
    rows = [
        [
            name,
            f"{seconds:.2f} s",
            f"{2 * n * m * d / seconds / ceiling:.0%}",
            f"{seconds / found['int8-cuda']:.1f}",
        ]
        for name, seconds in found.items()
    ]
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


def selection(n_classes: int, m: int) -> None:
    """Time secure selection by integer scores."""
    scores = np.random.default_rng(0).integers(0, 500 * 2**20, m)
    rows = []
    noise = SecureNoise()
    select = partial(exponential.select, scores, sensitivity=2**20, epsilon=1.0, noise=noise)
    for what, choose in (
        ("k = 1", partial(select, selection="exponential")),
        ("k = 1, permute-and-flip", partial(select, selection="permute-and-flip")),
        (
            "k = 5",
            partial(top_k.select_set, scores, 5, sensitivity=2**20, epsilon=1.0, noise=noise),
        ),
    ):
        seconds = timed(lambda choose=choose: [choose() for _ in range(n_classes)])
        rows.append([what, f"{seconds:.1f} s"])
    table(f"Secure selection, {n_classes} classes x {m} candidates", ["what", "time"], rows)


def errors(n: int, m: int, d: int, n_classes: int) -> None:
    """The error of scores against float64 arithmetic, in units of the sensitivity (the effect of
    one record).
    """
    (x, y), (public, _) = clustered(n, d, n_classes), clustered(m, d, n_classes, 1)
    exact = score(public, x, y, n_classes, NARROW, "float64")
    best = exact.argmax(axis=1)
    rows = []
    for name in ("float32", *(["int8"] if has_torch() else [])):
        arithmetic = scoring_of(public, *NARROW, name=name).arithmetic
        found = score(public, x, y, n_classes, NARROW, name)
        apart = np.abs(found - exact)
        same = (found.argmax(axis=1) == best).mean()
        of_cosine = f"{arithmetic.scale:.0f}", f"{arithmetic.error(*NARROW):.2%}"
        of_scores = f"{apart.max():.3f}", f"{apart.mean():.4f}", f"{exact.max():.0f}", f"{same:.0%}"
        rows.append([name, *of_cosine, *of_scores])
    header = ["arithmetic", "norm of a row", "error of a cosine, of the window"]
    header += ["largest error", "mean error", "largest score", "classes with the same best"]
    table(f"Scores against float64 ({n} x {m} x {d}, window {list(NARROW)})", header, rows)


def growth(n: int, m: int, d: int, n_classes: int) -> None:
    """Time at four times one size over time at that size: 4 means proportional, 1 means no
    growth.
    """
    sizes = {"n": n, "m": m, "d": d, "C": n_classes}
    rows = []
    for name, bounds in (
        ("clipped scores", NARROW),
        ("unclipped scores", WIDE),
        ("exact sums", None),
    ):
        base = of_size(bounds, **sizes)
        rows.append(
            [
                name,
                *(
                    f"{of_size(bounds, **(sizes | {key: 4 * size})) / base:.1f}"
                    for key, size in sizes.items()
                ),
            ]
        )
    table(
        f"Growth: time ratio at four times the size, from {sizes}",
        ["operation", *(f"4 {key}" for key in sizes)],
        rows,
    )


def of_size(bounds: tuple[float, float] | None, n: int, m: int, d: int, C: int) -> float:
    """Seconds of an operation at these sizes."""
    x, y = clustered(n, d, C)
    if bounds is None:
        return timed(lambda: gaussian.class_sums([(x, y)], n_classes=C, width=d, unit_rows=True), 5)
    public, _ = clustered(m, d, C, 1)
    return timed(lambda: score(public, x, y, C, bounds, "float32"), 3)


def by_person(n: int, people: int, d: int, n_classes: int) -> None:
    """Time of fits that protect persons over that of the same fit per record, by place and by
    number of records.
    """
    learners = {
        "noisy-sum": tacit.NoisySumPrototypes,
        "least-squares": tacit.LeastSquares,
        "gradient-descent, 5 steps": partial(tacit.GradientDescent, steps=5),
    }
    x, y = clustered(n, d, n_classes)
    many = [number for number in (1, 2, 5, 100, 1000) if number <= n // 5]
    scattered = {
        number: np.random.default_rng(0).permutation(np.arange(n) // number)
        for number in (*many, n // people)
    }
    ids = scattered[n // people]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        np.save(path, x)
        mapped = np.load(path, mmap_mode="r")
        fits = [
            (x, None),
            (x, np.sort(ids)),
            (x, ids),
            (mapped, ids),
            *((x, scattered[number]) for number in many),
        ]
        places, growing = [], []
        for name, learner in learners.items():
            kinds = {
                unit: learner("rho=0.5", classes=n_classes, noise="research", unit=unit)
                for unit in Unit
            }
            works = [
                partial(
                    kinds[Unit.ADD_REMOVE if persons is None else Unit.ADD_REMOVE_PERSON].fit,
                    rows,
                    y,
                    persons,
                )
                for rows, persons in fits
            ]
            alone, *others = in_turn(works)
            ratios = [f"{seconds / alone:.2f}" for seconds in others]
            places.append([name, f"{alone:.2f} s", *ratios[:3]])
            growing.append([name, *ratios[3:]])
    title = (
        f"Persons: time over that per record ({n} x {d} float16, {n_classes} classes, research"
        " noise)"
    )
    header = ["fit", "per record", "persons sorted", "scattered", "scattered, memory mapped"]
    table(f"{title}, {people} persons", header, places)
    table(f"{title}, scattered, by records per person", ["fit", *map(str, many)], growing)


def in_turn(works: list[Callable[[], object]]) -> list[float]:
    """The shortest time of each call in seconds, of calls in turn, so that what slows the machine
    slows all.
    """
    return [
        min(times)
        for times in zip(*([timed(work) for work in works] for _ in range(3)), strict=True)
    ]


def accuracy(data: Path) -> None:
    """The effect of each arithmetic's rounding on a model, at the narrowest clip window and without
    noise.

    Models learn from all records, and from each fifth of them, since rounding changes a model only
    at near ties.
    """
    x, y, test, truth = (
        np.load(data / "cifar100" / f"{part}.npy")
        for part in ("train_x", "train_y", "test_x", "test_y")
    )
    public = np.load(data / "tiny_imagenet" / "test_x.npy", mmap_mode="r")
    parts = [slice(None), *(slice(start, start + 10_000) for start in range(0, len(x), 10_000))]
    found: dict[str, np.ndarray] = {}
    rows = []
    for name in ("float32", "float64", *(["int8"] if has_torch() else [])):
        model = tacit.PublicPrototypes(
            "epsilon=inf",
            public=public,
            classes=100,
            d_min=NARROW[0],
            d_max=NARROW[1],
            arithmetic=name,
        )
        found[name] = np.array([model.fit(x[part], y[part]).score(test, truth) for part in parts])
        every, fifths = found[name][0], found[name][1:]
        apart = np.abs(found[name] - found["float32"]).max()
        rows.append([name, f"{every:.4f}", f"{fifths.mean():.4f}", f"{apart:.4f}"])
    table(
        f"Accuracy on CIFAR-100 at the window {list(NARROW)}, without noise",
        [
            "arithmetic",
            f"{len(x)} records",
            "10000 records, mean of five",
            "farthest from float32 of the six",
        ],
        rows,
    )


def paper(folder: Path, ceilings: Ceilings) -> None:
    """Time the command line from stores on disk to a release, at the size of the paper.

    A command resumes the work of an interrupted run, so its time counts from there. All files of
    the stores are read once before, so that neither command waits for the disk.
    """
    n, m, d, n_classes = PAPER.values()
    for name, rows in (("private", n), ("public", m)):
        if not (folder / name).exists():
            write_store(folder / name, rows, d, n_classes, labelled=name == "private")
        for file in filter(Path.is_file, (folder / name).rglob("*")):
            file.read_bytes()
    rows, seconds = [], {}
    for what, bounds in (("unclipped", WIDE), ("clipped", NARROW)):
        public = tacit.EmbeddingStore.open(folder / "public").x
        name = scoring_of(public, *bounds).arithmetic.name
        before = ceilings.product(name)[0]
        line = (
            f"fit public {folder}/private --public {folder}/public --budget epsilon=1 --classes"
            f" {n_classes} --d-min {bounds[0]} --d-max {bounds[1]} --out {folder}/release-{what}"
            " --force"
        )
        seconds[what], peak = watched(line.split())
        ceiling = (before + ceilings.product(name)[0]) / 2
        share = 2 * n * m * d / seconds[what] / ceiling
        rows.append(
            [f"{what}, {name}", f"{seconds[what]:.0f} s", f"{share:.0%}", f"{peak / 2**30:.2f} GiB"]
        )
    title = f"{n} private x {m} public x {d}, {n_classes} classes, from stores to a release"
    table(
        title,
        [
            "scores",
            "whole command",
            "share of the product's ceiling, as if each pair were computed",
            "peak anonymous memory",
        ],
        rows,
    )
    print(
        f"\nUnclipped takes 1/{seconds['clipped'] / seconds['unclipped']:.0f} of clipped.",
        flush=True,
    )


def columns(n: int, m: int, of_auto: int, of_least_squares: int) -> None:
    """Peak memory of methods with d x d matrices at many columns d; the stores are not in it."""
    rows = []
    for method, d in (("auto", of_auto), ("least-squares", of_least_squares)):
        with tempfile.TemporaryDirectory() as folder:
            write_store(Path(folder) / "private", n, d, 10, labelled=True)
            write_store(Path(folder) / "public", m, d, 10, labelled=False)
            line = (
                f"fit {method} {folder}/private --public {folder}/public --out {folder}/release"
                " --budget rho=8"
            )
            line += " --classes 10 --noise research --seed 0 --allow-research"
            seconds, peak = watched(line.split())
        rows.append([method, f"{d}", f"{seconds:.0f} s", f"{peak / 2**30:.2f} GiB"])
    title = f"Many columns: {n} records, {m} public rows, 10 classes, from stores to a release"
    table(title, ["method", "columns", "whole command", "peak anonymous memory"], rows)


def write_store(folder: Path, rows: int, d: int, n_classes: int, labelled: bool) -> None:
    """Write a store of synthetic rows, through a memory-mapped file."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    raw = folder.with_suffix(".raw")
    x = np.memmap(raw, np.float16, "w+", shape=(rows, d))
    y = np.empty(rows, np.int64)
    for start in range(0, rows, 65536):
        part = slice(start, min(start + 65536, rows))
        x[part], y[part] = clustered(part.stop - start, d, n_classes, seed=start + labelled)
    tacit.EmbeddingStore.write(
        folder, x, y if labelled else None, classes=n_classes if labelled else None
    )
    raw.unlink()


def against_peer(python: Path, n: int, d: int, n_classes: int) -> None:
    """Time prototypes and least squares of dp-learning-ff and of tacit on the same rows, each the
    best of three.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npz"
        x, y = clustered(n, d, n_classes)
        np.savez(path, x=x.astype(np.float64), y=y)
        wide = x.astype(np.float64)
        theirs = dict(
            line.rsplit(" ", 1)
            for line in subprocess.run(
                [python, PEER, path], check=True, capture_output=True, text=True
            ).stdout.splitlines()
        )
        rows = []
        for name, peer, learner in (
            (
                "prototypes: CoinPress",
                "prototypes",
                tacit.CoinPressPrototypes(
                    "rho=0.5", classes=n_classes, counts=n // n_classes, noise="research"
                ),
            ),
            (
                "prototypes: noisy sum",
                "prototypes",
                tacit.NoisySumPrototypes("rho=0.5", classes=n_classes, noise="research"),
            ),
            (
                "prototypes: noisy sum, secure noise",
                "prototypes",
                tacit.NoisySumPrototypes("rho=0.5", classes=n_classes),
            ),
            (
                "least squares",
                "least-squares",
                tacit.LeastSquares("rho=0.5", classes=n_classes, noise="research"),
            ),
        ):
            runs = (stages(lambda learner=learner: learner.fit(wide, y)) for _ in range(3))
            ours, parts = min(runs, key=lambda run: run[0])
            each = ", ".join(
                f"{label} {seconds:.2f}" for label, seconds in parts.items() if seconds > 0.005
            )
            other = float(theirs[peer])
            rows.append([name, f"{ours:.2f} s", each, f"{other:.2f} s", f"{other / ours:.1f}"])
    table(
        f"Against dp-learning-ff 0.0.8 ({n} x {d}, {n_classes} classes, float64 rows)",
        ["learner", "ours", "its stages, in s", "theirs", "times as fast"],
        rows,
    )


def stages(work: Callable[[], object]) -> tuple[float, dict[str, float]]:
    """Seconds of a call, and of each stage that reports progress; the remaining time is "the
    rest".
    """
    parts: dict[str, float] = {}
    started = last = time.perf_counter()

    def reported(label: str, done: int, total: int) -> None:
        nonlocal last
        now = time.perf_counter()
        parts[label] = parts.get(label, 0.0) + now - last
        last = now

    with reporting(reported):
        work()
    whole = time.perf_counter() - started
    return whole, parts | {"the rest": whole - sum(parts.values())}


if __name__ == "__main__":
    main()
