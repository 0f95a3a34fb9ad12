"""The field lists of src/fields/ against the schemas of their resources; a part of contract_lint.py."""
import os
import re

import tree

# Resources: the lists in src/fields/ that make them, the schema, and the members written beside the lists.
FIELDS = "src/fields"
RESOURCES = [
    ("jobs.yaml", "Job", ["JOB_FIELDS"], []),
    ("jobs.yaml", "WholeJob", ["JOB_FIELDS", "JOB_END_FIELDS"], []),
    ("jobs.yaml", "Report", ["ENDED_FIELDS", "REPORT_FIELDS"], ["events"]),
    ("jobs.yaml", "ReportRow", ["ENDED_FIELDS", "REPORT_ROW_FIELDS"], []),
    ("jobs.yaml", "QueueNumbers", ["QUEUE_FIELDS"], []),
    ("jobs.yaml", "Queue", ["QUEUE_FIELDS"], ["defaults"]),
    ("jobs.yaml", "QueueDefaults", ["QUEUE_DEFAULT_FIELDS"], []),
    ("jobs.yaml", "Webhook", ["WEBHOOK_FIELDS"], []),
    ("jobs.yaml", "DeliveryAttempt", ["ATTEMPT_FIELDS"], []),
    ("jobs.yaml", "Delivery", ["DELIVERY_FIELDS"], []),
    ("jobs.yaml", "ListedKey", ["KEY_FIELDS"], []),
    ("ops.yaml", "ClientSummary", ["CLIENT_FIELDS"], []),
    ("ops.yaml", "QueuePage.items", ["QUEUE_FIELDS"], []),
    ("ops.yaml", "ActionPage.items", ["ACTION_FIELDS"], []),
    ("engine.yaml", "PlanPut", ["PLAN_VERSION_FIELDS"], []),
    ("engine.yaml", "Plan", ["PLAN_HEAD_FIELDS"], ["steps", "createdAt"]),
    ("engine.yaml", "PlanStep", ["PLAN_STEP_FIELDS"], []),
    ("engine.yaml", "RunItem", ["RUN_IDENTITY_FIELDS", "RUN_ITEM_FIELDS"], []),
    ("engine.yaml", "Run", ["RUN_IDENTITY_FIELDS", "RUN_FIELDS", "RUN_NOW_FIELDS"], ["steps"]),
    ("engine.yaml", "Step", ["STEP_FIELDS", "STEP_NOW_FIELDS"], []),
    ("engine.yaml", "RunEvent", ["RUN_EVENT_FIELDS"], []),
    ("engine.yaml", "SignalDecision", ["DECISION_FIELDS"], []),
    ("engine.yaml", "SignalDecision.audit", ["DECISION_AUDIT_FIELDS"], []),
    ("engine.yaml", "EngineResult", ["ENGINE_RESULT_FIELDS"], []),
    ("engine.yaml", "Alert", ["ALERT_FIELDS"], []),
]
# A report is of an ended job, of which these are known.
NEVER_NULL = {("Report", "outcome"), ("Report", "finished_at"), ("Report", "duration_ms")}
FIELD_TYPES = {"ID": "string", "UUID": "string", "WORD": "string", "TEXT": "string", "INT": "integer",
               "BOOL": "boolean", "TIME": "string", "TIME_US": "string", "JSON": "object",
               "OBJECT": "object", "ARRAY": "array", "ANY": None}

PLANTED_SCHEMA = """\
    EngineResult:
      description: A.
      type: object
      required: [at, duration_ms]
      properties:
        at: {type: string}
        status: {type: [integer, 'null']}
        duration_ms: {type: integer}
"""
PLANTED_LIST = """\
#define ENGINE_RESULT_FIELDS(X) \\
    X(TIME, at, a->at_ms) \\
    X(INT_OR_NULL, status, a->status != 0, a->status) \\
    X(INT, duration_ms, a->duration_ms)
"""


def field_lists(root):
    """Each list of src/fields/: its members and their words."""
    lists = {}
    for path in tree.files(root, [FIELDS], [".h"]):
        text = "\n".join(tree.lines_of(root, path)).replace("\\\n", "")
        for name, body in re.findall(r"#define (\w+_FIELDS)\(X\)(.*)", text):
            lists[name] = re.findall(r"\bX\((\w+), (\w+),", body)
    return lists


def properties_of(contract, schema):
    """The properties of an object, of all parts of an allOf, and which of them are required."""
    schema = contract.follow(schema) or {}
    properties, required = dict(schema.get("properties", {})), set(schema.get("required", []))
    for part in schema.get("allOf", []):
        more, needed = properties_of(contract, part)
        properties |= more
        required |= needed
    return properties, required


def types_of(contract, schema):
    """The JSON types that a schema admits; an empty set: any."""
    schema = contract.follow(schema) or {}
    found = schema.get("type", [])
    types = {found} if isinstance(found, str) else set(found)
    for part in schema.get("anyOf", []) + schema.get("allOf", []):
        types |= types_of(contract, part)
    return types


def find_schema(contract, name):
    """"QueuePage.items" is the schema of an item of the property `items`."""
    component, *inner = name.split(".")
    schema = contract.document.get("components", {}).get("schemas", {}).get(component)
    for key in inner:
        schema = (schema or {}).get("properties", {}).get(key, {})
        schema = schema.get("items", schema)
    return schema


def check_field(contract, schema, name, member, word, property_schema):
    """One member: its word says the type, and whether it may be null."""
    base = word.removesuffix("_OR_NULL").removesuffix("_IF")
    wanted = {FIELD_TYPES[base]} if FIELD_TYPES[base] else set()
    if word.endswith("_OR_NULL") and (name, member) not in NEVER_NULL:
        wanted.add("null")
    found = types_of(contract, property_schema)
    if found != wanted:
        contract.say(schema, f"{name}.{member} is {sorted(found)} here and {word} in {FIELDS}")


def check_resources(contract, lists):
    """Schemas of resources against the lists that write them."""
    for file, name, parts, beside in RESOURCES:
        schema = find_schema(contract, name) if file == os.path.basename(contract.path) else None
        if schema is None:
            continue
        fields = {member: word for part in parts for word, member in lists.get(part, [])}
        properties, required = properties_of(contract, schema)
        for member in sorted(set(properties) ^ set(fields) ^ set(beside)):
            lists_named = " ".join(parts)
            contract.say(schema, f"{name}.{member} stands here or in {lists_named} of {FIELDS}, not in both")
        for member, word in fields.items():
            if member in properties:
                check_field(contract, schema, name, member, word, properties[member])
            if member in required and word.endswith("_IF"):
                contract.say(schema, f"{name}.{member} is required here and may be left out in {FIELDS}")


def check_field_lists(lists):
    """No list without a schema."""
    used = {part for _, _, parts, _ in RESOURCES for part in parts}
    for name in sorted(set(lists) - used):
        yield FIELDS, 1, f"{name} is the list of no resource in tools/contract_lint.py"
