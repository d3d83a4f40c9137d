"""tacit: differentially private classifiers, with a true statement of their privacy cost.

Names are imported on first use, so that `import tacit` costs next to nothing. `__init__.pyi` is the
same table for type checkers and editors; `python tools/stub.py` writes it.
"""

from typing import Any

from tacit.compute.telemetry import disable_telemetry
from tacit.learners.methods import METHODS, load
from tacit.version import __version__ as __version__

disable_telemetry()

LAZY: dict[str, str] = {
    "ClassSummary": "tacit.learners.prototypes.class_summary:ClassSummary",
    "DPSGD": "tacit.learners.networks.dp_sgd:DPSGD",
    "Budget": "tacit.privacy.budget:Budget",
    "Encoder": "tacit.encoding.encoders.estimator:Encoder",
    "EmbeddingStore": "tacit.data.embeddings:EmbeddingStore",
    "Evaluation": "tacit.measure.evaluation:Evaluation",
    "GridSearch": "tacit.learners.search.grid:GridSearch",
    "Guarantee": "tacit.privacy.guarantee:Guarantee",
    "Ledger": "tacit.privacy.ledger:Ledger",
    "PrivacyLeakWarning": "tacit.errors:PrivacyLeakWarning",
    "PublicLabels": "tacit.releases.public_labels:PublicLabels",
    "PublicScaler": "tacit.models.public_scaler:PublicScaler",
    "RandomSearch": "tacit.learners.search.random:RandomSearch",
    "Release": "tacit.releases.release:Release",
    "Summary": "tacit.releases.summary:Summary",
    "TableEncoder": "tacit.encoding.table_encoder:TableEncoder",
    "TacitError": "tacit.errors:TacitError",
    "Tree": "tacit.data.trees:Tree",
    "Unit": "tacit.privacy.unit:Unit",
    "UnpaidSearch": "tacit.learners.search.unpaid:UnpaidSearch",
    "adapt": "tacit.releases.adapting:adapt",
    "audit": "tacit.measure.auditing.audit:audit",
    "calibrate_sets": "tacit.measure.prediction_sets:calibrate_sets",
    "choose": "tacit.measure.choosing:choose",
    "combine": "tacit.releases.combining:combine",
    "encode": "tacit.encoding.encoders.estimator:encode",
    "evaluate": "tacit.measure.evaluating:evaluate",
    "forecast": "tacit.measure.forecasting:forecast",
    "holders_of": "tacit.releases.sources:holders_of",
    "label_public": "tacit.releases.labelling:label_public",
    "mlflow": "tacit.releases.mlflow",
    "progress": "tacit.compute.progress_display:progress",
    "publish": "tacit.releases.publishing:publish",
    "label_dp": "tacit.learners.label_dp",
    "pate": "tacit.learners.pate",
    "ray": "tacit.clusters.ray",
    "read_results": "tacit.experiments.results:read_results",
    "spark": "tacit.clusters.spark",
    "split": "tacit.data.splits:split",
    "sweep": "tacit.experiments.run:sweep",
} | {path.partition(":")[2]: path for path in METHODS.values()}

__all__ = sorted(LAZY)


def __getattr__(name: str) -> Any:
    if name not in LAZY:
        raise AttributeError(
            f"module 'tacit' has no attribute {name!r}; it has {', '.join(__all__)}"
        )
    value = globals()[name] = load(LAZY[name])
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
