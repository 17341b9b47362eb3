# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The matrix tables of ``nvidia-smi topo`` out of a pasted text. Pure.

A table is a header of labels (GPUs, then NICs) and one row a label. Everything a terminal, a
mail or Markdown does to it is undone here; what the words mean is ``smi_matrix``'s.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .model import TopologyError

GPU_LABEL = re.compile(r"GPU\d{1,3}")
AFFINITY = re.compile(r"[\d,:/-]+,?|N/A")

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_QUOTE = re.compile(r"^\s*(?:>\s?)+")
_RULE = re.compile(r"^[\s:+=-]*$")
# An RDMA device has a number or an underscore in its name; a word of a sentence has not.
_NIC_LABEL = re.compile(r"[A-Za-z][A-Za-z0-9.-]{0,40}[0-9_][\w.-]{0,40}")
_GLUED_LABELS = re.compile(r"(?:GPU\d{1,3}|NIC\d{1,3}){2,}")
_FIRST_GPU = re.compile(r"(?:^|\s)GPU\d")
_REST_OF_NVLINKS = re.compile(r"V\d{1,3}")
_ROW_WORD = re.compile(r"X|NV\d{1,3}|[A-Z]{1,4}|N/A")
_LABEL = re.compile(r"(?:GPU|NIC)\d{1,3}")
_END = re.compile(r"\s*(?:(?:NIC )?Legend\b|```|~~~|X\s+=)", re.IGNORECASE)
# A table of 16 GPUs and 36 NICs has 20 kB; a ticket around it is no book.
_MOST_CHARACTERS = 2_000_000
# A header of 16 GPUs and 36 NICs wraps to no more lines on a terminal of 60 columns.
_HEADER_LINES = 14

Line = tuple[int, str]


@dataclass
class Row:
    """One row: the words under the labels, and the raw text of the affinity columns."""

    label: str
    line: int
    words: list[str] = field(default_factory=list)
    rest: str = ""
    wrapped: bool = False


@dataclass(frozen=True)
class Table:
    """``columns`` are those after the matrix: ``cpus``, ``numa``, ``gpu_numa``."""

    line: int
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    rows: dict[str, Row]

    @property
    def gpus(self) -> tuple[str, ...]:
        """The labels that are GPUs."""
        return tuple(label for label in self.labels if GPU_LABEL.fullmatch(label))


def clean(text: str) -> list[Line]:
    """Numbered lines without colours, quote marks and cell borders; rules and blanks are left out.

    Raises TopologyError for a text too long to be one.
    """
    if len(text) > _MOST_CHARACTERS:
        raise TopologyError(
            f"the text has {len(text)} characters, more than the {_MOST_CHARACTERS} that are read; "
            "cut it down to what nvidia-smi printed"
        )
    if "\n" not in text and "\\n" in text:
        # A log that escaped the output into one string.
        text = text.replace("\\n", "\n").replace("\\t", "\t")
    found = []
    for number, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        line = _ANSI.sub("", line).replace("\u00a0", " ")
        line = _QUOTE.sub("", line).replace("|", " ").replace("\u2502", " ")
        if not _RULE.match(line):
            found.append((number, line))
    return _rejoined(found)


def _rejoined(lines: list[Line]) -> list[Line]:
    """The lines with what a terminal broke at its edge, maybe within a word, made whole.

    It breaks every long line at the same column. A mail program breaks between words, each line
    at another column: its lines are left as they are.
    """
    start = next((i for i, (_number, text) in enumerate(lines) if _FIRST_GPU.search(text)), 0)
    end = start + 1
    # A piece of blanks was left out, so that one line may be missing.
    while end < len(lines) and lines[end][0] <= lines[end - 1][0] + 2:
        if _END.match(lines[end][1]):
            break
        end += 1
    edge = max((len(text) for _number, text in lines[start:end]), default=0)
    joined = lines[start : start + 1]
    breaks = 0
    for place in range(start + 1, end):
        number, text = lines[place]
        if _is_row(text):
            joined.append((number, text))
        elif len(lines[place - 1][1]) == edge:
            joined[-1] = (joined[-1][0], joined[-1][1] + text)
            breaks += 1
        else:
            return lines
    # One is no pattern: the widest row may be the last, with a sentence below it.
    return [*lines[:start], *joined, *lines[end:]] if breaks > 1 else lines


def _is_row(text: str) -> bool:
    """Does a row begin here? ``V18 NODE`` is no label and a word, but the rest of NV18."""
    label, *words = text.split()[:2]
    if GPU_LABEL.fullmatch(label):
        return True
    is_label = _NIC_LABEL.fullmatch(label) and not _REST_OF_NVLINKS.fullmatch(label)
    return bool(is_label and words and _ROW_WORD.fullmatch(words[0]))


def read(lines: Sequence[Line], word: re.Pattern[str], command: str) -> Table:
    """The first whole table whose cells are ``word``. Raises TopologyError naming the line.

    A text may hold tables of other commands too, so the search goes on behind one that is none;
    if no table is whole, the first one's fault is told.
    """
    fault: TopologyError | None = None
    for place, (number, _text) in enumerate(lines):
        header = _header(lines, place, word)
        if header is None:
            continue
        labels, columns, first = header
        try:
            table = Table(number, labels, columns, _rows(lines, first, labels, columns, word))
            _check_whole(table, command)
        except TopologyError as error:
            fault = fault or error
        else:
            return table
    raise fault or TopologyError(
        f"no table of {command} in the text: wanted a line of labels (GPU0 GPU1 …) and below it "
        f"one row for each, as {command} prints them"
    )


