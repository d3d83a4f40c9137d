"""The verbs of the command line, each with what it does."""

VERBS = {
    "demo": "Compare learners on imbalanced digits, then make, check and evaluate a real release.",
    "encode": "Make a store from pictures, texts or the columns of a table.",
    "schema": "Draft the schema of a table, by which its columns are encoded.",
    "overlap": "Look for private records among public rows.",
    "import": "Make a store from arrays or tables.",
    "split": "Deal a data set to a private, a public and a test store.",
    "subset": "Keep an imbalanced subset of a data set, for research.",
    "methods": "List the methods that learn, and what each releases.",
    "promise": "State what a fit will cost, before any data.",
    "forecast": "Forecast the accuracy of a fit, before any private record is touched.",
    "fit": "Learn a private classifier and save it as a release.",
    "summarise": "Sum the rows of each class, with noise, to add up with other owners' sums.",
    "combine": "Make a classifier of the summaries of one or many owners, at no further cost.",
    "inspect": "Check a release, or a summary, and print its card.",
    "publish": "Write a release as a folder for a model hub, signed if a key is given.",
    "adapt": "Adapt an `auto` release to unlabelled data from the same task, if the data fit.",
    "evaluate": "Measure a release on a test set.",
    "choose": "Choose the best of several releases on private test rows, at a price.",
    "predict": "Predict the class of every row, from a release alone.",
    "label-public": "Label public rows by a release, in a folder that may be handed out.",
    "synthesize": "Draw labelled synthetic rows from a release of `auto`, to try other models on.",
    "export": "Write a release as an ONNX file, which predicts without tacit.",
    "page": "Write a release as a page that shows what it reveals, and classifies.",
    "votes": "Turn the votes of teachers into labels, within every group's budget.",
    "privatize-labels": "Randomize the label column of a table.",
    "sweep": "Run an experiment plan; resumes if interrupted.",
    "results": "List the results of a sweep.",
    "report": "Draw the results of a sweep: a page, or a folder of figures.",
    "audit": "Bound from below what a method or release reveals, and hold it against its promise.",
    "ledger": "Show what was spent on a data set, or state its allowance.",
}
OF_A_METHOD = ("fit", "promise", "forecast")
"""Verbs of one method, whose parameters are options."""
PRINTS_FACTS = (
    "methods",
    "promise",
    "forecast",
    "inspect",
    "evaluate",
    "choose",
    "results",
    "ledger",
    "overlap",
    "audit",
)
"""Verbs whose lines are what was asked for, so that `--quiet` leaves them."""
