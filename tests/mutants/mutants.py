"""The mutants: one edit of one line each, and the tests that must notice it."""

from dataclasses import dataclass

MECHANISMS, PROTOTYPES, COMMON, PRIVACY = "mechanisms", "learners/prototypes", "learners/common", "privacy"


@dataclass(frozen=True)
class Mutant:
    """Replace `old` by `new` in `file`; `tests` must then fail."""

    name: str
    file: str
    old: str
    new: str
    tests: str


def _of(folder: str, module: str, name: str, old: str, new: str, tests: str = "") -> Mutant:
    return Mutant(name, f"src/tacit/{folder}/{module}.py", old, new, f"tests/{tests or f'{folder}/test_{module}.py'}")


MUTANTS = [
    _of(MECHANISMS, "gaussian", "Gaussian: sensitivity halved",
        "scale=noise_multiplier * UNIT", "scale=noise_multiplier * UNIT / 2"),
    _of(MECHANISMS, "gaussian", "Gaussian: factor 2 added",
        "scale=noise_multiplier * UNIT", "scale=noise_multiplier * UNIT * 2"),
    _of(MECHANISMS, "gaussian", "Gaussian: an event less than was done",
        "Parallel(Gaussian(noise_multiplier)", "Parallel(Gaussian(2 * noise_multiplier)"),
    _of(MECHANISMS, "rounding", "rows are not clipped", "np.maximum(norms, 1.0)", "np.maximum(norms * 0, 1.0)"),
    _of(MECHANISMS, "rounding", "rows that overflow count", "scaled[~np.isfinite(norms)] = 0.0", "pass"),
    _of(MECHANISMS, "rounding", "a row's bits depend on the layout", "rows = np.ascontiguousarray(rows)", "rows = rows + 0"),
    _of(MECHANISMS, "rounding", "rows are rounded to nearest", "np.trunc(", "np.rint("),
    _of(MECHANISMS, "rounding", "rows are rounded up", "np.trunc(", "np.ceil("),
    _of(MECHANISMS, "exponential", "EM: sensitivity halved",
        "scale = sensitivity / epsilon", "return sensitivity / epsilon / 2"),
    _of(MECHANISMS, "exponential", "EM: factor 2 added",
        "scale = sensitivity / epsilon", "scale = 2 * sensitivity / epsilon"),
    _of(MECHANISMS, "exponential", "EM: scale rounded to the unsafe side",
        "scale = math.nextafter(scale, math.inf)", "break"),
    _of(MECHANISMS, "exponential", "permute-and-flip drawn as EM",
        '"permute-and-flip": "exponential"', '"permute-and-flip": "gumbel"'),
    _of(MECHANISMS, "exponential", "permute-and-flip charged as bounded range",
        'if selection == "exponential"', "if True"),
    _of(MECHANISMS, "top_k", "top-k: C(y, k) for C(y-1, k-1)",
        "above = np.arange(k - 1, m, dtype=np.float64)", "above, k = np.arange(k, m + 1, dtype=np.float64), k + 1"),
    _of(MECHANISMS, "top_k", "top-k: ranks without their counts", "np.rint(scale * log_binomials(", "np.rint(0 * log_binomials("),
    _of(MECHANISMS, "top_k", "top-k: factor 2 added",
        "scale = (sensitivity + 2) / float(spend)", "scale = 2 * (sensitivity + 2) / float(spend)"),
    _of(MECHANISMS, "top_k", "top-k: sensitivity halved",
        "while Fraction(scale) * spend < sensitivity + 2:", "scale /= 2\n    while False:"),
    _of(MECHANISMS, "top_k", "top-k: fill is not random", "noise.subset(worst, k - 1)", "np.arange(k - 1)"),
    _of(MECHANISMS, "top_k", "top-k: draw order leaves", "return np.sort(ranked[chosen])", "return ranked[chosen]"),
    _of(MECHANISMS, "top_k", "top-k: true top set never drawn", "worst = k - 1 +", "worst = min(k, len(scores) - 1) +"),
    _of(MECHANISMS, "noise", "float32 Gumbel",
        "draw = self.generator.standard_exponential(len(scores))",
        "draw = -np.log1p(-self.generator.random(len(scores), dtype=np.float32))",
        "mechanisms/test_exponential.py::test_far_candidates_win_their_share_among_a_million"),
    _of(MECHANISMS, "noise", "research noise reuses its seed",
        "self.generator.standard_normal(values.shape)", "np.random.default_rng(0).standard_normal(values.shape)",
        "mechanisms/test_gaussian.py"),
    _of(MECHANISMS, "noise", "selection reuses its seed",
        "draw = self.generator.standard_exponential(", "draw = np.random.default_rng(0).standard_exponential(",
        "mechanisms/test_exponential.py::test_samplers_draw_what_is_claimed"),
    _of(MECHANISMS, "noise", "one draw for all classes",
        "self.generator.standard_normal(values.shape)", "self.generator.standard_normal(values.shape[-1])",
        "mechanisms/test_gaussian.py"),
    _of(MECHANISMS, "noise", "secure fill is seeded",
        "secrets.SystemRandom().sample(", '__import__("random").Random(0).sample('),
    _of(MECHANISMS, "noise", "a seed reaches secure noise", "return SecureNoise()", "return ResearchNoise(random_state)"),
    _of(PROTOTYPES, "scores", "scores are not clipped", "np.clip(products, low - NORM**2, high - NORM**2, out=products)", "pass"),
    _of(PROTOTYPES, "scores", "float32 products", "rows @ candidates[tile].T",
        "(rows.astype(np.float32) @ candidates[tile].T.astype(np.float32)).astype(np.float64)"),
    _of(PROTOTYPES, "scores", "zero rows count", "kept = rows.any(axis=1)", "kept = np.ones(len(rows), dtype=bool)"),
    _of(PROTOTYPES, "public", "Public: sensitivity halved",
        "self._choose(row, high - low, epsilon, noise)", "self._choose(row, (high - low) // 2, epsilon, noise)"),
    _of(PROTOTYPES, "public", "Public: utilities leave under secure noise",
        'if self.noise == "research" or math.isinf(epsilon):', "if True:"),
    _of(PROTOTYPES, "noisy_sum", "noisy sum: rows are not normalised", "((unit_rows(rows), own)", "((rows, own)"),
    _of(PROTOTYPES, "coinpress", "CoinPress: noise for another radius",
        "centre = centre + sums * (clip / counts)[:, None]", "centre = centre + sums * (2 * clip / counts)[:, None]"),
    _of(PROTOTYPES, "coinpress", "CoinPress: the realised count",
        "counts = np.maximum(noisy[:, 0], 1.0)", "counts = np.maximum(np.bincount(labels, minlength=len(noisy)), 1.0)"),
    _of(PROTOTYPES, "coinpress", "CoinPress: the count is not paid for",
        "math.sqrt((1 - count_share) * share)", "math.sqrt(share)", "contracts/test_learners.py"),
    _of(PRIVACY, "events", "zCDP of an EM halved", "return self.epsilon**2 / 8", "return self.epsilon**2 / 16"),
    _of(PRIVACY, "events", "replacing costs one change", "return Exponential(2 * self.epsilon)", "return Exponential(self.epsilon)"),
    _of(PRIVACY, "events", "a changed label touches one class",
        'return 2 * self if self.over == "classes"', 'return self if self.over == "classes"'),
    _of(PRIVACY, "events", "a composition forgets repetitions", "counts[part] = counts.get(part, 0) + n", "counts[part] = n"),
    _of(PRIVACY, "budget", "replace is read as add/remove", "Unit.REPLACE: 2.0, Unit.CHANGE_LABEL: math.sqrt(2)",
        "Unit.REPLACE: 1.0, Unit.CHANGE_LABEL: math.sqrt(2)"),
    _of(PRIVACY, "accounting", "bounded range taken too narrow", "epsilon_ = event.epsilon", "epsilon_ = event.epsilon / 2", "privacy/test_events.py"),
    _of(PRIVACY, "accounting", "a composed loss distribution forgets its count", "(pmf).self_compose(count)", "(pmf)", "privacy/test_events.py"),
    _of(PRIVACY, "guarantee", "the statement rounds down", "rounding=ROUND_CEILING", 'rounding="ROUND_FLOOR"', "releases"),
    _of(COMMON, "metrics", "the minority are the largest classes", "np.argsort(sizes, kind", "np.argsort(-sizes, kind"),
    _of(COMMON, "metrics", "the interval is too narrow", "balanced - 1.96 * deviation", "balanced - 0.1 * deviation"),
    _of("releases", "fitted", "a research release passes as secure", "stamp(guarantee, clf.noise_)", 'stamp(guarantee, "secure")', "releases"),
    _of("compute", "atomic", "a ledger is lost with its folder", "path.rglob(KEPT)", "()"),
    _of(PRIVACY, "ledger", "the ledger is not locked", "fcntl.flock(file, fcntl.LOCK_EX)", "pass"),
    _of(PRIVACY, "ledger", "charges are not converted", "charge.guarantee.to(self.unit).event", "charge.guarantee.event"),
]  # fmt: skip
