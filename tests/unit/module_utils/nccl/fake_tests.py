# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A program that prints what nccl-tests' all_reduce_perf prints, at a bandwidth of our choice."""

from __future__ import annotations

from pathlib import Path

_SCRIPT = """#!/bin/sh
if [ -n "$NCCL_TOPO_FILE" ]; then
    given=$(tail -n 1 "$NCCL_TOPO_FILE"); rate={after}
else
    given=; rate={before}
fi
echo "$given|$* devices $CUDA_VISIBLE_DEVICES" >> {calls}
case $rate in
hang) sleep 60 ;;
crash)
    echo "{host}: Test NCCL failure common.cu:1180 'internal error - please report this issue'"
    exit 3 ;;
esac
cat <<END
# nccl-tests version 2.17.6 nccl-headers=22803 nccl-library=22803
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 4 minBytes 16777216 maxBytes 268435456 step: 2(factor) warmup iters: 5 \
iters: 20 agg iters: 1 validation: 1 graph: 0 unalign: 0
#
# Using devices
#  Rank  0 Group  0 Pid   4121 on    gpuhost device  0 [0003:00:00] NVIDIA A100-SXM4-40GB
#
#                                                              out-of-place                       \
in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   \
algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  \
(GB/s)  (GB/s)
    16777216       4194304     float     sum      -1    512.3   32.75   57.31       0    511.9   \
32.77   57.36       0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : $rate
#
# Collective test concluded: all_reduce_perf
#
END
"""


def program(directory: Path, before: str = "41.6", after: str = "58.7") -> str:
    """Write it; its path. ``before`` and ``after`` are GB/s, ``crash`` or ``hang``.

    Each run adds a line to the file ``calls`` beside it.
    """
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "all_reduce_perf"
    path.write_text(
        _SCRIPT.format(before=before, after=after, calls=directory / "calls", host="gpuhost")
    )
    path.chmod(0o755)
    return str(path)
