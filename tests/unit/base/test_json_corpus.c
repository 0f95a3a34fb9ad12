/* Every file of corpus/json against its verdict (y_ accept, n_ reject, i_ as verdicts.txt says),
 * and against jansson where both define the answer. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "case.h"

#include "base/json.h"
#include "base/must.h"
#include "jansson_oracle.h"

#include "base/banned.h"

/* The file in a block of exactly its size, so that a read behind its end is seen. */
static char *read_exact(const char *name, size_t *ret_len)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", CORPUS, name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    char *bytes = malloc((size_t)size ? (size_t)size : 1);
    assert_int_equal(fread(bytes, 1, (size_t)size, f), size);
    fclose(f);
    *ret_len = (size_t)size;
    return bytes;
}

static bool free_verdict(const char *name)
{
    static char text[16384];
    if (!text[0]) {
        FILE *f = fopen(CORPUS "/verdicts.txt", "rb");
        assert_non_null(f);
        text[fread(text, 1, sizeof text - 1, f)] = 0;
        fclose(f);
    }
    char line[256];
    snprintf(line, sizeof line, "\n%s ", name);
    const char *hit = strstr(text, line);
    if (!hit)
        fail_msg("verdicts.txt does not name %s", name);
    const char *verdict = hit + strlen(line);
    assert_true(str_starts(str_of(verdict), "accept ") || str_starts(str_of(verdict), "reject "));
    return verdict[0] == 'a';
}

static bool ours(const char *bytes, size_t len, struct arena *a, const struct json **ret_root)
{
    struct err err = {0};
    enum err_code code = json_parse(a, (struct str){bytes, len}, ret_root, &err);
    if (code != ERR_OK) {
        assert_int_equal(code, ERR_REQUEST_MALFORMED);
        assert_int_equal(err.code, ERR_REQUEST_MALFORMED);
        assert_true(str_starts(str_of(err.detail), "line "));
    }
    return code == ERR_OK;
}

static size_t for_each_file(void (*check)(const char *name, const char *bytes, size_t len))
{
    size_t files = 0;
    DIR *dir = opendir(CORPUS);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        if (!strstr(e->d_name, ".json"))
            continue;
        size_t len;
        char *bytes = read_exact(e->d_name, &len);
        check(e->d_name, bytes, len);
        free(bytes);
        files++;
    }
    closedir(dir);
    return files;
}

static void check_verdict(const char *name, const char *bytes, size_t len)
{
    struct arena *a = arena_new(256);
    const struct json *root;
    bool wanted = name[0] == 'y' || (name[0] == 'i' && free_verdict(name));
    if (ours(bytes, len, a, &root) != wanted)
        fail_msg("%s should be %s", name, wanted ? "accepted" : "rejected");
    arena_free(a);
}

TEST(corpus_verdicts_hold)
{
    size_t files = for_each_file(check_verdict);
    print_message("%zu files\n", files);
    assert_true(files >= 290);
}

/* ---- against jansson ---- */

/* Equal up to what a double holds, as that is all the oracle keeps of a number. */
static bool loosely_equal(const struct json *a, const struct json *b)
{
    if (a->type == JSON_NUMBER && b->type == JSON_NUMBER) {
        double x = 0, y = 0;
        return json_to_double(a, &x) && json_to_double(b, &y) && x <= y && x >= y;
    }
    if (a->type != b->type || a->count != b->count || !str_equal(a->text, b->text))
        return false;
    for (const struct json *x = a->child, *y = b->child; x; x = x->next, y = y->next)
        if (!str_equal(x->key, y->key) || !loosely_equal(x, y))
            return false;
    return true;
}

static void check_same_value(const char *name, const struct json *root, char *text)
{
    struct arena *a = arena_new(256);
    const struct json *theirs;
    if (!ours(text, strlen(text), a, &theirs) || !loosely_equal(root, theirs))
        fail_msg("%s: jansson reads %s", name, text);
    arena_free(a);
}

static void check_oracle(const char *name, const char *bytes, size_t len)
{
    struct arena *a = arena_new(256);
    const struct json *root;
    char *text = NULL;
    bool accepted = ours(bytes, len, a, &root);
    enum oracle_verdict theirs = oracle_json(bytes, len, &text);
    bool too_deep = strstr(name, "depth_65") || strstr(name, "nested_100"); /* theirs goes to 2048 */
    if (theirs == ORACLE_ACCEPT && accepted)
        check_same_value(name, root, text);
    else if (theirs == ORACLE_ACCEPT && !too_deep)
        fail_msg("%s: only jansson accepts it", name);
    else if (theirs == ORACLE_REJECT && accepted)
        fail_msg("%s: only we accept it", name);
    free(text);
    arena_free(a);
}

TEST(corpus_agrees_with_jansson)
{
    for_each_file(check_oracle);
}

/* ---- canonical form ---- */

static void check_canonical(const char *name, const char *bytes, size_t len)
{
    struct arena *a = arena_new(256);
    const struct json *root, *again;
    if (ours(bytes, len, a, &root)) {
        struct strbuf first = {0}, second = {0};
        json_canonical(root, NULL, &first);
        if (!ours(first.ptr, first.len, a, &again) || !json_equal(root, again))
            fail_msg("%s: canonical text differs: %s", name, first.ptr);
        json_canonical(again, NULL, &second);
        assert_true(str_equal(strbuf_str(&first), strbuf_str(&second)));
        strbuf_free(&first);
        strbuf_free(&second);
    }
    arena_free(a);
}

TEST(canonical_text_reads_back_as_the_same_value)
{
    for_each_file(check_canonical);
}
