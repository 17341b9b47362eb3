# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules on how a Compose file is written: what Compose refuses before an engine is asked. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ..documents.compose import ComposeFault
from ..host import HostView
from ..model import Hit, Judge, Severity
from ..registry import rule

_SEEN = "seen on Compose 2.26.1 and 2.40.3"
_SCHEMA = "compose-spec/compose-go schema/compose-spec.json"


def _of_kind(kind: str) -> Judge:
    def judge(fault: ComposeFault, host: HostView) -> Iterator[Hit]:
        if fault.kind == kind:
            severity = Severity.INFO if fault.mild else None
            yield Hit(fault.at, fault.seen, fault.fix, severity=severity)

    return judge


def _fault(
    rule_id: str,
    title: str,
    reason: str,
    fix: str,
    source: str = _SCHEMA,
    severity: Severity = Severity.FATAL,
    row: str = "",
) -> None:
    rule(
        rule_id,
        title,
        severity,
        reads=ComposeFault,
        reason=reason,
        fix=fix,
        sources=(source, _SEEN),
        row=row,
    )(_of_kind(rule_id))


_fault(
    "compose-unknown-key",
    "Compose does not know this key",
    "Compose compares a file with its schema and refuses keys that are not in it: nothing starts. "
    "Keys of your own begin with x-.",
    "Remove the key, or write the one that Compose has for it.",
)
_fault(
    "compose-undefined-name",
    "a network, volume, secret or config that the file does not define",
    "Every name that a service uses has to stand under networks:, volumes:, secrets: or configs: "
    "at the top level; Compose refuses the project otherwise.",
    "Define it at the top level, with external: true where it exists already.",
    "compose-spec/compose-go loader/validate.go",
)
_fault(
    "compose-wrong-type",
    "a value is written in a way that Compose refuses",
    "Compose's schema says for each key whether it is a string, a number, a list or a mapping; a "
    "number where a text is wanted is refused too. Nothing starts.",
    "Write the value as the message says.",
)
_fault(
    "compose-environment-item",
    "an element of a list of variables is a mapping",
    "A list has elements like NAME=value. '- NAME: value' is a mapping inside a list, which "
    "Compose refuses as an unexpected type.",
    "Write '- NAME=value', or the whole as a mapping without dashes.",
    "compose-spec/compose-go transform package",
)
_fault(
    "compose-bad-interpolation",
    "a dollar sign and brace that Compose takes for a broken variable",
    "Compose puts in variables itself before any shell sees the text, and knows ${NAME} with the "
    "operators :- - :? ? :+ + only. Anything else in braces is refused and nothing starts.",
    "Write $${...} where the shell in the container shall read it.",
    "compose-spec/compose-go template/template.go",
)
_fault(
    "compose-device-ids-not-text",
    "device_ids must be a list of strings",
    "Compose wants every element of device_ids to be a string; 0 without quotes is a number "
    "and the file is refused: device_ids.0 must be a string.",
    "Put each id in quotes: device_ids: ['0'].",
)
_fault(
    "compose-first-format",
    "the first Compose format, services at the top of the file",
    "Compose since 2.0 reads services under the key services only; a service at the top of the "
    "file is an unknown key and the file is refused.",
    "Write the services under services:.",
)
_fault(
    "compose-extends-cycle",
    "services extend one another in a circle",
    "Compose follows extends until a service extends nothing; a circle is refused.",
    "Take one extends out of the circle.",
    "compose-spec/compose-go loader/extends.go",
)
_fault(
    "compose-extends-missing",
    "extends names a service that is not there",
    "Compose reads the extended service from the named file, or from the same file; where it is "
    "not there nothing starts.",
    "Name a service that the file has.",
    "compose-spec/compose-go loader/extends.go",
)
_fault(
    "compose-extends-unread",
    "extends names a file that is not here",
    "What the other file says of the service, GPUs perhaps, is not judged.",
    "Check the files together, in the directory they are used in.",
    "compose-spec/compose-go loader/extends.go",
    Severity.INFO,
)
