"""`tacit export`: a release as an ONNX file."""

from pathlib import Path
from typing import Literal

from tacit.cli.common import check_outside, say
from tacit.cli.options import Force


def export(
    release: Path,
    /,
    *,
    onnx: Path,
    encoder: Path | None = None,
    sidecar: Path | None = None,
    mirror: bool = False,
    projection: Path | None = None,
    dtype: Literal["float16", "float32"] | None = None,
    allow_research: bool = False,
    force: Force = False,
) -> None:
    """Write a release as an ONNX file, which predicts without tacit.

    Its input is embeddings, of shape (n, d) and float32; its outputs are label, of shape (n,), and
    probabilities, of shape (n, C). Of a release of several labels a row, labels of 0 and 1, of
    shape (n, K), take the place of label. With --encoder its input is that of the encoder. The
    guarantee and the card are in its metadata.

    Parameters
    ----------
    release
        Folder of a release.
    onnx
        The .onnx file to write.
    encoder
        The ONNX file of the encoder of its rows, to join with: pictures in, labels out.
    sidecar
        A JSON file that states the encoder's input; by default the encoder's name with .json.
    mirror
        The rows are means with mirrored pictures: what tacit encode --mirror makes.
    projection
        The .npy matrix of tacit encode --projection.
    dtype
        In which type rows were stored, as --dtype of tacit encode; by default float32.
    allow_research
        Export a release that is not for release; its stamp is in the file's metadata.
    """
    from tacit.errors import InputError
    from tacit.releases.release import Release

    check_outside(onnx, release)
    preparation = {
        "sidecar": sidecar,
        "mirror": mirror or None,
        "projection": projection,
        "dtype": dtype,
    }
    given = {name: value for name, value in preparation.items() if value is not None}
    if encoder is None and given:
        options = ", ".join(f"--{name}" for name in given)
        raise InputError(
            f"{options}: only with the encoder of pictures; pass --encoder FILE.onnx, or leave"
            " it out"
        )
    loaded = Release.load(release).verify()
    written = loaded.to_onnx(
        onnx, encoder=encoder, force=force, allow_research=allow_research, **given
    )
    stamp = f", stamped {loaded.document.stamp}" if loaded.document.stamp else ""
    taken = "embeddings" if encoder is None else f"what {encoder.name} takes"
    result = "labels" if loaded.several else "label"
    size = written.stat().st_size
    say(f"{written}: {size} bytes, from {taken} to {result} and probabilities{stamp}")
    if loaded.prediction_sets is not None:
        say(
            "prediction sets follow from the probabilities, and are no output of the file:"
            f" {loaded.prediction_sets.rule}"
        )
