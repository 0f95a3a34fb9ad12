/* TLS: handshakes and their bounds, files that change, and what differs from a plain connection. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "case.h"
#include <openssl/err.h>

#include "base/must.h"
#include "harness.h"

#include "base/banned.h"

static void assert_served(const struct harness *h, SSL_CTX *as)
{
    struct client c = client_tls(h, as);
    client_text(&c, GET("/echo"));
    assert_answer(&c, 200, "GET /echo||");
    client_close(&c);
}

/* The alert that ended the connection, as OpenSSL names it; waits for it. */
static int alert_of(struct client *c)
{
    char byte;
    if (SSL_is_init_finished(c->ssl))
        (void)SSL_read(c->ssl, &byte, 1);
    int reason = ERR_GET_REASON(ERR_peek_last_error());
    ERR_clear_error();
    return reason;
}

static bool handshakes_are(struct harness *h, enum http_handshake_end end, uint64_t n)
{
    for (int64_t until = clock_mono_ms(&clock_system) + PATIENCE_MS; clock_mono_ms(&clock_system) < until;) {
        if (http_server_handshakes(h->server, end) == n)
            return true;
        usleep(500);
    }
    return false;
}

static SSL_CTX *other_client(const struct harness *h)
{
    SSL_CTX *as = SSL_CTX_new(TLS_client_method());
    MUST(as && SSL_CTX_load_verify_file(as, certs_path(h->certs, "ca", ".pem")) == 1);
    return as;
}

/* ---- handshakes ---- */

HTTP_TEST(plain_and_tls_are_served_side_by_side, h)
{
    struct client plain = client_plain(h), secure = client_tls(h, NULL);
    for (int i = 0; i < 3; i++) {
        client_text(&secure, GET("/echo"));
        client_text(&plain, GET("/canary"));
        assert_answer(&plain, 200, "canary");
        assert_answer(&secure, 200, "GET /echo||");
    }
    client_close(&plain);
    client_close(&secure);
}

HTTP_TEST(each_version_from_1_2_on_is_spoken, h)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t i = 0; i < LENGTH_OF(versions); i++) {
        SSL_CTX *as = other_client(h);
        SSL_CTX_set_max_proto_version(as, versions[i]);
        struct client c = client_tls(h, as);
        assert_int_equal(SSL_version(c.ssl), versions[i]);
        client_text(&c, GET("/echo"));
        assert_answer(&c, 200, "GET /echo||");
        client_close(&c);
        SSL_CTX_free(as);
    }
}

HTTP_TEST(versions_before_1_2_are_refused_with_an_alert, h)
{
    SSL_CTX *as = other_client(h);
    SSL_CTX_set_min_proto_version(as, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(as, TLS1_1_VERSION);
    SSL_CTX_set_cipher_list(as, "ALL:@SECLEVEL=0");
    struct client c = client_tls(h, as);
    assert_int_equal(alert_of(&c), SSL_R_TLSV1_ALERT_PROTOCOL_VERSION);
    client_close(&c);
    SSL_CTX_free(as);
}

HTTP_TEST(the_protocol_is_http_1_1_or_none, h)
{
    static const struct {
        const char *offer;
        unsigned len;
        const char *chosen; /* NULL: refused */
    } cases[] = {
        {"\x08http/1.1", 9, "http/1.1"}, {"\x02h2\x08http/1.1", 12, "http/1.1"}, {"\x02h2", 3, NULL}};
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        SSL_CTX *as = other_client(h);
        assert_int_equal(SSL_CTX_set_alpn_protos(as, (const unsigned char *)cases[i].offer, cases[i].len), 0);
        struct client c = client_tls(h, as);
        const unsigned char *chosen;
        unsigned len;
        SSL_get0_alpn_selected(c.ssl, &chosen, &len);
        if (cases[i].chosen) {
            assert_int_equal(len, 8);
            assert_memory_equal(chosen, cases[i].chosen, len);
        } else {
            assert_int_equal(alert_of(&c), SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL);
        }
        client_close(&c);
        SSL_CTX_free(as);
    }
}

HTTP_TEST(a_plain_request_to_the_tls_port_ends_without_an_answer, h)
{
    struct harness turned = {.port = h->tls_port};
    struct client c = client_plain(&turned);
    client_text(&c, GET("/canary"));
    assert_int_equal(client_answer(&c).status, 0);
    assert_int_equal(h->canaries, 0);
    client_close(&c);
    assert_true(handshakes_are(h, HTTP_HANDSHAKE_REFUSED, 1));
    assert_true(harness_await(connections_are, h, 0));
}

