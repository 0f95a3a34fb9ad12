#include "vectors.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/must.h"

#include "base/banned.h"

enum { LINE_BYTES_MAX = 4096 };

static unsigned hex_value(char c)
{
    const char *digits = "0123456789abcdef", *at = strchr(digits, c);
    MUST(c && at);
    return (unsigned)(at - digits);
}

static struct str unescaped(char *text)
{
    char *out = text;
    for (const char *in = text; *in;) {
        bool escaped = in[0] == '\\' && in[1] == 'x';
        *out++ = escaped ? (char)(hex_value(in[2]) << 4 | hex_value(in[3])) : *in;
        in += escaped ? 4 : 1;
    }
    return (struct str){text, (size_t)(out - text)};
}

size_t vectors_each(const char *name, vector_fn *fn, void *self)
{
    char path[1024], line[LINE_BYTES_MAX];
    size_t count = 0;
    snprintf(path, sizeof path, "%s/%s", getenv("WEIR_EGRESS_VECTORS"), name);
    FILE *file = fopen(path, "r");
    MUST(file);
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (line[0] == '#')
            continue;
        struct str columns[VECTOR_COLUMNS_MAX] = {{0}};
        char *rest = line;
        for (size_t i = 0; i < VECTOR_COLUMNS_MAX && rest; i++)
            columns[i] = unescaped(strsep(&rest, "\t"));
        fn(columns, self);
        count++;
    }
    fclose(file);
    return count;
}
