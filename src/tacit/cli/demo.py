"""`tacit demo`: the main job on data that ships with the dependencies."""

from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.common import say, utility_of
from tacit.cli.options import Force, Out
from tacit.compute.progress_display import shown_progress

if TYPE_CHECKING:
    from tacit.models.metrics import Scores
    from tacit.releases.release import Release
    from tacit.report.demo import Digits

BUDGET = "rho=0.5"


def demo(*, out: Out = Path("demo"), seeds: int = 5, force: Force = False) -> None:
    """Compare learners on imbalanced digits, then make, check and evaluate a real release.

    The page shows it all to somebody who sees it for the first time.
    It needs the extra experiments.

    Parameters
    ----------
    out
        Folder for stores, table, picture, release and page.
    seeds
        Fits per learner and budget in the comparison, at least 1.
    """
    from tacit.compute.atomic import KEPT, atomic_folder
    from tacit.compute.extras import check_installed
    from tacit.errors import InputError
    from tacit.report import charts, paper
    from tacit.report.accuracy import both_measures
    from tacit.report.demo import IMBALANCE, compare, csv, digits, medians, worth_of_public_rows
    from tacit.report.demo_page import demo_page

    if seeds < 1:
        raise InputError(f"--seeds {seeds} must be at least 1; leave it out for 5")
    check_installed("altair")
    with atomic_folder(out, force=force, ours=_is_demo) as folder:
        data = digits()
        records = data.records
        say(
            f"Digits: {len(records.y)} private records in 10 classes at imbalance ratio"
            f" {IMBALANCE:g}, {len(data.public)} public rows without labels,"
            f" {len(records.test_y)} test rows.\n"
        )

        with shown_progress():
            results = compare(data, seeds)
            worth = worth_of_public_rows(data, seeds)

        header, rows = medians(results)
        say(
            "Balanced / minority accuracy, medians over seeds (research noise: for comparison, not"
            " for release)"
        )
        for row in [header, *rows]:
            say("  ".join(f"{cell:>14}" for cell in row))

        (folder / "results.csv").write_text(csv(results), encoding="utf-8")
        figure = both_measures(results, f"digits, imbalance ratio {IMBALANCE:g}")
        (folder / "accuracy.png").write_bytes(paper.image(charts.lines, figure, "png"))

        release, scores = _release(data, folder)
        page = demo_page(data, results, worth, release, scores, str(out))
        (folder / "page.html").write_text(page, encoding="utf-8")

    for ledger in sorted(out.rglob(KEPT)):
        say(f"\n{ledger} stays: what was spent on these records stays spent")
    say(
        f"\n{out}/page.html shows all of this; {out}/release may be published; try:\n"
        f"  tacit inspect {out}/release\n  tacit evaluate {out}/release {out}/stores/test"
    )


def _is_demo(folder: Path) -> bool:
    return {path.name for path in folder.iterdir()} == {
        "accuracy.png",
        "page.html",
        "release",
        "results.csv",
        "stores",
    }


def _release(data: "Digits", folder: Path) -> "tuple[Release, Scores]":
    """Fit with secure noise, save, load again, check, evaluate, and record the figures in the
    card.
    """
    import numpy as np

    from tacit.data.embeddings import EmbeddingStore
    from tacit.learners.prototypes.auto import AutoPrototypes
    from tacit.models.metrics import evaluate
    from tacit.releases.release import Release

    records, stores = data.records, folder / "stores"
    stores.mkdir()
    private = EmbeddingStore.write(
        stores / "private", records.x, records.y, classes=10, identity="digits-demo"
    )
    EmbeddingStore.write(
        stores / "public", data.public, identity="digits-demo-public", declared_public=True
    )
    test = EmbeddingStore.write(
        stores / "test",
        records.test_x,
        records.test_y,
        classes=10,
        identity="digits-demo-test",
        declared_public=True,
    )
    learner = AutoPrototypes(BUDGET, classes=private.classes, public=data.public)
    learner.fit(private.x, private.labels)
    Release.of(learner, name="digits demo", intended_use="demonstration").save(folder / "release")
    release = Release.load(folder / "release").verify()
    scores = evaluate(np.asarray(test.labels), release.predict(test.x), release.classes)
    release = release.with_utility(utility_of(scores, test.identity, len(test.x)))
    release.save(folder / "release", force=True)
    say(
        f"\nOne fit with secure noise at {BUDGET}, saved, loaded, verified: balanced accuracy"
        f" {scores.balanced:.3f}"
    )
    say(release.guarantee.statement())
    return release, scores
