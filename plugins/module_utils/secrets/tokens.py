# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tokens that tell by their form what they are. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Who made it and what it looks like, after the issuers' own documentation.
ISSUERS: Sequence[tuple[str, re.Pattern[str]]] = tuple(
    (issuer, re.compile(pattern))
    for issuer, pattern in (
        ("AWS access key id", r"\b(AKIA|ASIA)[A-Z2-7]{16}\b"),
        ("GitHub token", r"\bgh[pousr]_[A-Za-z0-9]{36,}\b|\bgithub_pat_[A-Za-z0-9_]{50,}"),
        ("GitLab token", r"\bgl(pat|dt|rt|cbt|ptt|soat)-[A-Za-z0-9_-]{20,}"),
        ("Hugging Face token", r"\bhf_[A-Za-z0-9]{30,}\b"),
        ("Anthropic key", r"\bsk-ant-[A-Za-z0-9_-]{30,}"),
        ("OpenAI key", r"\bsk-(proj-|svcacct-)?[A-Za-z0-9_-]{32,}"),
        ("NVIDIA NGC key", r"\bnvapi-[A-Za-z0-9_-]{40,}"),
        ("Docker Hub token", r"\bdckr_(pat|oat)_[A-Za-z0-9_-]{20,}"),
        ("Slack token", r"\bxox[abeoprs]-[A-Za-z0-9-]{20,}"),
        ("Google API key", r"\bAIza[A-Za-z0-9_-]{35}\b"),
        ("npm token", r"\bnpm_[A-Za-z0-9]{36}\b"),
        ("PyPI token", r"\bpypi-AgE[A-Za-z0-9_-]{50,}"),
        ("SendGrid key", r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{30,}"),
        ("Stripe key", r"\b[rs]k_live_[A-Za-z0-9]{20,}"),
        ("Telegram bot token", r"\b\d{8,10}:AA[A-Za-z0-9_-]{33}\b"),
        ("Replicate token", r"\br8_[A-Za-z0-9]{36,}\b"),
        ("Groq key", r"\bgsk_[A-Za-z0-9]{40,}\b"),
        ("HashiCorp Vault token", r"\bhv[sb]\.[A-Za-z0-9_-]{24,}"),
        ("signed web token", r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,}"),
    )
)

# The beginnings of tokens, for hiding: too much is hidden rather than too little.
BEGINNING = re.compile(
    r"(?<![A-Za-z0-9])(?P<start>hf_|sk-|sk_live_|rk_live_|gh[oprsu]_|github_pat_|glpat-|xox[a-z]-"
    r"|AKIA|ASIA|nvapi-|dckr_[a-z]+_|npm_|pypi-|ya29\.|AIza|eyJ)[A-Za-z0-9_.-]{8,}"
)