def _header(
    lines: Sequence[Line], place: int, word: re.Pattern[str]
) -> tuple[tuple[str, ...], tuple[str, ...], int] | None:
    """Labels, affinity columns and the place of the first row, if a header starts here."""
    tokens = _tokens(lines[place][1])
    start = next((i for i, one in enumerate(tokens) if GPU_LABEL.fullmatch(one)), None)
    if start is None:
        return None
    labels = [one for one in tokens if GPU_LABEL.fullmatch(one)]
    if _row_start(lines[place][1], labels, word):
        return None
    gathered = tokens[start:]
    for below in range(place + 1, min(place + _HEADER_LINES, len(lines))):
        text = lines[below][1]
        split = _split_header(gathered)
        if split is not None and _row_start(text, split[0], word):
            return split[0], split[1], below
        if _END.match(text):
            return None
        gathered += _tokens(text)
    return None


def _split_header(tokens: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Labels and columns of a header's words; None when they are no header."""
    end = next((i for i, one in enumerate(tokens) if one in ("CPU", "NUMA", "GPU")), len(tokens))
    labels, tail = tuple(tokens[:end]), tokens[end:]
    gpus = [one for one in labels if GPU_LABEL.fullmatch(one)]
    if len(set(labels)) != len(labels) or list(labels[: len(gpus)]) != gpus:
        return None
    if not all(_NIC_LABEL.fullmatch(one) for one in labels[len(gpus) :]):
        return None
    columns = []
    for before, one in zip(["", *tail], tail):
        if one == "CPU":
            columns.append("cpus")
        elif one == "NUMA":
            columns.append("gpu_numa" if before == "GPU" else "numa")
    return labels, tuple(columns)


def _tokens(text: str) -> list[str]:
    """Words of a header; labels that a wrap ran together are parted."""
    found: list[str] = []
    for token in text.split():
        found += _LABEL.findall(token) if _GLUED_LABELS.fullmatch(token) else [token]
    return found


def _row_start(text: str, labels: Sequence[str], word: re.Pattern[str]) -> tuple[str, str] | None:
    """The label that begins a row and the text after it; a log's prefix before it is skipped."""
    for match in re.finditer(r"\S+", text):
        if match.group() in labels:
            after = text[match.end() :]
            return (match.group(), after) if word.match(after.lstrip()) else None
    return None


def _rows(
    lines: Sequence[Line],
    first: int,
    labels: tuple[str, ...],
    columns: tuple[str, ...],
    word: re.Pattern[str],
) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    row: Row | None = None
    for place in range(first, len(lines)):
        number, text = lines[place]
        if _END.match(text):
            break
        start = _row_start(text, labels, word) or _bare_label(text, labels)
        if start is not None:
            _check_complete(row, labels)
            if start[0] in rows:
                break
            row = rows[start[0]] = Row(start[0], number)
            _take(row, number, start[1], len(labels), word)
        elif row is not None and len(row.words) < len(labels):
            row.wrapped = True
            _take(row, number, text, len(labels), word)
        elif row is not None and _goes_on(row, text, columns):
            row.wrapped = True
            row.rest += " " + text
        else:
            break
    _check_complete(row, labels)
    return rows


def _bare_label(text: str, labels: Sequence[str]) -> tuple[str, str] | None:
    """A label that a narrow terminal left alone on its line."""
    return (text.strip(), "") if text.strip() in labels else None


def _goes_on(row: Row, text: str, columns: Sequence[str]) -> bool:
    """Is this line the wrapped end of the row's affinity columns?"""
    have = row.rest.split()
    more = text.split()
    return len(have) + len(more) <= len(columns) + row.rest.count(",") and all(
        AFFINITY.fullmatch(token) for token in more
    )


def _take(row: Row, number: int, text: str, wanted: int, word: re.Pattern[str]) -> None:
    """Move words from the text into the row, and what follows them into its rest."""
    left = text
    while len(row.words) < wanted and left.strip():
        match = word.match(left.lstrip())
        if match is None:
            raise TopologyError(
                f"line {number}: {left.split()[0]!r} in row {row.label}, column "
                f"{len(row.words) + 1} of {wanted}, is not a word of this table. Paste the table "
                "as nvidia-smi printed it"
            )
        row.words.append(match.group())
        left = left.lstrip()[match.end() :]
    row.rest = left


def _check_complete(row: Row | None, labels: Sequence[str]) -> None:
    if row is not None and len(row.words) < len(labels):
        raise TopologyError(
            f"line {row.line}: row {row.label} has {len(row.words)} of {len(labels)} columns. "
            "Paste the whole table"
        )


def _check_whole(table: Table, command: str) -> None:
    missing = [name for name in table.gpus if name not in table.rows]
    if missing:
        raise TopologyError(
            f"line {table.line}: the header has {len(table.gpus)} GPUs and there is no row for "
            f"{', '.join(missing)}. Paste all that {command} printed"
        )
    for name, row in table.rows.items():
        own = table.labels.index(name)
        for column, found in enumerate(row.words):
            if (found == "X") != (column == own):
                raise TopologyError(
                    f"line {row.line}: row {name} has {found!r} under {table.labels[column]}; X "
                    "belongs under its own label and nowhere else. A cell is missing or moved"
                )


def gpu_rows(table: Table) -> Iterator[Row]:
    """The rows of the GPUs, in the header's order."""
    for name in table.gpus:
        yield table.rows[name]
