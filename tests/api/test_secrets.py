"""Secrets are in core and nowhere else: not in memory, arguments or environment of another process."""
import os
import subprocess

import pytest

from harness import machine, memory, postgres, processes
from harness.weir_server import REPOSITORY, Weir, binary, server_environment, wait_for

TOKEN = "marker-of-the-operator-Qm7xY2"
PASSPHRASE = "marker-of-the-passphrase-Zk4wB9"
PASSWORD = "marker-of-the-database-Hf3vN8"


def program_for(source):
    """The release build where there is one. A sanitizer's runtime copies the environment for itself."""
    release = os.path.join(REPOSITORY, "build", "weir")
    if os.access(release, os.X_OK):
        return release
    with open(binary(), "rb") as file:
        if source == "environment" and b"__asan_init" in file.read():
            pytest.skip("a sanitizer keeps a copy of the environment, and there is no release build")
    return None


def options(source, folder):
    """How both secrets are given, as arguments of Weir()."""
    secrets = {"operator.token": TOKEN, "tokens.key_passphrase": PASSPHRASE}
    if source == "flag":
        return {"settings": secrets}
    if source == "environment":
        return {"env": {"WEIR_" + key.replace(".", "_").upper(): value for key, value in secrets.items()}}
    if source == "settings file":
        path = folder / "weir.yaml"
        path.write_text("".join(f"{key}: {value}\n" for key, value in secrets.items()), encoding="utf-8")
        return {"args": ["--config", str(path)]}
    for key, value in secrets.items():
        (folder / key).write_text(value + "\n", encoding="utf-8")
        (folder / key).chmod(0o600)
    if source == "credential":
        return {"env": {"CREDENTIALS_DIRECTORY": str(folder)}}
    return {"settings": {key + "_file": folder / key for key in secrets}}


def family(weir):
    """Every process of the server by its name, once all are there."""
    weir.wait_pids("runner", 1)
    weir.wait_pids("gateway", 1)
    found = {processes.title(pid): pid for pid in weir.pids()}
    assert len(found) == len(weir.pids()) >= 3, found
    return {"root": weir.process.pid, **found}


def holders(weir, *markers):
    """For each marker the names of the processes that have it in their memory."""
    machine.need("looking_inside")
    found = {name: memory.found_in(pid, markers) for name, pid in family(weir).items()}
    return [{name for name, has in found.items() if marker in has} for marker in markers]


def assert_not_public(weir, *markers):
    """Neither in arguments nor in environments."""
    for name, pid in family(weir).items():
        for file in ("cmdline", "environ"):
            text = processes.read_text(f"/proc/{pid}/{file}")
            assert not [marker for marker in markers if marker in text], f"{file} of {name}"


def may_operate(weir):
    """The operator's token passes."""
    client_id, _ = weir.new_client()
    return weir.api("POST", f"/v1/clients/{client_id}/keys", {}, key=TOKEN).status == 201


@pytest.mark.sqlite_only("the database has nothing to do with it")
@pytest.mark.parametrize("source", ["flag", "environment", "settings file", "secret file", "credential"])
def test_core_alone_knows_the_operators_token_and_nobody_the_passphrase(fresh_weir, tmp_path, source):
    """Also after core was killed and started again. The control: core's memory does show it."""
    weir = fresh_weir(program=program_for(source), **options(source, tmp_path))
    for _ in range(2):
        assert may_operate(weir)
        assert_not_public(weir, TOKEN, PASSPHRASE)
        assert holders(weir, TOKEN, PASSPHRASE) == [{"weir: core"}, set()]
        killed = weir.kill9_kind("core")
        weir.wait_pids("core", 1, other_than=killed)
        weir.wait_ready()


@pytest.mark.any_store
def test_nobody_else_keeps_the_key_of_a_trace_collector(fresh_weir):
    """Headers for the collector are the gateway's; root hands them on."""
    weir = fresh_weir(env={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
                           "OTEL_EXPORTER_OTLP_HEADERS": f"x-key={TOKEN}"},
                      program=program_for("environment"))
    assert holders(weir, TOKEN)[0] <= {"root", "weir: gateway 1"}
    assert TOKEN not in processes.read_text(f"/proc/{weir.pids('gateway')[0]}/environ")


@pytest.mark.postgres_only
@pytest.mark.parametrize("source", ["store.url", "--store", "password_file", "PGPASSWORD"])
def test_core_alone_knows_the_password_of_the_database(fresh_weir, tmp_path, source):
    """In the URL, as a parameter of it, in a file, in libpq's variable. Replay runs here, too."""
    database = postgres.session().fresh_database()
    url = postgres.session().url(database)
    secret = url.replace("weir@", f"weir:{PASSWORD}@")
    (tmp_path / "password").write_text(PASSWORD, encoding="utf-8")
    given = {"store.url": {"settings": {"store.url": secret}},
             "--store": {"args": ["--store", f"{url}?password={PASSWORD}"], "settings": {"store.url": url}},
             "password_file": {"settings": {"store.url": url, "store.password_file": tmp_path / "password"}},
             "PGPASSWORD": {"settings": {"store.url": url}, "env": {"PGPASSWORD": PASSWORD}}}[source]
    weir = fresh_weir(program=program_for("environment" if source == "PGPASSWORD" else source), **given)
    weir.wait_pids("replay", 1)
    assert_not_public(weir, PASSWORD)
    assert holders(weir, PASSWORD) == [{"weir: core"}]


