"""What is kept acts, or says why it cannot."""

from __future__ import annotations

import json


def test_every_setting_acts_or_says_why_it_cannot(host):
    seen = host.run("/usr/local/bin/steadygpu settings --json")
    assert seen.rc == 0, seen.stdout
    verdicts = {one["verdict"] for one in json.loads(seen.stdout)}
    assert "effective" in verdicts
    assert "differs" not in verdicts


def test_daemon_json_has_what_three_roles_want(host):
    config = json.loads(host.file("/etc/docker/daemon.json").content_string)
    assert config["live-restore"] is True
    assert config["default-shm-size"] == "256m"
    assert config["default-ulimits"]["memlock"]["Hard"] == -1
    assert config["no-new-privileges"] is True
