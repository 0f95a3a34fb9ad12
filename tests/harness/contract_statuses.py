"""Which statuses a call may be answered with, by the contracts. Every answer that a black-box test gets
through Weir.api() is held against them: one outside of an operation's set fails the test that meets it."""
import functools
import glob
import os
import re

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
CONTRACTS = sorted(glob.glob(os.path.join(HERE, "..", "..", "contracts", "openapi", "*.yaml")))
NAMES = [os.path.basename(path).removesuffix(".yaml") for path in CONTRACTS]
METHODS = ("get", "post", "put", "patch", "delete")
# What the server says before it knows the operation: too slow, a head too large, a name that is not its own.
ANY_CALL = {405, 408, 421, 431}


@functools.lru_cache(maxsize=1)
def operations():
    """[(method, pattern of the path, operationId, statuses)] of all contracts; fixed paths first."""
    found = []
    for path in CONTRACTS:
        with open(path, encoding="utf-8") as file:
            document = yaml.load(file, Loader=yaml.CSafeLoader)
        for template, item in document["paths"].items():
            pattern = re.sub(r"\\?\{\w+\\?\}", "[^/:]+", re.escape(template))
            found += [(method.upper(), re.compile(pattern), item[method]["operationId"],
                       {int(status) for status in item[method]["responses"]})
                      for method in METHODS if method in item]
    return sorted(found, key=lambda one: one[1].pattern.count("[^/:]+"))


def of(method, path):
    """(operationId, statuses) of the call; None when no contract has it, or the path is none (%00)."""
    bare = path.partition("?")[0]
    if "%00" in bare:
        return None
    for known, pattern, operation, statuses in operations():
        if known == ("GET" if method == "HEAD" else method) and pattern.fullmatch(bare):
            return operation, statuses
    return None


def check(method, path, status):
    """Fails when the contract's operation does not list the status."""
    found = of(method, path)
    assert not found or status in found[1] | ANY_CALL, (
        f"{method} {path} ({found[0]}) was answered {status}; its contract lists {sorted(found[1])}")
