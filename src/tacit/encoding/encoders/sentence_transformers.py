"""`sentence-transformers:NAME`, such as sentence-transformers:all-MiniLM-L6-v2: texts, pooled as
the model states.
"""

from functools import partial
from typing import Any

from tacit.encoding.encoders.base import Backbone, Request
from tacit.encoding.encoders.on_torch import OnTorch, ready
from tacit.encoding.encoders.transformers import quiet
from tacit.encoding.encoders.weights import folder_of, loading, other_files
from tacit.encoding.encoders.windows import windows

HUB = "sentence-transformers"


def load(request: Request) -> Backbone:
    """Load a model saved with `SentenceTransformer.save`; code that a repository brings along is
    never run.
    """
    ready("sentence_transformers")
    from sentence_transformers import SentenceTransformer

    repository = request.name if "/" in request.name else f"{HUB}/{request.name}"
    folder = folder_of(repository, request.weights, config="modules.json", tensors=False)
    name = f"sentence-transformers:{request.name}"
    with loading(name, folder), quiet():
        module = SentenceTransformer(str(folder), device="cpu", local_files_only=True)

    def run(texts: list[str]) -> Any:
        return module.encode(
            texts, batch_size=len(texts), convert_to_tensor=True, show_progress_bar=False
        )

    cut = None
    if module.max_seq_length is not None:
        cut = partial(windows, module.tokenizer, module.max_seq_length)
    backbone = OnTorch(module, run, request, name, files=other_files(folder), cut=cut)
    backbone.unit_rows = type(module[-1]).__name__ == "Normalize"
    return backbone
