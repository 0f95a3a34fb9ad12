/* Files of outside issuers: the list of them, a set of keys in a file, and what is kept of one that was
 * fetched. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "case.h"

#include "base/must.h"
#include "tokens/issuer_keys.h"

#include "base/banned.h"

enum { NOW = 1800000000 };

/* --- the list -------------------------------------------------------------------------------------- */

/* An issuer with another member in the place of those that are needed. */
#define ONE(name, where, audience, more) "{\"issuer\":" name "," where ",\"audience\":" audience more "}"
#define URL                              "\"jwks_url\":\"https://i/k\""
#define NAMED(where)                     "[" ONE("\"i\"", where, "[\"a\"]", "") "]"
#define FILE_NAMED(name)                 NAMED("\"jwks_file\":\"" name "\"")
#define HEARD_BY(audience)               "[" ONE("\"i\"", URL, audience, "") "]"
#define CLAIMS(text)                     "[" ONE("\"i\"", URL, "[\"a\"]", ",\"claims\":" text) "]"

TEST(a_list_of_issuers_is_refused_by_what_is_wrong_with_it)
{
    static const struct {
        const char *text, *says; /* NULL: nothing is wrong */
    } rows[] = {
        {NAMED(URL), NULL},
        {"", "no JSON"},
        {"[", "no JSON"},
        {"{}", "a list of 1 to 16"},
        {"[]", "a list of 1 to 16"},
        {"[7]", "issuer 1: it must be an object"},
        {"[" ONE("\"i\"", URL, "[\"a\"]", ",\"x\":1") "]", "issuer 1: it must be an object"},
        {"[" ONE("\"i\"", URL, "[\"a\"]", "") "," ONE("7", URL, "[\"a\"]", "") "]", "issuer 2: issuer must"},
        {"[" ONE("\"\"", URL, "[\"a\"]", "") "]", "issuer must be a name"},
        {"[" ONE("\"i,j\"", URL, "[\"a\"]", "") "]", "issuer must be a name"},
        {"[{" URL ",\"audience\":[\"a\"]}]", "issuer must be a name"},
        {NAMED("\"claims\":{}"), "either jwks_file or jwks_url"},
        {NAMED(URL ",\"jwks_file\":\"f\""), "either jwks_file or jwks_url"},
        {"[" ONE("\"weir\"", URL, "[\"a\"]", "") "]", "not our own"},
        {"[" ONE("\"i\"", URL, "[\"a\"]", "") "," ONE("\"i\"", URL, "[\"a\"]", "") "]",
         "issuer 2: an issuer"},
        {NAMED("\"jwks_url\":7"), "jwks_url must be a URL"},
        {NAMED("\"jwks_url\":\"ftp://i/k\""), "jwks_url must be a URL"},
        {NAMED("\"jwks_url\":\"http://i/k\""), "jwks_url must be https"},
        {NAMED("\"jwks_url\":\"http://128.0.0.1/k\""), "jwks_url must be https"},
        {NAMED("\"jwks_url\":\"http://127.0.0.1/k\""), NULL},
        {NAMED("\"jwks_url\":\"http://[::1]:8/k\""), NULL},
        {NAMED("\"jwks_url\":\"http://localhost/k\""), NULL},
        {HEARD_BY("\"a\""), "a list of names"},
        {HEARD_BY("[]"), "a list of names"},
        {HEARD_BY("[7]"), "names without commas"},
        {HEARD_BY("[\"a\",\"b,c\"]"), "names without commas"},
        {"[{\"issuer\":\"i\"," URL "}]", "a list of names"},
        {CLAIMS("{}"), NULL},
        {CLAIMS("[]"), "claims must be an object"},
        {CLAIMS("{\"roles\":\"a\"}"), "claims has an unknown member"},
        {CLAIMS("{\"role\":7}"), "claims.role must be a path"},
        {CLAIMS("{\"role\":\"\"}"), "claims.role must be a path"},
        {CLAIMS("{\"role\":\".a\"}"), "claims.role must be a path"},
        {CLAIMS("{\"tenant_id\":\"a.\"}"), "claims.tenant_id must be a path"},
        {CLAIMS("{\"project_scope\":\"a\\nb\"}"), "claims.project_scope must be a path"},
        {NAMED("\"jwks_file\":7"), "the name of a file"},
        {FILE_NAMED(""), "the name of a file"},
        {FILE_NAMED("a\\u0000b"), "the name of a file"},
        {FILE_NAMED("/etc/a.json"), "in the folder of this file"},
        {FILE_NAMED("/keys/../a.json"), "in the folder of this file"},
        {FILE_NAMED("../a.json"), "in the folder of this file"},
        {FILE_NAMED("/keys/sub/a.json"), NULL},
    };
    for (size_t i = 0; i < LENGTH_OF(rows); i++) {
        struct issuers s;
        struct err err = {0};
        enum err_code code = issuers_read(str_of(rows[i].text), "/keys/issuers.json", STR("weir"), &s, &err);
        if (code != (rows[i].says ? ERR_CONFIG_INVALID : ERR_OK) ||
            (rows[i].says && !strstr(err.detail, rows[i].says)))
            fail_msg("%s: %s", rows[i].text, err.detail);
        if (code == ERR_OK)
            issuers_free(&s);
    }
}

