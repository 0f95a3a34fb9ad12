#include <sqlite3.h>
#include <stdio.h>

#include "base/json.h"
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
    jw_key(&w, "version");
    jw_text(&w, WEIR_VERSION);
    jw_key(&w, "schema_version");
    jw_int(&w, STORE_SCHEMA_VERSION);
    jw_key(&w, "sqlite_version");
    jw_text(&w, sqlite3_libversion());
    jw_key(&w, "compiler");
    jw_text(&w, COMPILER);
    jw_object_end(&w);
    printf("%s\n", text.ptr);
    return CLI_OK;
}