TEST(a_client_without_a_certificate_of_the_authority_is_refused)
{
    struct harness *h = harness_start_mutual(1, NULL);
    certs_make(h->certs, "worker", "ca", 3600);
    certs_make(h->certs, "other-ca", NULL, 3600);
    certs_make(h->certs, "intruder", "other-ca", 3600);
    static const struct {
        const char *name;
        int alert;
    } cases[] = {{NULL, SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED},
                 {"intruder", SSL_R_TLSV1_ALERT_UNKNOWN_CA},
                 {"worker", 0}};
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        SSL_CTX *as = other_client(h);
        if (cases[i].name) {
            MUST(SSL_CTX_use_certificate_file(as, certs_path(h->certs, cases[i].name, ".pem"), 1) == 1);
            MUST(SSL_CTX_use_PrivateKey_file(as, certs_path(h->certs, cases[i].name, ".key"), 1) == 1);
        }
        if (cases[i].alert) {
            struct client c = client_tls(h, as);
            client_text(&c, GET("/canary")); /* unread input does not take the alert back */
            assert_int_equal(alert_of(&c), cases[i].alert);
            client_close(&c);
        } else {
            assert_served(h, as);
        }
        SSL_CTX_free(as);
    }
    assert_int_equal(h->canaries, 0);
    harness_stop(h);
}

HTTP_TEST(a_session_is_resumed_by_its_ticket, h)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t i = 0; i < LENGTH_OF(versions); i++) {
        SSL_CTX *as = other_client(h);
        SSL_CTX_set_max_proto_version(as, versions[i]);
        struct client c = client_tls(h, as);
        client_text(&c, GET("/echo"));
        assert_answer(&c, 200, "GET /echo||");
        SSL_SESSION *session = SSL_get1_session(c.ssl);
        assert_true(SSL_SESSION_has_ticket(session));
        SSL_shutdown(c.ssl); /* else OpenSSL takes the session for a broken one */
        client_close(&c);
        struct harness turned = {.port = h->tls_port};
        c = client_plain(&turned);
        c.ssl = SSL_new(as);
        MUST(SSL_set_fd(c.ssl, c.fd) && SSL_set_session(c.ssl, session) && SSL_connect(c.ssl) == 1);
        assert_true(SSL_session_reused(c.ssl));
        client_text(&c, GET("/echo"));
        assert_answer(&c, 200, "GET /echo||");
        client_close(&c);
        SSL_SESSION_free(session);
        SSL_CTX_free(as);
    }
}

HTTP_TEST(a_renegotiation_is_refused, h)
{
    SSL_CTX *as = other_client(h);
    SSL_CTX_set_max_proto_version(as, TLS1_2_VERSION);
    struct client c = client_tls(h, as);
    assert_int_equal(SSL_renegotiate(c.ssl), 1);
    assert_true(SSL_do_handshake(c.ssl) <= 0 || alert_of(&c) == SSL_R_NO_RENEGOTIATION);
    client_close(&c);
    SSL_CTX_free(as);
    assert_served(h, NULL);
}

/* ---- bounds ---- */

TEST(half_handshakes_end_at_their_deadline)
{
    struct http_limits limits = {.handshake_ms = 200};
    struct harness *h = harness_start(1, &limits);
    struct harness turned = {.port = h->tls_port};
    struct client silent = client_plain(&turned), slow = client_plain(&turned);
    client_send(&slow, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11); /* the first bytes of a hello */
    assert_true(client_at_end(&silent));
    assert_true(client_at_end(&slow));
    assert_true(handshakes_are(h, HTTP_HANDSHAKE_LATE, 2));
    assert_true(harness_await(connections_are, h, 0));
    client_close(&silent);
    client_close(&slow);
    harness_stop(h);
}

TEST(one_half_handshake_too_many_ends_the_oldest)
{
    struct http_limits limits = {.handshakes_max = 3, .handshake_ms = 600000};
    struct harness *h = harness_start(1, &limits);
    struct harness turned = {.port = h->tls_port};
    struct client half[4];
    for (size_t i = 0; i < LENGTH_OF(half); i++) {
        half[i] = client_plain(&turned);
        assert_true(harness_await(connections_are, h, i < 3 ? (uint32_t)i + 1 : 3));
    }
    assert_true(client_at_end(&half[0]));
    assert_true(handshakes_are(h, HTTP_HANDSHAKE_CROWDED, 1));
    assert_served(h, NULL); /* which ends the next */
    assert_true(client_at_end(&half[1]));
    for (size_t i = 0; i < LENGTH_OF(half); i++)
        client_close(&half[i]);
    harness_stop(h);
}

