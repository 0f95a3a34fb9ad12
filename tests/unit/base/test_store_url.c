#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/must.h"
#include "base/store_url.h"

#include "base/banned.h"

static void a_url_names_its_backend(void **state)
{
    (void)state;
    const struct {
        const char *url;
        enum store_kind kind;
        bool fits;
    } cases[] = {
        {"sqlite:/srv/weir.db", STORE_SQLITE, true},
        {"sqlite:weir.db", STORE_SQLITE, true},
        {"sqlite:", STORE_SQLITE, false},
        {"postgres://weir@db/weir", STORE_POSTGRES, true},
        {"postgresql:///weir?service=x", STORE_POSTGRES, true},
        {"postgres:weir", STORE_SQLITE, false},
        {"mysql://x", STORE_SQLITE, false},
        {"", STORE_SQLITE, false},
    };
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        enum store_kind kind;
        assert_int_equal(store_url_kind(str_of(cases[i].url), &kind), cases[i].fits);
        if (cases[i].fits)
            assert_int_equal(kind, cases[i].kind);
    }
    assert_true(str_is(store_url_file(STR("sqlite:/a b.db")), "/a b.db"));
    assert_null(store_url_file(STR("postgres://h/d")).ptr);
}

static void a_password_is_never_shown(void **state)
{
    (void)state;
    const struct {
        const char *url, *shown;
    } cases[] = {
        {"sqlite:/srv/a@b:c.db", "sqlite:/srv/a@b:c.db"},
        {"postgres://db/weir", "postgres://db/weir"},
        {"postgres://weir@db:5432/weir", "postgres://weir@db:5432/weir"},
        {"postgres://weir:hunter2@db:5432/weir", "postgres://weir:***@db:5432/weir"},
        {"postgresql://weir:@db/weir", "postgresql://weir:***@db/weir"},
        {"postgres://weir:hun@ter2@db/weir", "postgres://weir:***@db/weir"},
        {"postgres://weir:hun/ter2@db/weir", "postgres://weir:***@db/weir"},
        {"postgres://weir:hun?ter2@db/weir?sslmode=require", "postgres://weir:***@db/weir?sslmode=require"},
        {"postgres://db/weir?password=hunter2&user=u", "postgres://db/weir?password=***&user=u"},
        {"postgres://u@db/weir?password=hun@ter2", "postgres://u@db/weir?password=***"},
        {"postgres://db?password=hun@ter2", "postgres://db:***@ter2"},
        {"postgres://db/weir?pass%77ord=hunter2", "postgres://db/weir?pass%77ord=***"},
        {"postgres://db/weir?sslpassword=hunter2", "postgres://db/weir?sslpassword=***"},
        {"postgres://db/weir?options=-csearch_path%3Da", "postgres://db/weir?options=-csearch_path%3Da"},
        {"postgres://a:1,b:2/weir", "postgres://a:1,b:2/weir"},
        {"postgres://", "postgres://"},
    };
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        struct strbuf shown = {0};
        store_url_show(str_of(cases[i].url), &shown);
        assert_string_equal(shown.ptr, cases[i].shown);
        assert_null(strstr(shown.ptr, "hun"));
        strbuf_free(&shown);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_names_its_backend),
        cmocka_unit_test(a_password_is_never_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
