"""Libraries that come with an extra, such as `encoders`."""

from importlib.util import find_spec

from tacit.errors import InputError

EXTRAS = {
    "altair": "experiments",
    "duckdb": "experiments",
    "fsspec": "remote",
    "h5py": "hdf5",
    "huggingface_hub": "hub",
    "mlflow": "mlflow",
    "model_signing": "hub",
    "onnx": "onnx",
    "onnxruntime": "encoders",
    "opacus": "dpsgd",
    "open_clip": "encoders",
    "opendp": "opendp",
    "optuna": "tune",
    "OpenSSL": "hub",
    "PIL": "encoders",
    "pandas": "mlflow",
    "pyspark": "spark",
    "ray": "cluster",
    "sentence_transformers": "encoders",
    "submitit": "cluster",
    "timm": "encoders",
    "torch": "torch",
    "torchvision": "encoders",
    "tqdm": "notebook",
    "transformers": "encoders",
    "vl_convert": "experiments",
}
"""The extra that a library comes with; torch comes with several."""


def is_installed(library: str) -> bool:
    """Tell whether a library can be imported; it is not imported."""
    return find_spec(library) is not None


def check_installed(library: str, extra: str | None = None) -> None:
    """Refuse to go on without a library of an extra, by default the extra in EXTRAS."""
    if not is_installed(library):
        raise missing(library, extra)


def missing(library: str, extra: str | None = None) -> InputError:
    """The error for a library that is not installed."""
    command = f"pip install -c constraints.txt '.[{extra or EXTRAS[library]}]'"
    return InputError(
        f"{library} is not installed, and this needs it; run {command} in a working copy of tacit"
    )
