#!/usr/bin/python3
"""The contracts against themselves and against the lists in src/.

Refused: what tools/generate_routes.py can make no route of, a handler whose prototype is not the generated
one, a word of x-weir-auth that contracts/README.md does not explain, a path parameter that is not declared,
an error status without problem+json or missing where it can occur, a $ref that leads nowhere, a schema
keyword the validator does not have, a missing description, an error code src/base/err.h does not have or has
with another status, an enum that differs from its list in src/.
The field list of a resource against its schema: the same members, types and nulls.
Schemas of signal payloads: one for each type of signal and no other, closed, with keywords the validator has.
"""
import json
import os
import re

import contract_fields
import generate_routes
import tree
from openapi import Contract, Mapping

CONTRACTS = "contracts/openapi"
WORDS, AUTH_NEEDS = "contracts/README.md", "src/api/api.h"
KEYWORD_TABLE = "src/schema/schema_compile.c"
ERROR_LIST = "src/base/err.h"
HANDLER = re.compile(r"^\s*(?:extern )?void handle_\w+\(struct call \*\w*\);")

# Enum of a component, by contract: the X-list it must equal, and which argument holds the word.
FIRST, SECOND = r"X\((\w+)", r'X\(\w+,\s*"([^"]+)"'
SEVERITIES = ("src/engine/alert.h", "ALERT_SEVERITIES", FIRST)
LISTS = {
    "jobs.yaml": {
        "State": ("src/lifecycle/job_lifecycle.h", "JOB_STATES", FIRST),
        "EventName": ("src/lifecycle/job_lifecycle.h", "JOB_EVENTS", SECOND),
        "WorkKind": ("src/lifecycle/work_kinds.h", "WORK_KINDS", FIRST),
        "KeyScope": ("src/lifecycle/key_power.h", "KEY_SCOPES", SECOND),
    },
    "ops.yaml": {
        "State": ("src/lifecycle/job_lifecycle.h", "JOB_STATES", FIRST),
        "ClientState": ("src/lifecycle/client_lifecycle.h", "CLIENT_STATES", SECOND),
    },
    "engine.yaml": {
        "OnFailure": ("src/runs/plan.h", "PLAN_ON_FAILURES", SECOND),
        "RunStatus": ("src/lifecycle/run_lifecycle.h", "RUN_STATUSES", FIRST),
        "StepStatus": ("src/lifecycle/run_lifecycle.h", "STEP_STATUSES", FIRST),
        "RunEventType": ("src/lifecycle/run_lifecycle.h", "RUN_EVENTS", FIRST),
        "SignalType": ("src/lifecycle/signals.h", "SIGNAL_TYPES", FIRST),
        "Decision": ("src/lifecycle/signals.h", "SIGNAL_DECISIONS", FIRST),
        "AlertSeverity": SEVERITIES,
        "AlertCategory": ("src/engine/alert.h", "ALERT_CATEGORIES", SECOND),
    },
}
SIGNALS = "contracts/schemas/signal"
SIGNAL_FILES = ("src/lifecycle/signals.h", "SIGNAL_TYPES", r'"(\w+)"\)')

# Where schemas stand inside a schema.
SCHEMA_MAPS = {"properties", "$defs", "dependentSchemas"}
SCHEMA_LISTS = {"allOf", "anyOf", "oneOf", "prefixItems"}
SCHEMA_SINGLES = {"items", "contains", "additionalProperties", "propertyNames", "not", "if", "then",
                  "else"}


