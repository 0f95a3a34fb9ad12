/* Any bytes as a settings file: refused with one line, or taken; never a crash. */
#include "base/must.h"
#include "config/settings.h"

#include "base/banned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct settings s;
    struct err err = {0};
    settings_init(&s);
    enum err_code code = settings_load_text(&s, "fuzz.yaml", (struct str){(const char *)data, size}, &err);
    if (code) {
        MUST(code == ERR_CONFIG_INVALID);
        MUST(str_starts(str_of(err.detail), "fuzz.yaml:"));
        MUST(!strchr(err.detail, '\n'));
    } else {
        char host[SETTINGS_HOST_MAX];
        uint16_t port;
        MUST(settings_listen_parts(&s, host, sizeof host, &port)); /* accepted settings are sound */
        (void)settings_log_level(&s);
        MUST(settings_http_threads(&s) >= 1);
    }
    settings_free(&s);
    return 0;
}
