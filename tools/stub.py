"""Write src/tacit/__init__.pyi from the table of lazy names; `--check` fails where it is out of
date.
"""

import sys
from pathlib import Path

import tacit

STUB = Path(__file__).resolve().parents[1] / "src" / "tacit" / "__init__.pyi"


def stub() -> str:
    imports = []
    for name, path in tacit.LAZY.items():
        module = path.partition(":")[0] if ":" in path else path.rpartition(".")[0]
        imports.append((module, f"from {module} import {name} as {name}"))
    lines = [line for _, line in sorted(imports)]
    return "\n".join(
        ["# Written by tools/stub.py.", *lines, "", "LAZY: dict[str, str]", "__version__: str", ""]
    )


if __name__ == "__main__":
    if "--check" in sys.argv:
        if STUB.read_text() != stub():
            sys.exit(f"{STUB} is out of date; run python tools/stub.py")
    else:
        STUB.write_text(stub())
