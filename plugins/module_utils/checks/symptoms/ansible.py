# Copyright: (c) 2026, steadygpu.host contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ansible and AWX around GPU hosts. Data."""

from __future__ import annotations

from ..explain import Cause, Symptom
from .nvml import MODULE_STALE

SUDO_RS = Cause(
    id="sudo-rs-become",
    title="The host's sudo is sudo-rs, whose prompt ansible-core does not know",
    why="Ubuntu 25.10 and later have sudo-rs as sudo; older ansible-core waits for another prompt.",
    proof="sudo --version; readlink -f /usr/bin/sudo",
    shows="sudo-rs",
    fix="ansible_become_exe: sudo.ws, passwordless sudo, or an ansible-core that knows sudo-rs.",
    commands=("update-alternatives --set sudo /usr/bin/sudo.ws",),
    sources=("ansible/ansible issues 86441 and 86849",),
    cases=("PA-006",),
    hints=(r"sudo-rs", r"25\.10|26\.04"),
)

ESCAPES = Cause(
    id="become-terminal-sequences",
    title="Something in the login shell prints terminal control sequences",
    why="The shell or prompt asks the terminal for its colour or cursor; the answer hides the "
    "prompt.",
    proof="ssh HOST true | od -c | head; grep -rn -E '\\\\033|\\\\e\\[' ~/.bashrc /etc/profile.d",
    shows="escape sequences in a session without a terminal",
    fix="Leave non-interactive shells silent; test with a plain shell.",
    commands=("ssh HOST true | od -c | head",),
    sources=("ansible/ansible issues 84483 and 84503",),
    cases=("PA-015",),
    hints=(r"\\u001b|\\x1b|\x1b|\]11;", r"24\.04"),
)

PASSWORD = Cause(
    id="become-password",
    title="sudo wants a password that was not given",
    why="No NOPASSWD rule and no become password.",
    proof="sudo -n true",
    shows="a password is required",
    fix="Give --ask-become-pass, or a NOPASSWD rule for the automation's user.",
    commands=("sudo -n true",),
    sources=("Ansible documentation, become",),
    hints=(r"password", r"missing sudo"),
)

EMPTY_USER = Cause(
    id="become-user-empty",
    title="The become user is empty",
    why="An empty field of a credential is not the same as root: tasks run as the login user.",
    proof="ansible HOST -b -m command -a id",
    shows="the login user",
    fix="Set become_user (and the credential's privilege escalation user) to root.",
    commands=("ansible HOST -b -e ansible_become_user=root -m command -a id",),
    sources=("ansible/awx issue 4579",),
    cases=("PA-007",),
    hints=(r"become_username: ''", r"awx", r"login user"),
)

COLLECTION = Cause(
    id="ansible-collection-needed",
    title="The collection is not where Ansible runs",
    why="The default execution environment of AWX does not hold every collection, and a project's "
    "requirements must be at collections/requirements.yml.",
    proof="ansible-galaxy collection list | grep -E 'community.docker|steadygpu'; ls "
    "collections/requirements.yml",
    shows="nothing",
    fix="Build an execution environment with the collection and its Python needs, or put "
    "requirements.yml there.",
    commands=("ansible-galaxy collection install -r collections/requirements.yml",),
    sources=("ansible/awx issues 9801 and 13087",),
    cases=("PA-008",),
    hints=(r"couldn't resolve module", r"awx|execution environment"),
)

REBOOT = Cause(
    id="ansible-reboot-timeout",
    title="The reboot module returns too early, or gives up, on slow machines",
    why="Large GPU servers need minutes to go down and ten or more to come up.",
    proof="grep -n -A6 'builtin.reboot' PLAYBOOK; last -x reboot | head -2",
    shows="a reboot_timeout of minutes, and no post_reboot_delay",
    fix="reboot_timeout: 1800, post_reboot_delay: 60, then wait for nvidia-smi to answer.",
    commands=("ansible HOST -b -m reboot -a 'reboot_timeout=1800 post_reboot_delay=60'",),
    sources=("ansible/ansible issues 78007 and 83018",),
    cases=("PA-005",),
    hints=(r"reboot", r"gone down|connection"),
)

REQUESTS = Cause(
    id="ansible-capabilities-flat",
    title="capabilities of device_requests is a list of lists",
    why="The outer list is OR, the inner one AND.",
    proof="steadygpu check PLAYBOOK",
    shows="capabilities: [gpu]",
    fix="capabilities: [[gpu]].",
    commands=("steadygpu check PLAYBOOK",),
    sources=("ansible-collections/community.docker issue 42, PR 43",),
    cases=("PA-012",),
    hints=(r"device_requests|capabilities",),
)

