/* Every case of corpus/expect.tsv against a real server, each with a canary request behind it. The
 * canary must be answered exactly when the case leaves the connection open, whatever the pieces the
 * bytes arrive in. [S1 of the reliability plan] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"

#include "base/must.h"
#include "harness.h"

#include "base/banned.h"

enum { CASES_MAX = 512, SPLIT_BYTES_MAX = 400, BYTEWISE_BYTES_MAX = 4096 };

struct corpus_case {
    char name[64];
    int64_t status;
    bool closes;
    struct strbuf bytes; /* with the canary behind */
};

static struct corpus_case cases[CASES_MAX];
static size_t case_count;

static const char canary[] = "GET /canary HTTP/1.1\r\nHost: canary\r\n\r\n";

static void read_file(const char *path, struct strbuf *out)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("cannot open %s", path);
    char buffer[4096];
    size_t n;
    while ((n = fread(buffer, 1, sizeof buffer, f)) > 0)
        strbuf_add(out, buffer, n);
    fclose(f);
}

static void load_case(const char *folder, struct str line)
{
    struct corpus_case *c = &cases[case_count++];
    MUST(case_count < CASES_MAX);
    struct str name = str_cut(&line, '\t'), status = str_cut(&line, '\t'), closes = str_cut(&line, '\t');
    MUST(name.len < sizeof c->name && str_to_int(status, 200, 599, &c->status));
    memcpy(c->name, name.ptr, name.len);
    c->closes = str_is(closes, "yes");
    char path[512];
    snprintf(path, sizeof path, "%s/%s.req", folder, c->name);
    read_file(path, &c->bytes);
    strbuf_add(&c->bytes, canary, sizeof canary - 1);
}

static int load(void **state)
{
    const char *folder = getenv("WEIR_HTTP_CORPUS");
    MUST(folder);
    char path[512];
    snprintf(path, sizeof path, "%s/expect.tsv", folder);
    struct strbuf list = {0};
    read_file(path, &list);
    struct str rest = strbuf_str(&list);
    while (rest.len) {
        struct str line = str_cut(&rest, '\n');
        if (line.len && line.ptr[0] != '#')
            load_case(folder, line);
    }
    strbuf_free(&list);
    static const struct http_limits limits = {
        .head_bytes_max = 8192, .headers_max = 100, .body_bytes_max = 65536};
    *state = harness_start(1, &limits);
    return 0;
}

static int unload(void **state)
{
    for (size_t i = 0; i < case_count; i++)
        strbuf_free(&cases[i].bytes);
    harness_stop(*state);
    return 0;
}

/* What came back must be the verdict, and the canary's fate must follow from it. */
static void check(struct harness *h, const struct corpus_case *c, struct client *client,
                  uint32_t canaries_before, const char *how)
{
    struct answer a = client_answer(client);
    if (a.status == 100) /* rightly sent when the body comes later */
        a = client_answer(client);
    if (a.status != c->status || a.closes != c->closes)
        fail_msg("%s (%s): got %d closes=%d, want %d closes=%d\n%s", c->name, how, a.status, a.closes,
                 (int)c->status, c->closes, a.body);
    if (c->closes) {
        if (!client_at_end(client))
            fail_msg("%s (%s): something was answered after the verdict", c->name, how);
        if (h->canaries != canaries_before)
            fail_msg("%s (%s): the canary was served", c->name, how);
    } else {
        struct answer second = client_answer(client);
        if (second.status != 200 || strcmp(second.body, "canary") != 0 || h->canaries != canaries_before + 1)
            fail_msg("%s (%s): the next request was lost", c->name, how);
    }
    client_close(client);
}

#define HARNESS_TEST(name, parameter) TEST_WITH(name, struct harness *parameter, NULL, NULL)

HARNESS_TEST(every_case_is_judged_when_it_arrives_whole, h)
{
    for (size_t i = 0; i < case_count; i++) {
        uint32_t before = h->canaries;
        struct client c = i % 2 ? client_tcp(h) : client_unix(h);
        client_send(&c, cases[i].bytes.ptr, cases[i].bytes.len);
        check(h, &cases[i], &c, before, "whole");
    }
}

HARNESS_TEST(every_case_is_judged_alike_byte_by_byte, h)
{
    for (size_t i = 0; i < case_count; i++) {
        const struct strbuf *b = &cases[i].bytes;
        size_t step = b->len > BYTEWISE_BYTES_MAX ? 777 : 1;
        uint32_t before = h->canaries;
        struct client c = client_unix(h);
        for (size_t at = 0; at < b->len; at += step)
            if (!client_send_and_wait(&c, b->ptr + at, b->len - at < step ? b->len - at : step))
                break;
        check(h, &cases[i], &c, before, "byte by byte");
    }
}

HARNESS_TEST(every_case_is_judged_alike_at_every_split, h)
{
    for (size_t i = 0; i < case_count; i++) {
        const struct strbuf *b = &cases[i].bytes;
        for (size_t at = 1; at < b->len && b->len <= SPLIT_BYTES_MAX; at++) {
            uint32_t before = h->canaries;
            struct client c = client_unix(h);
            if (client_send_and_wait(&c, b->ptr, at))
                client_send(&c, b->ptr + at, b->len - at);
            char how[32];
            snprintf(how, sizeof how, "split at %zu", at);
            check(h, &cases[i], &c, before, how);
        }
    }
}

HARNESS_TEST(a_client_that_leaves_after_any_byte_harms_nobody, h)
{
    for (size_t i = 0; i < case_count; i++) {
        const struct strbuf *b = &cases[i].bytes;
        for (size_t at = 0; at < b->len && b->len <= SPLIT_BYTES_MAX; at += 7) {
            struct client c = client_tcp(h);
            client_send(&c, b->ptr, at);
            client_close(&c);
        }
    }
    assert_true(harness_await(connections_are, h, 0));
    assert_true(harness_await(busy_is, h, 0));
}

TEST(the_corpus_is_complete)
{
    assert_true(case_count >= 200);
}

int main(void)
{
    return test_run("tests", load, unload);
}