/* COUNT times the text with commas between, in brackets. */
static void repeat(struct strbuf *out, int count, const char *format)
{
    strbuf_add_char(out, '[');
    for (int i = 0; i < count; i++) {
        strbuf_add_text(out, i ? "," : "");
        strbuf_addf(out, "%s%d", format, i);
        strbuf_add_char(out, '"');
    }
    strbuf_add_char(out, ']');
}

static enum err_code read_text(const struct strbuf *text, struct issuers *s)
{
    struct err err;
    return issuers_read(strbuf_str(text), "/keys/issuers.json", STR("weir"), s, &err);
}

/* At its bound each is taken, one more is not. */
TEST(lists_paths_and_names_have_bounds)
{
    struct issuers s;
    for (int more = 0; more < 2; more++) {
        enum err_code wanted = more ? ERR_CONFIG_INVALID : ERR_OK;
        struct strbuf texts[4] = {0};
        for (int i = 0; i < ISSUERS_MAX + more; i++)
            strbuf_addf(&texts[0], "%s{\"issuer\":\"i%d\"," URL ",\"audience\":[\"a\"]}", i ? "," : "[", i);
        strbuf_add_char(&texts[0], ']');
        strbuf_add_text(&texts[1], "[{\"issuer\":\"i\"," URL ",\"audience\":");
        repeat(&texts[1], ISSUER_AUDIENCES_MAX + more, "\"a");
        strbuf_add_text(&texts[1], "}]");
        strbuf_addf(&texts[2],
                    "[{\"issuer\":\"i\"," URL ",\"audience\":[\"a\"],\"claims\":{\"role\":\"%0*d\"}}]",
                    CLAIM_PATH_BYTES_MAX + more, 0);
        strbuf_addf(&texts[3], "[{\"issuer\":\"i\",\"jwks_file\":\"%0*d\",\"audience\":[\"a\"]}]",
                    1024 + more, 0);
        for (size_t i = 0; i < LENGTH_OF(texts); i++) {
            assert_int_equal(read_text(&texts[i], &s), wanted);
            if (wanted == ERR_OK)
                issuers_free(&s);
        }
        strbuf_clear(&texts[0]);
        strbuf_add_text(&texts[0], NAMED(URL));
        while (texts[0].len < (size_t)ISSUERS_FILE_BYTES_MAX + (size_t)more)
            strbuf_add_char(&texts[0], ' ');
        assert_int_equal(read_text(&texts[0], &s), wanted);
        if (wanted == ERR_OK)
            issuers_free(&s);
        for (size_t i = 0; i < LENGTH_OF(texts); i++)
            strbuf_free(&texts[i]);
    }
}

