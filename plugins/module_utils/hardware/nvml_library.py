# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One way to call NVML through pynvml, with errors a person understands.

The calls differ between releases of the library and of pynvml. A call that either of them
does not know is answered as NVML answers it: Function Not Found.
"""

from __future__ import annotations

from typing import Any

INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
DRIVER_NOT_LOADED = 9
TIMEOUT = 10
IRQ_ISSUE = 11
LIBRARY_NOT_FOUND = 12
FUNCTION_NOT_FOUND = 13
CORRUPTED_INFOROM = 14
GPU_IS_LOST = 15
RESET_REQUIRED = 16
OPERATING_SYSTEM = 17
LIBRARY_VERSION_MISMATCH = 18
ARGUMENT_VERSION_MISMATCH = 25
DEPRECATED = 26
UNKNOWN = 999

# These answers say "this GPU or this release has no such thing".
NO_SUCH_THING = (
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    FUNCTION_NOT_FOUND,
    ARGUMENT_VERSION_MISMATCH,
    DEPRECATED,
)
# These say that the GPU is sick, whatever was asked.
SICK = (TIMEOUT, IRQ_ISSUE, GPU_IS_LOST, RESET_REQUIRED)

_ADVICE = {
    NO_PERMISSION: "NVML tells this to root only",
    TIMEOUT: "the driver gave up waiting for the GPU; look at dmesg for NVRM",
    IRQ_ISSUE: "the kernel does not deliver the GPU's interrupts; look at dmesg for NVRM",
    CORRUPTED_INFOROM: "the GPU's own store of settings is damaged",
    GPU_IS_LOST: "it has fallen off the bus; drain the host and power cycle it",
    RESET_REQUIRED: "reset the GPU or reboot",
    OPERATING_SYSTEM: "the kernel or a device cgroup refused it",
    UNKNOWN: "the driver does not say why; look at dmesg for NVRM",
}


def text_of(answer: str | bytes) -> str:
    """The text of an answer, or of a field of one: old releases of pynvml give bytes."""
    return answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer


class RefusedError(Exception):
    """NVML gave no answer: ``code`` is an nvmlReturn_t, ``text`` NVML's words for it."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text

    @property
    def reason(self) -> str:
        """The words with what they mean for the reader."""
        advice = _ADVICE.get(self.code)
        return f"{self.text}: {advice}" if advice else self.text


class Library:
    """pynvml behind :meth:`ask`; ``raw`` is the module itself, for its structures."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw

    def ask(self, name: str, *arguments: Any, **options: Any) -> Any:
        """The answer of the call ``name``. Raises RefusedError."""
        call = getattr(self.raw, name, None)
        if call is None:
            raise RefusedError(FUNCTION_NOT_FOUND, "Function Not Found")
        try:
            answer = call(*arguments, **options)
        except self.raw.NVMLError as error:
            raise RefusedError(error.value, str(error)) from None
        except Exception as error:
            # pynvml's own exception for an old library under a new pynvml is no NVMLError.
            if type(error).__name__ != "NVMLLibraryMismatchError":
                raise
            raise RefusedError(FUNCTION_NOT_FOUND, "Function Not Found") from None
        return text_of(answer) if isinstance(answer, bytes) else answer

    def ask_or_none(self, name: str, *arguments: Any, **options: Any) -> Any:
        """The answer, None when this GPU or release has none. Raises RefusedError for others."""
        try:
            return self.ask(name, *arguments, **options)
        except RefusedError as refused:
            if refused.code in NO_SUCH_THING:
                return None
            raise

    def ask_lightly(self, name: str, *arguments: Any, **options: Any) -> Any:
        """The answer, None when NVML gives none, whatever its reason."""
        try:
            return self.ask(name, *arguments, **options)
        except RefusedError:
            return None