def check_references(contract, node):
    """Every $ref is local and leads somewhere."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str) and contract.follow(node) is None:
            contract.say(node, f"$ref {node['$ref']} leads nowhere")
        for child in node.values():
            check_references(contract, child)
    elif isinstance(node, list):
        for child in node:
            check_references(contract, child)


def check_schema(contract, schema, keywords, where):
    """Only keywords the validator has, all the way down."""
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        if key not in keywords and not key.startswith("x-"):
            contract.say(schema, f'schema keyword "{key}" is not supported ({where})')
        below = []
        if key in SCHEMA_MAPS:
            below = list(value.values())
        elif key in SCHEMA_LISTS:
            below = value
        elif key in SCHEMA_SINGLES:
            below = [value]
        for part in below:
            check_schema(contract, part, keywords, where)


def check_schemas(contract, keywords):
    """Schemas of components, and every "schema" of parameters, headers and media types."""
    components = contract.document.get("components", {})
    for name, schema in components.get("schemas", {}).items():
        check_schema(contract, schema, keywords, name)
        if isinstance(schema, dict) and not schema.get("description"):
            contract.say(schema, f"schema {name} has no description")

    def walk(node, inside_schemas):
        if isinstance(node, dict):
            for key, child in node.items():
                if key == "schema" and not inside_schemas:
                    check_schema(contract, child, keywords, "a schema in place")
                elif key not in ("example", "examples"):
                    walk(child, inside_schemas)
        elif isinstance(node, list):
            for child in node:
                walk(child, inside_schemas)

    walk({k: v for k, v in contract.document.items() if k != "components"}, False)
    walk({k: v for k, v in components.items() if k != "schemas"}, False)


def check_parameters(contract, path, item, operation):
    """Each {name} of the path is declared once, is required, and the other way round."""
    declared = contract.parameters(item, operation)
    names = [one["name"] for one in declared if one.get("in") == "path"]
    for name in re.findall(r"{(\w+)}", path):
        if names.count(name) != 1:
            contract.say(operation, f"path parameter {{{name}}} of {path} must be declared once")
    for one in declared:
        if one.get("in") == "path":
            if "{" + one["name"] + "}" not in path:
                contract.say(operation, f"{one['name']} is declared but not in {path}")
            if one.get("required") is not True:
                contract.say(one, f"path parameter {one['name']} must be required")
        if not one.get("description"):
            contract.say(one, f"parameter {one['name']} has no description")
    return declared


def statuses_wanted(contract, path, method, operation, declared):
    """Which errors this operation can give, by what it takes."""
    wanted = {"406", "500", "503"}
    security = operation.get("security", contract.document.get("security", []))
    kinds = {name for choice in security for name in choice}
    if kinds:
        wanted |= {"401", "403"}
    if kinds and path.startswith("/v1/"):
        wanted |= {"429"}
    if path.startswith(("/v1/", "/worker/", "/engine/")):
        wanted |= {"504"}
    if method in ("post", "put", "patch"):
        wanted |= {"400", "413", "415"}
    is_list = operation.get("operationId", "").startswith("list")
    if is_list or any(one.get("in") == "query" for one in declared):
        wanted |= {"400"}
    if "{" in path:
        wanted |= {"404"}
    return wanted


def check_response(contract, where, status, response, errors):
    """Described; an error as problem+json, with codes that exist and have this status."""
    if not isinstance(response, dict):
        return
    if not response.get("description"):
        contract.say(response, f"{where}: response {status} has no description")
    if status[0] in "45":
        media = response.get("content", {}).get("application/problem+json", {})
        schema = media.get("schema", {})
        if schema.get("$ref") != "#/components/schemas/Problem":
            contract.say(response, f"{where}: response {status} needs application/problem+json")
    for code in response.get("x-weir-codes", []):
        if status not in errors.get(code, ()):
            contract.say(response, f"{where}: {code} is not an error with status {status}")


def check_operation(contract, path, method, item, operation, errors):
    """One operation from its description to its last response."""
    where = operation.get("operationId", f"{method} {path}")
    for field in ("operationId", "summary", "description", "tags", "responses"):
        if not operation.get(field):
            contract.say(operation, f"{where} has no {field}")
    declared = check_parameters(contract, path, item, operation)
    responses = operation.get("responses", {})
    if not any(str(status).startswith("2") for status in responses):
        contract.say(operation, f"{where} has no way to succeed")
    for status in sorted(statuses_wanted(contract, path, method, operation, declared)):
        if status not in responses:
            contract.say(operation, f"{where} has no response {status}")
    for status, response in responses.items():
        check_response(contract, where, str(status), contract.follow(response), errors)


def supported_keywords(root):
    """The table of the validator itself."""
    text = "\n".join(tree.lines_of(root, KEYWORD_TABLE))
    table = text[text.index("keywords[] = {"):]
    return set(re.findall(r'{"([^"]+)",', table[:table.index("};")]))


def error_codes(root):
    """Wire code to its HTTP statuses: one code may say 403 here and 404 where nothing must be told."""
    text = "\n".join(tree.lines_of(root, ERROR_LIST))
    codes = {}
    for code, status in re.findall(r'X\(\w+,\s*"(\w+)",\s*(\d+)', text.replace("\\\n", "")):
        codes.setdefault(code, set()).add(status)
    return codes


def x_list(root, path, macro, word):
    """The words of one X-list in a header."""
    text = "\n".join(tree.lines_of(root, path))
    start = text.index("#define " + macro + "(X)")
    end = re.compile(r"[^\\]\n").search(text, start).end()
    return re.findall(word, text[start + len("#define " + macro + "(X)"):end])


def check_lists(root, contract):
    """Enums of a contract that have a list in src/."""
    schemas = contract.document.get("components", {}).get("schemas", {})
    for name, (path, macro, word) in LISTS.get(os.path.basename(contract.path), {}).items():
        schema = schemas.get(name, Mapping())
        if schema.get("enum") != x_list(root, path, macro, word):
            contract.say(schema, f"enum {name} differs from {macro} in {path}")


class Payload:
    """A schema of a signal's payload; check_schema tells its findings through this."""

    def __init__(self, root, path):
        self.path, self.found = path, []
        with open(os.path.join(root, path), encoding="utf-8") as file:
            self.schema = json.load(file)

    def say(self, _, what):
        """A finding; JSON has no lines once it is read."""
        self.found.append((self.path, 1, what))