@pytest.mark.postgres_only
def test_a_password_from_a_file_opens_a_database_that_asks_for_one(fresh_weir, tmp_path):
    """With a space, a percent sign and a slash in it; another password is refused."""
    password = "two words/100% sure?&="
    server = postgres.session()
    database = server.fresh_database()
    (tmp_path / "password").write_text(password + "\n", encoding="utf-8")
    (tmp_path / "password").chmod(0o600)
    server.sql(f"CREATE ROLE asked LOGIN PASSWORD '{password}'; ALTER DATABASE {database} OWNER TO asked;")
    url = server.url(database).replace("weir@", "asked@")
    weir = fresh_weir(settings={"store.url": url, "store.password_file": tmp_path / "password"})
    weir.submit(weir.new_client().api_key, queue="outside")
    weir.stop()
    look = ["verify", "--set", f"store.password_file={tmp_path / 'password'}"]
    assert weir.cli(*look).returncode == 0
    (tmp_path / "password").write_text("another", encoding="utf-8")
    done = weir.cli(*look)
    assert done.returncode != 0 and "password" in done.stderr and "another" not in done.stderr


@pytest.fixture
def stopped():
    """A server that is not started."""
    made = Weir()
    yield made
    made.close()


def refused(weir, *arguments, env=None):
    """The one line for people of a start that ends with exit code 2."""
    done = subprocess.run(weir.command() + list(arguments), env=server_environment(env), timeout=20,
                          check=False, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    lines = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    assert len(lines) == 1, done.stderr
    assert TOKEN not in done.stderr
    return lines[0]


@pytest.mark.any_store
def test_a_secret_and_its_file_together_are_refused(stopped, tmp_path):
    (tmp_path / "token").write_text(TOKEN, encoding="utf-8")
    line = refused(stopped, "--set", f"operator.token_file={tmp_path / 'token'}",
                   env={"WEIR_OPERATOR_TOKEN": TOKEN})
    assert "operator.token (environment) and operator.token_file (flag) are both set: keep one" in line


@pytest.mark.any_store
@pytest.mark.parametrize("content, word", [
    (None, "No such file"), ("", "is empty"), ("\n\n", "is empty"), (TOKEN + "\nmore", "operator.token must"),
    ("x" * 5000, "at most 4096 bytes"), (TOKEN + "\0", "one line"), (TOKEN + " more", "operator.token must"),
])
def test_a_file_that_holds_no_secret_is_refused(stopped, tmp_path, content, word):
    """One line that names key and file, and never what is in it."""
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    line = refused(stopped, "--set", f"operator.token_file={path}")
    assert word in line and "operator.token_file" in line


@pytest.mark.any_store
def test_a_file_that_others_may_read_is_warned_about(fresh_weir, tmp_path):
    (tmp_path / "token").write_text(TOKEN, encoding="utf-8")
    (tmp_path / "token").chmod(0o640)
    weir = fresh_weir(settings={"operator.token_file": tmp_path / "token"})
    assert "warning: operator.token_file" in weir.log_text() and "640" in weir.log_text()
    (tmp_path / "token").chmod(0o600)
    before = weir.log_text().count("warning: operator.token_file")
    weir.restart()
    assert weir.log_text().count("warning: operator.token_file") == before


@pytest.mark.any_store
def test_config_show_tells_where_a_secret_comes_from_and_never_the_secret(stopped, tmp_path):
    (tmp_path / "operator.token").write_text(TOKEN, encoding="utf-8")

    def shown(*arguments, **env):
        done = subprocess.run(stopped.program + ["config", "show", "--origin", *arguments], check=True,
                              env=server_environment(env), timeout=20, capture_output=True, text=True)
        assert TOKEN not in done.stdout + done.stderr
        return next(line.split(maxsplit=2)[1:] for line in done.stdout.splitlines()
                    if line.startswith("operator.token "))

    assert shown() == ["(unset)", "default"]
    assert shown(CREDENTIALS_DIRECTORY=str(tmp_path)) == ["(set)", "credential"]
    assert shown("--set", f"operator.token_file={tmp_path / 'operator.token'}") == ["(set)", "secret file"]
    assert shown(WEIR_OPERATOR_TOKEN=TOKEN, CREDENTIALS_DIRECTORY=str(tmp_path)) == ["(set)", "environment"]


@pytest.mark.any_store
def test_a_command_overwrites_the_secrets_in_its_arguments(weir, client):
    """The rest stays to be seen, so that ps still tells what runs."""
    job = weir.submit(client.api_key, queue="outside")["job_id"]
    line = weir.program + ["job", "watch", job, "--url", weir.url, f"--key={client.api_key}", "-o", "json"]
    with subprocess.Popen(line, env=server_environment(), stdout=subprocess.PIPE, text=True) as watch:
        assert job in watch.stdout.readline()  # it is connected: the key was read
        seen = processes.read_text(f"/proc/{watch.pid}/cmdline")
        assert client.api_key not in seen and "--key=***" in seen and weir.url in seen
        weir.api("POST", f"/v1/jobs/{job}/cancel", {}, key=client.api_key).expect(200)
        watch.communicate(timeout=60)


def test_settings_and_store_urls_in_the_arguments_of_serve_are_overwritten(weir, fresh_weir):
    """Only what is secret in them."""
    other = fresh_weir(settings={"operator.token": TOKEN, "jobs.queue_size": 77})
    seen = wait_for(lambda: processes.read_text(f"/proc/{other.process.pid}/cmdline"), 10, "arguments", other)
    assert TOKEN not in seen and "operator.token=***" in seen and "jobs.queue_size=77" in seen
    assert weir.process.pid != other.process.pid
