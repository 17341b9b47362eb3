# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NVML through pynvml: one session, in which everything the inventory needs is asked.

Call :func:`read_all` in a process of its own (``nvml_reader``): a call into a sick
driver may never return, and an open NVML handle blocks MIG changes and GPU resets.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from . import nvml_fields, nvml_pairs
from .nvml_library import Library, RefusedError

# The pynvml that travels in the installed agent serves hosts without a package of it.
AGENT_GENERATION = "/usr/local/lib/steadygpu/current"


def load() -> Any | None:
    """The pynvml module of this interpreter or of the installed agent, None without one."""
    try:
        return importlib.import_module("pynvml")
    except ImportError:
        pass
    sys.path.append(AGENT_GENERATION)
    try:
        return importlib.import_module("pynvml")
    except ImportError:
        return None
    finally:
        sys.path.remove(AGENT_GENERATION)


def read_all(nvml: Any) -> dict[str, Any]:
    """Ask NVML everything the inventory needs and close it again.

    Returns JSON types: ``driver_version``, ``library_version``, ``cuda_version``,
    ``devices`` (keys as in ``model.Device``, and ``processes``), the matrices ``levels``
    and ``p2p`` (``nvml_pairs``) and ``error``, which is None or ``{code, text}`` of the call
    that made NVML useless. One sick device is told in that device's ``error``; the others
    are read all the same.
    """
    library = Library(nvml)
    report: dict[str, Any] = {
        "driver_version": None,
        "library_version": None,
        "cuda_version": None,
        "devices": [],
        "levels": None,
        "p2p": None,
        "error": None,
    }
    try:
        library.ask("nvmlInit")
        try:
            _read_session(library, report)
        finally:
            library.ask_lightly("nvmlShutdown")
    except RefusedError as refused:
        report["error"] = {"code": refused.code, "text": refused.text}
    # pynvml loads the library in nvmlInit; its version can be asked even when that failed.
    report["library_version"] = _library_version(library.ask_lightly("nvmlSystemGetNVMLVersion"))
    return report


def _read_session(library: Library, report: dict[str, Any]) -> None:
    report["driver_version"] = library.ask("nvmlSystemGetDriverVersion")
    report["cuda_version"] = _cuda_version(library.ask_lightly("nvmlSystemGetCudaDriverVersion_v2"))
    handles = [_handle(library, index) for index in range(library.ask("nvmlDeviceGetCount"))]
    report["devices"] = [
        nvml_fields.read(library, index, handle) for index, handle in enumerate(handles)
    ]
    known = [None if isinstance(handle, RefusedError) else handle for handle in handles]
    report["levels"] = nvml_pairs.levels(library, known)
    report["p2p"] = nvml_pairs.p2p(library, known)


def _handle(library: Library, index: int) -> Any:
    """The handle of a device, or the RefusedError that stands for it."""
    try:
        return library.ask("nvmlDeviceGetHandleByIndex", index)
    except RefusedError as refused:
        return refused


def _library_version(text: str | None) -> str | None:
    """``12.550.163.01`` is NVML API 12 of driver release 550.163.01."""
    return text.partition(".")[2] if text else None


def _cuda_version(number: int | None) -> str | None:
    """12040 is CUDA 12.4 (nvml.h, NVML_CUDA_DRIVER_VERSION_MAJOR)."""
    return f"{number // 1000}.{number % 1000 // 10}" if number else None