def check_signals(root, keywords):
    """One schema for each signal type, closed; the level of an escalation is an alert's severity."""
    paths = tree.files(root, [SIGNALS], [".json"])
    if not paths:
        return
    wanted = {f"{SIGNALS}/{name}.v1.json" for name in x_list(root, *SIGNAL_FILES)}
    for path in wanted.symmetric_difference(paths):
        yield path, 1, f"{SIGNAL_FILES[1]} in {SIGNAL_FILES[0]} and the files do not agree about this one"
    for path in paths:
        payload = Payload(root, path)
        check_schema(payload, payload.schema, keywords, os.path.basename(path))
        if payload.schema.get("additionalProperties") is not False:
            payload.say(None, "a payload has to be closed: additionalProperties false")
        level = payload.schema.get("properties", {}).get("level")
        if level and level.get("enum") != x_list(root, *SEVERITIES):
            payload.say(None, f"level differs from {SEVERITIES[1]} in {SEVERITIES[0]}")
        yield from payload.found


def check_prototypes(root):
    """A handler with a prototype of its own could stand there unused: api/handlers.h is the only place."""
    for path in tree.files(root, ["src"], [".c", ".h"]):
        for number, line in enumerate(tree.lines_of(root, path), 1):
            if HANDLER.match(line):
                yield path, number, 'prototypes of handlers stand in "api/handlers.h", which the build makes'


def check_words(root):
    """Each word of x-weir-auth is explained where authors of contracts look."""
    explained = "\n".join(tree.lines_of(root, WORDS))
    text = "\n".join(tree.lines_of(root, AUTH_NEEDS))
    for word in re.findall(r"\bAUTH_([A-Z]+),", text):
        if f"`{word.lower()}`" not in explained:
            yield WORDS, 1, f"`{word.lower()}` of x-weir-auth ({AUTH_NEEDS}) is not explained"


