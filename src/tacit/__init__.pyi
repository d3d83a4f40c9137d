# Written by tools/stub.py.
from tacit.data.embeddings import EmbeddingStore as EmbeddingStore
from tacit.errors import PrivacyLeakWarning as PrivacyLeakWarning
from tacit.errors import TacitError as TacitError
from tacit.learners.prototypes.coinpress import CoinPressPrototypes as CoinPressPrototypes
from tacit.learners.prototypes.noisy_sum import NoisySumPrototypes as NoisySumPrototypes
from tacit.learners.prototypes.public import PublicPrototypes as PublicPrototypes
from tacit.privacy.budget import Budget as Budget
from tacit.privacy.guarantee import Guarantee as Guarantee
from tacit.privacy.ledger import Ledger as Ledger
from tacit.privacy.unit import Unit as Unit
from tacit.releases.release import Release as Release

LAZY: dict[str, str]
__version__: str