TEST(what_an_issuer_says_is_kept_and_the_rest_has_defaults)
{
    struct issuers s;
    struct err err;
    assert_int_equal(
        issuers_read(STR("[" ONE("\"i\"", URL, "[\"a\",\"b\"]", ",\"claims\":{\"role\":\"r.s\"}") "," ONE(
                         "\"j\"", "\"jwks_file\":\"sub/k.json\"", "[\"c\"]",
                         "") "," ONE("\"k\"", "\"jwks_file\":\"/keys/k.json\"", "[\"c\"]", "") "]"),
                     "/keys/issuers.json", STR("weir"), &s, &err),
        ERR_OK);
    const struct issuer *i = issuers_find(&s, STR("i")), *j = issuers_find(&s, STR("j"));
    assert_true(s.count == 3 && i && j && !issuers_find(&s, STR("l")));
    assert_string_equal(i->jwks_url, "https://i/k");
    assert_null(i->jwks_file);
    assert_true(str_is(i->audiences, "a,b") && str_is(j->audiences, "c"));
    assert_true(str_is(i->paths.role, "r.s") && str_is(i->paths.tenant_id, "tenant_id"));
    assert_true(str_is(j->paths.role, "role") && str_is(j->paths.project_scope, "project_scope"));
    assert_string_equal(j->jwks_file, "/keys/sub/k.json");
    assert_string_equal(s.list[2].jwks_file, "/keys/k.json");
    issuers_free(&s);
    /* Beside us: no folder is named. */
    assert_int_equal(issuers_read(STR(FILE_NAMED("k.json")), "issuers.json", STR("weir"), &s, &err), ERR_OK);
    assert_string_equal(s.list[0].jwks_file, "./k.json");
    issuers_free(&s);
    assert_int_equal(issuers_read(STR(FILE_NAMED("/k.json")), "issuers.json", STR("weir"), &s, &err),
                     ERR_CONFIG_INVALID);
}

/* --- a file of keys -------------------------------------------------------------------------------- */

struct folder {
    char path[64], list[128], keys[128];
};

static int make_folder(void **state)
{
    struct folder *f = must_alloc(sizeof *f);
    snprintf(f->path, sizeof f->path, "/tmp/weir-issuer-files-XXXXXX");
    assert_non_null(mkdtemp(f->path));
    snprintf(f->list, sizeof f->list, "%s/issuers.json", f->path);
    snprintf(f->keys, sizeof f->keys, "%s/keys.json", f->path);
    *state = f;
    return 0;
}

static int remove_folder(void **state)
{
    struct folder *f = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", f->path);
    assert_int_equal(system(command), 0);
    free(f);
    return 0;
}

static void write_text(const char *path, struct str text, int64_t at, long at_ns)
{
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(text.ptr, 1, text.len, f), text.len);
    fclose(f);
    const struct timespec times[] = {{at, at_ns}, {at, at_ns}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* A set of one key; any two have the same length. */
static void add_set(struct strbuf *out, const char *kid)
{
    struct token_key key CLEANUP(token_key_free) = {0};
    struct json_writer w;
    struct err err;
    assert_int_equal(token_key_generate(TOKEN_ALG_ES256, &key, &err), ERR_OK);
    strbuf_add_text(out, "{\"keys\":[");
    jw_start(&w, out);
    jw_object(&w);
    jw_key(&w, "kid");
    jw_text(&w, kid);
    token_key_write_jwk(&key, &w);
    jw_object_end(&w);
    strbuf_add_text(out, "]}");
}

static void write_keys(const struct folder *f, const char *kid, int64_t at, long at_ns)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    add_set(&text, kid);
    write_text(f->keys, strbuf_str(&text), at, at_ns);
}

static enum err_code open_keys(const struct folder *f, const char *list, struct issuer_keys **ret,
                               struct err *err)
{
    struct issuer_rules rules = {.data_dir = f->path, .refresh_seconds = 300, .max_age_seconds = 3600};
    write_text(f->list, str_of(list), NOW, 0);
    return issuer_keys_open(f->list, STR("weir"), &rules, NOW, ret, err);
}

static enum token_reason find(struct issuer_keys *k, const char *kid, int64_t now)
{
    struct token_key key CLEANUP(token_key_free) = {0};
    return issuer_keys_find(k, issuer_keys_issuer(k, STR("i")), str_of(kid), now, &key);
}

static struct issuer_state state_at(struct issuer_keys *k, int64_t now)
{
    struct issuer_state s;
    issuer_keys_state(k, 0, now, &s);
    return s;
}

#define FILE_TEST(name, parameter) TEST_WITH(name, const struct folder *parameter, make_folder, remove_folder)

