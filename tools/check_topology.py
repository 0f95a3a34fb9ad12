#!/usr/bin/python3
"""The review gate of a failure domain: it states its six items, in the list and in its doc, or does not
merge.

1 owner and supervisor, 2 strategy and restart intensity, 3 the class of each failure mode, 4 partition key
and scaling rule, 5 SLO target and thresholds, 6 telemetry events with their dimensions. The list is
src/runtime/domain_table.h; the doc is the domain's section of docs/operations/topology.md. The folder of
every process says the same of itself in its README, and names what it depends on.
"""
import os
import re

import topology_lists
import tree

DOC = "docs/operations/topology.md"
CLASSES = {"fatal", "recoverable", "degraded"}
STORY = "- Story 00: Runtime Topology And SLOs."


def has_numbers(slo):
    """A target and what is warned at or critical, each with its number."""
    return re.search(r"[<>=]+ ?\d", slo) and re.search(r"(warn|critical) ?[<>=]+ ?\d", slo)


def declared(domain, modes, events):
    """What the list lacks of the six, in words."""
    if not domain.owner or not domain.supervisor:
        yield "item 1: no owner or no supervisor"
    if not domain.restarts or not domain.seconds:
        yield "item 2: its restart intensity is no setting with a default"
    if not domain.modes:
        yield "item 3: no failure mode"
    for mode in domain.modes:
        if mode not in modes or modes[mode].failure_class not in CLASSES:
            yield f"item 3: failure mode {mode} has no class"
    if not domain.key or not domain.scaling:
        yield "item 4: no partition key or no scaling rule"
    if not has_numbers(domain.slo):
        yield "item 5: no SLO target with its thresholds"
    if not domain.events:
        yield "item 6: no telemetry event"
    for event in domain.events:
        if event not in events or not events[event][1]:
            yield f"item 6: event {event} has no name or no dimensions"


