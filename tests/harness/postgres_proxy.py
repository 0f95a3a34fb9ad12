"""A TCP proxy before PostgreSQL that fails where it hurts: around COMMIT.

    with Proxy(database.port) as proxy:
        url = database.url(name, port=proxy.port)
        proxy.arm("after", share=0.1)     # one COMMIT of ten, until disarm()
        proxy.cut_all(); proxy.delay_s = 0.05; proxy.refusing = True
        proxy.spoils = b"LISTEN"          # the server refuses what has this word in it

Where a COMMIT is cut:
    before  it is not passed on, so nothing is committed; the client cannot know that
    after   it is passed on and done, its answer is thrown away
    late    the client is cut off at once, the server gets the COMMIT `late_s` later: whoever looks
            meanwhile finds nothing, and must not believe that it stays so

How it finds a COMMIT: it follows the client's messages (a letter, a length, a body) after the start-up
packet. A simple query ('Q') has its text. In the extended protocol Parse ('P') gives a statement's
name and text, Bind ('B') makes a portal of a named statement, Execute ('E') runs a portal: the Execute
of a portal whose statement's text is COMMIT is the place. That it is done is the server's
CommandComplete ('C') with the tag COMMIT, which is sent after the transaction is durable; ROLLBACK as
an answer to COMMIT means the transaction had failed, and ReadyForQuery ('Z') without one that it was
skipped: both are passed on. By default only transactions that wrote something are cut: those of readers
end in COMMIT as well.
"""
import random
import re
import socket
import struct
import threading
import time
from collections import Counter, deque

CHUNK_BYTES = 65536
WRITES = re.compile(r"\b(INSERT|UPDATE|DELETE)\b", re.IGNORECASE)
SSL_REQUEST, GSS_REQUEST = 80877103, 80877104
PLACES = ("before", "after", "late")
CONNECT_SECONDS_MAX = 10


def is_commit(text):
    """Does a query's text end a transaction well?"""
    return any(part.strip().upper() in ("COMMIT", "END") for part in (text or "").split(";"))


def messages(buffer):
    """(letter, body, bytes so far) of each whole message at the front of the buffer."""
    at = 0
    while at + 5 <= len(buffer):
        length = struct.unpack_from("!I", buffer, at + 1)[0]
        end = at + 1 + length
        if end > len(buffer):
            return
        yield chr(buffer[at]), bytes(buffer[at + 5:end]), at, end
        at = end


def texts(body):
    """The zero-ended texts at the front of a body."""
    return [text.decode("utf-8", "replace") for text in body.split(b"\0")]


