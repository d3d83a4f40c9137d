"""Releases from real embeddings: CIFAR-100 as the private data, Tiny ImageNet as the public data.

python examples/cifar100.py EMBEDDINGS [--out FOLDER]

EMBEDDINGS holds the folders cifar100 and tiny_imagenet, each with train_x.npy, train_y.npy,
test_x.npy, test_y.npy and card.json. Every step is a command that you can type; the script ends
with a table in Markdown.
"""

import argparse
import io
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import tacit
from tacit.cli.main import main as command

DELTA = 1e-6
FITS = {  # name of the release: method, budget, further options
    "noisy-sum": ("noisy-sum", "rho=0.5", ""),
    "public": ("public", "epsilon=2", "--public {public}"),
    "public-5": ("public", "epsilon=2", "--public {public} --k 5"),
    "coinpress": ("coinpress", "rho=0.5", ""),
    "coinpress-paper": ("coinpress", "rho=0.5", "--steps 0.078125,0.109375,0.8125"),
}


def run(line: str, **paths: Path) -> str:
    """Run one command line, show it, and return what it printed."""
    words = [word.format(**paths) for word in line.split()]
    print("$ tacit", *words, file=sys.stderr)
    with redirect_stdout(io.StringIO()) as printed:
        if command(words) != 0:
            raise SystemExit(f"the command failed: tacit {' '.join(words)}")
    return printed.getvalue()


def import_stores(embeddings: Path, out: Path) -> None:
    """Import one store per split, as `out`/cifar100/train and so on."""
    for name in ("cifar100", "tiny_imagenet"):
        run("import {source} --out {store}", source=embeddings / name, store=out / name)


def rows(out: Path) -> Iterator[list[str]]:
    """Fit, inspect and evaluate each release; yield its row of the table."""
    private, test, public = (
        out / "cifar100/train",
        out / "cifar100/test",
        out / "tiny_imagenet/train",
    )
    for name, (method, budget, options) in FITS.items():
        fit = f"fit {method} {{private}} --budget {budget} {options} --out {{out}}"
        start = time.perf_counter()
        run(fit, private=private, public=public, out=out / name)
        seconds = time.perf_counter() - start
        run("inspect {release}", release=out / name)
        scores = json.loads(run("evaluate {release} {test} --json", release=out / name, test=test))
        epsilon = tacit.Release.load(out / name).guarantee.epsilon(DELTA)
        shown = f"{method} {options.format(public='PUBLIC')}".strip()
        yield [
            f"`{shown}`",
            budget,
            f"{epsilon:.3g}",
            f"{scores['accuracy']:.3f}",
            f"{seconds:.1f}",
        ]


def table(lines: list[list[str]]) -> str:
    head = ["method", "budget", f"epsilon at delta {DELTA:g}", "accuracy", "fit seconds"]
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *lines])


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("embeddings", type=Path)
    parser.add_argument(
        "--out", type=Path, help="folder for stores and releases; by default a temporary folder"
    )
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        out = asked.out or Path(temporary)
        out.mkdir(parents=True, exist_ok=True)
        import_stores(asked.embeddings, out)
        print(table(list(rows(out))))


if __name__ == "__main__":
    main()
