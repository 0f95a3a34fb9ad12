#include <sqlite3.h>
#include <stdio.h>

#include "base/json_members.h"
#include "cli/command.h"
#include "cli/table.h"
#include "store/store.h"

#include "base/banned.h"

#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

int command_version(const struct invocation *in)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    struct json_writer w;
    if (!in->json) {
        printf("weir %s (schema %d, SQLite %s, %s)\n", WEIR_VERSION, STORE_SCHEMA_VERSION,
               sqlite3_libversion(), COMPILER);
        return CLI_OK;
    }
    jw_start(&w, &text);
    jw_object(&w);
    encode_text(&w, "version", WEIR_VERSION);
    encode_int(&w, "schema_version", STORE_SCHEMA_VERSION);
    encode_text(&w, "sqlite_version", sqlite3_libversion());
    encode_text(&w, "compiler", COMPILER);
    jw_object_end(&w);
    printf("%s\n", text.ptr);
    return CLI_OK;
}
