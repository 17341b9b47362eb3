"""Make DIR a home directory in which ansible-test needs a package index and nothing else.

ansible-test hides the environment from the pip it runs, and downloads get-pip.py from a server of
its own. So the machine's pip configuration, wherever it comes from, is written to a file, and our
get_pip.py lies in the cache where the download would land.
"""

from __future__ import annotations

import ast
import configparser
import shutil
import subprocess
import sys
from pathlib import Path

# One name for each pip release that an ansible-core from 2.19 to 2.21 brings.
BOOTSTRAPPED_PIPS = ("24_2", "25_2")


def effective_pip_configuration() -> configparser.RawConfigParser:
    """What pip uses here: files, and PIP_* variables, which win over files as they do in pip."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], check=True, capture_output=True, text=True
    )
    configuration = configparser.RawConfigParser()
    # `global.cert='/etc/…'` or `:env:.cert='/etc/…'`, one a line.
    for line in sorted(listed.stdout.splitlines(), key=lambda line: line.startswith(":env:")):
        name, value = line.split("=", 1)
        section, key = name.rsplit(".", 1)
        section = section.replace(":env:", "global")
        if not configuration.has_section(section):
            configuration.add_section(section)
        configuration.set(section, key, ast.literal_eval(value))
    return configuration


def main() -> None:
    """Prepare the directory given as the only argument."""
    home = Path(sys.argv[1])

    cache = home / ".ansible/test/cache"
    cache.mkdir(parents=True, exist_ok=True)
    for version in BOOTSTRAPPED_PIPS:
        shutil.copy(Path(__file__).with_name("get_pip.py"), cache / f"get_pip_{version}.py")

    configuration = effective_pip_configuration()
    if not configuration.has_section("global"):
        configuration.add_section("global")
    configuration.set("global", "quiet", "2")
    configuration.remove_option("global", "config-file")
    target = home / ".config/pip/pip.conf"
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("w", encoding="utf-8") as file:
        configuration.write(file)


if __name__ == "__main__":
    main()
