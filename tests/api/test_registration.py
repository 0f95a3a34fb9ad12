"""Who makes clients, what becomes of those that nobody uses, and whose an Idempotency-Key is."""
import pytest

TOKEN = "operator-secret"
SETTINGS = {"operator.token": TOKEN, "runner.processes": "0", "limits.requests_per_minute": "0"}


def create(weir, key=None, **headers):
    """POST /v1/clients."""
    return weir.api("POST", "/v1/clients", key=key, headers=headers)


@pytest.mark.any_store
@pytest.mark.parametrize("settings, is_open", [
    ({}, True), ({"environment": "stage"}, False), ({"environment": "prod"}, False),
    ({"clients.registration": "operator"}, False),
    ({"environment": "stage", "clients.registration": "open"}, True)])
def test_registration_is_open_in_dev_and_the_operators_elsewhere(module_weir, settings, is_open):
    """A client and its first key need the same."""
    weir = module_weir(settings={**SETTINGS, **settings})
    client = create(weir, TOKEN).expect(201)["client_id"]
    first_key = weir.api("POST", f"/v1/clients/{client}/keys", {})
    if is_open:
        create(weir).expect(201)
        first_key.expect(201)
        return
    for answer in (create(weir), first_key):
        problem = answer.expect_problem(403, "RFA_AUTH_FORBIDDEN")
        assert "operator" in problem["detail"] and "clients.registration" in problem["detail"]
    create(weir, "wrong").expect_problem(401, "RFA_AUTH_INVALID_CREDENTIALS")
    key = weir.api("POST", f"/v1/clients/{client}/keys", {}, TOKEN).expect(201)["api_key"]
    weir.submit(key, queue="outside")
    renewed = weir.api("POST", f"/v1/clients/{client}/keys/renew", {}, key).expect(200)["api_key"]
    weir.api("GET", "/v1/jobs", key=renewed).expect(200)
    create(weir, renewed).expect_problem(403, "RFA_AUTH_FORBIDDEN")


@pytest.mark.any_store
def test_the_command_line_registers_with_the_operator_token(module_weir):
    weir = module_weir(settings={**SETTINGS, "clients.registration": "operator"})
    refused = weir.cli("client", "create", "--with-key")
    assert refused.returncode == 4 and "--operator-token" in refused.stderr
    done = weir.cli("client", "create", "--with-key", "--operator-token", TOKEN)
    assert done.returncode == 0 and "export WEIR_API_KEY=" in done.stdout, done.stderr


def test_an_idempotency_key_without_credentials_is_ignored(module_weir):
    """Whoever guesses another's key gets a client of its own, not the other's."""
    weir = module_weir(settings=SETTINGS)
    one, two = (create(weir, **{"Idempotency-Key": "deploy-1"}) for _ in range(2))
    assert one.expect(201)["client_id"] != two.expect(201)["client_id"]
    assert two.json["webhook_secret"] and "idempotency-replayed" not in two.headers
    theirs, other = (create(weir, TOKEN, **{"Idempotency-Key": "deploy-1"}) for _ in range(2))
    assert theirs.expect(201)["client_id"] not in (one.json["client_id"], two.json["client_id"])
    assert other.expect(201)["client_id"] == theirs.json["client_id"]
    assert other.headers["idempotency-replayed"] == "true" and other.json["webhook_secret"] is None
    guess = create(weir, **{"Idempotency-Key": "deploy-1"}).expect(201)
    assert guess["client_id"] != theirs.json["client_id"]


@pytest.mark.any_store
@pytest.mark.parametrize("settings, says", [
    ({}, "warning: operator.token is not set, so clients are made"),
    ({"clients.registration": "open"}, "warning: clients.registration is open in prod"),
])
def test_the_start_outside_dev_warns_of_who_may_register_clients(fresh_weir, settings, says):
    """Nobody with a plain token, or everybody; with the operator's alone there is nothing to tell."""
    weir = fresh_weir(settings={"environment": "prod", **settings})
    assert says in weir.log_text()
    assert ("registration is open" in weir.log_text()) == bool(settings)