_PYTHON = Cause(
    id="module-python-library-missing",
    title="The host lacks the Python library of the module",
    why="community.docker needs requests (and for some modules docker) in the Python that runs "
    "on the "
    "host.",
    proof="python3 -c 'import requests, docker'",
    shows="ModuleNotFoundError",
    fix="Install python3-requests and python3-docker, or set ansible_python_interpreter.",
    commands=("apt-get install python3-requests python3-docker",),
    sources=("community.docker documentation",),
    hints=(r"requests|docker", r"failed to import"),
)

_URLLIB3 = Cause(
    id="docker-python-scheme",
    title="An old docker library meets requests 2.32 or urllib3 2",
    why="docker before 7.1 does not work with them: Not supported URL scheme http+docker.",
    proof="python3 -c 'import docker, requests; print(docker.__version__, requests.__version__)'",
    shows="docker below 7.1 and requests 2.32 or newer",
    fix="Upgrade the docker library, or pin requests below 2.32.",
    commands=("pip install 'docker>=7.1'",),
    sources=("docker/docker-py issue 3256",),
    hints=(r"http\+docker",),
)

_FACTS = Cause(
    id="ansible-facts-not-gathered",
    title="The play has no facts of the host, or the variable has no value",
    why="With gather_facts: false, or another name for facts (INJECT_FACTS_AS_VARS), a role finds "
    "no distribution; a misspelt group_vars file leaves its variables out.",
    proof="ansible HOST -m setup -a 'filter=ansible_distribution*'; ansible-inventory --host HOST",
    shows="the fact is there for setup and not in the play, or the variable is nowhere",
    fix="Let the play gather facts (gather_subset: [min] is enough), or set the variable.",
    commands=("ansible-inventory --host HOST",),
    sources=("Ansible documentation, facts",),
    hints=(r"fact", r"undefined"),
)

_COLLECTION_OLD = Cause(
    id="ansible-collection-old",
    title="The collection is older than the parameter",
    why="device_requests of docker_container came with community.docker 0.1 and 1.0, cdi and "
    "others later; a copy elsewhere on the collections path may be the one in use.",
    proof="ansible-galaxy collection list community.docker; ansible-doc "
    "community.docker.docker_container | grep -n device_requests",
    shows="an old version, or two copies",
    fix="Upgrade the collection and remove the old copy.",
    commands=("ansible-galaxy collection install --upgrade community.docker",),
    sources=("community.docker changelog",),
    hints=(r"Unsupported parameters", r"\) module: "),
)

_OLD_PYTHON = Cause(
    id="target-python-too-old",
    title="The Python of the host is older than ansible-core supports",
    why="ansible-core 2.17 needs 3.7 on hosts, 2.18 3.8, 2.20 3.9; EL 8's own is 3.6.",
    proof="ansible HOST -m raw -a 'python3 --version'; ansible --version",
    shows="an older Python",
    fix="Install a newer one and set ansible_python_interpreter.",
    commands=("dnf install python3.11",),
    sources=("Ansible documentation, support matrix",),
    hints=(r"SyntaxError|future feature|annotations",),
)

_SSH = Cause(
    id="host-unreachable",
    title="The host is not reached by ssh",
    why="It is still rebooting, the key is wrong, or its host key has changed.",
    proof="ssh -v HOST true",
    shows="where it stops",
    fix="Wait for the reboot, or give the right key.",
    commands=("ssh -v HOST true",),
    sources=("Ansible documentation, connection",),
    hints=(r"unreachable",),
)

_SERVICE = Cause(
    id="ansible-service-missing",
    title="The unit that the play starts is not installed",
    why="nvidia-fabricmanager, nvidia-persistenced and nvidia-dcgm are packages of their own, and "
    "the first is for hosts with NVSwitches only.",
    proof="systemctl list-unit-files 'nvidia-*'; ls /proc/driver/nvidia-nvswitch/devices",
    shows="no such unit",
    fix="Install the package of the driver's version, or make the task depend on the unit's "
    "existence (and on NVSwitches for the fabric manager).",
    commands=("systemctl list-unit-files 'nvidia-*'",),
    sources=("Ansible documentation, systemd_service",),
    hints=(r"service",),
)

