"""Write plans/schema.json, from which editors know what a plan may hold; a test checks that it is
current.
"""

import json
from pathlib import Path

from tacit.experiments.plan import Plan

if __name__ == "__main__":
    text = json.dumps(Plan.schema_of_files(), indent=1, sort_keys=True)
    (Path(__file__).resolve().parents[1] / "plans" / "schema.json").write_text(
        text + "\n", encoding="utf-8"
    )
