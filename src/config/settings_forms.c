/* The form of the value of a TEXT setting: one check per form of SETTING_FORMS. */
#include <arpa/inet.h>

#include "base/must.h"
#include "base/store_url.h"
#include "base/url.h"
#include "base/uuid.h"
#include "config/settings_internal.h"
#include "lifecycle/signals.h"

#include "base/banned.h"

static const struct {
    const char *must_be;
    bool list;
} forms[] = {
#define X(name, list, must_be) [FORM_##name] = {must_be, list},
    SETTING_FORMS(X)
#undef X
};

const char *setting_form_text(enum setting_form form)
{
    return forms[form].must_be;
}
bool setting_form_is_list(enum setting_form form)
{
    return forms[form].list;
}

static bool one_of(struct str value, const char *choices)
{
    for (struct str rest = str_of(choices); rest.len;)
        if (str_equal(str_cut(&rest, ' '), value))
            return true;
    return false;
}

static bool each_item(struct str list, bool (*fits)(struct str item))
{
    if (list.len && list.ptr[list.len - 1] == ',')
        return false; /* the cut below would not see an empty last item */
    while (list.len)
        if (!fits(str_trim(str_cut(&list, ','))))
            return false;
    return true;
}

static bool is_type(struct str item)
{
    return one_of(item, "EXECUTE DEFERRED EMIT_EVENT");
}

static bool is_name(struct str item)
{
    return item.len >= 1 && item.len <= 256 && !memchr(item.ptr, ' ', item.len) &&
           !memchr(item.ptr, ',', item.len);
}

/* The cap of agents is not a matter of settings (AMB-19): only a shorter life is. */
static bool is_agent(struct str item)
{
    struct str role = str_cut(&item, '=');
    int64_t seconds;
    bool has_life = item.ptr != role.ptr + role.len;
    return is_name(role) && (!has_life || str_to_int(item, 1, 14400, &seconds));
}

static bool at_most(struct str list, size_t max)
{
    size_t count = 1;
    for (size_t i = 0; i < list.len; i++)
        count += list.ptr[i] == ',';
    return count <= max;
}

static bool is_override(struct str item)
{
    struct uuid id;
    struct str name = str_trim(str_cut(&item, '='));
    int64_t per_minute;
    return uuid_parse(name, &id) && str_to_int(str_trim(item), 0, 1000000000, &per_minute);
}

/* Copies into a NUL-terminated buffer, since inet_pton wants one; false when it does not fit. */
static bool is_address(int family, struct str text)
{
    char copy[INET6_ADDRSTRLEN];
    unsigned char bytes[16];
    if (text.len >= sizeof copy)
        return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = 0;
    return inet_pton(family, copy, bytes) == 1;
}

static bool is_cidr(struct str item)
{
    struct str address = str_cut(&item, '/');
    bool v4 = address.len && is_address(AF_INET, address);
    if (!v4 && !(address.len && is_address(AF_INET6, address)))
        return false;
    int64_t bits;
    bool has_slash = item.ptr != address.ptr + address.len;
    return !has_slash || str_to_int(item, 0, v4 ? 32 : 128, &bits);
}

static bool is_word(struct str value)
{
    return !memchr(value.ptr, ' ', value.len);
}

static bool is_store(struct str value)
{
    enum store_kind kind;
    return store_url_kind(value, &kind);
}

/* A name as DNS allows it. Digits and dots only would be an address, and has to be a right one. */
static bool is_host_name(struct str host)
{
    bool digits_only = true;
    for (size_t i = 0; i < host.len; i++) {
        char c = host.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && c != '-' && c != '.' && !(c >= '0' && c <= '9'))
            return false;
        digits_only = digits_only && !letter && c != '-';
    }
    return host.len && (!digits_only || is_address(AF_INET, host));
}

bool listen_parse(struct str text, char *ret_host, size_t host_size, uint16_t *ret_port)
{
    struct str host;
    if (text.len && text.ptr[0] == '[') {
        text.ptr++, text.len--;
        host = str_cut(&text, ']');
        if (!text.len || text.ptr[0] != ':' || !is_address(AF_INET6, host))
            return false;
        text.ptr++, text.len--;
    } else {
        host = str_cut(&text, ':');
        if (!is_host_name(host))
            return false;
    }
    int64_t port;
    if (host.len >= host_size || !str_to_int(text, 0, 65535, &port))
        return false;
    memcpy(ret_host, host.ptr, host.len);
    ret_host[host.len] = 0;
    *ret_port = (uint16_t)port;
    return true;
}

static bool is_listen(struct str value)
{
    char host[SETTINGS_HOST_MAX];
    uint16_t port;
    return listen_parse(value, host, sizeof host, &port);
}

static bool is_signal(struct str name)
{
    enum signal_type unused;
    return signal_type_of(name, &unused);
}

static bool is_url(struct str value)
{
    struct url unused;
    return url_parse(value, &unused) == NULL;
}

bool setting_form_fits(enum setting_form form, struct str value)
{
    switch (form) {
    case FORM_ANY:
        return true;
    case FORM_WORD:
        return is_word(value);
    case FORM_NAME:
        return is_name(value);
    case FORM_NAMES:
        return value.len && at_most(value, 32) && each_item(value, is_name);
    case FORM_AGENTS:
        return at_most(value, 32) && each_item(value, is_agent);
    case FORM_ENVIRONMENT:
        return one_of(value, "dev stage prod");
    case FORM_BOOLEAN:
        return one_of(value, "true false");
    case FORM_SWITCH:
        return one_of(value, "on off");
    case FORM_REGISTRATION:
        return one_of(value, "open operator");
    case FORM_SANDBOX:
        return one_of(value, "enforce log off");
    case FORM_FALLBACK:
        return one_of(value, "deny allow_with_flag builtin");
    case FORM_SIGNALS:
        return each_item(value, is_signal);
    case FORM_URL:
        return is_url(value);
    case FORM_LOG_FORMAT:
        return one_of(value, "auto text json");
    case FORM_LEVEL:
        return one_of(value, "debug info warn error");
    case FORM_LISTEN:
        return is_listen(value);
    case FORM_LISTEN_OR_OFF:
        return str_is(value, "off") || is_listen(value);
    case FORM_PATH:
        return value.len > 0;
    case FORM_STORE:
        return is_store(value);
    case FORM_TYPES:
        return each_item(value, is_type);
    case FORM_OVERRIDES:
        return each_item(value, is_override);
    case FORM_CIDRS:
        return each_item(value, is_cidr);
    case FORM_COUNT:
        break;
    }
    MUST(form < FORM_COUNT);
    return false;
}
