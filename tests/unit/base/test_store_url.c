#include <stdio.h>
#include <stdlib.h>

#include "case.h"

#include "base/must.h"
#include "base/store_url.h"

#include "base/banned.h"

TEST(a_url_names_its_backend)
{
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

TEST(a_password_is_never_shown)
{
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

TEST(a_password_is_added_so_that_libpq_reads_it_back)
{
    const struct {
        const char *url, *password, *expected;
        bool has_one; /* before */
    } cases[] = {
        {"postgres://weir@db/weir", "a b", "postgres://weir@db/weir?password=%61%20%62", false},
        {"postgres://db", "&", "postgres://db?password=%26", false},
        {"postgres://u@db/weir?sslmode=require", "x", "postgres://u@db/weir?sslmode=require&password=%78",
         false},
        {"postgres://u@db/w?sslpassword=s", "x", "postgres://u@db/w?sslpassword=s&password=%78", false},
        {"postgres://u:p@db/weir", NULL, "postgres://u:p@db/weir", true},
        {"postgres://db/weir?password=p", NULL, "postgres://db/weir?password=p", true},
        {"sqlite:a@b:c", NULL, "sqlite:a@b:c", false},
    };
    for (size_t i = 0; i < LENGTH_OF(cases); i++) {
        char url[96];
        snprintf(url, sizeof url, "%s", cases[i].url);
        assert_int_equal(store_url_has_password(str_of(url)), cases[i].has_one);
        assert_true(store_url_add_password(url, sizeof url, str_of(cases[i].password)));
        assert_string_equal(url, cases[i].expected);
    }
    char small[32] = "postgres://db/weir";
    assert_false(store_url_add_password(small, sizeof small, STR("too long")));
    assert_string_equal(small, "postgres://db/weir");
}
