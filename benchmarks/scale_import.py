"""Scale of imports: peak memory and rows a second of `tacit import` beside pyarrow's own scan.

python benchmarks/scale_import.py [--gigabytes 20] [--columns 256] [--folder FOLDER] [--quick]

Makes a folder of Parquet parts of float32 lists in FOLDER, scans it with pyarrow, imports it as a
store and deletes both. Prints Markdown.
"""

import argparse
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from timing import table, watched

# rows of a part, and of the row groups that pyarrow writes by default
PART_ROWS = 1 << 20


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description="Scale of imports.")
    parser.add_argument("--gigabytes", type=float, default=20.0, help="size of the features")
    parser.add_argument("--columns", type=int, default=256)
    parser.add_argument("--folder", type=Path, help="where to put the files; by default in TMPDIR")
    parser.add_argument("--quick", action="store_true", help="a hundredth, for the tests")
    arguments = parser.parse_args()
    gigabytes = arguments.gigabytes / 100 if arguments.quick else arguments.gigabytes
    n_rows = int(gigabytes * 1e9 / (4 * arguments.columns))

    folder = Path(tempfile.mkdtemp(prefix="tacit-scale-", dir=arguments.folder))
    try:
        write_parts(folder / "parts", n_rows, arguments.columns)
        start = time.perf_counter()
        scan(folder / "parts")
        scan_seconds = time.perf_counter() - start
        line = f"import {folder}/parts --classes 10 --out {folder}/store"
        seconds, peak = watched(line.split())
    finally:
        shutil.rmtree(folder)

    size = f"{gigabytes:g} GB of Parquet ({n_rows} rows of {arguments.columns} float32)"
    rows = [
        ["pyarrow's scan", f"{scan_seconds:.1f} s", f"{n_rows / scan_seconds:.0f}", "1"],
        [
            "tacit import",
            f"{seconds:.1f} s",
            f"{n_rows / seconds:.0f}",
            f"{scan_seconds / seconds:.2f}",
        ],
    ]
    header = ["pass", "time", "rows a second", "share of the scan's speed"]
    table(f"Speed of an import of {size}", header, rows)
    peak_row = ["tacit import", f"{peak / 2**30:.2f} GiB"]
    table(f"Memory of an import of {size}", ["pass", "peak anonymous memory"], [peak_row])


def write_parts(folder: Path, n_rows: int, columns: int) -> None:
    """Write parts of at most PART_ROWS rows, each in one row group."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number, start in enumerate(range(0, n_rows, PART_ROWS)):
        n = min(PART_ROWS, n_rows - start)
        values = pa.array(rng.random(n * columns, dtype=np.float32))
        labels = pa.array(rng.integers(0, 10, n))
        part = pa.table({"x": pa.FixedSizeListArray.from_arrays(values, columns), "label": labels})
        pq.write_table(part, folder / f"part-{number:05d}.parquet", row_group_size=PART_ROWS)


def scan(folder: Path) -> None:
    """Read all batches as pyarrow does, and keep none."""
    for _ in ds.dataset(folder).to_batches():
        pass


if __name__ == "__main__":
    main()