HTTP_TEST(a_handshake_of_endless_bytes_is_refused, h)
{
    uint64_t refused = http_server_handshakes(h->server, HTTP_HANDSHAKE_REFUSED);
    struct harness turned = {.port = h->tls_port};
    struct client c = client_plain(&turned);
    /* A hello that says it has 120,000 bytes, in records of 1,000. */
    unsigned char record[1005] = {0x16, 3, 1, 1000 >> 8, 1000 & 255};
    static const unsigned char hello[] = {1, 1, 0xd4, 0xc0, 3, 3};
    memcpy(record + 5, hello, sizeof hello);
    for (int i = 0; i < 100; i++) {
        client_send(&c, record, sizeof record);
        memset(record + 5, 0, sizeof hello);
    }
    assert_true(handshakes_are(h, HTTP_HANDSHAKE_REFUSED, refused + 1));
    client_close(&c);
}

HTTP_TEST(a_client_that_sends_byte_by_byte_is_served, h)
{
    struct harness turned = {.port = h->tls_port};
    struct client raw = client_plain(&turned);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    SSL *ssl = SSL_new(h->client_side);
    SSL_set_bio(ssl, in, out);
    SSL_set_connect_state(ssl);
    bool asked = false;
    struct strbuf got = {0};
    while (!got.len || !strstr(got.ptr, "GET /echo||")) {
        char bytes[16384];
        int n = 0;
        if (SSL_do_handshake(ssl) == 1 && !asked) {
            asked = true;
            assert_true(SSL_write(ssl, GET("/echo"), (int)strlen(GET("/echo"))) > 0);
        }
        if (asked && (n = SSL_read(ssl, bytes, sizeof bytes)) > 0)
            strbuf_add(&got, bytes, (size_t)n);
        while (BIO_read(out, bytes, 1) == 1)
            client_send(&raw, bytes, 1);
        struct pollfd p = {raw.fd, POLLIN, 0};
        if (n > 0 || poll(&p, 1, PATIENCE_MS) <= 0)
            continue;
        ssize_t received = recv(raw.fd, bytes, sizeof bytes, 0);
        assert_true(received > 0);
        BIO_write(in, bytes, (int)received);
    }
    strbuf_free(&got);
    SSL_free(ssl);
    client_close(&raw);
}

/* Bytes of a record that never becomes whole hold a buffer: they have the time of a request, not of an idle
 * connection. */
TEST(a_record_that_does_not_become_whole_is_a_late_request)
{
    struct http_limits limits = {.request_read_ms = 100};
    struct harness *h = harness_start(1, &limits);
    struct client c = client_tls(h, NULL);
    client_text(&c, GET("/echo"));
    assert_answer(&c, 200, "GET /echo||");
    assert_int_equal(send(c.fd, "\x17\x03\x03\x01\x00half", 9, MSG_NOSIGNAL), 9);
    assert_int_equal(client_answer(&c).status, 408);
    client_close(&c);
    harness_stop(h);
}

