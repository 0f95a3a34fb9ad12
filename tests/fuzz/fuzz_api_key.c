/* API keys: a text that parses must be exactly the text we would write for it: one spelling per key. */
#include "api/auth.h"
#include "base/must.h"

#include "base/banned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    int64_t id;
    struct new_key key;
    char out[API_KEY_TEXT_MAX];
    if (auth_key_parse(text, &id, key.secret)) {
        MUST(id >= 0);
        MUST(str_equal(auth_key_text(&key, id, out), text));
    }
    return 0;
}
