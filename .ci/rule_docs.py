"""Write the rules as pages: docs/rules/, docs/rules.md, docs/invented.md, docs/versions.md.

With --check nothing is written, and it fails when a page is stale. The sources are the rules in
plugins/module_utils/checks/rules, their examples in tests/data/rules, and the version matrix.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "build" / "collections"))

from ansible_collections.steadygpu.host.plugins.module_utils.checks import (  # noqa: E402
    costs,
    registry,
)
from ansible_collections.steadygpu.host.plugins.module_utils.checks.model import (  # noqa: E402
    Finding,
    Rule,
)
from ansible_collections.steadygpu.host.plugins.module_utils.checks.versions import (  # noqa: E402
    matrix,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.checks import (  # noqa: E402
    rule_examples,
)
from ansible_collections.steadygpu.host.tests.unit.module_utils.checks.rule_examples import (  # noqa: E402
    Example,
)

MADE = "<!-- Made by `make readmes` from the rules and their examples. -->"
# The types that rules read, in words; one that is not here is told by its own name.
READS = {
    "AnsibleFile": "Ansible plays, tasks and variables",
    "AptSources": "apt sources",
    "CdiSpec": "CDI specifications",
    "ChartValues": "Helm values of the GPU operator and the device plugin",
    "CommandLine": "commands in scripts",
    "ComposeFault": "Compose files that Compose refuses",
    "ComposeFile": "Compose files",
    "ContainerSpec": "run lines, Compose services and docker_container tasks",
    "ContainerdConfig": "containerd's config.toml",
    "DaemonConfig": "daemon.json",
    "DriverLog": "messages of the driver in dmesg and logs",
    "EnvFile": "files of environment variables",
    "FlagFault": "run lines that docker's own flag grammar refuses",
    "HostView": "hosts",
    "IgnoreComment": "comments that ignore rules",
    "IrqbalanceFile": "irqbalance's settings",
    "KernelCmdline": "kernel command lines",
    "KubeObject": "Kubernetes objects",
    "LogText": "logs",
    "OciHooks": "OCI hooks",
    "PackageOutput": "output of apt",
    "PciListing": "output of lspci",
    "SmiGpu": "output of nvidia-smi",
    "SysctlFile": "sysctl settings",
    "ToolkitConfig": "the NVIDIA Container Toolkit's config.toml",
    "TopologyTable": "output of nvidia-smi topo",
    "UnitFile": "systemd units and slices",
    "Variable": "variables in scripts",
    "Workload": "pods and what makes pods",
}
FENCES = {
    **dict.fromkeys(("host", "compose", "kubernetes", "ansible"), "yaml"),
    **dict.fromkeys(("daemon_json", "oci_hooks"), "json"),
    **dict.fromkeys(("containerd_toml", "toolkit_toml"), "toml"),
    "unit": "ini",
}


def examples() -> dict[str, Example]:
    """The first example of each rule."""
    found: dict[str, Example] = {}
    for example in rule_examples.load():
        found.setdefault(example.rule, example)
    return found


def said(example: Example) -> Finding:
    """What the rule of an example says of its first bad input."""
    found = rule_examples.findings(example, example.bad[0])
    return next(finding for finding in found if finding.rule == example.rule)


def reads(rule: Rule) -> str:
    """What a rule judges, in words."""
    name = rule.reads.__name__
    if name in READS:
        return READS[name]
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)
    return words.strip() + "s"


def page(rule: Rule, example: Example | None) -> str:
    """The page of one rule."""
    versions = "; ".join(f"{need.component} {need.wanted}" for need in rule.needs) or "all"
    lines = [
        f"# {rule.id}",
        "",
        MADE,
        "",
        f"**{rule.title}**",
        "",
        f"- severity: {rule.severity.label}"
        + (f" ({rule.unknown.label} where the version is not known)" if rule.unknown else ""),
        f"- judges: {reads(rule)}",
        f"- versions: {cell(versions)}",
        "",
        f"Why: {prose(rule.reason)}",
        "",
        f"Fix: {prose(rule.fix)}",
        "",
        *(shown(example, rule) if example else []),
        "Sources:",
        "",
        *(f"- {prose(source)}" for source in rule.sources),
        "",
    ]
    if rule.row:
        lines += ["See also [what was invented](../invented.md).", ""]
    return "\n".join(lines)


def shown(example: Example, rule: Rule) -> list[str]:
    """The bad input of an example and what is said of it, and the good one, as code blocks."""
    assumed = ", ".join(f"`{key}={value}`" for key, value in example.assume.items())
    # The paths of a host are those of its facts; docs/facts.md has what is below gpu.
    where = " on a host with" if example.kind == "host" else ""
    judged = f" (for {assumed})" if assumed else ""
    return [
        *block(f"Found{where}{judged}:", example, example.bad[0]),
        *answer(said(example), rule),
        *block(f"Nothing found{where}:", example, example.good[0]),
    ]


def block(head: str, example: Example, given: Any) -> list[str]:
    """One input as a code block; nothing for the host as it is."""
    if given is None:
        return []
    if isinstance(given, dict):
        given = yaml.safe_dump(given, sort_keys=False, width=100)
    body = str(given).rstrip("\n")
    marks = "````" if "```" in body else "```"
    return [head, "", marks + FENCES.get(example.kind, "text"), body, marks, ""]


def answer(finding: Finding, rule: Rule) -> list[str]:
    """What is said of an example: what is seen there, and what to write and run instead."""
    lines = [f"> {prose(finding.seen)}"]
    if finding.fix != rule.fix:
        lines += [">", f"> {prose(finding.fix)}"]
    if finding.commands:
        run = [line for command in finding.commands for line in command.splitlines()]
        lines += [">", "> ```sh", *(f"> {line}" for line in run), "> ```"]
    for told in costs.costs(finding.commands):
        lines += [">", f"> Careful: {prose(told)}"]
    return [*lines, ""]


def index(rules: Mapping[str, Rule]) -> str:
    """The list of all rules, by what they judge."""
    by_subject: dict[str, list[Rule]] = defaultdict(list)
    for rule in rules.values():
        by_subject[reads(rule)].append(rule)
    lines = [
        "# Rules",
        "",
        MADE,
        "",
        f"The {len(rules)} rules of `steadygpu check`. Fatal: it will not start. Error: it will "
        "not do what is meant. Warning: a risk. Info: worth knowing. In a terminal: "
        "`steadygpu rules`, `steadygpu rules ID`.",
        "",
    ]
    for subject in sorted(by_subject):
        lines += [f"## {subject[0].upper()}{subject[1:]}", "", "| rule | severity | finds |"]
        lines.append("|---|---|---|")
        for rule in sorted(by_subject[subject], key=lambda one: (-one.severity, one.id)):
            lines.append(
                f"| [{rule.id}](rules/{rule.id}.md) | {rule.severity.label} | {cell(rule.title)} |"
            )
        lines.append("")
    return "\n".join(lines)


def invented(rules: Mapping[str, Rule], given: Mapping[str, Example]) -> str:
    """The rules that answer what articles recommend and what is not so, by what they judge."""
    by_subject: dict[str, list[Rule]] = defaultdict(list)
    for rule in rules.values():
        if rule.row:
            by_subject[reads(rule)].append(rule)
    lines = [
        "# What was invented, and what to use instead",
        "",
        MADE,
        "",
        "Articles and answers recommend flags, keys and commands that do not exist, that do "
        "something else, or that are out of date. Each that the checks know, by where it stands.",
        "",
    ]
    for subject in sorted(by_subject):
        lines += [f"## {subject[0].upper()}{subject[1:]}", ""]
        lines += ["| what | for example | instead | rule |", "|---|---|---|---|"]
        for rule in sorted(by_subject[subject], key=lambda one: one.id):
            link = f"[{rule.id}](rules/{rule.id}.md)"
            example = given.get(rule.id)
            line = in_a_line(example) if example else ""
            instead = said(example).fix if example and line else rule.fix
            lines.append(f"| {cell(rule.title)} | {line} | {cell(instead)} | {link} |")
        lines.append("")
    return "\n".join(lines)


def in_a_line(example: Example) -> str:
    """The bad input of an example as code in a table; "" where it is longer than a line."""
    first = example.bad[0]
    line = first.strip() if isinstance(first, str) else ""
    if not line or "\n" in line or "`" in line or len(line) > 90:
        return ""
    return "`" + line.replace("|", "\\|") + "`"


def prose(text: str) -> str:
    """Text of a rule as Markdown: what looks like markup is not."""
    return text.replace("<", "\\<").replace("*", "\\*").replace("[", "\\[").replace("_", "\\_")


def cell(text: str) -> str:
    """The same in a table."""
    return prose(" ".join(text.split())).replace("|", "\\|")


def pages() -> dict[Path, str]:
    """Every page that is made, with its text."""
    rules = registry.all_rules()
    given = examples()
    docs = ROOT / "docs"
    made = {
        docs / "rules" / f"{name}.md": page(rule, given.get(name)) for name, rule in rules.items()
    }
    made[docs / "rules.md"] = index(rules)
    made[docs / "invented.md"] = invented(rules, given)
    made[docs / "versions.md"] = matrix.table()
    return made


def main(arguments: Sequence[str]) -> int:
    """Write or check the pages; 1 when one is stale."""
    made = pages()
    gone = set((ROOT / "docs" / "rules").glob("*.md")) - set(made)
    if "--check" not in arguments:
        (ROOT / "docs" / "rules").mkdir(parents=True, exist_ok=True)
        for path, text in made.items():
            path.write_text(text)
        for path in gone:
            path.unlink()
        return 0
    stale = sorted(
        path for path, text in made.items() if not path.exists() or path.read_text() != text
    )
    for path in [*stale, *sorted(gone)]:
        print(f"{path.relative_to(ROOT)} is stale: run `make readmes`")
    return 1 if stale or gone else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
