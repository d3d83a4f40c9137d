# Written by tools/stub.py.
from tacit.clusters import ray as ray
from tacit.clusters import spark as spark
from tacit.compute.progress_display import progress as progress
from tacit.data.embeddings import EmbeddingStore as EmbeddingStore
from tacit.data.splits import split as split
from tacit.data.trees import Tree as Tree
from tacit.encoding.encoders.estimator import Encoder as Encoder
from tacit.encoding.encoders.estimator import encode as encode
from tacit.encoding.table_encoder import TableEncoder as TableEncoder
from tacit.errors import PrivacyLeakWarning as PrivacyLeakWarning
from tacit.errors import TacitError as TacitError
from tacit.experiments.results import read_results as read_results
from tacit.experiments.run import sweep as sweep
from tacit.learners import label_dp as label_dp
from tacit.learners import pate as pate
from tacit.learners.label_dp.label_private import LabelPrivate as LabelPrivate
from tacit.learners.linear.feature_covariance import FeatureCovariance as FeatureCovariance
from tacit.learners.linear.global_adapt import GlobalAdapt as GlobalAdapt
from tacit.learners.linear.gradient_descent import GradientDescent as GradientDescent
from tacit.learners.linear.least_squares import LeastSquares as LeastSquares
from tacit.learners.linear.newton import Newton as Newton
from tacit.learners.networks.dp_sgd import DPSGD as DPSGD
from tacit.learners.pate.pate import PATE as PATE
from tacit.learners.prototypes.auto import AutoPrototypes as AutoPrototypes
from tacit.learners.prototypes.coinpress import CoinPressPrototypes as CoinPressPrototypes
from tacit.learners.prototypes.names import NamePrototypes as NamePrototypes
from tacit.learners.prototypes.noisy_sum import NoisySumPrototypes as NoisySumPrototypes
from tacit.learners.prototypes.projected import ProjectedPrototypes as ProjectedPrototypes
from tacit.learners.prototypes.public import PublicPrototypes as PublicPrototypes
from tacit.learners.search.grid import GridSearch as GridSearch
from tacit.learners.search.random import RandomSearch as RandomSearch
from tacit.learners.search.unpaid import UnpaidSearch as UnpaidSearch
from tacit.measure.evaluating import evaluate as evaluate
from tacit.models.public_scaler import PublicScaler as PublicScaler
from tacit.privacy.budget import Budget as Budget
from tacit.privacy.guarantee import Guarantee as Guarantee
from tacit.privacy.ledger import Ledger as Ledger
from tacit.privacy.unit import Unit as Unit
from tacit.releases import mlflow as mlflow
from tacit.releases.adapting import adapt as adapt
from tacit.releases.labelling import label_public as label_public
from tacit.releases.public_labels import PublicLabels as PublicLabels
from tacit.releases.publishing import publish as publish
from tacit.releases.release import Release as Release

LAZY: dict[str, str]
__version__: str