/* It is another by any of its time, its length and its number; and it is looked at once a second. */
FILE_TEST(a_changed_file_of_keys_counts_within_a_second, f)
{
    struct issuer_keys *k;
    struct err err;
    char other[160];
    write_keys(f, "one", NOW, 5);
    assert_int_equal(open_keys(f, FILE_NAMED("keys.json"), &k, &err), ERR_OK);
    assert_int_equal(find(k, "one", NOW), TOKEN_OK);
    write_keys(f, "two", NOW, 6); /* some nanoseconds later */
    assert_int_equal(find(k, "two", NOW), TOKEN_KEY_UNKNOWN);
    assert_int_equal(find(k, "two", NOW + 1), TOKEN_OK);
    write_keys(f, "six", NOW + 1, 6); /* a whole second later */
    assert_int_equal(find(k, "six", NOW + 2), TOKEN_OK);
    write_keys(f, "three", NOW + 1, 6); /* longer */
    assert_int_equal(find(k, "three", NOW + 3), TOKEN_OK);
    snprintf(other, sizeof other, "%s.old", f->keys); /* another file with the same of all else */
    assert_int_equal(rename(f->keys, other), 0);
    write_keys(f, "seven", NOW + 1, 6);
    assert_int_equal(find(k, "seven", NOW + 4), TOKEN_OK);
    assert_int_equal(state_at(k, NOW + 6).age_seconds, 2);
    assert_true(state_at(k, NOW + 6).key_count == 1 && !state_at(k, NOW + 6).from_url);
    /* With the same of all it is not read again, and is as fresh as the last look. */
    write_keys(f, "eight", NOW + 1, 6);
    assert_int_equal(find(k, "seven", NOW + 4000), TOKEN_OK);
    assert_int_equal(state_at(k, NOW + 4000).age_seconds, 0);
    assert_int_equal(state_at(k, NOW + 4000).failures, 0);
    issuer_keys_free(k);
}

FILE_TEST(a_file_of_keys_that_is_bad_or_gone_leaves_the_keys_for_a_while, f)
{
    struct issuer_keys *k;
    struct err err;
    size_t index;
    const char *url;
    write_keys(f, "one", NOW, 0);
    assert_int_equal(open_keys(f, FILE_NAMED("keys.json"), &k, &err), ERR_OK);
    write_text(f->keys, STR("{}"), NOW + 1, 0);
    assert_int_equal(find(k, "one", NOW + 1), TOKEN_OK);
    assert_int_equal(find(k, "one", NOW + 1), TOKEN_OK); /* not looked at twice */
    assert_int_equal(state_at(k, NOW + 1).failures, 1);
    assert_int_equal(unlink(f->keys), 0);
    assert_int_equal(find(k, "one", NOW + 3600), TOKEN_OK);
    assert_int_equal(state_at(k, NOW + 3600).failures, 2);
    assert_int_equal(find(k, "one", NOW + 3601), TOKEN_KEYS_UNREADABLE);
    assert_false(state_at(k, NOW + 3601).fresh);
    assert_false(issuer_keys_due(k, NOW + 9999, &index, &url)); /* nothing is fetched for a file */
    write_keys(f, "one", NOW, 0);
    assert_int_equal(find(k, "one", NOW + 3602), TOKEN_OK);
    issuer_keys_free(k);
    /* At the start it has to be good. */
    write_text(f->keys, STR("{}"), NOW, 0);
    assert_int_equal(open_keys(f, FILE_NAMED("keys.json"), &k, &err), ERR_CONFIG_INVALID);
    assert_non_null(strstr(err.detail, "keys.json"));
    write_text(f->keys, STR(""), NOW, 0);
    assert_int_equal(open_keys(f, FILE_NAMED("keys.json"), &k, &err), ERR_CONFIG_INVALID);
    assert_non_null(strstr(err.detail, "empty"));
}

