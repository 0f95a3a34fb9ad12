"""The library of the Standard Webhooks project as the judge of what a receiver got.

    verdicts = judge([(call, secret)])        # ["accepted"] or the library's reason

npm installs it once into the build directory, by name and exact version; its checksums are those of
npm_packages.txt. Without npm's registry the tests fail, and say so; WEIR_TEST_NO_NPM=1 leaves them out.
"""
import base64
import json
import os
import shutil
import subprocess
import tempfile

import pytest

from harness.weir_server import binary

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = os.path.join(HERE, "npm_packages.txt")
PROGRAM = os.path.join(HERE, "judge_signatures.mjs")
INSTALLED = os.path.join("node_modules", ".package-lock.json")  # npm's own note of what it did
NPM_SECONDS_MAX = 100
NPM_OPTIONS = ("--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund", "--prefer-offline",
               "--no-update-notifier", "--fetch-retries=2", "--fetch-retry-mintimeout=1000",
               "--fetch-retry-maxtimeout=5000")
ACCEPTED = "accepted"


def packages():
    """{name: (version, checksum)}"""
    with open(PACKAGES, encoding="utf-8") as file:
        lines = [line.split() for line in file if line.strip() and not line.startswith("#")]
    return {name: (version, checksum) for name, version, checksum in lines}


def installed(folder):
    """{name: (version, checksum)} of what is in a folder, as npm noted it; {} when nothing is."""
    try:
        with open(os.path.join(folder, INSTALLED), encoding="utf-8") as file:
            noted = json.load(file)["packages"]
    except FileNotFoundError:
        return {}
    return {path.removeprefix("node_modules/"): (entry["version"], entry.get("integrity"))
            for path, entry in noted.items()}


def refuse(why):
    """Ends the test with what to do."""
    pytest.fail(f"the judge of webhook signatures is missing: {why}\n"
                "It comes from npm's registry, which has to be within reach once per build directory; "
                "WEIR_TEST_NO_NPM=1 leaves these tests out.", pytrace=False)


def run_npm(folder):
    """`npm install` of the list into a folder."""
    names = [f"{name}@{version}" for name, (version, _) in packages().items()]
    try:
        done = subprocess.run(["npm", "install", *NPM_OPTIONS, *names], cwd=folder, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=NPM_SECONDS_MAX)
    except FileNotFoundError:
        refuse("there is no npm; run `make setup`")
    except subprocess.TimeoutExpired:
        refuse(f"npm did not end within {NPM_SECONDS_MAX} s; is its registry out of reach?")
    if done.returncode != 0:
        refuse(f"npm failed:\n{done.stdout[-1500:]}")


def library():
    """The folder that holds the library; installs it when it is not there."""
    if os.environ.get("WEIR_TEST_NO_NPM") == "1":
        pytest.skip("WEIR_TEST_NO_NPM=1: signatures are not judged by the Standard Webhooks library")
    folder = os.path.join(os.path.dirname(os.path.abspath(binary())), "webhook-judge")
    if installed(folder) == packages():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    made = tempfile.mkdtemp(prefix="webhook-judge-", dir=os.path.dirname(folder))
    try:
        with open(os.path.join(made, "package.json"), "w", encoding="utf-8") as file:
            file.write('{"private": true}\n')  # or npm would look for a project in the folders above
        run_npm(made)
        found = installed(made)
        assert found == packages(), f"npm installed something else than {PACKAGES} names: {found}"
        os.rename(made, folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return folder


def judge(requests):
    """The library's verdicts. A request: (call, secret), or (call, secret, now in ms)."""
    folder, lines = library(), []
    for call, secret, *now_ms in requests:
        lines.append(json.dumps({"secret": secret, "headers": call.headers,
                                 "body": base64.b64encode(call.body).decode(),
                                 "now_ms": now_ms[0] if now_ms else int(call.at * 1000)}))
    done = subprocess.run(["node", PROGRAM], cwd=folder, input="\n".join(lines) + "\n", check=False,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    verdicts = done.stdout.splitlines()
    assert len(verdicts) == len(lines), done
    return verdicts
