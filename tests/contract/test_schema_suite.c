/* The public JSON Schema test suite (Debian package json-schema-test-suite), every file, and our
 * own cases for what came after draft 7. A group is either checked or must be refused; none is
 * skipped. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "case.h"

#include "base/must.h"
#include "schema/schema.h"
#include "suite_translate.h"

#include "base/banned.h"

struct tally {
    int files, groups, refused, tests, differ;
};

/* Where 2020-12 means something else than draft 7, and why: our answer must be the opposite. */
static const struct {
    const char *group, *test, *why;
} differences[] = {
    {"ref overrides any sibling keywords", "ref valid, maxItems ignored",
     "keywords beside $ref count since 2019-09"},
};

static struct str read_file(struct arena *a, const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("cannot open %s", path);
    struct strbuf text = {0};
    char chunk[4096];
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, f)) > 0;)
        strbuf_add(&text, chunk, n);
    fclose(f);
    struct str copy = arena_str(a, strbuf_str(&text));
    strbuf_free(&text);
    return copy;
}

static bool differs(struct str group, struct str test)
{
    for (size_t i = 0; i < LENGTH_OF(differences); i++)
        if (str_is(group, differences[i].group) && str_is(test, differences[i].test))
            return true;
    return false;
}

static void run_data(const char *file, const struct json *group, const struct schema *schema,
                     struct tally *tally)
{
    struct str name = json_get(group, "description")->text;
    for (const struct json *t = json_get(group, "tests")->child; t; t = t->next) {
        struct str test = json_get(t, "description")->text;
        bool wanted = json_get(t, "valid")->type == JSON_TRUE;
        if (differs(name, test)) {
            wanted = !wanted;
            tally->differ++;
        }
        struct schema_violation v = {.keyword = NULL};
        bool valid = schema_check(schema, json_get(t, "data"), &v);
        if (valid != wanted)
            fail_msg("%s: %.*s: %.*s: says %s", file, STR_ARG(name), STR_ARG(test), valid ? "valid" : v.text);
        if (!valid)
            assert_true(v.keyword && v.text[0]);
        assert_int_equal(valid, schema_check(schema, json_get(t, "data"), NULL));
        tally->tests++;
    }
}

static void run_group(struct arena *a, const char *file, const struct json *group, struct tally *tally)
{
    struct strbuf text = {0};
    struct err err;
    const struct json *root;
    const struct schema *schema;
    suite_translate(json_get(group, "schema"), &text);
    struct str kept = arena_str(a, strbuf_str(&text));
    strbuf_free(&text);
    if (json_parse(a, kept, &root, &err) != ERR_OK)
        fail_msg("%s: %s", file, err.detail);

    const char *refusal = suite_refusal(root);
    enum err_code code = schema_compile(a, root, root, &schema, &err);
    tally->groups++;
    if (refusal) {
        if (code != ERR_CONFIG_INVALID)
            fail_msg("%s: compiled although it uses %s: %.*s", file, refusal, STR_ARG(kept));
        tally->refused++;
        return;
    }
    if (code != ERR_OK)
        fail_msg("%s: %s: %.*s", file, err.detail, STR_ARG(kept));
    run_data(file, group, schema, tally);
}

static struct tally run_folder(const char *folder)
{
    struct tally tally = {0};
    DIR *dir = opendir(folder);
    if (!dir)
        fail_msg("%s is not there; install json-schema-test-suite", folder);
    for (struct dirent *e; (e = readdir(dir));) {
        size_t len = strlen(e->d_name);
        if (len < 5 || strcmp(e->d_name + len - 5, ".json") != 0)
            continue;
        struct arena *a = arena_new(64 * 1024);
        struct err err;
        const struct json *root;
        struct str path = arena_printf(a, "%s/%s", folder, e->d_name);
        if (json_parse(a, read_file(a, path.ptr), &root, &err) != ERR_OK)
            fail_msg("%s: %s", path.ptr, err.detail);
        for (const struct json *group = root->child; group; group = group->next)
            run_group(a, e->d_name, group, &tally);
        tally.files++;
        arena_free(a);
    }
    closedir(dir);
    print_message("%s: %d files, %d groups, %d of them refused, %d tests, %d of them differ\n", folder,
                  tally.files, tally.groups, tally.refused, tally.tests, tally.differ);
    return tally;
}

TEST(public_suite_is_answered_or_refused_by_name)
{
    struct tally tally = run_folder(PUBLIC_SUITE);
    assert_int_equal(tally.files, 35); /* Debian 12; another number needs a look at what is new */
    assert_true(tally.groups - tally.refused >= 100);
    assert_int_equal(tally.differ, LENGTH_OF(differences));
}

TEST(own_suite_for_2020_12_holds)
{
    struct tally tally = run_folder(OWN_SUITE);
    assert_true(tally.tests >= 60);
    assert_int_equal(tally.differ, 0);
}
