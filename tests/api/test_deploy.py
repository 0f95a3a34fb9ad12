"""deploy/: what dashboards and alerts ask for is what a server shows."""
import json
import os
import re
import shutil
import subprocess

import pytest
import yaml

from harness import prometheus
from harness.tls import Authority
from harness.weir_server import REPOSITORY, PortReservation

DEPLOY = os.path.join(REPOSITORY, "deploy")
RULES = os.path.join(DEPLOY, "prometheus", "weir-alerts.yml")
OURS = re.compile(r"\b(?:jobs?|weir|webhook)_[a-z_]+")
FUNCTIONS_AND_LABELS = {"job"}


def load(*path):
    """A file of deploy/ as data."""
    with open(os.path.join(DEPLOY, *path), encoding="utf-8") as file:
        return json.load(file) if path[-1].endswith(".json") else yaml.safe_load(file)


def expressions():
    """(where, expression) of every panel and rule."""
    for panel in load("grafana", "weir.json")["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]
    for group in load("prometheus", "weir-alerts.yml")["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]


@pytest.fixture(scope="module")
def weir(module_weir, tmp_path_factory):
    """A server that has everything there are metrics of."""
    port = PortReservation()
    yield module_weir(settings=Authority(tmp_path_factory.mktemp("tls")).issue("server").settings(port.port))
    port.close()


@pytest.fixture(scope="module")
def page(weir):
    """A scrape after a little of everything."""
    key = weir.new_client().api_key
    weir.wait_final(key, weir.submit(key, work_kind="SUCCESS_FAST")["job_id"])
    weir.try_submit(key, queue="BAD")
    return prometheus.parse(weir.api("GET", "/metrics").text)


def sample_names(page):
    """Every name a sample may have."""
    return {name for family in page.values() for name in (
        [family.name + part for part in prometheus.PARTS] if family.kind == "histogram"
        else [family.name])}


def test_every_metric_asked_for_exists(page):
    known, asked = sample_names(page), set()
    for where, expression in expressions():
        names = set(OURS.findall(re.sub(r'"[^"]*"', '""', expression))) - FUNCTIONS_AND_LABELS
        assert names or expression.startswith("up{"), f"{where}: {expression}"
        assert names <= known, f"{where} asks for {names - known}"
        asked |= names
    assert len(asked) > 30


def test_every_family_of_ours_is_on_the_dashboard(page):
    text = json.dumps(load("grafana", "weir.json"))
    missing = [name for name in page
               if name not in text and name != "weir_process_virtual_memory_bytes"]
    assert not missing


def test_labels_asked_for_exist(page):
    labels = {name for family in page.values() for _, pairs in family.samples for name, _ in pairs}
    for where, expression in expressions():
        for name in re.findall(r'([a-z_]+)(?:=~|!~|!=|=)"', expression):
            assert name in labels | {"instance", "job"}, f"{where} asks for label {name}"


def test_the_dashboard_is_one_grafana_takes():
    board = load("grafana", "weir.json")
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids)) and board["uid"] and board["schemaVersion"] >= 36
    places = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        assert 0 <= at["x"] and at["x"] + at["w"] <= 24
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"])
                 for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & places, panel["title"]
        places |= cells
        assert panel["type"] == "row" or panel["targets"], panel["title"]


def test_every_alert_says_what_to_do():
    names = []
    for group in load("prometheus", "weir-alerts.yml")["groups"]:
        for rule in group["rules"]:
            names.append(rule["alert"])
            assert rule["labels"]["severity"] in ("page", "ticket")
            assert rule["annotations"]["summary"] and rule["annotations"]["action"]
    assert len(names) == len(set(names)) > 10


def test_every_alert_has_a_section_for_whoever_is_woken():
    """docs/operations/alerts.md has one for each, with a look and a thing to do, and none for an alert that
    is not there; the rule links to it."""
    with open(os.path.join(REPOSITORY, "docs", "operations", "alerts.md"), encoding="utf-8") as file:
        parts = re.split(r"^### (Weir\w+)$", file.read(), flags=re.M)
    sections = dict(zip(parts[1::2], parts[2::2]))
    rules = {rule["alert"]: rule for group in load("prometheus", "weir-alerts.yml")["groups"]
             for rule in group["rules"]}
    assert len(parts[1::2]) == len(sections) and set(sections) == set(rules)
    for name, rule in rules.items():
        assert rule["annotations"]["runbook"] == f"docs/operations/alerts.md#{name.lower()}"
        text = sections[name].split("\n## ")[0].strip()
        assert not text.startswith("-") and "\n- Look: " in text and re.search(r"\n- Do[:,]", text), name


def test_sections_about_alerts_name_what_exists(page, weir):
    """Metrics, settings and commands of docs/operations/alerts.md."""
    with open(os.path.join(REPOSITORY, "docs", "operations", "alerts.md"), encoding="utf-8") as file:
        text = re.sub(r"```.*?```", "", file.read(), flags=re.S)
    words = set(re.findall(r"`([^`\s]+)", text))
    settings = {line.split()[0] for line in weir.cli("config", "show").stdout.splitlines() if line}
    families = ("server", "jobs", "queue", "runner", "limits", "slo", "engine", "webhooks", "traces", "log")
    asked = {w.rstrip(":") for w in words if re.fullmatch(rf"(?:{'|'.join(families)})\.[a-z_0-9]+:?", w)}
    assert asked and asked <= settings, asked - settings
    names = {w for w in words if re.fullmatch(r"(?:weir|jobs?|webhook)_[a-z_]+", w)}
    unknown = names - sample_names(page) - set(page)
    assert names and not unknown, unknown
    known = weir.cli("help").stdout
    for command in set(re.findall(r"`(weir [a-z]+(?: [a-z-]+)?)\b", text)):
        assert f"  {command} " in known, command


def test_every_service_level_has_an_alert(page):
    """Queue pressure has two of its own."""
    asked = {name for _, expression in expressions() for name in re.findall(r'slo="(\w+)"', expression)}
    named = {dict(pairs)["slo"] for _, pairs in page["weir_slo_level"].samples}
    assert asked == named - {"queue_pressure_safety"} and len(named) == 6


@pytest.mark.long  # promtool comes with a whole Prometheus
@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")
def test_promtool_takes_the_rules():
    done = subprocess.run(["promtool", "check", "rules", RULES], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr
