"""Writes the route table of the API from the contracts: generate_routes.py OUT.c OUT.h DEPFILE FOLDER...

A row for each operation of the OpenAPI files in the folders, and the prototypes of their handlers:
operationId getJob is handled by handle_get_job. A handler that is missing does not link; one that no
operation names has no prototype, which the compiler refuses. What a row needs beyond standard OpenAPI is said
by x-weir- extensions (contracts/README.md); the words of x-weir-auth, x-weir-scope and x-weir-rate end as
constants of the C code, so that an unknown one does not compile.
"""
import os
import re
import sys

import generated
import openapi

TAKES_A_KEY = {"optional", "client", "keeper", "worker"}
NAME = re.compile(r"[a-z][A-Za-z0-9]*")
WORD = re.compile(r"[a-z_]+")


def snake(name):
    """getKeySet as get_key_set."""
    return re.sub(r"[A-Z]", lambda letter: "_" + letter[0].lower(), name)


def word_of(contract, operation, name):
    """An extension of the operation, or else the one at the top of its file, which is for all of them."""
    return operation.get(name, contract.document.get(name))


def accepts_of(operation):
    """The kinds of answer that a caller may ask for: those of success, and x-weir-also-accepts."""
    kinds = list(operation.get("x-weir-also-accepts", []))
    for status, response in operation.get("responses", {}).items():
        if str(status).startswith("2"):
            kinds += response.get("content", {})
    names = {"ACCEPT_" + kind.partition("/")[2].upper().replace("-", "_") for kind in kinds}
    return " | ".join(sorted(names)) or "ACCEPT_JSON"


def scope_of(operation):
    """The scope that a key needs."""
    parts = ["SCOPE_" + operation["x-weir-scope"].upper()] if "x-weir-scope" in operation else []
    return " | ".join(parts + ["EVERY_QUEUE"] * bool(operation.get("x-weir-every-queue"))) or "0"


def body_of(contract, path, method, operation):
    """Pointers to the schema that describes the body and, where another does, to the one that checks it."""
    place = "#/paths/" + path.replace("~", "~0").replace("/", "~1") + f"/{method}/requestBody"
    body = operation.get("requestBody")
    if body is None:
        return []
    place = body.get("$ref", place) + "/content/application~1json/"
    media = (contract.follow(body) or {}).get("content", {}).get("application/json", {})
    if "schema" not in media:
        contract.say(operation, f"{operation['operationId']}: its body has no application/json schema")
    checked = [f'.checked_body = "{place}x-weir-check"'] * ("x-weir-check" in media)
    return [f'.body = "{place}schema"', *checked]


def query_of(contract, method, item, operation):
    """The names of query parameters; and whether the call is a list, which refuses others: a filter with a
    wrong name would give too much."""
    names = [one["name"] for one in contract.parameters(item, operation) if one.get("in") == "query"]
    is_list = method == "get" and (len(names) > 1 or operation["operationId"].startswith("list"))
    text = "".join(f'"{name}", ' for name in names)
    return [f".query = (const char *const[]){{{text}NULL}}"] + [".is_list = true"] * is_list


def fault_of(contract, operation):
    """Why the operation can have no row; None: it can."""
    name, auth = operation.get("operationId", ""), word_of(contract, operation, "x-weir-auth")
    scope = operation.get("x-weir-scope")
    if not NAME.fullmatch(name):
        return "an operation needs an operationId of letters and digits"
    if not WORD.fullmatch(auth or ""):
        return f"{name} needs x-weir-auth, one word"
    if (auth in TAKES_A_KEY) != (scope is not None):
        return f"{name} takes {'no key and names a' if scope else 'a key and names no'} scope"
    if (auth in ("none", "probe")) == bool(operation.get("security", contract.document.get("security"))):
        return f"{name}: x-weir-auth is {auth}, which its security does not say"
    return None


def row_of(contract, path, method, item, operation):
    """The C text of a route."""
    name = operation["operationId"]
    fields = [f'.contract = "{contract.name}"',
              f'.action = "{operation.get("x-weir-action", snake(name))}"',
              f'.auth = AUTH_{word_of(contract, operation, "x-weir-auth").upper()}',
              f".scope = {scope_of(operation)}",
              f".accepts = {accepts_of(operation)}",
              f'.rate = RATE_CLASS_{(word_of(contract, operation, "x-weir-rate") or "none").upper()}',
              *body_of(contract, path, method, operation),
              *query_of(contract, method, item, operation),
              f".handle = handle_{snake(name)}"]
    return (f'    {{HTTP_{method.upper()}, "{contract.base() + path}", "{name}",\n'
            "     &(const struct route_info){\n"
            + "".join(f"         {field},\n" for field in fields) + "     }},\n")


def tables(contracts, header_name="handlers.h"):
    """(the table in C, its header) of contracts; what is wrong with one is told by it (`found`)."""
    rows, handlers, seen = [], [], {}
    for contract in contracts:
        for path, method, item, operation in contract.operations():
            fault, name = fault_of(contract, operation), operation.get("operationId")
            if not fault and snake(name) in seen:
                fault = f"operationId {name} is also in {seen[snake(name)]}"
            if fault:
                contract.say(operation, fault)
                continue
            seen[snake(name)] = contract.path
            rows.append(row_of(contract, path, method, item, operation))
            handlers.append(f"void handle_{snake(name)}(struct call *c);\n")
    head = "/* Generated by tools/generate_routes.py from contracts/openapi. */\n"
    table = (f'#include "{header_name}"\n\n#include "base/banned.h"\n\n'
             "const struct route api_routes[] = {\n" + "".join(rows) + "};\n"
             "const size_t api_route_count = sizeof api_routes / sizeof api_routes[0];\n")
    header = ("#ifndef WEIR_API_HANDLERS_H\n#define WEIR_API_HANDLERS_H\n\n"
              '#include "api/api.h"\n\n' + "".join(handlers) + "\n#endif\n")
    return head + table, head + header


def main(out, header, depfile, *folders):
    files = [path for folder in folders for path in generated.files_of(folder, ".yaml")]
    contracts = [openapi.Contract("", path) for path in files]
    table, prototypes = tables(contracts, os.path.basename(header))
    found = [finding for contract in contracts for finding in contract.found]
    if found:
        sys.exit("".join(f"{path}:{line}: {what}\n" for path, line, what in found))
    generated.write(out, table)
    generated.write(header, prototypes)
    generated.write_depfile(depfile, out, [*folders, *files])


if __name__ == "__main__":
    main(*sys.argv[1:])