HTTP_TEST(key_updates_are_answered_between_requests, h)
{
    struct client c = client_tls(h, NULL);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(SSL_key_update(c.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        client_text(&c, GET("/echo"));
        assert_answer(&c, 200, "GET /echo||");
    }
    client_close(&c);
}

/* They lie in the socket all at once: more than one call takes. The rest is found without a further event. */
HTTP_TEST(many_key_updates_do_not_hide_the_request_behind_them, h)
{
    struct client c = client_tls(h, NULL);
    client_text(&c, GET("/hold"));
    struct http_exchange *x = harness_held(h); /* nothing is read meanwhile */
    for (int i = 0; i < 4000; i++) {
        assert_int_equal(SSL_key_update(c.ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
        assert_int_equal(SSL_do_handshake(c.ssl), 1);
    }
    client_text(&c, GET("/echo"));
    harness_release(h, x);
    assert_answer(&c, 200, "GET /hold||");
    assert_answer(&c, 200, "GET /echo||");
    client_close(&c);
}

/* ---- ends ---- */

HTTP_TEST(the_end_is_said_before_the_connection_closes, h)
{
    static const char *const paths[] = {GET("/close"), "GET /stream HTTP/1.0\r\n\r\n"};
    h->stream_pieces_max = 1;
    for (size_t i = 0; i < LENGTH_OF(paths); i++) {
        struct client c = client_tls(h, NULL);
        client_text(&c, paths[i]);
        char bytes[4096];
        int n;
        while ((n = SSL_read(c.ssl, bytes, sizeof bytes)) > 0)
            ;
        assert_int_equal(SSL_get_error(c.ssl, n), SSL_ERROR_ZERO_RETURN);
        client_close(&c);
    }
}

HTTP_TEST(a_truncated_request_is_not_served, h)
{
    struct client c = client_tls(h, NULL);
    client_text(&c, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel");
    uint32_t before = h->requests;
    shutdown(c.fd, SHUT_WR); /* without a word of TLS */
    assert_int_equal(client_answer(&c).status, 400);
    assert_int_equal(h->requests, before);
    client_close(&c);
}

TEST(a_drain_ends_handshakes_that_do_not_go_on)
{
    struct http_limits limits = {.handshake_ms = 600000};
    struct harness *h = harness_start(1, &limits);
    struct harness turned = {.port = h->tls_port};
    struct client half = client_plain(&turned), idle = client_tls(h, NULL);
    assert_true(harness_await(connections_are, h, 2));
    http_server_drain(h->server);
    assert_true(client_at_end(&half));
    assert_true(client_at_end(&idle));
    client_close(&half);
    client_close(&idle);
    harness_stop(h);
}

/* ---- files that change ---- */

HTTP_TEST(a_reload_changes_what_new_connections_see, h)
{
    struct err err;
    struct client old = client_tls(h, NULL);
    int64_t expires = tls_expires_at(h->tls);
    assert_false(tls_look(h->tls));
    assert_false(tls_look(h->tls));
    certs_make(h->certs, "server", "ca", 7200);
    assert_false(tls_look(h->tls)); /* perhaps it is still being written */
    assert_true(tls_look(h->tls));
    assert_int_equal(tls_reload(h->tls, &err), ERR_OK);
    assert_false(tls_look(h->tls));
    assert_true(tls_expires_at(h->tls) < expires);
    struct client fresh = client_tls(h, NULL);
    assert_false(X509_cmp(SSL_get0_peer_certificate(old.ssl), SSL_get0_peer_certificate(fresh.ssl)) == 0);
    client_text(&old, GET("/echo"));
    assert_answer(&old, 200, "GET /echo||");
    client_text(&fresh, GET("/echo"));
    assert_answer(&fresh, 200, "GET /echo||");
    client_close(&old);
    client_close(&fresh);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    MUST(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

HTTP_TEST(files_that_cannot_be_used_change_nothing_and_are_named, h)
{
    struct err err;
    int64_t expires = tls_expires_at(h->tls);
    certs_make(h->certs, "other", "ca", 7200);
    char other[CERTS_PATH_MAX];
    memcpy(other, certs_path(h->certs, "other", ".key"), sizeof other);
    assert_int_equal(rename(other, certs_path(h->certs, "server", ".key")), 0);
    assert_int_equal(tls_reload(h->tls, &err), ERR_CONFIG_INVALID);
    assert_non_null(strstr(err.detail, "is not the key of server.tls_cert"));
    assert_false(tls_look(h->tls));
    assert_false(tls_look(h->tls)); /* tried once, not at every look */
    assert_served(h, NULL);
    write_file(certs_path(h->certs, "server", ".pem"), "no certificate\n");
    assert_int_equal(tls_reload(h->tls, &err), ERR_CONFIG_INVALID);
    assert_non_null(strstr(err.detail, "server.tls_cert "));
    unlink(certs_path(h->certs, "server", ".pem"));
    assert_int_equal(tls_reload(h->tls, &err), ERR_CONFIG_INVALID);
    assert_non_null(strstr(err.detail, "No such file"));
    assert_int_equal(tls_expires_at(h->tls), expires);
    assert_served(h, NULL);
    certs_make(h->certs, "server", "ca", 86400);
    assert_int_equal(tls_reload(h->tls, &err), ERR_OK);
    assert_served(h, NULL);
}

HTTP_TEST(an_authority_that_is_no_certificate_is_named, h)
{
    char cert[CERTS_PATH_MAX], key[CERTS_PATH_MAX];
    struct tls *t = NULL;
    struct err err;
    memcpy(cert, certs_path(h->certs, "server", ".pem"), sizeof cert);
    memcpy(key, certs_path(h->certs, "server", ".key"), sizeof key);
    struct tls_files files = {.cert = cert, .key = key, .client_ca = key};
    assert_int_equal(tls_open(&files, &t, &err), ERR_CONFIG_INVALID);
    assert_non_null(strstr(err.detail, "server.tls_client_ca "));
}

static void *reload_often(void *arg)
{
    struct harness *h = arg;
    struct err err;
    while (!atomic_load(&h->stop_resumer) && h->requests < 200)
        MUST(tls_reload(h->tls, &err) == ERR_OK);
    return NULL;
}

HTTP_TEST(connections_begin_while_files_are_read_again, h)
{
    pthread_t reloader;
    h->requests = 0;
    MUST(pthread_create(&reloader, NULL, reload_often, h) == 0);
    while (h->requests < 200)
        assert_served(h, NULL);
    pthread_join(reloader, NULL);
}
