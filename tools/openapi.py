"""Reading the OpenAPI files of contracts/: for the generator of routes and for contract_lint.py."""
import os

import yaml

METHODS = ["get", "put", "post", "delete", "patch"]


class Loader(yaml.SafeLoader):
    """Remembers the line of each mapping and refuses what our own reader refuses."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.YAMLError(f"line {node.start_mark.line + 1}: key {key} is there twice")
        found = Mapping(super().construct_mapping(node, deep=True))
        found.line = node.start_mark.line + 1
        return found


class Mapping(dict):
    """A dict that knows its line."""
    line = 1


Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG,
                       lambda loader, node: loader.construct_mapping(node))


class Contract:
    """One file and what is found in it."""

    def __init__(self, root, path):
        self.path = path
        self.name = os.path.splitext(os.path.basename(path))[0]
        self.found = []
        self.document = Mapping()
        try:
            with open(os.path.join(root, path), encoding="utf-8") as file:
                self.document = yaml.load(file, Loader)
        except yaml.YAMLError as error:
            self.say(self.document, f"cannot be read: {error}")

    def say(self, where, what):
        """A finding at the line of a mapping."""
        self.found.append((self.path, getattr(where, "line", 1), what))

    def follow(self, node):
        """The node a $ref leads to, or the node itself; None when it leads nowhere."""
        seen = 0
        while isinstance(node, dict) and "$ref" in node and seen < 10:
            target = self.document
            for part in str(node["$ref"]).removeprefix("#/").split("/"):
                target = target.get(part) if isinstance(target, dict) else None
            node = target
            seen += 1
        return node

    def base(self):
        """The server's base path, which stands before every path."""
        return self.document.get("servers", [{"url": ""}])[0]["url"].rstrip("/")

    def operations(self):
        """(path, method, path item, operation) of each operation."""
        for path, item in self.document.get("paths", {}).items():
            for method in METHODS:
                if method in item:
                    yield path, method, item, item[method]

    def parameters(self, item, operation):
        """The declared parameters of a path item and its operation, references followed."""
        declared = list(item.get("parameters", [])) + list(operation.get("parameters", []))
        return [found for found in (self.follow(one) for one in declared) if found]