class Session:
    """One connection: the client's socket, the server's, and a thread for each direction."""

    def __init__(self, proxy, client):
        self.proxy, self.client = proxy, client
        self.server = socket.create_connection(proxy.upstream, timeout=CONNECT_SECONDS_MAX)
        self.server.settimeout(None)
        for end in (self.client, self.server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.statements, self.portals = {}, {}
        self.wrote = False
        self.sent = self.answered = 0  # COMMITs
        self.sent_at_sync = deque()
        self.hold_at = None  # the answer to this COMMIT is thrown away
        self.threads = [threading.Thread(target=self.guard, args=(pump,), daemon=True)
                        for pump in (self.up, self.down)]

    def guard(self, pump):
        """Either direction's end is the other's."""
        try:
            pump()
        except OSError:
            pass
        finally:
            self.cut()
            self.proxy.sessions.discard(self)

    def cut(self):
        """Ends both sides; their threads notice."""
        for end in (self.client, self.server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    # ---- client to server

    def start_up(self):
        """Refuses encryption, so that messages can be read; passes the start-up packet on."""
        while True:
            head = self.exactly(8)
            length, code = struct.unpack("!II", head)
            if code in (SSL_REQUEST, GSS_REQUEST):
                self.client.sendall(b"N")
                continue
            self.server.sendall(head + self.exactly(length - 8))
            return

    def exactly(self, count):
        """That many bytes of the client."""
        got = b""
        while len(got) < count:
            more = self.client.recv(count - len(got))
            if not more:
                raise OSError("the client went away")
            got += more
        return got

    def up(self):
        """Passes messages on, whole ones only, and looks at each."""
        self.start_up()
        buffer = bytearray()
        while True:
            more = self.client.recv(CHUNK_BYTES)
            if not more:
                return
            buffer += more
            done = 0
            for letter, body, start, end in messages(buffer):
                place = self.look(letter, body)
                self.spoil(buffer, body, start, end)
                if place in ("before", "late"):
                    self.server.sendall(buffer[:start])
                    self.cut_commit(place, bytes(buffer[start:]))
                    return
                done = end
            if done:
                self.server.sendall(buffer[:done])
                del buffer[:done]

    def spoil(self, buffer, body, start, end):
        """A statement that the server is to refuse: a word of it is written backwards."""
        word = self.proxy.spoils
        if word and word in body:
            buffer[start:end] = buffer[start:end].replace(word, word[::-1])
            self.proxy.count("spoilt")

    def look(self, letter, body):
        """Follows statements and portals; where to cut when this message is a COMMIT."""
        text = None
        if letter == "P":
            name, query = texts(body)[:2]
            self.statements[name] = query
        elif letter == "B":
            portal, statement = texts(body)[:2]
            self.portals[portal] = self.statements.get(statement)
        elif letter == "E":
            text = self.portals.get(texts(body)[0])
        elif letter == "Q":
            text = texts(body)[0]
        place = None
        if text and WRITES.search(text):
            self.wrote = True
        if is_commit(text):
            place = self.proxy.choose(self.wrote)
            self.sent += 1
            self.wrote = False
            if place == "after":
                self.hold_at = self.sent
        if letter in "SQ":
            self.sent_at_sync.append(self.sent)
        return place

    def cut_commit(self, place, rest):
        """Everything before the COMMIT has been passed on; `rest` begins with it."""
        self.proxy.count(place)
        if place == "late":
            self.client.shutdown(socket.SHUT_RDWR)
            time.sleep(self.proxy.late_s)
            self.server.sendall(rest)  # fails when the client had its session ended meanwhile

    # ---- server to client

    def down(self):
        """Passes answers on, whole ones only, but for the one that is held back."""
        buffer = bytearray()
        while True:
            more = self.server.recv(CHUNK_BYTES)
            if not more:
                return
            buffer += more
            done = 0
            for letter, body, start, end in messages(buffer):
                if self.holds(letter, body):
                    self.client.sendall(buffer[:start])
                    self.proxy.count("after")
                    return
                done = end
            if done:
                if self.proxy.delay_s:
                    time.sleep(self.proxy.delay_s)
                self.client.sendall(buffer[:done])
                del buffer[:done]

    def holds(self, letter, body):
        """Is this the answer to the COMMIT whose answer is to be thrown away?"""
        if letter == "C" and texts(body)[0] in ("COMMIT", "ROLLBACK"):
            self.answered += 1
            if self.hold_at == self.answered:
                self.hold_at = None
                return texts(body)[0] == "COMMIT"
        if letter == "Z" and self.sent_at_sync:
            self.answered = self.sent_at_sync.popleft()
            if self.hold_at is not None and self.hold_at <= self.answered:
                self.hold_at = None  # its pipeline had failed: it was skipped
        return False


class Proxy:
    """See the module's text."""

    def __init__(self, port, seed=1):
        self.upstream = ("127.0.0.1", port)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=200)
        self.port = self.listener.getsockname()[1]
        self.sessions = set()
        self.refusing = False
        self.delay_s = 0.0
        self.spoils = None
        self.late_s = 0.5
        self.cuts = Counter()
        self.lock = threading.Lock()
        self.rng = random.Random(seed)
        self.armed = ()
        self.share, self.left, self.writers_only = 0.0, None, True
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def accept(self):
        """Until the listener is closed."""
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                if self.refusing:
                    raise OSError("refusing")
                session = Session(self, client)
            except OSError:
                client.close()
                continue
            self.sessions.add(session)
            for thread in session.threads:
                thread.start()

    # ---- faults

    def arm(self, *places, share=1.0, count=None, writers_only=True):
        """From now on that share of COMMITs is cut at one of the places; `count`: so many in all."""
        assert all(place in PLACES for place in places), places
        with self.lock:
            self.share, self.left, self.writers_only = share, count, writers_only
            self.armed = places

    def disarm(self):
        """COMMITs pass again."""
        self.armed = ()

    def choose(self, wrote):
        """Where to cut the COMMIT that just came, or None."""
        with self.lock:
            if (not self.armed or self.left == 0 or (self.writers_only and not wrote)
                    or self.rng.random() >= self.share):
                return None
            if self.left is not None:
                self.left -= 1
            return self.rng.choice(self.armed)

    def count(self, place):
        """One more cut was really made there."""
        with self.lock:
            self.cuts[place] += 1

    def cut_all(self):
        """Ends every connection; how many."""
        sessions = list(self.sessions)
        for session in sessions:
            session.cut()
        return len(sessions)

    def close(self):
        """No listener, no connection."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut_all()
        self.thread.join(timeout=10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
