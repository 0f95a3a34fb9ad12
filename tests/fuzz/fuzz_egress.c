/* What src/egress reads from outside. The first byte chooses. Properties:
 *   - URL: a taken one gives an endpoint that parses to itself; curl's parser agrees on scheme, host, port;
 *   - Retry-After: -1 or within its bounds, the same with spaces around it, and never more a second later;
 *   - networks: what was parsed, written out, parses to the same, and never-addresses stay denied. */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <stdio.h>

#include "base/must.h"
#include "base/url.h"
#include "base/backoff.h"
#include "egress/address.h"
#include "egress/retry_after.h"

#include "base/banned.h"

static void check_part(CURLU *parsed, CURLUPart part, unsigned flags, const char *wanted)
{
    char *text = NULL;
    MUST(curl_url_get(parsed, part, &text, flags) == CURLUE_OK);
    MUST(str_equal_nocase(str_of(text), str_of(wanted)));
    curl_free(text);
}

static void check_with_curl(struct str text, const struct url *url)
{
    char port[8];
    struct strbuf copy CLEANUP(strbuf_free) = {0};
    strbuf_add_str(&copy, text);
    CURLU *parsed = curl_url();
    MUST(parsed && curl_url_set(parsed, CURLUPART_URL, copy.ptr, 0) == CURLUE_OK);
    snprintf(port, sizeof port, "%u", (unsigned)url->port);
    check_part(parsed, CURLUPART_SCHEME, 0, url->tls ? "https" : "http");
    check_part(parsed, CURLUPART_PORT, CURLU_DEFAULT_PORT, port);
    if (!strchr(url->host, ':')) /* an IPv6 address may be spelt another way */
        check_part(parsed, CURLUPART_HOST, 0, url->host);
    char *user = NULL;
    MUST(curl_url_get(parsed, CURLUPART_USER, &user, 0) == CURLUE_NO_USER);
    curl_url_cleanup(parsed);
}

static void check_url(struct str text)
{
    struct url url, again;
    const char *fault = url_parse(text, &url);
    if (fault) {
        MUST(fault[0]);
        return;
    }
    MUST(url.port && url.host[0] && text.len <= URL_BYTES_MAX);
    MUST(!url_parse(str_of(url.endpoint), &again));
    MUST(strcmp(url.endpoint, again.endpoint) == 0 && strcmp(url.host, again.host) == 0);
    MUST(url.tls == again.tls && url.is_address == again.is_address && url.port == again.port);
    check_with_curl(text, &url);
}

static void check_retry_after(struct str value)
{
    static const int64_t now_ms = INT64_C(1780000000000);
    int64_t ms = retry_after_ms(value, now_ms);
    MUST(ms >= -1 && ms <= RETRY_AFTER_MAX_MS);
    struct strbuf padded CLEANUP(strbuf_free) = {0};
    strbuf_add_text(&padded, " \t");
    strbuf_add_str(&padded, value);
    strbuf_add_text(&padded, " ");
    MUST(retry_after_ms(strbuf_str(&padded), now_ms) == ms);
    int64_t later_ms = retry_after_ms(value, now_ms + 1000);
    MUST(later_ms <= ms && (later_ms < 0) == (ms < 0));
}

static void check_networks(struct str list)
{
    struct egress_policy policy, again;
    struct err err;
    if (egress_policy_parse(list, false, &policy, &err) != ERR_OK) {
        MUST(err.code == ERR_CONFIG_INVALID && err.detail[0]);
        return;
    }
    struct strbuf text CLEANUP(strbuf_free) = {0};
    for (size_t i = 0; i < policy.network_count; i++) {
        char address[INET6_ADDRSTRLEN];
        const struct egress_network *n = &policy.networks[i];
        const char *reason = NULL;
        inet_ntop(n->v6 ? AF_INET6 : AF_INET, n->bytes, address, sizeof address);
        strbuf_addf(&text, "%s%s/%d", i ? "," : "", address, n->bits);
        MUST(egress_address_text_allowed(&policy, address, &reason) == !reason);
    }
    MUST(egress_policy_parse(text.ptr ? strbuf_str(&text) : STR(""), false, &again, &err) == ERR_OK);
    MUST(memcmp(&policy, &again, sizeof policy) == 0);
    static const char *const never[] = {"0.0.0.0", "255.255.255.255", "224.0.0.1", "::", "ff02::1"};
    for (size_t i = 0; i < LENGTH_OF(never); i++) {
        const char *reason = NULL;
        MUST(!egress_address_text_allowed(&policy, never[i], &reason) && reason);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    struct str text = {(const char *)data + 1, size - 1};
    switch (data[0] % 3) {
    case 0:
        check_url(text);
        break;
    case 1:
        check_retry_after(text);
        break;
    default:
        check_networks(text);
        break;
    }
    return 0;
}