/* Whoever asks has the file read although it looks the same, and a URL fetched before its time. */
FILE_TEST(keys_are_read_again_when_somebody_asks, f)
{
    struct issuer_keys *k;
    struct err err;
    size_t index;
    const char *url;
    bool read, told;
    write_keys(f, "one", NOW, 5);
    assert_int_equal(open_keys(f, FILE_NAMED("keys.json"), &k, &err), ERR_OK);
    write_keys(f, "two", NOW, 5);
    assert_int_equal(issuer_keys_read(k, 0, NOW, &read, &err), ERR_OK);
    assert_true(read && find(k, "two", NOW) == TOKEN_OK && !state_at(k, NOW).failures);
    write_text(f->keys, STR("{}"), NOW, 5);
    assert_int_equal(issuer_keys_read(k, 0, NOW, &read, &err), ERR_CONFIG_INVALID);
    assert_int_equal(state_at(k, NOW).failures, 1);
    issuer_keys_free(k);
    assert_int_equal(open_keys(f, NAMED(URL), &k, &err), ERR_OK);
    assert_true(issuer_keys_due(k, NOW, &index, &url));
    assert_int_equal(issuer_keys_read(k, 0, NOW, &read, &err), ERR_OK); /* under way */
    assert_false(read || issuer_keys_due(k, NOW, &index, &url));
    assert_int_equal(issuer_keys_put(k, 0, STR_ABSENT, STR("down"), NOW, &told, &err), ERR_CONFIG_INVALID);
    assert_false(issuer_keys_due(k, NOW, &index, &url));
    assert_int_equal(issuer_keys_read(k, 0, NOW, &read, &err), ERR_OK);
    assert_true(!read && issuer_keys_due(k, NOW, &index, &url));
    issuer_keys_free(k);
}

FILE_TEST(a_file_is_read_up_to_its_bound, f)
{
    struct err err;
    static char text[10000];
    memset(text, 'x', sizeof text);
    for (size_t more = 0; more < 2; more++) {
        struct strbuf out CLEANUP(strbuf_free) = {0};
        write_text(f->keys, (struct str){text, 9000 + more}, NOW, 0);
        assert_int_equal(issuer_file_read(f->keys, 9000, &out, &err), more ? ERR_CONFIG_INVALID : ERR_OK);
        assert_true(more || out.len == 9000);
    }
    struct strbuf out CLEANUP(strbuf_free) = {0};
    write_text(f->keys, STR("x"), NOW, 0);
    assert_int_equal(issuer_file_read(f->keys, 9000, &out, &err), ERR_OK);
    assert_int_equal(out.len, 1);
    assert_int_equal(issuer_file_read("/nowhere/at/all", 9000, &out, &err), ERR_CONFIG_INVALID);
    assert_non_null(strstr(err.detail, "No such file"));
    assert_int_equal(issuer_file_read(f->path, 9000, &out, &err), ERR_CONFIG_INVALID); /* a folder */
    assert_non_null(strstr(err.detail, "directory"));
}

/* --- keys that were fetched, on disk --------------------------------------------------------------- */

/* The one file in DATA/issuers. */
static void kept_path(const struct folder *f, char out[192])
{
    char command[128];
    snprintf(command, sizeof command, "cd %s/issuers && ls", f->path);
    FILE *ls = popen(command, "re");
    char name[64] = "", more[64];
    assert_int_equal(fscanf(ls, "%63s", name), 1);
    assert_int_equal(fscanf(ls, "%63s", more), EOF);
    pclose(ls);
    assert_int_equal(strlen(name), 32 + strlen(".json"));
    assert_string_equal(name + 32, ".json");
    snprintf(out, 192, "%s/issuers/%s", f->path, name);
}

/* The number that the next file to be opened will have. */
static int next_descriptor(void)
{
    int fd = dup(STDOUT_FILENO);
    close(fd);
    return fd;
}

