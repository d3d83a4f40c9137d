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
    """The folder `weights`, or the cached one of a repository; it must hold the file `config`, and
    tensors.
    """
    folder = _cached(repository) if weights is None else weights
    if not folder.is_dir():
        raise InputError(
            f"--weights {folder} is not a folder; give the one that holds the model's files"
        )
    if (config is None or (folder / config).is_file()) and (not tensors or weight_files(folder)):
        return folder
    if weights is None:
        raise _missing(repository)
    needed = [
        name
        for name in (config, "weights (*.safetensors, *.bin, *.pt)" if tensors else None)
        if name
    ]
    raise InputError(
        f"--weights {folder} needs {' and '.join(needed)}; give the folder as the hub has it"
    )


def _cached(repository: str) -> Path:
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
    """Files of tensors in a folder, safetensors first."""
    return [
        path
        for ending in (".safetensors", ".bin", ".pt", ".pth")
        for path in sorted(folder.glob(f"*{ending}"))
    ]


def other_files(folder: Path) -> list[Path]:
    """Files of a model besides its weights: settings, vocabularies, pooling."""
    endings = (".json", ".txt", ".model", ".jinja")
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix in endings)


def suggestion(name: str, known: Iterable[str], listing: str) -> str:
    """The names that resemble an unknown one, or the call that lists all."""
    near = get_close_matches(name, list(known), n=3)
    return f"did you mean {', '.join(near)}?" if near else f"{listing} lists them"


@contextmanager
def loading(what: str, where: Path) -> Iterator[None]:
    """Turn any error of loading a model into a one-line InputError."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # damaged files and a dozen libraries may raise anything
        said = f"{what} cannot be loaded from {where} ({one_line(error)})"
        raise InputError(f"{said}; check its name and its files") from error


def state_of(path: Path) -> dict[str, Any]:
    """The tensors of a safetensors or torch file; of the latter only tensors are unpickled."""
    torch = load_torch("encoders")
    with loading("weights", path):
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return dict(load_file(path))
        state = torch.load(path, map_location="cpu", weights_only=True)
    inner = state.get("state_dict", state) if isinstance(state, dict) else None
    if not isinstance(inner, dict):
        raise InputError(
            f"{path} holds no state dict; save one with torch.save(model.state_dict(), ...)"
        )
    return inner
