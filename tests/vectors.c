#include "vectors.h"

#include <stdio.h>
#include <stdlib.h>

#include "case.h"

#include "base/banned.h"

enum { FILE_MAX = 1 << 18 };

const struct json *vectors_read(struct arena *a, const char *file)
{
    static char text[FILE_MAX];
    char path[512];
    struct err err;
    const struct json *all;
    const char *folder = getenv("WEIR_VECTORS");
    snprintf(path, sizeof path, "%s/%s", folder ? folder : ".", file);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text, f);
    fclose(f);
    assert_int_equal(json_parse(a, (struct str){text, n}, &all, &err), ERR_OK);
    return all;
}

struct str vectors_text(const struct json *vector, const char *name)
{
    const struct json *m = json_get(vector, name);
    return m ? (struct str){m->text.ptr ? m->text.ptr : "", m->text.len} : STR_ABSENT;
}
