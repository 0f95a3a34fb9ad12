"""Several Weir servers (nodes) on one database.

    with Nodes(database, 2, settings=SETTINGS) as nodes:
        nodes[0].submit(...); nodes[1].claim(...)

Each node has a data directory and a port of its own; `through` gives the port each one reaches the
database by: a proxy's, else PostgreSQL's own.
"""
from harness.together import Startable
from harness.weir_server import Weir


class Nodes(Startable, list):
    """The servers, started one after another; the first one makes the schema."""

    def __init__(self, database, count=2, settings=None, through=None):
        super().__init__()
        self.database = database
        self.name = database.fresh_database()
        ports = through or [database.port] * count
        for port in ports[:count]:
            self.append(Weir(settings=settings, store_url=database.url(self.name, port)))

    def start(self):
        """All of them."""
        for node in self:
            node.start()
        return self

    def stop(self):
        """An orderly end of each; the first complaint is raised once all have ended."""
        faults = []
        for node in self:
            try:
                node.stop()
            except AssertionError as fault:
                faults.append(fault)
        if faults:
            raise faults[0]

    def close(self, keep=False):
        """No processes, no files, no database."""
        for node in self:
            node.close(keep=keep)
        if self.database.process is not None:
            self.database.drop_database(self.name)

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.stop()
        finally:
            self.close()
