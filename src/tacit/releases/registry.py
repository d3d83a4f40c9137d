"""A release as an entry for OpenDP's registry of deployments (github.com/opendp/deployments-registry-data)."""

from __future__ import annotations

import re
from typing import Any

from tacit.errors import ReleaseError
from tacit.privacy.unit import Unit
from tacit.releases.schema import NOT_STATED, Document, Utility

_HEAD = """\
# Entry for the OpenDP deployments registry. Before submitting it, fill in what is "not stated".
# number_of_privacy_units is left out: the release does not tell how many records there were.
"""
_VARIANTS = {"pure": "Pure DP", "zCDP": "Zero-concentrated DP", "approximate": "Approximate DP"}


def registry_yaml(document: Document) -> str:
    """The entry as YAML, for `release.document`; ReleaseError if the release is stamped "NOT FOR RELEASE"."""
    import yaml

    if document.stamp:
        raise ReleaseError(f"{document.product.name!r} is {document.stamp}; register a release with secure noise")
    slug = re.sub(r"[^a-z0-9]+", "-", document.product.name.lower()).strip("-") or "release"
    entry = {"url_slug": slug, "deployment": _deployment(document)}
    return _HEAD + yaml.safe_dump(entry, sort_keys=False, allow_unicode=True, width=10**6)


def _deployment(document: Document) -> dict[str, Any]:
    product = document.product
    return {
        "basic": {
            "name": product.name,
            "data_curators": [{"data_curator_name": product.curator, "data_curator_type": NOT_STATED}],
            "description": product.description,
            "intended_use": product.intended_use,
            "data_product_type": "Machine learning model",
            "data_product_region": NOT_STATED,
            "data_product_sector": NOT_STATED,
            "publication_date": product.date,
        },
        "dp_variant": {
            "variant_name": _VARIANTS[document.variant.variant],
            "data_domain": document.variant.data_domain,
            "unprotected_quantities": "; ".join(document.variant.unprotected_quantities) or "none",
        },
        "privacy_loss": _privacy_loss(document),
        "deployment_model": {
            "model_name": document.trust.setting.capitalize(),
            "trust_assumptions": document.trust.who_sees_what,
            "actors": "the curator; whoever obtains the release",
            "release_type": "One release",
            "release_type_details": f"{document.pattern.pattern}; ledger: {document.pattern.ledger}",
            "data_source_type": "Static",
            "access_type": "Non-interactive",
        },
        "implementation": _implementation(document),
        "administrative": {"status": "Draft", "registry_authors": [NOT_STATED], "tier": 3},
    }


def _privacy_loss(document: Document) -> dict[str, Any]:
    parameters, unit = document.parameters, document.privacy_unit
    at_delta = parameters.epsilons[0]
    pure = parameters.pure_epsilon != "inf"
    return {
        "privacy_unit": Unit(unit.adjacency).entity,
        "privacy_unit_details": f"{unit.adjacency}: {unit.hides}; {unit.contribution_bound}",
        "privacy_parameters": {
            "epsilon": parameters.pure_epsilon if pure else at_delta.epsilon,
            "delta": 0.0 if pure else at_delta.delta,
            **({} if parameters.rho == "inf" else {"rho": parameters.rho}),
        },
        "privacy_parameters_details": document.accounting.statement,
    }


def _implementation(document: Document) -> dict[str, str]:
    implementation = document.implementation
    versions = _listed(implementation.versions)
    return {
        "preprocessing_and_hyperparameter_tuning": f"covered: {document.accesses.covered}; "
        f"not covered: {document.accesses.outside}",
        "mechanisms": f"{_listed(document.mechanisms.facts)}; randomness: {implementation.randomness}; "
        f"floating point: {implementation.float_defences}; versions: {versions}; commit: {implementation.commit}",
        "composition": f"{document.accounting.composition}; {document.accounting.method}",
        "post_processing": document.post_processing.post_processing,
        "justification": "; ".join(document.accounting.assumptions),
        "utility": _utility(document.utility),
        "additional_information": f"{document.contents.what}; empirical audit: {document.audit.result}",
    }


def _utility(utility: Utility | str) -> str:
    if isinstance(utility, str):
        return utility
    low, high = utility.interval
    return (
        f"on {utility.test_set} ({utility.rows} rows, {utility.protection}): accuracy {utility.accuracy:.4g}, "
        f"balanced accuracy {utility.balanced_accuracy:.4g}; "
        f"95 % interval of {utility.interval_of} {low:.4g} to {high:.4g}"
    )


def _listed(facts: dict[str, Any]) -> str:
    texts = {name: ", ".join(map(str, fact)) if isinstance(fact, tuple) else fact for name, fact in facts.items()}
    return "; ".join(f"{name}: {text}" for name, text in texts.items()) or NOT_STATED