def section(text, name):
    """A domain's part of the doc."""
    found = re.search(rf"^## {re.escape(name)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    return found[1] if found else None


def documented(domain, modes, events, text):
    """What its section of the doc lacks."""
    part = section(text, domain.name)
    if part is None:
        yield f"has no section in {DOC}"
        return
    wanted = [("1", domain.owner), ("1", domain.supervisor), ("2", "one_for_one"),
              ("2", f"{domain.restarts}/{domain.seconds}s"), ("4", domain.key), ("4", domain.scaling),
              ("5", domain.slo)]
    wanted += [("3", f"`{modes[m].name}` {modes[m].failure_class}") for m in domain.modes if m in modes]
    wanted += [("6", f"`{name}` ({', '.join(dimensions)})")
               for name, dimensions in (events[e] for e in domain.events if e in events)]
    for item, words in wanted:
        if words not in part:
            yield f"item {item}: its section in {DOC} does not say {words!r}"
    if STORY not in part.splitlines():
        yield f"its section in {DOC} does not name what it depends on: {STORY}"


def readme_of(root, process):
    """Of the folder that is this process's program."""
    folder = "src/core" if process == "core" else "src/domains/" + process
    path = folder + "/README.md"
    return path, "\n".join(tree.lines_of(root, path)) if os.path.exists(os.path.join(root, path)) else ""


def cited(root, domain):
    """What the READMEs of its processes lack."""
    for process in [p.name for p in topology_lists.processes(root) if p.domain == domain.id]:
        path, text = readme_of(root, process)
        wanted = [("1", f"domain `{domain.name}`"), ("2", "one_for_one"),
                  ("2", f"{domain.restarts}/{domain.seconds}s"), ("3", "crash classes"),
                  ("4", "partition key, scaling"), ("5", "SLO, pressure"), ("6", "telemetry")]
        for item, words in wanted:
            if words not in text:
                yield f"item {item}: {path} does not say {words!r}"
        if STORY not in text.splitlines():
            yield f"{path} does not name what it depends on: {STORY}"


def check(root):
    """Findings of every domain."""
    modes, events = topology_lists.modes(root), topology_lists.events(root)
    text = "\n".join(tree.lines_of(root, DOC)) if os.path.exists(os.path.join(root, DOC)) else ""
    domains = topology_lists.domains(root)
    stated = topology_lists.body(topology_lists.source(root, topology_lists.DOMAIN_TABLE), "DOMAIN_LIST")
    if not domains or len(domains) != len(re.findall(r"\bX\(", stated)):
        yield topology_lists.DOMAIN_TABLE, 1, "DOMAIN_LIST has a line that cannot be read"
    for domain in domains:
        found = list(declared(domain, modes, events)) + list(documented(domain, modes, events, text))
        found += cited(root, domain)
        for what in found:
            yield topology_lists.DOMAIN_TABLE, domain.line, f"domain {domain.name}: {what}"


ROW = 'X(A, "a", "AOwner", "ASupervisor", runtime_a_max_restarts, runtime_a_max_seconds, "stays alone")'
GATE = 'X(A, F(LOST), "a_id", "one each", "late p95 <= 5 (warn > 4)", E(SEEN))'
SECTION = ("## a\n- `AOwner` `ASupervisor` `one_for_one` `3/10s` `lost` recoverable a_id one each\n"
           "- late p95 <= 5 (warn > 4) `weir.seen` (one, two)\n" + STORY + "\n")
README = ("# p\ndomain `a` one_for_one 3/10s crash classes partition key, scaling SLO, pressure telemetry\n"
          + STORY + "\n")


def planted():
    """A domain that states all, and one for each thing that can be left out."""
    def tree_of(row=ROW, gate=GATE, doc=SECTION, failure_class="RECOVERABLE", dimensions="one two",
                readme=README):
        comment = f"/* {dimensions} */\n" if dimensions else ""
        return {
            topology_lists.DOMAIN_TABLE: f"#define DOMAIN_LIST(X) \\\n{row}\n\n"
                                         f"#define DOMAIN_GATE(X) \\\n{gate}\n\n",
            topology_lists.FAILURES: "#define FAILURE_MODES(X) "
                                     f'X(LOST, lost, {failure_class}, RESTART, "again")\n\n',
            topology_lists.EVENTS: f'#define EVENT_PREFIX "weir."\n{comment}'
                                   '#define EVENT_SEEN EVENT_PREFIX "seen"\n',
            topology_lists.SETTINGS: 'INT(runtime_a_max_restarts, "r", 3, 0, 9, "") '
                                     'INT(runtime_a_max_seconds, "s", 10, 1, 9, "")',
            topology_lists.PROCESSES: '#define WEIR_PROCESSES(X) '
                                      'X(P, "p", "does it", A, 1, SANDBOX_P, false)\n\n',
            "src/domains/p/README.md": readme,
            DOC: "# T\n" + doc}

    return [
        (tree_of(), None),
        (tree_of(row=ROW.replace("AOwner", "")), "item 1"),
        (tree_of(row=ROW.replace("ASupervisor", "")), "item 1"),
        (tree_of(row=ROW.replace("runtime_a_max_seconds", "nothing")), "item 2"),
        (tree_of(gate=GATE.replace("F(LOST)", "")), "item 3"),
        (tree_of(gate=GATE.replace("LOST", "OTHER")), "item 3"),
        (tree_of(failure_class="SOMETIMES"), "item 3"),
        (tree_of(gate=GATE.replace("a_id", "")), "item 4"),
        (tree_of(gate=GATE.replace("one each", "")), "item 4"),
        (tree_of(gate=GATE.replace("late p95 <= 5 (warn > 4)", "as good as can be")), "item 5"),
        (tree_of(gate=GATE.replace("E(SEEN)", "")), "item 6"),
        (tree_of(dimensions=""), "item 6"),
        (tree_of(gate=""), "item 3"),
        (tree_of(row=ROW.replace('"stays alone"', "")), "cannot be read"),
        (tree_of(doc=""), "has no section"),
        (tree_of(doc=SECTION.replace("3/10s", "often")), "item 2: its section"),
        (tree_of(doc=SECTION.replace("`lost` recoverable", "")), "item 3: its section"),
        (tree_of(doc=SECTION.replace(STORY, "")), "what it depends on"),
        (tree_of(readme=README.replace(STORY, "")), "README.md does not name"),
        (tree_of(readme=README.replace("3/10s", "often")), "item 2: src/domains/p"),
        (tree_of(readme=""), "item 6: src/domains/p"),
    ]


if __name__ == "__main__":
    tree.run(check, planted)
