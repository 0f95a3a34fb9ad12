"""The lists of the topology as the source has them (src/runtime), for the checker and for the docs.

domains(root) gives one Domain for each line of DOMAIN_LIST, with what DOMAIN_GATE and the settings add; an
item that is not stated is empty. A file that is missing counts as empty.
"""
import os
import re
from dataclasses import dataclass, field

DOMAIN_TABLE = "src/runtime/domain_table.h"
FAILURES = "src/runtime/failure_modes.h"
EVENTS = "src/runtime/event_names.h"
SETTINGS = "src/config/settings_list.h"
PROCESSES = "src/runtime/process_list.h"
SANDBOXES = "src/runtime/sandbox.h"
TEXT = r'"([^"]*)"'


@dataclass
class Mode:
    """A line of FAILURE_MODES."""
    name: str
    failure_class: str
    action: str
    handling: str
    dimensions: list


@dataclass
class Domain:
    """A domain and the six things it must state."""
    id: str
    name: str
    owner: str
    supervisor: str
    intent: str
    line: int
    restarts: str = ""
    seconds: str = ""
    modes: list = field(default_factory=list)
    key: str = ""
    scaling: str = ""
    slo: str = ""
    events: list = field(default_factory=list)


def source(root, path):
    """The text of a C file with continued lines and pieces of strings joined, without comments."""
    full = os.path.join(root, path)
    if not os.path.exists(full):
        return ""
    with open(full, encoding="utf-8") as file:
        text = file.read().replace("\\\n", " ")
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.sub(r'"\s+"', "", text)


def body(text, name):
    """The lines of a list macro, up to the next directive."""
    parts = text.split(f"#define {name}(X)")
    return re.split(r"\n\s*#|\n\n", parts[1])[0] if len(parts) > 1 else ""


def modes(root):
    """{id: Mode}"""
    text = source(root, FAILURES)
    rows = re.findall(rf"X\((\w+), (\w+), (\w+), (\w+),\s*{TEXT}\)", body(text, "FAILURE_MODES"))
    found = {}
    for mode_id, name, failure_class, action, handling in rows:
        line = re.search(rf"#define FAILURE_DIMENSIONS_{mode_id}\(D\)(.*)", text)
        dimensions = re.findall(r"D\(\w+, (\w+)\)", line[1] if line else "")
        found[mode_id] = Mode(name, failure_class.lower(), action.lower(), handling,
                              ["component", "failure_class"] + dimensions)
    return found


def events(root):
    """{id: (name, [dimensions])}: the dimensions stand in the comment above the name."""
    full = os.path.join(root, EVENTS)
    if not os.path.exists(full):
        return {}
    with open(full, encoding="utf-8") as file:
        text = file.read()
    prefix = re.search(rf"#define EVENT_PREFIX {TEXT}", text)
    comment = r"(?:/\* ([\w ]+?)(?:,[^*]*)? \*/\n)?"
    rows = re.findall(rf"{comment}#define EVENT_(\w+)\s+EVENT_PREFIX\s+{TEXT}", text)
    return {event: ((prefix[1] if prefix else "") + name, dimensions.split())
            for dimensions, event, name in rows}


def setting_names(root):
    """{settings field: key}"""
    return dict(re.findall(rf"INT\((\w+),\s*{TEXT}", source(root, SETTINGS)))


def defaults(root):
    """{settings field: default} of whole numbers."""
    return dict(re.findall(rf"INT\((\w+),\s*{TEXT.replace('(', '(?:')},\s*(\d+)", source(root, SETTINGS)))


@dataclass
class Process:
    """A row of WEIR_PROCESSES."""
    name: str
    does: str
    domain: str  # its id
    count: str  # a number or a field of the settings
    sandboxes: list  # names
    owns_store: bool


def processes(root):
    """Every process, in the order of the list."""
    sandboxes = dict(re.findall(rf"X\((\w+), {TEXT}\)", body(source(root, SANDBOXES), "SANDBOX_LIST")))
    rows = re.findall(rf'X\(\w+, {TEXT},\s*{TEXT},\s*(\w+),\s*(?:s->)?(\w+),([^"]*?)(true|false)',
                      body(source(root, PROCESSES), "WEIR_PROCESSES"))
    return [Process(name, does, domain, count,
                    [sandboxes.get(found, "") for found in re.findall(r"SANDBOX_(\w+)", rest)],
                    store == "true")
            for name, does, domain, count, rest, store in rows]


def line_of(root, word):
    """Where the list has it."""
    full = os.path.join(root, DOMAIN_TABLE)
    with open(full, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if word in line:
                return number
    return 1


def domains(root):
    """Every domain, in the order of the list."""
    text, known = source(root, DOMAIN_TABLE), defaults(root)
    rows = re.findall(rf"X\((\w+),\s*{TEXT},\s*{TEXT},\s*{TEXT},\s*(\w+),\s*(\w+),\s*{TEXT}\)",
                      body(text, "DOMAIN_LIST"))
    gates = {row[0]: row[1:] for row in re.findall(
        rf"X\((\w+),((?:\s*F\(\w+\))*),\s*{TEXT},\s*{TEXT},\s*{TEXT},((?:\s*E\(\w+\))*)\)",
        body(text, "DOMAIN_GATE"))}
    found = []
    for domain_id, name, owner, supervisor, restarts, seconds, intent in rows:
        domain = Domain(domain_id, name, owner, supervisor, intent, line_of(root, f'"{name}"'),
                        known.get(restarts, ""), known.get(seconds, ""))
        if domain_id in gates:
            stated, domain.key, domain.scaling, domain.slo, told = gates[domain_id]
            domain.modes = re.findall(r"F\((\w+)\)", stated)
            domain.events = re.findall(r"E\((\w+)\)", told)
        found.append(domain)
    return found
