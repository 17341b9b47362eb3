"""Write every role's README.md from its argument_specs and defaults; with --check only judge.

Fails when a README is stale, and when its sources disagree: a default in meta/argument_specs.yml
that is not the one in defaults/main.yml, or a default that meta/argument_specs.yml does not know.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
# Ansible's markup in descriptions: V(true), O(name), C(text), M(module), …
# How a role is used that shows no example of its own.
USE = "- hosts: gpu_hosts\n  become: true\n  roles:\n    - role: steadygpu.host."
MARKUP = re.compile(r"\b[CIBVOEPM]\(([^)]*)\)")


def load(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file; empty when the file is missing or empty."""
    return (yaml.safe_load(path.read_text()) or {}) if path.exists() else {}


def prose(text: str | list[str], between: str = "\n\n") -> str:
    """Description paragraphs as Markdown."""
    paragraphs = [text] if isinstance(text, str) else text
    return between.join(MARKUP.sub(_code, paragraph.strip()) for paragraph in paragraphs)


def _code(markup: re.Match[str]) -> str:
    # P(name#type) names a plugin of a type; a person needs the name.
    return f"`{markup[1].partition('#')[0]}`"


def disagreements(role: Path, options: dict[str, Any], defaults: dict[str, Any]) -> Iterator[str]:
    """Where argument_specs and defaults contradict each other, one sentence each."""
    where = f"roles/{role.name}"
    for name in defaults.keys() - options.keys():
        yield f"{where}/meta/argument_specs.yml lacks {name}, which defaults/main.yml sets"
    for name, option in options.items():
        if not name.startswith(f"{role.name}_"):
            yield f"{where}/meta/argument_specs.yml: {name} wants the prefix {role.name}_"
        if "default" in option and option["default"] != defaults.get(name):
            yield (
                f"{where}: {name} has the default {option['default']!r} in meta/argument_specs.yml "
                f"and {defaults.get(name)!r} in defaults/main.yml; make them one"
            )


def entries(options: dict[str, Any], defaults: dict[str, Any], indent: str) -> Iterator[str]:
    """One Markdown list item for each option, suboptions nested below it."""
    for name, option in options.items():
        kind = option.get("type", "str")
        if option.get("elements"):
            kind = f"{kind} of {option['elements']}"
        facts, block = [kind], ""
        default = defaults.get(name, option.get("default"))
        if option.get("required"):
            facts.append("required")
        elif isinstance(default, (dict, list)) and default:
            facts.append("default below")
            dumped = yaml.safe_dump(default, sort_keys=False, width=110).splitlines()
            fenced = ["```yaml", *dumped, "```"]
            block = "\n" + "".join(f"\n{indent}  {line}" for line in fenced)
        elif default is not None:
            facts.append(f"default `{yaml.safe_dump(default).splitlines()[0]}`")
        if option.get("choices"):
            facts.append("one of " + ", ".join(f"`{choice}`" for choice in option["choices"]))
        text = prose(option["description"], " ")
        yield f"{indent}- **`{name}`** ({', '.join(facts)}): {text}{block}"
        yield from entries(option.get("options", {}), {}, indent + "  ")


def readme(role: Path, spec: dict[str, Any], defaults: dict[str, Any]) -> str:
    """The whole README of one role."""
    variables = list(entries(spec.get("options", {}), defaults, "")) or ["It has none."]
    return "\n".join(
        [
            f"# Role `steadygpu.host.{role.name}`",
            "",
            "<!-- Made by `make readmes` from meta/argument_specs.yml and defaults/main.yml. -->",
            "",
            prose(spec["short_description"]).rstrip(".") + ".",
            "",
            prose(spec.get("description", [])),
            "",
            "```yaml",
            *spec.get("examples", f"{USE}{role.name}\n").splitlines(),
            "```",
            "",
            "## Variables",
            "",
            *variables,
            "",
        ]
    )


def main() -> int:
    """Write or check the READMEs; the number of faults, at most 1."""
    check = "--check" in sys.argv[1:]
    faults: list[str] = []
    for specs in sorted(ROOT.glob("roles/*/meta/argument_specs.yml")):
        role = specs.parent.parent
        spec = load(specs)["argument_specs"]["main"]
        defaults = load(role / "defaults/main.yml")
        faults += disagreements(role, spec.get("options", {}), defaults)
        target, text = role / "README.md", readme(role, spec, defaults)
        if check and (not target.exists() or target.read_text() != text):
            faults.append(f"roles/{role.name}/README.md is stale: run `make readmes`")
        elif not check:
            target.write_text(text)
    faults += [
        f"{tasks.parent.parent.relative_to(ROOT)} has no meta/argument_specs.yml"
        for tasks in sorted(ROOT.glob("roles/*/tasks/main.yml"))
        if not (tasks.parent.parent / "meta/argument_specs.yml").exists()
    ]
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