def check(root):
    """Findings of all contracts."""
    keywords, errors = supported_keywords(root), error_codes(root)
    lists = contract_fields.field_lists(root)
    contracts = [Contract(root, path) for path in tree.files(root, [CONTRACTS], [".yaml"])]
    if not contracts:
        yield CONTRACTS, 1, "no contracts"
    generate_routes.tables(contracts)
    for contract in contracts:
        check_references(contract, contract.document)
        check_schemas(contract, keywords)
        for path, method, item, operation in contract.operations():
            check_operation(contract, path, method, item, operation, errors)
        check_lists(root, contract)
        contract_fields.check_resources(contract, lists)
        yield from contract.found
    yield from contract_fields.check_field_lists(lists)
    yield from check_signals(root, keywords)
    yield from check_prototypes(root)
    yield from check_words(root)


SOUND = """\
openapi: 3.1.0
x-weir-auth: client
security: [{apiKey: []}]
paths:
  /a/{id}:
    get:
      operationId: getA
      x-weir-scope: read
      tags: [A]
      summary: A
      description: A.
      parameters:
        - {name: id, in: path, required: true, description: The id., schema: {type: string}}
      responses:
        '200':
          description: Fine.
          content: {application/json: {schema: {$ref: '#/components/schemas/A'}}}
        '401': {$ref: '#/components/responses/Bad'}
        '403': {$ref: '#/components/responses/Bad'}
        '404': {$ref: '#/components/responses/Absent'}
        '406': {$ref: '#/components/responses/Bad'}
        '500': {$ref: '#/components/responses/Bad'}
        '503': {$ref: '#/components/responses/Bad'}
components:
  responses:
    Absent:
      description: Gone.
      x-weir-codes: [RFA_GONE]
      content: {application/problem+json: {schema: {$ref: '#/components/schemas/Problem'}}}
    Bad:
      description: Bad.
      content: {application/problem+json: {schema: {$ref: '#/components/schemas/Problem'}}}
  schemas:
    A: {description: A., type: object, properties: {pattern: {type: string}}}
    Problem: {description: An error., type: object}
"""


PAYLOAD = """{"type": "object", "additionalProperties": false,
 "properties": {"level": {"enum": ["A", "B"]}}}"""


def planted_lists():
    """A sound engine.yaml with all its enums, and the headers that hold their lists."""
    headers, enums = {}, ""
    for name, (path, macro, word) in LISTS["engine.yaml"].items():
        headers[path] = headers.get(path, "") + f'#define {macro}(X) \\\n X(A, "a") \\\n X(B, "b")\n\n'
        enums += f"    {name}: {{description: A., enum: [{'A, B' if word == FIRST else 'a, b'}]}}\n"
    sound = SOUND.replace("/a/{id}", "/e/{id}").replace("getA", "getE") + enums
    return dict(headers, **{
        "contracts/openapi/engine.yaml": sound,
        f"{SIGNALS}/a.v1.json": PAYLOAD,
        f"{SIGNALS}/b.v1.json": PAYLOAD,
    })