SYMPTOMS = (
    Symptom(
        id="ansible-service",
        title="A task does not find a service",
        patterns=(
            r"Could not find the requested service",
            r"Unable to (start|restart|enable) service nvidia-\S{1,40}",
        ),
        causes=(_SERVICE,),
        tell_apart="systemctl list-unit-files 'nvidia-*'",
        sources=("Ansible documentation, systemd_service",),
    ),
    Symptom(
        id="become-timeout",
        title="Privilege escalation times out",
        patterns=(
            r"Timeout \(\d+s\) waiting for privilege escalation prompt",
            r"waiting for privilege escalation prompt",
            r"Missing sudo password",
            r"Incorrect sudo password",
            r"sudo: a password is required",
        ),
        causes=(SUDO_RS, ESCAPES, PASSWORD),
        tell_apart="ssh HOST 'sudo --version; readlink -f /usr/bin/sudo; sudo -n true'; ssh HOST "
        "true | "
        "od -c | head",
        sources=("ansible/ansible issue 86441",),
        cases=("PA-006", "PA-015"),
    ),
    Symptom(
        id="become-wrong-user",
        title="Tasks run as the login user",
        patterns=(
            r"Tasks run as the login user",
            r"become.{0,60}(no effect|ignored|wrong user)",
        ),
        causes=(EMPTY_USER,),
        tell_apart="ansible HOST -b -m command -a id",
        sources=("ansible/awx issue 4579",),
        cases=("PA-007",),
    ),
    Symptom(
        id="ansible-module-missing",
        title="Ansible does not find a module",
        patterns=(
            r"role .{0,60}was not found",
            r"The .{1,60} role was not found",
            r"couldn.?t resolve module/action",
            r"The module \S{1,80} was not found in configured module paths",
            r"(unable to|could not) (find|resolve) collection",
            r"the role .{0,60} was not found",
        ),
        causes=(COLLECTION,),
        tell_apart="ansible-galaxy collection list; ansible-config dump | grep COLLECTIONS_PATHS",
        sources=("ansible/awx issue 9801",),
        cases=("PA-008",),
    ),
    Symptom(
        id="ansible-reboot",
        title="A task after a reboot fails",
        patterns=(
            r"Timed out waiting for last boot time check",
            r"connection lost, or the host had not gone down",
            r"(reboot|rebooting).{0,80}(too early|timed out|timeout|not gone down|not come back)",
            r"Task .{0,40}fails after a (package|driver) update",
        ),
        causes=(REBOOT, MODULE_STALE),
        tell_apart="ansible HOST -m command -a 'uptime -s'; last -x reboot | head -2",
        sources=("ansible/ansible issue 78007",),
        cases=("PA-005", "PA-013"),
    ),
    Symptom(
        id="ansible-argument",
        title="A module refuses an argument",
        patterns=(
            r"Unsupported parameters for \(\S{1,80}\) module",
            r"Argument validation error for capabilities",
            r"(argument|elements value).{0,60}(device_requests|capabilities).{0,80}",
            r"device_requests.{0,80}(unable|cannot|invalid|type)",
        ),
        causes=(REQUESTS, _COLLECTION_OLD),
        tell_apart="steadygpu check PLAYBOOK",
        sources=("ansible-collections/community.docker issue 42",),
        cases=("PA-012",),
    ),
    Symptom(
        id="ansible-docker-scheme",
        title="The docker library and requests do not fit",
        patterns=(
            r"(Error connecting: )?(Error while fetching server API version: )?"
            r"Not supported URL scheme http\+docker",
        ),
        causes=(_URLLIB3,),
        tell_apart="ansible HOST -m command -a \"python3 -c 'import docker, requests; "
        "print(docker.__version__, requests.__version__)'\"",
        sources=("docker/docker-py issue 3256",),
    ),
    Symptom(
        id="ansible-facts-missing",
        title="A variable or fact is not defined",
        patterns=(
            r"includes an option with an undefined variable",
            r"FAILED!.{0,200}is undefined\b",
            r"ansible_facts.{0,40}has no attribute",
        ),
        causes=(_FACTS,),
        tell_apart="ansible HOST -m setup -a 'filter=ansible_distribution*'",
        sources=("Ansible documentation, facts",),
    ),
    Symptom(
        id="ansible-python-library",
        title="A module lacks a Python library",
        patterns=(
            r"Failed to import the required Python library",
            r"No module named .(docker|requests|yaml|pynvml).",
            r"Error while fetching server API version",
        ),
        causes=(_PYTHON, _URLLIB3),
        tell_apart="ansible HOST -m command -a \"python3 -c 'import docker, requests; "
        "print(docker.__version__, requests.__version__)'\"",
        sources=("community.docker documentation",),
    ),
    Symptom(
        id="ansible-target-python",
        title="The host's Python is too old for ansible-core",
        patterns=(
            r"future feature annotations is not defined",
            r"ansible-core requires a minimum of Python",
            r"MODULE FAILURE.{0,60}(python|interpreter)",
        ),
        causes=(_OLD_PYTHON,),
        tell_apart="ansible HOST -m raw -a 'python3 --version'; ansible --version",
        sources=("Ansible documentation, support matrix",),
    ),
    Symptom(
        id="ansible-unreachable",
        title="Ansible does not reach a host",
        patterns=(r"UNREACHABLE!", r"Failed to connect to the host via ssh"),
        causes=(_SSH, REBOOT),
        tell_apart="ssh -v HOST true",
        sources=("Ansible documentation, connection",),
    ),
)
