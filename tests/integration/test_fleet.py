# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/fleet.md are understood, and promise what is so.

The Kubernetes manifest is as the schemas want it, and promises privileges; pycap and pysym understand every command line of it, of the units and of the page;
rules and dashboards name figures, labels and types that there are.
"""
import json
import re
import shlex
import subprocess
import sys

import pytest

from conftest import PYCAP, PYSYM, ROOT
sys.path.insert(0, str(ROOT / "tests/real"))
import venvs  # noqa: E402

pytestmark = pytest.mark.unsanitized

PAGE = ROOT / "docs/fleet.md"
DOCUMENTS = ROOT / "docs/kubernetes/pycap.yaml"
UNITS = sorted((ROOT / "docs/systemd").glob("*.service"))
TYPES = {"process_cpu:cpu:nanoseconds:cpu:nanoseconds", "off_cpu:off_cpu:nanoseconds:off_cpu:nanoseconds",
         "pycap_lost:lost:count:lost:count", "pycap_lost:incomplete:count:lost:count"}


@pytest.fixture(scope="module")
def manifest():
    """{(kind, name): document}"""
    yaml = pytest.importorskip("yaml", reason="no python3-yaml")
    found = list(yaml.safe_load_all(DOCUMENTS.read_text()))
    named = {(d["kind"], d["metadata"]["name"]): d for d in found}
    assert len(named) == len(found)
    return named


@pytest.fixture(scope="module")
def pod(manifest):
    return manifest["DaemonSet", "pycap"]["spec"]["template"]["spec"]


@pytest.fixture(scope="module")
def containers(pod):
    assert "initContainers" not in pod
    return {c["name"]: c for c in pod["containers"]}


# Each document by the strict schema of each version, in which no field is unknown; what is wrong, a line each.
SCHEMAS = """
import kubernetes_validate, sys, yaml
for version in sys.argv[2:]:
    for document in yaml.safe_load_all(open(sys.argv[1])):
        try:
            kubernetes_validate.validate(document, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            print(version, document["kind"], list(error.path), error.message)
"""


@pytest.mark.parametrize("change, complaint", [
    (lambda text: text, None),
    (lambda text: text.replace("hostPID:", "hostPid:"), "hostPid"),
    (lambda text: text.replace("runAsUser: 0 ", "runAsUser: root "), "'root' is not of type"),
    (lambda text: text.replace("kind: DaemonSet\nmetadata:", "kind: DaemonSet\nreplicas: 1\nmetadata:"), "replicas")],
    ids=["as-it-is", "unknown-field", "wrong-type", "wrong-place"])
def test_schemas(change, complaint, tmp_path):
    """Of the oldest version that knows appArmorProfile, and of a new one; they would find an error."""
    try:
        python = venvs.venv("kubernetes") / "bin/python"
    except venvs.Missing as error:
        pytest.skip(f"the schemas of Kubernetes: {error}")
    text = change(DOCUMENTS.read_text())
    assert (text == DOCUMENTS.read_text()) == (complaint is None)
    (tmp_path / "pycap.yaml").write_text(text)
    done = subprocess.run([python, "-c", SCHEMAS, tmp_path / "pycap.yaml", "1.30", "1.37"], capture_output=True, text=True, timeout=300,
                          check=True)
    assert complaint in done.stdout if complaint else not done.stdout, done.stdout


def test_one_image(containers):
    """Recorder and sender are of one image, of the version that this is."""
    (version,) = re.findall(r"^VERSION := (\S+)$", (ROOT / "Makefile").read_text(), re.M)
    assert {containers[name]["image"] for name in ("record", "push")} == {f"registry.example/pycap:{version}"}


def mounts(container):
    return {m["name"]: m for m in container["volumeMounts"]}


def test_least_privilege(pod, containers):
    assert set(containers) == {"record", "push", "names"}
    for name, container in containers.items():
        security = container["securityContext"]
        assert security["privileged"] is False and security["allowPrivilegeEscalation"] is False, name
        assert security["readOnlyRootFilesystem"] is True and security["capabilities"]["drop"] == ["ALL"], name
        assert "memory" in container["resources"]["limits"], name
        if name != "record":
            assert security["runAsNonRoot"] is True and security["runAsUser"] > 0, name
            assert "add" not in security["capabilities"] and "appArmorProfile" not in security, name
    assert pod["hostPID"] is True and not {"hostNetwork", "hostIPC"} & set(pod)
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    users = [c["securityContext"]["runAsUser"] for c in containers.values()]
    assert len(set(users)) == len(users)


def test_capabilities_are_those_of_the_page(containers):
    (listed,) = re.findall(r"add: \[([A-Z_,\s]+)\]", (ROOT / "docs/container.md").read_text())
    assert containers["record"]["securityContext"]["capabilities"]["add"] == re.split(r",\s+", listed)


def test_who_may_read_what(pod, containers):
    """The token is the sender's alone, and so is that of the API server the namer's; the sender changes no trace."""
    where = {volume: {name for name, c in containers.items() if volume in mounts(c)} for volume in (v["name"] for v in pod["volumes"])}
    assert where["secret"] == {"push"} and where["api"] == {"names"} and where["traces"] == {"record", "push"}
    assert where["state"] == {"push"}
    assert all(mounts(containers["push"])[volume]["readOnly"] is True for volume in ("traces", "names", "secret"))
    assert {m for c in containers.values() for m in mounts(c)} == set(where)
    assert pod["securityContext"]["fsGroup"] == containers["push"]["securityContext"]["runAsGroup"]
    assert f"--group={pod['securityContext']['fsGroup']}" in containers["record"]["args"]
    for volume in pod["volumes"]:
        assert "hostPath" not in volume
        if "emptyDir" in volume:
            assert volume["emptyDir"]["sizeLimit"], volume["name"]


def test_who_may_ask_the_cluster(manifest, pod):
    assert manifest["ClusterRole", "pycap-names"]["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    assert pod["automountServiceAccountToken"] is False
    assert manifest["ServiceAccount", "pycap"]["automountServiceAccountToken"] is False


def understood(program, words):
    """The options are read in order, and the last one is not known: those before it were."""
    words = [re.sub(r"\$\{?[A-Z_0-9]+\}?|\$\([A-Z]+\)", "x", word) for word in words]
    done = subprocess.run([program, *words, "--bogus"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and "unknown option --bogus" in done.stderr, (words, done.stderr)


def test_commands_of_the_manifest(containers):
    for name, program in (("record", PYCAP), ("push", PYSYM)):
        assert containers[name]["command"] == [{"record": "/usr/bin/pycap", "push": "/usr/bin/pysym"}[name]]
        understood(program, containers[name]["args"])


def test_the_pusher_of_the_manifest_begins(containers, tmp_path):
    """With what it mounts, and no trace yet: an address that the token must not go to would end it with 2."""
    for folder in ("traces", "state", "status", "names", "secret"):
        (tmp_path / folder).mkdir()
    (tmp_path / "names/labels").touch()
    (tmp_path / "secret/token").touch(mode=0o600)
    (tmp_path / "secret/token").write_text("secret\n")
    words = [re.sub(r"(^|=)/(traces|state|status|names|secret)\b", rf"\1{tmp_path}/\2", word).replace("$(NODE)", "node")
             for word in containers["push"]["args"] if word != "--follow"]
    done = subprocess.run([PYSYM, *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and "no trace was found" in done.stderr, done.stderr


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_commands_of_units(unit):
    (line,) = re.findall(r"^ExecStart=/usr/bin/(.*)$", unit.read_text(), re.M)
    program, *words = line.replace("%%", "%").replace("$PYCAP_PUSH_TO", "--pyroscope http://127.0.0.1:4040").split()
    understood({"pycap": PYCAP, "pysym": PYSYM}[program], words)


def test_commands_of_the_page():
    blocks = re.findall(r"^```\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    lines = [line for block in blocks for line in block.splitlines() if re.match(r"(sudo )?(pycap (record|archive)|pysym push) ", line)]
    assert len(lines) >= 4
    for line in lines:
        program, *words = shlex.split(line.removeprefix("sudo "))
        understood({"pycap": PYCAP, "pysym": PYSYM}[program], words)


def test_files_of_the_page_are_linked():
    linked = set(re.findall(r"\]\(((?:fleet|grafana|kubernetes)/[^)]+)\)", PAGE.read_text()))
    there = {str(path.relative_to(ROOT / "docs")) for folder in ("fleet", "grafana", "kubernetes") for path in (ROOT / "docs" / folder).iterdir()}
    assert linked == there


def published():
    """Names of figures, as the sources write them."""
    sources = [ROOT / "capture/session/status_file.c", ROOT / "symbolize/push/account_status.c"]
    return set(re.findall(r'"((?:pycap|pysym)_\w+)"', "".join(path.read_text() for path in sources)))


def test_figures_that_rules_and_page_name():
    rules, known = (ROOT / "docs/fleet/alerts.yaml").read_text(), published()
    named = set(re.findall(r"\b(?:pycap|pysym_push)_[a-z_]+", "\n".join(re.findall(r"expr: (?:>-\n)?(.*?)\n\s+(?:for|annotations):", rules, re.S))))
    assert len(named) >= 8 and named <= known
    table = PAGE.read_text().split("## What to watch")[1].split("\n## ")[0]
    named = set(re.findall(r"`((?:pycap|pysym_push)_[a-z_]+)", table))
    assert len(named) >= 12 and named <= known


def test_rules_can_be_read():
    yaml = pytest.importorskip("yaml", reason="no python3-yaml")
    (group,) = yaml.safe_load((ROOT / "docs/fleet/alerts.yaml").read_text())["groups"]
    names = [rule["alert"] for rule in group["rules"]]
    assert len(set(names)) == len(names) == 8 and all(rule["annotations"]["summary"] for rule in group["rules"])


def test_dashboard():
    """Each query asks for a type that is pushed, by labels that a profile has, and every variable is one of the dashboard's."""
    text = (ROOT / "docs/grafana/before-and-after.json").read_text()
    board = json.loads(text)
    variables = {v["name"] for v in board["templating"]["list"]}
    assert set(re.findall(r"\$\{?(\w+)", text)) == variables
    targets = [t for panel in board["panels"] for t in panel["targets"]]
    assert len(targets) == len(board["panels"]) == 4
    for target in targets:
        assert target["profileTypeId"] in TYPES and target["queryType"] in ("metrics", "profile")
        assert target["datasource"]["type"] == "grafana-pyroscope-datasource"
        assert set(re.findall(r"(\w+)=", target["labelSelector"])) == {"service_name"} and set(target["groupBy"]) <= {"host"}
    assert {p["type"] for p in board["panels"] for t in p["targets"] if t["queryType"] == "profile"} == {"flamegraph"}


def test_types_of_the_page():
    assert set(re.findall(r"`(\w+:\w+:\w+:\w+:\w+)`", PAGE.read_text())) == TYPES
