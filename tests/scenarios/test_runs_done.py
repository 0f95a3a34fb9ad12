"""What holds of the workflow engine as a whole, seen in its tree, its documents and its requirement table:
who owns what, that there is one of it, which choices are made. Each look has a control: a tree in which it
is false."""
import json
import os
import re
import sys

from harness.weir_server import REPOSITORY

sys.path.insert(0, os.path.join(REPOSITORY, "tools"))
import conformance  # pylint: disable=wrong-import-position,import-error

CONSUMERS = ("StateStore", "projectors", "UI", "audit systems")
WRITES = re.compile(r"unit_(?:insert|update|delete)\w*\(\s*\w+,\s*&table_run_event_row\b")
SQL = re.compile(r"(?:INSERT INTO|UPDATE|DELETE FROM|REPLACE INTO)\s+run_events\b", re.I)
# The '|' between the parts of the key, as it is put into a text.
DELIMITER = re.compile(r"""strbuf_add\w*\(\s*[\w&>.-]+,\s*(?:'\|'|"[^"]*\|)""")
CALLS_KEY = re.compile(r"\b(?:event_key|event_key_digest|event_key_preimage)\(")


def read(*path):
    """A file of the repository."""
    with open(os.path.join(REPOSITORY, *path), encoding="utf-8") as file:
        return file.read()


def words(text):
    """A text on one line."""
    return " ".join(text.split())


def sources():
    """{path: text} of all C files of src/, without comments."""
    found = {}
    for folder, _, names in os.walk(os.path.join(REPOSITORY, "src")):
        for name in names:
            if name.endswith((".c", ".h", ".sql")):
                path = os.path.relpath(os.path.join(folder, name), REPOSITORY)
                found[path] = re.sub(r"/\*.*?\*/", " ", read(path), flags=re.S)
    assert len(found) > 300
    return found


def having(pattern, tree):
    """The files in which a pattern occurs."""
    return sorted(path for path, text in tree.items() if pattern.search(text))


# ---- owners

def owners(architecture):
    """{consumer: files of its owner} from the table of ARCHITECTURE.md."""
    names = "|".join(CONSUMERS)
    rows = re.findall(rf"^\| ({names})\b[^|]*\| ([^|]*) \|$", architecture, re.M)
    return {name: re.findall(r"`(src/[\w/.]+)`", owner) for name, owner in rows}


def test_each_consumer_of_run_events_has_an_owner():
    """[RUN-002] StateStore, projectors, UI and audit systems: files that exist. Control: without the rows."""
    text = read("ARCHITECTURE.md")
    found = owners(text)
    assert set(found) == set(CONSUMERS)
    for files in found.values():
        assert files and all(os.path.exists(os.path.join(REPOSITORY, path)) for path in files), files
    assert owners(re.sub(r"^\| projectors.*\n", "", text, flags=re.M)).keys() != set(CONSUMERS)


def test_only_the_append_authority_writes_the_log_of_runs():
    """[RUN-128] One file inserts run events, none changes or deletes one; and no SQL does. Control: a second
    writer."""
    tree = sources()
    assert having(WRITES, tree) == ["src/engine/append.c"]
    assert len(WRITES.findall(tree["src/engine/append.c"])) == 1 and not having(SQL, tree)
    assert having(WRITES, {**tree, "src/engine/x.c": "unit_update(u, &table_run_event_row, e);"})[1:]
    assert having(SQL, {"src/store/x.sql": "DELETE FROM run_events WHERE run < 7;"})


def test_the_key_has_one_implementation_that_producer_and_append_call():
    """[RUN-129] The parts are put together in one place. Control: another file that joins with '|'."""
    tree = sources()
    assert having(DELIMITER, tree) == ["src/runs/event_key.c"]
    callers = having(CALLS_KEY, tree)
    assert "src/engine/producer.c" in callers and "src/runs/run_event.c" in callers  # what append takes in
    assert having(DELIMITER, {"src/engine/x.c": 'strbuf_addf(&b, "%s|%s", run, step);'})


# ---- choices

