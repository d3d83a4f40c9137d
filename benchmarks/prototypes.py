"""Speed of the main commands as ratios to a named peer in the same run; scale.py compares with the
machine's best.

Prints Markdown. Every time is the median of several runs after a warm-up. `--quick` uses small
arrays, for the tests.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable

import numpy as np
from sklearn.neighbors import NearestCentroid
from timing import processor_seconds, seconds, table

import tacit
from tacit.mechanisms import deviates, exponential, gaussian, top_k
from tacit.mechanisms.limbs import Limbs
from tacit.mechanisms.noise import ResearchNoise, SecureNoise


def clustered(
    rng: np.random.Generator, n: int, d: int, n_classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows around class centres, in float16 as in a store."""
    y = rng.integers(0, n_classes, n)
    return (rng.normal(size=(n_classes, d))[y] + rng.normal(size=(n, d))).astype(np.float16), y


def against_peers(n: int, d: int, n_classes: int) -> None:
    """Time complete fits and predictions against scikit-learn's NearestCentroid on the same
    rows.
    """
    x, y = clustered(np.random.default_rng(0), n, d, n_classes)
    wide = x.astype(np.float64)
    peer = NearestCentroid()
    fit, predict = seconds(lambda: peer.fit(wide, y), 3), seconds(lambda: peer.predict(wide), 3)
    rows = []
    for name, learner in (
        ("NoisySumPrototypes, secure", tacit.NoisySumPrototypes("rho=0.5", classes=n_classes)),
        (
            "NoisySumPrototypes, research",
            tacit.NoisySumPrototypes("rho=0.5", classes=n_classes, noise="research"),
        ),
        (
            "CoinPressPrototypes, research",
            tacit.CoinPressPrototypes("rho=0.5", classes=n_classes, noise="research"),
        ),
    ):
        own_fit = seconds(lambda learner=learner: learner.fit(x, y), 3)
        own_predict = seconds(lambda learner=learner: learner.predict(x), 3)
        rows.append(
            [name, f"{own_fit / fit:.2f}", f"{own_predict / predict:.2f}", f"{own_fit:.3f} s"]
        )
    table(
        f"Time over that of scikit-learn's NearestCentroid ({n} x {d}, {n_classes} classes; theirs"
        f" {fit:.3f} s fit)",
        ["learner", "fit, ratio", "predict, ratio", "fit"],
        rows,
    )


def noise(n: int) -> None:
    """Time exact secure noise against float64 research noise of the same shape."""
    values = np.zeros(n, dtype=np.int64)
    rng = np.random.default_rng(0)
    utilities = np.round(rng.normal(100, 20, n) * 2**20).astype(np.int64)
    secure, research = SecureNoise(), ResearchNoise(0)
    rows = []
    for name, draw in (
        ("Gaussian", lambda source: gaussian_draw(source, values)),
        (
            "exponential mechanism",
            lambda source: exponential.select(
                utilities, sensitivity=2**20, epsilon=1.0, noise=source, selection="exponential"
            ),
        ),
        (
            "top-5",
            lambda source: top_k.select_set(
                utilities, 5, sensitivity=2**20, epsilon=1.0, noise=source
            ),
        ),
    ):
        slow = seconds(lambda draw=draw: draw(secure), 5) / n
        fast = seconds(lambda draw=draw: draw(research), 5) / n
        rows.append([name, f"{slow / fast:.0f}", f"{slow * 1e6:.2f}", f"{fast * 1e6:.3f}"])
    table(
        f"Secure over research noise ({n} values)",
        ["draw", "ratio", "secure, us a value", "research, us"],
        rows,
    )


def exact_noise(n: int) -> None:
    """Speed, random bits and rejections of exact Gaussian and Laplace noise, on one core."""
    rows = []
    for name, add, limbs in (
        ("Gaussian", deviates.add_gaussian_noise, deviates.LIMBS_OF_NORMAL),
        ("Laplace", deviates.add_laplace_noise, deviates.LIMBS_OF_EXPONENTIAL),
    ):
        for scale in (1.0, 2.0**32, 2.0**36):
            values = np.zeros(n, dtype=np.int64)
            time_of_draw = processor_seconds(lambda add=add, values=values, s=scale: add(values, s))
            stream = Limbs(int(2 * n * limbs))
            n_slow = add(np.zeros(n, dtype=np.int64), scale, stream)
            rows.append(
                [
                    f"{name}, scale {scale:g}",
                    f"{n / time_of_draw / 1e6:.1f}",
                    f"{stream.position * 2 / n:.1f}",
                    str(n_slow),
                ]
            )
    table(
        f"Exact noise ({n} numbers, one core)",
        [
            "noise",
            "million numbers a second of processor time",
            "bytes of random bits a number",
            "numbers in arithmetic of any precision",
        ],
        rows,
    )


