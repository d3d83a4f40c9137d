"""Write the claims in docs/papers.md and the pictures of the headline from the stored results.

python benchmarks/papers/page.py [--check]

`--check` fails where the page is not what the stored results give, and names the plans that changed
since they were run.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from claims import (
    CLAIMS,
    LABELS,
    NOT_TRIED,
    PATE,
    PROTOTYPES,
    Claim,
    public_beats_probe,
    public_beats_probe_on_small_classes,
)
from findings import Finding, epsilon_words, private_budgets, share
from stored import (
    BENCHMARKS,
    QUICK,
    ROOT,
    Cells,
    Row,
    benchmark_rows,
    file_hash,
    plan_hash,
    read_rows,
    read_runs,
)

from tacit.experiments.results import Result
from tacit.report import charts, paper
from tacit.report.accuracy import accuracy, minority, result_of_fit
from tacit.report.groups import SweepResults

PAGE = ROOT / "docs" / "papers.md"
PICTURES = ROOT / "docs" / "pictures"
START = "<!-- claims: written by benchmarks/papers/page.py -->"
END = "<!-- end of claims -->"

BALANCED = "headline-balanced.svg"
MINORITY = "headline-minority.svg"


def all_cells() -> Cells:
    """Return the stored rows of the quick plans and of the other benchmarks."""
    rows = read_rows()
    for name in BENCHMARKS:
        rows += benchmark_rows(name)
    return Cells(rows)


def finding_of(claim: Claim, cells: Cells) -> Finding | None:
    """Return what the stored cells say of a claim.

    None if its plan has not been run, or if the claim needs cells that an interrupted run lacks.
    """
    rows = cells.where(plan=claim.plan)
    if not rows.rows:
        return None
    try:
        return claim.find(rows)
    except LookupError:
        run = read_runs().get(claim.plan)
        if run is not None and run.cells < run.of:
            return None
        raise


def block(cells: Cells) -> str:
    """Return the claims section, between its markers."""
    return "\n".join([START, "", *_headline(cells), *_tables(cells), *_runs(), END])


def headline_cells(cells: Cells) -> tuple[Cells, str]:
    """Return the cells of the headline, and the words that say where they come from.

    These are the quick plan's, or those of the utility table while the plan was not run to the end.
    """
    run = read_runs().get("headline")
    if run is not None and run.cells == run.of:
        mean = "DPPL-Mean is the published algorithm: three steps on rows as they are."
        return cells.where(plan="headline"), f"The plan is `quick/headline`. {mean}"
    mean = (
        "The probe there centres rows by the mean of public rows, which the paper's does not, and"
        " DPPL-Mean has one step, on rows as they are, and true class counts."
    )
    return (
        cells.where(plan="benchmarks/utility", data="cifar100"),
        f"The figures are those of {{doc}}`utility`; the plan `headline` draws the same. {mean}",
    )


def _headline(cells: Cells) -> Iterator[str]:
    headline, source = headline_cells(cells)
    yield "### The headline: DPPL-Public against a linear probe"
    yield ""
    yield f"![Balanced accuracy against the budget, by imbalance](pictures/{BALANCED})"
    yield ""
    yield f"![Accuracy on the smallest classes, by imbalance](pictures/{MINORITY})"
    yield ""
    yield from _headline_sentences(cells)
    yield ""
    yield (
        "Balanced accuracy / accuracy on the 25 % smallest classes, means over"
        f" {len(headline.distinct('seed'))} seeds. {source} The highest figure without privacy is"
        " the ceiling."
    )
    yield ""
    yield from _headline_table(headline)
    yield ""


def _headline_sentences(cells: Cells) -> Iterator[str]:
    """Return where the headline holds: against the probe of its plan, then of the utility table."""
    plan = cells.where(plan="headline")
    utility = cells.where(plan="benchmarks/utility", data="cifar100")
    yield (
        '"With imbalance above 1, DPPL-Public outperforms linear probing in all regimes". On'
        " CIFAR-100 through MobileNetV2 (256 columns), against the probe of the plan `headline`"
        " (gradient descent on rows as they are), the verdict on balanced accuracy is"
        f" {_headline_verdict(plan, public_beats_probe)}."
    )
    yield (
        "Against the same probe, the verdict on the accuracy of the 25 % smallest classes is"
        f" {_headline_verdict(plan, public_beats_probe_on_small_classes)}."
    )
    yield (
        "The probe of {doc}`utility` centres rows by the mean of public rows, which the paper's"
        " does not: against that probe, the verdict on balanced accuracy is"
        f" {_headline_verdict(utility, public_beats_probe)}."
    )
    yield (
        "The paper's encoder is ViT-H-14, and its probe has about .44 on balanced data and .32 at"
        " imbalance 100 from e = 0.2 on, while ours improves with the budget."
    )


def _headline_verdict(cells: Cells, find: Callable[[Cells], Finding]) -> str:
    """Return the verdict on the headline, with the seeds and the budgets behind it."""
    verdict = find(cells).verdict
    budgets = [epsilon_words(budget).removeprefix("e = ") for budget in private_budgets(cells)]
    return f"**{verdict}** ({len(cells.distinct('seed'))} seeds, e = {', '.join(budgets)})"


# of the budgets of the headline, those in its table: e = 0.1, 0.5, 2, 8 and no privacy
TABLE = ("rho=0.005", "rho=0.125", "rho=2", "rho=32", "inf")


def _headline_table(cells: Cells) -> Iterator[str]:
    yield f"| imbalance | method | {' | '.join(map(epsilon_words, TABLE))} |"
    yield "|---" * (2 + len(TABLE)) + "|"
    for imbalance in sorted(cells.distinct("imbalance"), key=float):
        for learner in cells.distinct("learner"):
            texts = []
            for budget in TABLE:
                place = {"imbalance": imbalance, "learner": learner, "budget": budget}
                balanced = share(cells.mean("balanced", **place))
                texts.append(f"{balanced} / {share(cells.mean('minority', **place))}")
            yield f"| {imbalance} | {learner} | {' | '.join(texts)} |"


def _tables(cells: Cells) -> Iterator[str]:
    for title in (PROTOTYPES, PATE, LABELS):
        yield f"### Claims: {title}"
        yield ""
        yield "| claim | in the paper | verdict | our figures | plan |"
        yield "|---|---|---|---|---|"
        for claim in CLAIMS:
            if claim.paper == title:
                finding = finding_of(claim, cells)
                verdict = _undecided(claim) if finding is None else finding.verdict
                figures = "" if finding is None else finding.figures
                texts = (claim.text, claim.place, f"**{verdict}**", figures, f"`{claim.plan}`")
                yield f"| {' | '.join(texts)} |"
        for one in NOT_TRIED:
            if one.paper == title:
                yield f"| {one.text} | {one.place} | **not tried here** | {one.reason} | |"
        yield ""


def _undecided(claim: Claim) -> str:
    """Say why a claim has no verdict."""
    run = read_runs().get(claim.plan)
    if run is None:
        return f"not decided: `plans/quick/{claim.plan}.yaml` was not run"
    return f"not decided: of {run.of} cells of the plan, {run.cells} were computed"


def _runs() -> Iterator[str]:
    yield "### The runs behind these verdicts"
    yield ""
    seconds = sum(run.processor_seconds for run in read_runs().values())
    yield (
        f"Times are CPU seconds, {seconds} s in total; two free cores take about half that. A"
        " run with fewer cells than its plan was interrupted; `make papers` computes the others. A"
        " benchmark's hash is that of its `cells.csv`."
    )
    yield ""
    yield "| plan | cells | hash of the plan | date | version | CPU seconds |"
    yield "|---|---|---|---|---|---|"
    for run in read_runs().values():
        yield (
            f"| `quick/{run.plan}` | {run.cells} of {run.of} | `{run.hash}` | {run.date} |"
            f" {run.version} | {run.processor_seconds} |"
        )
    for name, path in BENCHMARKS.items():
        yield f"| `{name}` | {len(benchmark_rows(name))} | `{file_hash(path)}` | | | |"
    yield ""


def changed_plans() -> list[str]:
    """Return the quick plans that are not those of the stored runs."""
    runs = read_runs()
    changed = []
    for path in sorted(QUICK.glob("*.yaml")):
        if path.stem not in runs or runs[path.stem].hash != plan_hash(path):
            changed.append(path.stem)
    return changed


def result_of(row: Row) -> Result:
    """Return a row of the headline as the figures of reports read it."""
    kind, _, number = row.budget.partition("=")
    result = result_of_fit(row.learner, float(number or kind), row.seed, row.balanced, row.minority)
    return replace(
        result,
        key=f"{result.key}, imbalance {row.imbalance}",
        data=row.data,
        encoder=row.encoder,
        imbalance=float(row.imbalance),
    )


def draw(cells: Cells) -> None:
    """Write the pictures of the headline."""
    headline, _ = headline_cells(cells)
    sweep = SweepResults.of([result_of(row) for row in headline.rows])
    for name, find in ((BALANCED, accuracy), (MINORITY, minority)):
        (figure,) = find(sweep)
        (PICTURES / name).write_bytes(paper.image(charts.lines, figure, "svg"))


def new_page() -> str:
    """Return the page with its claims as the stored results give them."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    return before + block(all_cells()) + after


def write() -> None:
    """Write the page and its pictures."""
    PAGE.write_text(new_page(), encoding="utf-8")
    draw(all_cells())


def check() -> None:
    """Exit if the page is out of date."""
    changed = changed_plans()
    if changed:
        print(f"changed since `make papers` ran: {', '.join(changed)}", file=sys.stderr)
    if PAGE.read_text(encoding="utf-8") != new_page():
        sys.exit(f"{PAGE} is out of date; run python benchmarks/papers/page.py")


if __name__ == "__main__":
    if "--check" in sys.argv:
        check()
    else:
        write()