def planted():
    """A sound contract, then the same with one fault each."""
    def with_fault(old, new, expected):
        assert SOUND.count(old) >= 1, old
        return dict(base, **{"contracts/openapi/a.yaml": SOUND.replace(old, new, 1)}), expected

    base = {
        "contracts/openapi/a.yaml": SOUND,
        ERROR_LIST: '#define ERR_LIST(X) \\\n X(GONE, "RFA_GONE", 404, "t", "a")\n',
        KEYWORD_TABLE: "} keywords[] = {\n" + "".join(
            f'    {{"{k}", f}},\n' for k in ("type", "properties", "description", "$ref", "enum",
                                          "additionalProperties", "required")) + "};\n",
        AUTH_NEEDS: "enum auth_need {\n    AUTH_NONE,\n};\n",
        WORDS: "| `none` | anyone |\n",
        "src/api/a.c": "void handle_get_a(struct call *c)\n{\n}\n",
    }
    other = SOUND.replace("/a/{id}", "/b/{id}")
    lists = dict(base, **planted_lists())
    engine, signal = "contracts/openapi/engine.yaml", f"{SIGNALS}/a.v1.json"
    listed = dict(lists, **{engine: lists[engine] + contract_fields.PLANTED_SCHEMA})

    def with_field(old, new, expected=None):
        fields = contract_fields.PLANTED_LIST
        assert old in fields, old
        return dict(listed, **{"src/fields/a.h": fields.replace(old, new)}), expected

    return [
        (base, None),
        (lists, None),
        (dict(lists, **{engine: lists[engine].replace("[A, B]", "[A, C]", 1)}), "enum RunStatus differs"),
        (dict(lists, **{engine: lists[engine].replace("[a, b]", "[b, a]", 1)}), "enum OnFailure differs"),
        with_field("at", "at"),
        with_field("X(TIME, at,", "X(TIME, when,", "EngineResult.at stands"),
        with_field("X(TIME, at,", "X(INT, at,", "EngineResult.at is ['string']"),
        with_field("INT_OR_NULL, status", "INT, status", "EngineResult.status is ['integer', 'null']"),
        with_field("INT, duration_ms", "INT_IF, duration_ms", "may be left out"),
        with_field("ENGINE_RESULT_FIELDS", "OTHER_FIELDS", "the list of no resource"),
        (dict(lists, **{f"{SIGNALS}/c.v1.json": PAYLOAD}), "do not agree"),
        (dict(lists, **{signal: PAYLOAD.replace("false", "true")}), "has to be closed"),
        (dict(lists, **{signal: PAYLOAD.replace('"B"', '"C"')}), "level differs"),
        (dict(lists, **{signal: PAYLOAD.replace('"enum"', '"pattern"')}), '"pattern" is not supported'),
        with_fault("type: object, properties", "minimum: 1, properties", '"minimum" is not supported'),
        with_fault("#/components/schemas/A", "#/components/schemas/B", "leads nowhere"),
        with_fault("summary: A", "x: A", "has no summary"),
        with_fault("      description: A.\n", "", "has no description"),
        with_fault("in: path", "in: query", "must be declared once"),
        with_fault("required: true", "required: false", "must be required"),
        with_fault("'503'", "'502'", "no response 503"),
        with_fault("RFA_GONE", "RFA_LOST", "RFA_LOST is not an error with status 404"),
        with_fault("application/problem+json", "application/json", "needs application/problem+json"),
        with_fault("      tags: [A]\n", "      tags: [A]\n      tags: [B]\n", "is there twice"),
        with_fault("description: A., type", "type", "schema A has no description"),
        (dict(base, **{"contracts/openapi/b.yaml": other}), "is also in"),
        (dict(base, **{"src/api/a.h": "void handle_get_b(struct call *c);\n"}), "which the build makes"),
        (dict(base, **{AUTH_NEEDS: "    AUTH_CLIENT, /* a key */\n"}), "`client` of x-weir-auth"),
        with_fault("operationId: getA", "x: A", "needs an operationId"),
        with_fault("x-weir-scope: read", "x: A", "takes a key and names no scope"),
        with_fault("x-weir-auth: client", "x-weir-auth: token", "takes no key and names a scope"),
        with_fault("x-weir-auth: client\n", "", "needs x-weir-auth, one word"),
        with_fault("x-weir-auth: client", "x-weir-auth: optional, or none", "needs x-weir-auth, one word"),
        with_fault("security: [{apiKey: []}]", "security: []", "which its security does not say"),
    ]


if __name__ == "__main__":
    tree.run(check, planted)
