"""Find and load weights in a local folder or the local cache of the Hugging Face hub. Nothing is
downloaded.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from tacit.compute.libraries.huggingface_hub import load_huggingface_hub
from tacit.compute.libraries.torch import load_torch
from tacit.data.rows import one_line
from tacit.errors import InputError


def folder_of(
    repository: str, weights: Path | None, *, config: str | None = None, tensors: bool = True
) -> Path:
    """Return the folder `weights`, or the cached one of a repository; it must hold the file
    `config`, and tensors.
    """
    folder = _cached_folder(repository) if weights is None else weights
    if not folder.is_dir():
        raise InputError(
            f"--weights {folder} is not a folder; give the one that holds the model's files"
        )
    has_config = config is None or (folder / config).is_file()
    has_tensors = not tensors or bool(weight_files(folder))
    if has_config and has_tensors:
        return folder

    if weights is None:
        raise _missing(repository)
    required_files = []
    if config is not None:
        required_files.append(config)
    if tensors:
        required_files.append("weights (*.safetensors, *.bin, *.pt)")
    raise InputError(
        f"--weights {folder} needs {' and '.join(required_files)}; give the folder as the hub has"
        " it"
    )


def _cached_folder(repository: str) -> Path:
    """Return the folder of a repository in the cache of the hub; a local folder stands for
    itself.
    """
    if Path(repository).is_dir():
        return Path(repository)
    hub = load_huggingface_hub()
    missing = (
        hub.errors.LocalEntryNotFoundError,
        hub.errors.HfHubHTTPError,
        hub.errors.HFValidationError,
    )
    try:
        return Path(hub.snapshot_download(repository, local_files_only=True))
    except (*missing, OSError, ValueError) as error:
        raise _missing(repository) from error


def _missing(repository: str) -> InputError:
    return InputError(
        f"no weights of {repository} on this machine; get them with `hf download {repository}`"
        " where there is a network, or give a folder that holds them with --weights"
    )


def weight_files(folder: Path) -> list[Path]:
    """Return the files of tensors in a folder, safetensors first."""
    files: list[Path] = []
    for ending in (".safetensors", ".bin", ".pt", ".pth"):
        files += sorted(folder.glob(f"*{ending}"))
    return files


def other_files(folder: Path) -> list[Path]:
    """Return the files of a model besides its weights: settings, vocabularies, pooling."""
    endings = (".json", ".txt", ".model", ".jinja")
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix in endings)


def suggestion(name: str, valid_names: Iterable[str], listing: str) -> str:
    """Return the names that resemble an unknown name, or the call that lists all names."""
    matches = get_close_matches(name, list(valid_names), n=3)
    if matches:
        return f"did you mean {', '.join(matches)}?"
    return f"{listing} lists them"


@contextmanager
def loading(model: str, path: Path) -> Iterator[None]:
    """Turn any error of loading a model into a one-line InputError."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        # damaged files and a dozen libraries may raise anything
        fault = f"{model} cannot be loaded from {path} ({one_line(error)})"
        raise InputError(f"{fault}; check its name and its files") from error


def state_of(path: Path) -> dict[str, Any]:
    """Load the tensors of a safetensors or torch file; of the latter only tensors are unpickled."""
    torch = load_torch("encoders")
    with loading("weights", path):
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return dict(load_file(path))
        state = torch.load(path, map_location="cpu", weights_only=True)

    # checkpoints of a training hold the state dict beside others
    tensors = state.get("state_dict", state) if isinstance(state, dict) else None
    if not isinstance(tensors, dict):
        raise InputError(
            f"{path} holds no state dict; save one with torch.save(model.state_dict(), ...)"
        )
    return tensors
