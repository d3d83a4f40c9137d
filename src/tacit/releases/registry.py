"""A release as an entry for OpenDP's registry of deployments
(github.com/opendp/deployments-registry-data).

The classes here state the fields of the registry's schema that a release fills in; the registry
takes no others.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from tacit.errors import ReleaseError
from tacit.privacy.unit import Unit
from tacit.privacy.words import DECISIVE
from tacit.releases.fields import NOT_STATED
from tacit.releases.measured import PaidUtility
from tacit.releases.schema import Document, LabelSetUtility, Utility

_COMMENT = (
    "# Entry for the OpenDP deployments registry. Before submitting it, fill in what is"
    ' "not stated", and add the sector\n'
    "# (data_product_sector) under basic. How many records there were is left out: the release"
    " does not tell.\n"
)

# The registry's names of the variants in item 2 of a document.
_VARIANTS = {"pure": "Pure DP", "zCDP": "Zero-concentrated DP", "approximate": "Approximate DP"}


class _Part(BaseModel):
    # pydantic would warn of the field `model_name`, since its own methods begin with "model_"
    model_config = ConfigDict(extra="forbid", protected_namespaces=())


class Basic(_Part):
    """The deployment, and who made it."""

    name: str
    data_curators: list[str]
    description: str
    intended_use: str
    data_product_type: Literal["Machine learning model"] = "Machine learning model"
    data_product_region: str = NOT_STATED
    publication_date: str


class Variant(_Part):
    """The variant of differential privacy."""

    variant_name: Literal["Pure DP", "Approximate DP", "Zero-concentrated DP"]
    data_domain: str
    unprotected_quantities: str


class PrivacyLoss(_Part):
    """The unit and the parameters."""

    privacy_unit: str
    privacy_unit_details: str
    privacy_parameters: dict[str, float]
    privacy_parameters_details: str


class DeploymentModel(_Part):
    """Who sees what, and what is released."""

    model_name: Literal["Central"]
    actors: str
    release_type: Literal["One release"] = "One release"
    release_type_details: str
    data_source_type: Literal["Static"] = "Static"
    access_type: Literal["Non-interactive"] = "Non-interactive"


class Accounting(_Part):
    """Composition of costs."""

    post_processing: str
    composition: str


class Implementation(_Part):
    """Facts of the implementation."""

    preprocessing_and_hyperparameter_tuning: str
    mechanisms: str
    justification: str


class Administrative(_Part):
    """About the entry."""

    notes: str
    registry_authors: list[str]


class Deployment(_Part):
    """The parts of an entry."""

    basic: Basic
    dp_variant: Variant
    privacy_loss: PrivacyLoss
    deployment_model: DeploymentModel
    accounting: Accounting
    implementation: Implementation
    administrative: Administrative


class Entry(_Part):
    """An entry of the registry, newly authored ("Draft"), in the tier with most fields (3)."""

    url_slug: str
    status: Literal["Draft"] = "Draft"
    tier: Literal[3] = 3
    deployment: Deployment


def registry_yaml(document: Document) -> str:
    """Return the entry for `release.document` as YAML.

    Raises
    ------
    ReleaseError
        If the release is stamped "NOT FOR RELEASE".
    """
    import yaml

    if document.stamp:
        raise ReleaseError(
            f"{document.product.name!r} is {document.stamp}; register a release with secure noise"
        )

    name = document.product.name.lower()
    slug = re.sub(r"[^a-z0-9]+", "-", name).strip("-") or "release"
    entry = Entry(url_slug=slug, deployment=_deployment(document))

    # a text stays on one line, however long
    text = yaml.safe_dump(entry.model_dump(), sort_keys=False, allow_unicode=True, width=10**6)
    return _COMMENT + text


def _deployment(document: Document) -> Deployment:
    """All parts of the entry but its address and status."""
    product = document.product
    variant = document.variant
    accounting = document.accounting
    return Deployment(
        basic=Basic(
            name=product.name,
            data_curators=[product.curator],
            description=product.description,
            intended_use=product.intended_use,
            publication_date=product.date,
        ),
        dp_variant=Variant(
            variant_name=_VARIANTS[variant.variant],  # type: ignore[arg-type]  # checked by the model
            data_domain=variant.data_domain,
            unprotected_quantities="; ".join(variant.unprotected_quantities) or "none",
        ),
        privacy_loss=_privacy_loss(document),
        deployment_model=DeploymentModel(
            model_name=document.trust.setting.capitalize(),  # type: ignore[arg-type]  # checked by the model
            actors=(
                f"the curator; whoever obtains the release. Trust: {document.trust.who_sees_what}"
            ),
            release_type_details=f"{document.pattern.pattern}; ledger: {document.pattern.ledger}",
        ),
        accounting=Accounting(
            post_processing=document.post_processing.post_processing,
            composition=f"{accounting.composition}; {accounting.method}",
        ),
        implementation=_implementation(document),
        administrative=Administrative(
            notes=(
                f"{document.contents.what}; utility: {_utility(document.utility)}; "
                f"empirical audit: {document.audit.result}"
            ),
            registry_authors=[NOT_STATED],
        ),
    )


def _privacy_loss(document: Document) -> PrivacyLoss:
    """The unit, and the pure epsilon if there is one, else epsilon at the delta DECISIVE, at which
    every release states one.
    """
    unit = document.privacy_unit
    parameters = document.parameters

    # "inf" stands for numbers without a bound, since JSON has no infinity
    numbers: dict[str, Any] = {"epsilon": parameters.pure_epsilon, "delta": 0.0}
    if parameters.pure_epsilon == "inf":
        point = next(point for point in parameters.epsilons if point.delta == DECISIVE)
        numbers = {"epsilon": point.epsilon, "delta": point.delta}
    if parameters.rho != "inf":
        numbers["rho"] = parameters.rho

    return PrivacyLoss(
        privacy_unit=Unit(unit.adjacency).entity,
        privacy_unit_details=f"{unit.adjacency}: {unit.hides}; {unit.contribution_bound}",
        privacy_parameters=numbers,
        privacy_parameters_details=document.accounting.statement,
    )


def _implementation(document: Document) -> Implementation:
    """Steps before and after the mechanisms, the mechanisms, and why they are private."""
    implementation = document.implementation
    mechanisms = _listing(document.mechanisms.facts)
    versions = _listing(implementation.versions)
    return Implementation(
        preprocessing_and_hyperparameter_tuning=(
            f"covered: {document.accesses.covered}; not covered: {document.accesses.outside}"
        ),
        mechanisms=(
            f"{mechanisms}; randomness: {implementation.randomness}; floating point:"
            f" {implementation.float_defences}; versions: {versions}; commit:"
            f" {implementation.commit}"
        ),
        justification="; ".join(document.accounting.assumptions),
    )


def _utility(utility: Utility | LabelSetUtility | PaidUtility | str) -> str:
    """Item 15 on one line; "not stated" if nothing was measured."""
    if isinstance(utility, str):
        return utility
    if isinstance(utility, PaidUtility):
        low, high = utility.interval
        return (
            f"on {utility.test_set} (about {max(utility.records, 0):.0f} records,"
            f" {utility.protection}): accuracy {_figure(utility.accuracy)}, balanced accuracy"
            f" {_figure(utility.balanced_accuracy)}; 95 % interval of balanced accuracy {low:.4g}"
            f" to {high:.4g}; {utility.statement}"
        )

    if isinstance(utility, LabelSetUtility):
        figures = (
            f"mean average precision {utility.mean_average_precision:.4g}, micro F1"
            f" {utility.micro_f1:.4g}, macro F1 {utility.macro_f1:.4g}"
        )
    else:
        figures = (
            f"accuracy {utility.accuracy:.4g}, balanced accuracy {utility.balanced_accuracy:.4g}"
        )
    low, high = utility.interval
    return (
        f"on {utility.test_set} ({utility.rows} rows, {utility.protection}): {figures}; 95 %"
        f" interval of {utility.interval_of} {low:.4g} to {high:.4g}"
    )


def _figure(figure: float | str) -> str:
    """A figure, or that it is hidden."""
    return figure if isinstance(figure, str) else f"{figure:.4g}"


def _listing(facts: dict[str, Any]) -> str:
    """Facts by name on one line; "not stated" if there are none."""
    parts = []
    for name, fact in facts.items():
        text = str(fact)
        if isinstance(fact, tuple):
            text = ", ".join(map(str, fact))
        parts.append(f"{name}: {text}")
    return "; ".join(parts) or NOT_STATED
