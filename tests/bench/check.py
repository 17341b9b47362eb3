# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ``steadygpu check`` costs: its start, one file, and 1,000 Compose files.

Usage: ``make bench``, or ``python tests/bench/check.py`` in the project's environment. Each figure
is the median of several whole processes of a checkout, whose modules are compiled, as those of a
generation on a host are.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
FILES = 1000
ROUNDS = 5
CHECKOUT = ("-m", "steadygpu_agent")
# As in the zipapp, whose PyYAML is pure Python.
WITHOUT_LIBYAML = (
    "-c",
    "import sys, yaml; yaml.__dict__.pop('CSafeLoader', None); "
    "from steadygpu_agent.cli import main; sys.exit(main())",
)
# A service of a usual length; each file has two or three of them and differs from the others.
SERVICE = """\
  worker{number}:
    image: registry.example.invalid/team/worker:{number}
    restart: unless-stopped
    command: ["python", "-m", "worker", "--port", "{port}"]
    environment:
      - NVIDIA_VISIBLE_DEVICES=all
      - MODEL_NAME=${{MODEL_NAME:-model-{number}}}
    ports:
      - "127.0.0.1:{port}:8000"
    volumes:
      - ./models:/models:ro
      - cache{number}:/cache
    shm_size: 8gb
    deploy:
      resources:
        limits:
          memory: 32g
        reservations:
          devices:
            - driver: nvidia
              device_ids: ["{gpu}"]
              capabilities: [gpu]
"""


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as scratch:
        many = Path(scratch, "many")
        one = Path(scratch, "one")
        one.mkdir()
        for number in range(FILES):
            folder = many / f"p{number}"
            folder.mkdir(parents=True)
            (folder / "compose.yml").write_text(_compose(number))
        (one / "compose.yml").write_text(_compose(0))
        start = _median(["--version"], ROUNDS)
        single = _median(["check", str(one)], ROUNDS)
        all_of_them = _median(["check", str(many)], 3)
        pure = _median(["check", str(many)], 3, WITHOUT_LIBYAML)
    print("| what | seconds |\n|---|---|")
    print(f"| start (`--version`) | {start:.2f} |")
    print(f"| one Compose file | {single:.2f} |")
    print(f"| {FILES} Compose files, {_cpus()} CPUs | {all_of_them:.2f} |")
    print(f"| the same without start | {all_of_them - single:.2f} |")
    print(f"| the same without start and without libyaml | {pure - single:.2f} |")


def _compose(number: int) -> str:
    services = [
        SERVICE.format(number=n, port=8000 + n, gpu=n % 4)
        for n in range(number, number + 2 + number % 2)
    ]
    return "services:\n" + "".join(services)


def _median(arguments: list[str], rounds: int, program: tuple[str, ...] = CHECKOUT) -> float:
    path = os.pathsep.join((str(ROOT / "build" / "collections"), str(ROOT / "agent")))
    seconds = []
    for _round in range(rounds + 1):
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, *program, *arguments],
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            check=False,
            text=True,
        )
        seconds.append(time.perf_counter() - began)
        if done.returncode not in (0, 1):
            raise SystemExit(f"{arguments}: status {done.returncode}\n{done.stdout[-2000:]}")
    # The first one compiles and warms the page cache.
    return median(seconds[1:])


def _cpus() -> int:
    return len(os.sched_getaffinity(0))


if __name__ == "__main__":
    main()
