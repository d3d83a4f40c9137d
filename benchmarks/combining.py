"""Summaries added up: time a summary beside reading and hashing its files, and peak memory.

python benchmarks/combining.py [NUMBER ...] [--jobs N] [--quick]

A summary has 1,000 classes and 1,280 columns. Its sums are zeros but for the count of the last
class, by which summaries differ, so the file system stores holes and 10,000 summaries take no 100
GB. All bytes are read, hashed, checked and added nevertheless. The ceiling is reading the same
files and hashing their arrays, in one process; both are processor seconds of all processes, to
which other work matters least. `--quick` adds a few small summaries, for the tests.
"""

import argparse
import hashlib
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from timing import table

import tacit
from tacit.releases.adding_tree import added_on_engine
from tacit.releases.reading import document_file
from tacit.releases.summary import Summary
from tacit.releases.summary_document import summary_card
from tacit.releases.summary_files import ARRAYS, CARD, DOCUMENT, LIMITS

# bytes of the last count, by which summaries differ
TAIL = 8


def template(n_classes: int, width: int) -> Summary:
    """Return a summary of two records."""
    classes = [f"class {number}" for number in range(n_classes)]
    fit = tacit.ClassSummary("rho=0.5", classes=classes, part="hospital")
    return Summary.of(fit.fit(np.eye(2, width), classes[:2]), date="2026-01-01")


def write_summaries(folder: Path, n_summaries: int, n_classes: int, width: int) -> list[Path]:
    """Write summaries that differ in one count, and return their folders."""
    summary = template(n_classes, width)
    document = summary.document
    [row] = document.combination.parts
    data = summary.files()[ARRAYS]
    length = len(data)
    start = data[: length - summary.arrays["sums"].nbytes]
    # the hash of all but the last bytes is the same for all
    common = hashlib.sha256(start + bytes(length - len(start) - TAIL))

    folders = []
    for number in range(n_summaries):
        tail = number.to_bytes(TAIL, "little")
        total = common.copy()
        total.update(tail)
        sha256 = total.hexdigest()
        part = row.model_copy(update={"name": f"hospital {number}", "sha256": sha256})
        combination = document.combination.model_copy(update={"parts": (part,)})
        own = document.model_copy(update={"combination": combination, "sha256": sha256})

        place = folder / f"{number:05d}"
        place.mkdir()
        (place / DOCUMENT).write_bytes(document_file(own))
        (place / CARD).write_text(summary_card(own), encoding="utf-8")
        with (place / ARRAYS).open("wb") as file:
            file.write(start)
            file.seek(length - TAIL)
            file.write(tail)
        folders.append(place)
    return folders


def add_and_print(folder: Path, n_summaries: int, jobs: int) -> None:
    """Add the first summaries of a folder up, and print seconds, processor seconds of this process,
    and its peak of memory in MiB.
    """
    folders = sorted(folder.iterdir())[:n_summaries]
    started = time.perf_counter()
    processor_started = time.process_time()
    total = added_on_engine(folders, engine="joblib", jobs=jobs, folder=None)
    assert len(total.parts) == n_summaries
    processor = time.process_time() - processor_started
    print(time.perf_counter() - started, processor, peak_memory())


def peak_memory() -> float:
    """Return the peak of this process's memory in MiB; `getrusage` would count its parent's too."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def measured(folder: Path, n_summaries: int, jobs: int) -> tuple[float, float, float]:
    """Add summaries up in a process of its own, whose peak of memory is that of the work."""
    line = [sys.executable, __file__, str(n_summaries), "--jobs", str(jobs), "--in", str(folder)]
    done = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True)
    wall, processor, peak = map(float, done.stdout.split())
    return wall, processor, peak


def ceiling(folders: list[Path]) -> float:
    """Return the processor seconds in which files are read and arrays are hashed."""
    started = time.process_time()
    for folder in folders:
        for name in LIMITS:
            data = (folder / name).read_bytes()
            if name == ARRAYS:
                hashlib.sha256(data).hexdigest()
    return time.process_time() - started


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description="Summaries added up.")
    parser.add_argument("numbers", nargs="*", type=int, default=[10, 100, 1000])
    parser.add_argument("--jobs", type=int, default=2, help="processes of the second table")
    parser.add_argument("--quick", action="store_true", help="a few small summaries")
    parser.add_argument("--in", dest="folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder is not None:
        add_and_print(options.folder, options.numbers[0], options.jobs)
        return

    n_classes, width, numbers = 1000, 1280, options.numbers
    if options.quick:
        n_classes, width, numbers = 20, 8, [5, 20]
    with tempfile.TemporaryDirectory(prefix="tacit-bench-") as temporary:
        folder = Path(temporary)
        folders = write_summaries(folder, max(numbers), n_classes, width)
        print_tables(folder, folders[:100], numbers, options.jobs, f"{n_classes} x {width}")


def print_tables(
    folder: Path, sample: list[Path], numbers: list[int], jobs: int, size: str
) -> None:
    """Measure and print one process for each number of summaries, then several for the largest."""
    least = ceiling(sample) / len(sample)
    rows = []
    for number in numbers:
        wall, processor, peak = measured(folder, number, 1)
        each = processor / number
        ratio = f"{each / least:.1f}"
        rows.append(
            [f"{number}", f"{wall:.1f} s", f"{1000 * each:.1f} ms", ratio, f"{peak:.0f} MiB"]
        )
    header = ["summaries", "time", "processor time of each", "over reading and hashing", "memory"]
    table(f"Summaries of {size} added up in one process", header, rows)

    most = max(numbers)
    one, _, _ = measured(folder, most, 1)
    several, _, peak = measured(folder, most, jobs)
    row = [f"{most}", f"{one:.1f} s", f"{several:.1f} s", f"{peak:.0f} MiB"]
    header = ["summaries", "one process", f"{jobs} processes", "memory of the first"]
    table(f"{jobs} processes of joblib", header, [row])


if __name__ == "__main__":
    main()
