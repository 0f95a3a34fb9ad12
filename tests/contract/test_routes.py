"""The route table that the build makes of the contracts: an operation without a handler and a handler without
an operation are refused, a new file needs no other line."""
import json
import os
import shlex
import subprocess
import sys

import pytest

from harness.weir_server import REPOSITORY, binary

GENERATOR = os.path.join(REPOSITORY, "tools", "generate_routes.py")
BUILD = os.path.dirname(os.path.abspath(binary()))
CONTRACT = """\
openapi: 3.1.0
servers: [{url: /v7/}]
x-weir-auth: token
security: [{token: []}]
paths:
  /things/{id}:
    get:
      operationId: getThing
      responses: {'200': {content: {text/csv: {}}}}
"""


def run(command, cwd):
    """(whether it succeeded, what it said)"""
    done = subprocess.run(command, cwd=cwd, check=False, text=True, timeout=100, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    return done.returncode == 0, done.stdout


def generate(tmp_path, **contracts):
    """Runs the generator on a folder with these files: (its answer, the table)."""
    folder = tmp_path / "openapi"
    folder.mkdir(exist_ok=True)
    for name, text in contracts.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    done = run([sys.executable, GENERATOR, "routes.c", "handlers.h", "routes.d", str(folder)], tmp_path)
    table = tmp_path / "routes.c"
    return done, table.read_text(encoding="utf-8") if table.exists() else ""


def compiler(source):
    """How the build compiles a file of src/, without its output."""
    with open(os.path.join(BUILD, "compile_commands.json"), encoding="utf-8") as file:
        command = next(one["command"] for one in json.load(file) if one["file"].endswith(source))
    words = shlex.split(command)
    return [word for word in words[:words.index("-MD")] if not word.startswith("-fsanitize")]


def test_a_row_has_the_path_of_the_server_and_the_words_of_the_file(tmp_path):
    (good, said), table = generate(tmp_path, things=CONTRACT)
    assert good, said
    for part in ('{HTTP_GET, "/v7/things/{id}", "getThing"', '.contract = "things"', ".auth = AUTH_TOKEN",
                 ".accepts = ACCEPT_CSV", '.action = "get_thing"', ".handle = handle_get_thing"):
        assert part in table


def test_a_new_file_is_in_the_table_without_another_line(tmp_path):
    generate(tmp_path, things=CONTRACT)
    others = CONTRACT.replace("Thing", "Other").replace("thing", "other")
    (good, said), table = generate(tmp_path, others=others)
    assert good, said
    assert "handle_get_thing" in table and "handle_get_other" in table
    sources = (tmp_path / "routes.d").read_text(encoding="utf-8")
    assert f"{tmp_path}/openapi {tmp_path}/openapi/others.yaml" in sources  # ninja looks at the folder itself


@pytest.mark.parametrize("old, new, fault", [
    ("getThing", "get-thing", "operationId of letters and digits"),
    ("x-weir-auth: token\n", "", "getThing needs x-weir-auth"),
    ("x-weir-auth: token", "x-weir-auth: client", "names no scope"),
    ("security: [{token: []}]", "security: []", "its security does not say"),
    ("      responses", "      requestBody: {content: {}}\n      responses", "no application/json schema"),
])
def test_what_makes_no_route_is_refused_by_name(tmp_path, old, new, fault):
    assert CONTRACT.count(old) == 1
    (good, said), table = generate(tmp_path, things=CONTRACT.replace(old, new))
    assert not good and fault in said and "things.yaml:" in said and not table


def test_an_operation_without_a_handler_does_not_link(tmp_path):
    generate(tmp_path, things=CONTRACT)
    (tmp_path / "api").mkdir()
    for name in ("routes.c", "handlers.h"):
        (tmp_path / name).rename(tmp_path / "api" / name)
    handler = '#include "api/handlers.h"\n\nvoid handle_get_thing(struct call *c)\n{\n    (void)c;\n}\n'
    (tmp_path / "thing.c").write_text(handler, encoding="utf-8")
    command = ["cc", "-std=gnu17", "-D_GNU_SOURCE", f"-I{tmp_path}", f"-I{REPOSITORY}/src",
               "-shared", "-fPIC", "-Wl,-z,defs", "-o", "routes.so", "api/routes.c"]
    good, said = run(command, tmp_path)
    assert not good and "undefined reference to `handle_get_thing'" in said
    good, said = run([*command, "thing.c"], tmp_path)
    assert good, said


@pytest.mark.parametrize("kind, fault", [("", "no previous prototype for"),
                                         ("static ", "defined but not used")])
def test_a_handler_without_an_operation_does_not_compile(tmp_path, kind, fault):
    source = os.path.join(REPOSITORY, "src", "api", "jobs", "job_actions.c")
    with open(source, encoding="utf-8") as file:
        text = file.read()
    more = tmp_path / "more.c"
    command = [*compiler("src/api/jobs/job_actions.c"), "-c", str(more), "-o", os.devnull]
    more.write_text(text, encoding="utf-8")
    good, said = run(command, BUILD)
    assert good, said
    text += f"\n{kind}void handle_nothing(struct call *c)\n{{\n    (void)c;\n}}\n"
    more.write_text(text, encoding="utf-8")
    good, said = run(command, BUILD)
    assert not good and fault in said and "handle_nothing" in said
