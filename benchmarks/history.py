"""Keep the ratios that benchmarks print, and draw them.

python benchmarks/history.py run benchmarks/votes.py [more scripts] [--quick]
python benchmarks/history.py draw [--check]

`run` runs each script and appends one line to history.jsonl: date, commit, machine, load before the
run, script, and the ratios of its tables (the cells of columns whose header says "ratio" or
"over"). `draw` writes docs/pictures/history.svg from that file.
"""

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys
from html import escape
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
HISTORY = FOLDER / "history.jsonl"
PICTURE = FOLDER.parent / "docs" / "pictures" / "history.svg"
RATIO = re.compile(r"\b(ratio|over)\b")
NUMBER = re.compile(r"(\d+(?:\.\d+)?)( times faster)?")


def ratios(markdown: str) -> dict[str, float]:
    """Return the ratios in the tables of a benchmark, by row and column."""
    found: dict[str, float] = {}
    header: list[str] = []
    for line in markdown.splitlines():
        if not line.startswith("|"):
            header = []
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not header:
            header = cells
            continue
        for name, cell in zip(header[1:], cells[1:], strict=False):
            match = NUMBER.fullmatch(cell)
            if match and RATIO.search(name):
                # remarks in brackets differ from run to run
                row = re.sub(r" \(.*?\)", "", cells[0])
                # the peer itself is at 1
                if cell != "1":
                    found[f"{row}: {name}{match[2] or ''}"] = float(match[1])
    return found


def machine() -> str:
    """Return the kind of processor and the number of processors that this process may use."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        model = re.search(r"^model name\s*: (.*)$", cpuinfo.read_text(), re.M)
        processor = model[1] if model else processor
    return f"{processor}, {os.cpu_count()} processors"


def commit() -> str:
    """Return the commit that is measured; a plus says that files differed from it."""
    describe = ["git", "describe", "--always", "--abbrev=10", "--dirty=+", "--exclude=*"]
    return subprocess.run(
        describe, cwd=FOLDER, capture_output=True, text=True, check=True
    ).stdout.strip()


def run(script: Path, quick: bool) -> dict[str, object]:
    """Run a benchmark, show what it prints, and return its record."""
    options = ["--quick"] if quick else []
    load = os.getloadavg()[0]
    done = subprocess.run(
        [sys.executable, str(script), *options], stdout=subprocess.PIPE, text=True, check=True
    )
    print(done.stdout, flush=True)
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": commit(),
        "machine": machine(),
        "load": round(load, 1),
        "script": script.stem,
        "quick": quick,
        "ratios": ratios(done.stdout),
    }


def drawing(records: list[dict]) -> str:
    """Return a picture with one line of dots for each ratio, from the oldest record to the newest.

    Each line has its own scale: the largest value is at the top. The first and the last value are
    written beside it. Runs with small arrays are drawn apart from others.
    """
    series: dict[str, list[float]] = {}
    for record in records:
        suffix = ", small arrays" if record["quick"] else ""
        for name, value in record["ratios"].items():
            series.setdefault(f"{record['script']}{suffix}: {name}", []).append(value)

    height = 44
    parts = []
    for number, (name, values) in enumerate(sorted(series.items())):
        top = number * height
        largest = max(values) or 1.0
        step = 240 / max(len(values) - 1, 1)
        points = [(20 + step * i, top + 38 - 16 * v / largest) for i, v in enumerate(values)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in points)
        parts.append(f'<text x="20" y="{top + 14}">{escape(name)}</text>')
        parts.append(f'<polyline points="{path}"/>{dots}')
        parts.append(f'<text x="280" y="{top + 38}">{values[0]:g} to {values[-1]:g}</text>')
    rows = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 {len(series) * height + 10}"'
        ' role="img" aria-label="Ratios of the benchmarks, from the oldest record to the newest">\n'
        "<style>text{font:12px sans-serif;fill:#808080}circle{fill:#3b82c4}"
        "polyline{fill:none;stroke:#3b82c4}</style>\n"
        f"{rows}\n</svg>\n"
    )


def read() -> list[dict]:
    """Return the records of the history, the oldest first."""
    return [json.loads(line) for line in HISTORY.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    """Run benchmarks, or draw what was recorded."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    actions = parser.add_subparsers(dest="action", required=True)
    running = actions.add_parser("run", help="run scripts and append their ratios")
    running.add_argument("scripts", type=Path, nargs="+")
    running.add_argument("--quick", action="store_true", help="small arrays")
    drawn = actions.add_parser("draw", help="draw the history")
    drawn.add_argument("--check", action="store_true", help="fail if the picture is another")
    arguments = parser.parse_args()

    if arguments.action == "run":
        for script in arguments.scripts:
            record = run(script, arguments.quick)
            with HISTORY.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
        return

    picture = drawing(read())
    if not arguments.check:
        PICTURE.write_text(picture, encoding="utf-8")
    elif picture != PICTURE.read_text(encoding="utf-8"):
        sys.exit(
            f"{PICTURE} is not what {HISTORY.name} says: run python benchmarks/history.py draw"
        )


if __name__ == "__main__":
    main()