def fits_by_noise(n: int, d: int, n_classes: int) -> None:
    """Time fits with secure noise over the same with research noise, in turns."""
    x, y = clustered(np.random.default_rng(0), n, d, n_classes)
    public = np.random.default_rng(1).normal(size=(1000, d)).astype(np.float16)
    rows = []
    for name, make in (
        ("noisy-sum", tacit.NoisySumPrototypes),
        ("gradient-descent", tacit.GradientDescent),
        ("auto", lambda *args, **facts: tacit.AutoPrototypes(*args, public=public, **facts)),
    ):
        secure = make("rho=0.5", classes=n_classes)
        research = make("rho=0.5", classes=n_classes, noise="research")
        times = {"secure": [], "research": []}
        for _ in range(3):
            times["secure"].append(seconds(lambda secure=secure: secure.fit(x, y), 1))
            times["research"].append(seconds(lambda research=research: research.fit(x, y), 1))
        slow, fast = min(times["secure"]), min(times["research"])
        rows.append([name, f"{slow / fast:.2f}", f"{slow:.3f} s", f"{fast:.3f} s"])
    table(
        f"Fits with secure over research noise ({n} x {d}, {n_classes} classes)",
        ["fit", "ratio", "secure", "research"],
        rows,
    )


def gaussian_draw(source: SecureNoise | ResearchNoise, values: np.ndarray) -> np.ndarray:
    """Gaussian noise at the resolution of the learners."""
    return source.gaussian(values, gaussian.UNIT)


def growth(n: int, m: int, d: int, n_classes: int) -> None:
    """Time at four times one size over time at that size: 4 means proportional, 1 means no
    growth.
    """
    sizes = {"n": n, "m": m, "d": d, "C": n_classes}
    works = {
        "noisy-sum": noisy_sum_fit,
        "public, unclipped": public_fit,
        "public, clipped": clipped_fit,
    }
    rows = []
    for name, work in works.items():
        base = seconds(work(**sizes), 3)
        rows.append(
            [
                name,
                *(
                    f"{seconds(work(**(sizes | {key: 4 * sizes[key]})), 3) / base:.1f}"
                    for key in sizes
                ),
            ]
        )
    title = (
        f"Growth: time ratio at four times the size, from n={n}, m={m}, d={d}, C={n_classes}"
        " (research noise)"
    )
    table(title, ["fit", *(f"4 {key}" for key in sizes)], rows)


def noisy_sum_fit(n: int, m: int, d: int, C: int) -> Callable[[], object]:
    """A fit that does not read public rows."""
    x, y = clustered(np.random.default_rng(0), n, d, C)
    learner = tacit.NoisySumPrototypes("rho=0.5", classes=C, noise="research", random_state=0)
    return lambda: learner.fit(x, y)


def public_fit(
    n: int, m: int, d: int, C: int, d_min: float = 0.0, d_max: float = 2.0
) -> Callable[[], object]:
    """A fit that scores every public row, unclipped by default."""
    x, y = clustered(np.random.default_rng(0), n, d, C)
    public = np.random.default_rng(1).normal(size=(m, d)).astype(np.float16)
    learner = tacit.PublicPrototypes(
        "rho=0.5",
        public=public,
        classes=C,
        d_min=d_min,
        d_max=d_max,
        noise="research",
        random_state=0,
    )
    return lambda: learner.fit(x, y)


def clipped_fit(n: int, m: int, d: int, C: int) -> Callable[[], object]:
    """A fit that scores every public row under a clip window."""
    return public_fit(n, m, d, C, d_min=0.9, d_max=1.3)


def start_up() -> None:
    """Time `import tacit` and the help of the command line against an empty Python process."""
    empty = seconds(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True), 5)
    shown = [sys.executable, "-m", "tacit.cli.main", "--help"]
    helping = seconds(lambda: subprocess.run(shown, check=True, stdout=subprocess.DEVNULL), 5)
    importing = seconds(
        lambda: subprocess.run([sys.executable, "-c", "import tacit"], check=True), 5
    )
    table(
        "Start-up over that of an empty Python",
        ["command", "ratio", "time"],
        [
            ["import tacit", f"{importing / empty:.1f}", f"{importing:.2f} s"],
            ["tacit --help", f"{helping / empty:.1f}", f"{helping:.2f} s"],
        ],
    )


def main() -> None:
    """Run all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small arrays")
    small = parser.parse_args().quick
    against_peers(*((500, 16, 5) if small else (50_000, 256, 100)))
    noise(500 if small else 100_000)
    exact_noise(500 if small else 1_000_000)
    fits_by_noise(*((500, 16, 5) if small else (50_000, 1280, 100)))
    growth(*((200, 200, 8, 4) if small else (4_000, 4_000, 128, 20)))
    start_up()


if __name__ == "__main__":
    main()