FILE_TEST(fetched_keys_are_kept_in_a_file_that_is_whole_and_ours_alone, f)
{
    struct issuer_keys *k;
    struct err err;
    bool told;
    char path[192];
    struct stat info;
    struct strbuf first CLEANUP(strbuf_free) = {0}, second CLEANUP(strbuf_free) = {0};
    add_set(&first, "a-long-name-of-a-key");
    add_set(&second, "two");
    assert_int_equal(open_keys(f, NAMED(URL), &k, &err), ERR_OK);
    assert_true(state_at(k, NOW).from_url && state_at(k, NOW).age_seconds == -1 && !state_at(k, NOW).fresh);
    int spare = next_descriptor();
    for (int round = 0; round < 2; round++) { /* shorter the second time: nothing of the first is left */
        struct str body = strbuf_str(round ? &second : &first);
        assert_int_equal(issuer_keys_put(k, 0, body, STR_ABSENT, NOW, &told, &err), ERR_OK);
        kept_path(f, path);
        assert_int_equal(stat(path, &info), 0);
        assert_int_equal(info.st_size, body.len);
        assert_int_equal(info.st_mode & 0777, 0600);
    }
    assert_int_equal(next_descriptor(), spare); /* it was closed */
    /* What does not come changes nothing. */
    assert_int_equal(issuer_keys_put(k, 0, STR_ABSENT, STR("no answer"), NOW, &told, &err),
                     ERR_CONFIG_INVALID);
    assert_string_equal(err.detail, "no answer");
    assert_int_equal(find(k, "two", NOW), TOKEN_OK);
    issuer_keys_free(k);
    /* After a restart they are as old as the file is, and not from the future. */
    static const struct {
        int64_t at, age;
        enum token_reason found;
    } rows[] = {{NOW - 5, 5, TOKEN_OK},
                {NOW, 0, TOKEN_OK},
                {NOW + 100, 0, TOKEN_OK},
                {NOW - 3600, 3600, TOKEN_OK},
                {NOW - 3601, 3601, TOKEN_KEYS_UNREADABLE}};
    for (size_t i = 0; i < LENGTH_OF(rows); i++) {
        write_text(path, strbuf_str(&second), rows[i].at, 0);
        assert_int_equal(open_keys(f, NAMED(URL), &k, &err), ERR_OK);
        assert_int_equal(state_at(k, NOW).age_seconds, rows[i].age);
        assert_int_equal(find(k, "two", NOW), rows[i].found);
        issuer_keys_free(k);
    }
    write_text(path, STR("{}"), NOW, 0); /* damaged: as if there were none */
    assert_int_equal(open_keys(f, NAMED(URL), &k, &err), ERR_OK);
    assert_int_equal(state_at(k, NOW).age_seconds, -1);
    issuer_keys_free(k);
}

TEST(without_a_list_there_are_no_issuers)
{
    const struct issuer_rules rules = {"/nowhere", 300, 3600};
    struct issuer_keys *k;
    struct err err;
    assert_int_equal(issuer_keys_open(NULL, STR("weir"), &rules, NOW, &k, &err), ERR_OK);
    assert_null(k);
    assert_int_equal(issuer_keys_count(k), 0);
    assert_null(issuer_keys_issuer(k, STR("i")));
    assert_int_equal(issuer_keys_open("/nowhere/at/all", STR("weir"), &rules, NOW, &k, &err),
                     ERR_CONFIG_INVALID);
    assert_non_null(strstr(err.detail, "tokens.issuers: /nowhere/at/all"));
}

/* Fetched again after a tenth of the time between two, and that within bounds. */
TEST(the_pause_before_the_next_try_has_bounds)
{
    static const struct {
        int64_t refresh, gap;
    } rows[] = {{1, 1}, {19, 1}, {20, 2}, {299, 29}, {300, 30}, {310, 30}, {86400, 30}};
    for (size_t i = 0; i < LENGTH_OF(rows); i++) {
        const struct issuer_rules rules = {"/nowhere", rows[i].refresh, 3600};
        struct issuers issuers;
        struct issuer_keys *k;
        struct err err;
        size_t index;
        const char *url;
        bool told;
        assert_int_equal(issuers_read(STR(NAMED(URL)), "/x/i", STR("weir"), &issuers, &err), ERR_OK);
        assert_int_equal(issuer_keys_new(&issuers, &rules, NOW, &k, &err), ERR_OK);
        assert_int_equal(issuer_keys_count(k), 1);
        assert_true(issuer_keys_due(k, NOW, &index, &url));
        assert_string_equal(url, "https://i/k");
        assert_int_equal(index, 0);
        assert_int_equal(issuer_keys_put(k, 0, STR_ABSENT, STR("down"), NOW, &told, &err),
                         ERR_CONFIG_INVALID);
        assert_false(issuer_keys_due(k, NOW + rows[i].gap - 1, &index, &url));
        assert_true(issuer_keys_due(k, NOW + rows[i].gap, &index, &url));
        assert_true(issuer_keys_due(k, NOW - 1, &index, &url)); /* the clock was set back */
        issuer_keys_free(k);
    }
}
