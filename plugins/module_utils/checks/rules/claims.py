# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Claims that containers carry to the scheduler: annotation, variable, or wrongly a label. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ...claims import fit, grammar
from ...claims.contradictions import contradictions
from ...claims.model import ANNOTATION, VARIABLE, Claim, ClaimError
from ..documents.container import ContainerSpec
from ..host import HostView
from ..model import Given, Hit, Severity
from ..registry import rule
from .run_values import unsettled

_GRAMMAR = "docs/claims.md"


@rule(
    "claim-malformed",
    "A claim that cannot be read",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="A claim is key=value pairs with + between them. The scheduler refuses to start a "
    "container whose claim it cannot read, rather than guess what was meant.",
    fix="Correct the claim; steadygpu claim check shows each fault under its place.",
    sources=(_GRAMMAR,),
    row="61",
)
def claim_malformed(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """One hit for each fault, with its place inside the claim."""
    for where, given in _carried(spec):
        try:
            grammar.parse(given.value)
        except ClaimError as error:
            for fault in error.faults:
                said = f"{where}, character {fault.column}: {fault.said}."
                yield Hit(given.at, said, fix=_sentence(fault.advice), commands=_check(given))


@rule(
    "claim-contradiction",
    "A claim that no host can meet",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="Two of its keys exclude each other, so the scheduler can never grant it.",
    fix="Leave one of the two out.",
    sources=(_GRAMMAR, "NVIDIA MIG user guide, application considerations"),
)
def claim_contradiction(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """What is wrong whatever the host has."""
    for where, given in _carried(spec):
        claim = _parsed(given)
        for conflict in contradictions(claim) if claim else ():
            yield Hit(given.at, f"{where}: {conflict.said}.", fix=_sentence(conflict.advice))


@rule(
    "claim-beyond-host",
    "A claim that this host cannot meet",
    Severity.ERROR,
    reads=ContainerSpec,
    reason="It asks for devices that the host does not have, so waiting does not help.",
    fix="Ask for what the host has, or start the container on another one.",
    sources=(_GRAMMAR,),
)
def claim_beyond_host(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Only where the host's GPUs are known."""
    for where, given in _carried(spec):
        claim = _parsed(given)
        if claim is None or contradictions(claim):
            continue
        for conflict in fit.conflicts(claim, host):
            yield Hit(given.at, f"{where}: {conflict.said}.", fix=_sentence(conflict.advice))


@rule(
    "claim-in-label",
    "A claim in a label",
    Severity.WARNING,
    reads=ContainerSpec,
    reason="Labels stay in the engine: they are not in the OCI configuration that a runtime gets, "
    "so nobody reads the claim when the container starts, and it gets its GPUs without it.",
    fix=f"Write it as an annotation, or for Compose and old engines as the variable {VARIABLE}.",
    sources=(_GRAMMAR, "moby daemon/oci_linux.go: annotations are passed on, labels are not"),
    row="59",
)
def claim_in_label(spec: ContainerSpec, host: HostView) -> Iterator[Hit]:
    """Not where the claim is also where it belongs."""
    given = spec.labels.get(ANNOTATION)
    if given is None or any(True for _found in _carried(spec)):
        return
    fix = f"--annotation {ANNOTATION}='{given.value}'" if spec.how in ("run", "create") else ""
    yield Hit(given.at, f"The label {ANNOTATION} holds a claim.", fix=fix)


def _carried(spec: ContainerSpec) -> Iterator[tuple[str, Given]]:
    """The claims a container carries, with the words for where; not one that a shell fills in."""
    found = (
        (f"annotation {ANNOTATION}", spec.annotations.get(ANNOTATION)),
        (f"variable {VARIABLE}", spec.env.get(VARIABLE)),
    )
    for where, given in found:
        if given is None or unsettled(given.value):
            continue
        # A variable without a value is taken from the caller's environment.
        if given.value or where.startswith("annotation"):
            yield where, given


def _parsed(given: Given) -> Claim | None:
    try:
        return grammar.parse(given.value)
    except ClaimError:
        return None


def _check(given: Given) -> tuple[str, ...]:
    if "'" in given.value or not given.value.isprintable():
        return ()
    return (f"steadygpu claim check --no-host '{given.value}'",)


def _sentence(advice: str) -> str:
    return f"{advice[:1].upper()}{advice[1:]}." if advice else ""
