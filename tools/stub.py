"""Write src/tacit/__init__.pyi from the table of lazy names; `--check` fails where it is out of date."""

import sys
from pathlib import Path

import tacit

STUB = Path(__file__).resolve().parents[1] / "src" / "tacit" / "__init__.pyi"


def stub() -> str:
    imports = []
    for name, path in sorted(tacit.LAZY.items(), key=lambda item: item[1]):
        module = path.partition(":")[0] if ":" in path else path.rpartition(".")[0]
        imports.append(f"from {module} import {name} as {name}")
    return "\n".join(["# Written by tools/stub.py.", *imports, "", "LAZY: dict[str, str]", "__version__: str", ""])


if __name__ == "__main__":
    if "--check" in sys.argv:
        if STUB.read_text() != stub():
            sys.exit(f"{STUB} is out of date; run python tools/stub.py")
    else:
        STUB.write_text(stub())