def test_policy_a_is_documented_and_nothing_knows_policy_b():
    """[RUN-121] The document says so; no code has a mark of a run that is stalled. Control: the same search
    finds one."""
    text = words(read("docs", "runs.md"))
    assert "always the projector follows **policy A**" in text
    assert "Policy B of the contract (freeze the run at its last valid record) is not chosen" in text
    stalled = re.compile(r"STALLED|policy_b\b", re.I)
    assert not having(stalled, sources()) and "STALLED" not in read("contracts", "openapi", "engine.yaml")
    assert having(stalled, {"src/engine/x.c": "run->stalled_invalid_transition = 1;"})


def test_the_document_says_what_becomes_of_older_streams_and_of_growth():
    """[RUN-131] [RUN-132] No v1 on a fresh store, one version of the key; how long run events stay, what they
    cost, where the archive is."""
    text = words(read("docs", "runs.md"))
    assert "a fresh store holds no v1 events" in text
    assert "no window in which both would have to be read" in text
    kept = text.split("## How long it is kept", 1)[1]
    assert "Runs, run events, plans, alerts and decision records are kept for good" in kept
    assert "bytes an event" in kept and "`weir store copy`" in kept and "Replay is bounded by the run" in kept


def test_what_the_document_says_about_retention_is_so():
    """[RUN-132] Nothing deletes what a run consists of. Control: the purge of jobs is found."""
    tables = "plan_row|run_row|run_event_row|run_step_row|alert_row|decision_row|event_id_row"
    deletes = re.compile(rf"unit_delete\w*\(\s*\w+,\s*&table_(?:{tables})\b")
    assert not having(deletes, sources())
    assert having(re.compile(r"unit_delete\w*\(\s*\w+,\s*&table_\w+"), sources())


# ---- the table of signals

def documented(page):
    """{signal: (payload members, least role, destructive)} as docs/signals.md has them."""
    rows = re.findall(r"^\| `([A-Z_]+)` \| `\{([^}]*)\}` \| (\w+) \| (yes)? ?\|", page, re.M)
    return {name: (set(filter(None, payload.split(", "))), role, bool(yes))
            for name, payload, role, yes in rows}


def built():
    """The same from the list that the program is made of, and its schemas."""
    text, found = read("src", "lifecycle", "signals.h"), {}
    for name, role, destructive, schema in re.findall(r'X\((\w+), (\w+), (true|false), "(\w+)"\)', text):
        of = json.loads(read("contracts", "schemas", "signal", schema + ".v1.json"))
        members = {m if m in of.get("required", []) else m + "?" for m in of["properties"]}
        found[name] = members, role.capitalize(), destructive == "true"
    return found


def test_the_document_has_the_signals_as_they_are():
    """Eleven, with payload, role and whether they destroy. Control: one role changed."""
    page = read("docs", "signals.md")
    assert len(built()) == 11 and documented(page) == built()
    assert documented(page.replace("| `SKIP_STEP` | `{stepId, reason?}` | Engineer |",
                                   "| `SKIP_STEP` | `{stepId, reason?}` | Operator |")) != built()


# ---- the words of BCP 14

def rows_of(table):
    """The rows of a requirement table."""
    lines = [line.split("\t") for line in table.splitlines()]
    return [dict(zip(lines[0], line)) for line in lines[1:]]


def open_choices(rows, readings):
    """Requirements that leave something open and that no reading decides."""
    says_may = re.compile(r"\b(?:may|optional|recommended)\b", re.I)
    wanted = {row["id"] for row in rows if says_may.search(row["requirement"])}
    assert len(wanted) >= 7
    return sorted(wanted - set(re.findall(r"RUN-\d{3}", readings)) - {"RUN-003"})


def test_every_must_has_a_test_and_every_may_a_choice():
    """[RUN-003] Each requirement of the contract is marked by a test; what is left open stands in the
    readings with what was chosen. Controls: a requirement nobody knows, readings without one."""
    rows = rows_of(read("docs", "conformance", "runs.tsv"))
    marks, findings = conformance.scan(REPOSITORY)
    assert len(rows) > 120 and not findings
    assert [row["id"] for row in rows if row["id"] not in marks] == []
    readings = read("docs", "conformance", "readings.md")
    assert open_choices(rows, readings) == []
    assert open_choices(rows, readings.replace("RUN-062", "")) == ["RUN-062"]
    assert "RUN-999" not in marks
