"""Pin each library to the lower bound that pyproject.toml states, to test that the bounds are true.

`python tools/lowest.py --out FILE` writes the pins as constraints of pip. `python tools/lowest.py
--installed`, run by the Python of an environment, exits with 1 and one line for each library that
is absent or newer than its bound there.
`make lowest` does both and runs the checks of `make check` between them.
"""

import argparse
import importlib.metadata
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def bounds(root: Path) -> dict[str, str]:
    """Return the lower bound of every library, also of extras and of the build, by normalized
    name.
    """
    content = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    requirements = content["build-system"]["requires"] + content["project"]["dependencies"]
    for extra in content["project"]["optional-dependencies"].values():
        requirements.extend(extra)

    lowest: dict[str, str] = {}
    for requirement in requirements:
        match = re.match(r"([\w.-]+)>=([\d.]+)", requirement)
        if match is None:
            sys.exit(f"{requirement!r} states no lower bound: write NAME>=VERSION")
        name = re.sub(r"[-_.]+", "-", match[1]).lower()
        if lowest.setdefault(name, match[2]) != match[2]:
            sys.exit(f"{name} has two lower bounds, {lowest[name]} and {match[2]}: state one")
    return lowest


def same_version(one: str, other: str) -> bool:
    """Compare two versions; zeros at the end do not count, so 5.0 is 5.0.0."""

    def significant(version: str) -> str:
        return re.sub(r"(\.0)+$", "", version.partition("+")[0])

    return significant(one) == significant(other)


def differences(lowest: dict[str, str]) -> list[str]:
    """Return one line for each library that is not installed at its lower bound."""
    lines = []
    for name, bound in lowest.items():
        try:
            installed = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            lines.append(f"{name} is not installed; its lower bound is {bound}")
            continue
        if not same_version(installed, bound):
            lines.append(f"{name} {installed} is installed; its lower bound is {bound}")
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--out", type=Path, help="the file of constraints to write")
    action.add_argument("--installed", action="store_true", help="compare with what is installed")
    arguments = parser.parse_args()
    pins = bounds(ROOT)
    if arguments.installed:
        if problems := differences(pins):
            sys.exit("\n".join(problems))
    else:
        lines = [f"{name}=={version}" for name, version in sorted(pins.items())]
        arguments.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
