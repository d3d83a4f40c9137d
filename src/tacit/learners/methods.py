"""The one table of methods: command-line name -> where its class is. Read without importing any of them."""

METHODS: dict[str, str] = {
    "noisy-sum": "tacit.learners.prototypes.noisy_sum:NoisySumPrototypes",
    "coinpress": "tacit.learners.prototypes.coinpress:CoinPressPrototypes",
    "public": "tacit.learners.prototypes.public:PublicPrototypes",
}
