"""The contracts as other people's tools see them: a linter, and a generator of types whose result a typical
client is compiled with.

npm installs both once into the build directory, exactly as types/package-lock.json says. Without npm's
registry the tests fail, and say so; WEIR_TEST_NO_NPM=1 leaves them out.
"""
import filecmp
import os
import re
import shutil
import subprocess

import pytest

from harness.contract_statuses import NAMES
from harness.weir_server import REPOSITORY, binary

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "types")
CONTRACTS = os.path.join(REPOSITORY, "contracts")
NPM_SECONDS_MAX = 200
NPM = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--no-update-notifier",
       "--fetch-retries=2", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000")
QUIET = {**os.environ, "REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true", "NO_COLOR": "1"}


def refuse(why):
    """Ends the test with what to do."""
    pytest.fail(f"the tools that read the contracts are missing: {why}\n"
                "They come from npm's registry, which has to be within reach once per build directory; "
                "WEIR_TEST_NO_NPM=1 leaves these tests out.", pytrace=False)


def install(folder):
    """`npm ci` of the lock file into a folder that is not there yet."""
    made = folder + f".{os.getpid()}"
    os.makedirs(made)
    try:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(os.path.join(HERE, name), made)
        done = subprocess.run(NPM, cwd=made, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=NPM_SECONDS_MAX)
        if done.returncode != 0:
            refuse(f"npm failed:\n{done.stdout[-1500:]}")
        os.rename(made, folder)
    except FileNotFoundError:
        refuse("there is no npm; run `make setup`")
    except subprocess.TimeoutExpired:
        refuse(f"npm did not end within {NPM_SECONDS_MAX} s; is its registry out of reach?")
    finally:
        shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(name="tools", scope="module")
def folder_of_tools():
    """The folder that holds the tools, as the lock file has them."""
    if os.environ.get("WEIR_TEST_NO_NPM") == "1":
        pytest.skip("WEIR_TEST_NO_NPM=1: the contracts are not read by openapi-typescript and redocly")
    folder = os.path.join(os.path.dirname(os.path.abspath(binary())), "contract-types")
    there, wanted = (os.path.join(place, "package-lock.json") for place in (folder, HERE))
    if not os.path.exists(there) or not filecmp.cmp(there, wanted, shallow=False):
        shutil.rmtree(folder, ignore_errors=True)
        install(folder)
    return os.path.join(folder, "node_modules", ".bin")


def run(tools, tool, *arguments, cwd):
    """One of the tools; gives (exit code, what it said)."""
    done = subprocess.run([os.path.join(tools, tool), *arguments], cwd=cwd, check=False, env=QUIET, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=300)
    return done.returncode, done.stdout


def generate(tools, folder):
    """The types of all contracts into a folder, with the tool's own defaults; and the client beside them."""
    config = "apis:\n" + "".join(
        f"  {name}:\n    root: '{CONTRACTS}/openapi/{name}.yaml'\n"
        f"    x-openapi-ts: {{output: '{folder}/{name}.d.ts'}}\n" for name in NAMES)
    (folder / "redocly.yaml").write_text(config, encoding="utf-8")
    for name in ("client.ts", "tsconfig.json"):
        shutil.copy(os.path.join(HERE, name), folder)
    code, said = run(tools, "openapi-typescript", "--redocly", "redocly.yaml", cwd=folder)
    assert code == 0, said


def test_a_typical_client_compiles_with_the_generated_types(tools, tmp_path):
    """Free objects take anything, enums refuse what they do not have, nothing with a default is needed, a
    claimed task is told apart by its kind; types/client.ts says each."""
    generate(tools, tmp_path)
    code, said = run(tools, "tsc", "-p", ".", cwd=tmp_path)
    assert code == 0, said


def test_the_linter_has_nothing_to_say(tools):
    """All recommended rules, no error and no warning."""
    files = [f"openapi/{name}.yaml" for name in NAMES]
    code, said = run(tools, "redocly", "lint", "--max-problems", "20", *files, cwd=CONTRACTS)
    assert code == 0 and not re.search(r"\d+ (warning|error|problem)", said), said
