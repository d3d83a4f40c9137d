"""Rows of the class names of the problems, for `run.py --names`.

python benchmarks/utility/names.py EMBEDDINGS --weights FOLDER --out names.npz

FOLDER holds the weights of sentence-transformers/all-MiniLM-L6-v2. Names of texts are encoded in
the space of their texts, names of pictures' classes through the labelled rows of Tiny ImageNet,
whose classes have words.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from problems import IMAGES, TEXT, TINY, read

from tacit.encoding.names import encode_names, names_through

ENCODER = "sentence-transformers:sentence-transformers/all-MiniLM-L6-v2"
TEXTS = ("agnews", "banking77", "clinc150", "sst2")
PICTURES = ("cifar10", "cifar100")


def main() -> None:
    """Encode all class names."""
    parser = argparse.ArgumentParser(description="Rows of class names.")
    parser.add_argument("embeddings", type=Path)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()

    def rows(store: str) -> list[np.ndarray]:
        card = json.loads((given.embeddings / store / "card.json").read_text(encoding="utf-8"))
        return encode_names(
            card.get("class_words") or card["classes"], ENCODER, weights=given.weights
        )

    found = {f"{TEXT}/{name}": np.concatenate(rows(f"{TEXT}/{name}")) for name in TEXTS}
    public, (x, y) = rows(TINY), read(given.embeddings, TINY, "train")
    for name in PICTURES:
        store = f"{IMAGES}/{name}"
        found[store] = names_through(rows(store), public, x, y).astype(np.float32)
    np.savez(given.out, **found)


if __name__ == "__main__":
    main()
