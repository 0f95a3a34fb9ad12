#include "cli/http_call.h"

#include <curl/curl.h>
#include <stdio.h>

#include "base/must.h"

#include "base/banned.h"

struct transfer {
    const struct http_call *call;
    struct http_answer *answer;
    CURL *curl;
    bool too_large;
};

void http_answer_free(struct http_answer *a)
{
    strbuf_free(&a->body);
}

void http_escape(struct strbuf *out, struct str text)
{
    static const char plain[] = "-._~";
    static const char hex[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        bool alnum = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (alnum || (c && strchr(plain, c))) {
            strbuf_add_char(out, (char)c);
        } else {
            strbuf_add_char(out, '%');
            strbuf_add_char(out, hex[c >> 4]);
            strbuf_add_char(out, hex[c & 15]);
        }
    }
}

static size_t take_bytes(char *bytes, size_t size, size_t count, void *self)
{
    struct transfer *t = self;
    long status = 0;
    size_t len = size * count;
    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
    if (t->call->on_bytes && status == 200) {
        t->answer->stopped = !t->call->on_bytes(t->call->self, (struct str){bytes, len});
        return t->answer->stopped ? CURL_WRITEFUNC_ERROR : len;
    }
    t->too_large = len > HTTP_BODY_BYTES_MAX - t->answer->body.len;
    if (t->too_large)
        return CURL_WRITEFUNC_ERROR;
    strbuf_add(&t->answer->body, bytes, len);
    return len;
}

static int ask_idle(void *self, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct transfer *t = self;
    (void)a, (void)b, (void)c, (void)d;
    t->answer->stopped = !t->call->on_idle(t->call->self);
    return t->answer->stopped;
}

/* A proxy from the environment cannot reach this machine's loopback for us. */
static bool is_loopback(const char *url)
{
    struct str rest = str_of(url);
    str_cut(&rest, '/');
    str_cut(&rest, '/');
    return str_starts(rest, "127.") || str_starts(rest, "localhost") || str_starts(rest, "[::1]");
}

static struct curl_slist *add_header(struct curl_slist *list, const char *name, const char *value)
{
    struct strbuf line CLEANUP(strbuf_free) = {0};
    strbuf_addf(&line, "%s: %s", name, value);
    struct curl_slist *longer = curl_slist_append(list, line.ptr);
    MUST(longer);
    return longer;
}

static struct curl_slist *headers_of(const struct http_call *call)
{
    struct curl_slist *list = add_header(NULL, "Accept", call->accept ? call->accept : "application/json");
    list = curl_slist_append(list, "Expect:"); /* no 100-continue: a second round trip for nothing */
    MUST(list);
    /* Without a body there is no type either; libcurl would name a form's. */
    list = call->body.ptr ? add_header(list, "Content-Type", "application/json")
                          : curl_slist_append(list, "Content-Type:");
    MUST(list);
    if (call->idempotency_key)
        list = add_header(list, "Idempotency-Key", call->idempotency_key);
    if (call->last_event_id)
        list = add_header(list, "Last-Event-ID", call->last_event_id);
    if (call->bearer) {
        struct strbuf value CLEANUP(strbuf_free) = {0};
        strbuf_addf(&value, "Bearer %s", call->bearer);
        list = add_header(list, "Authorization", value.ptr);
    }
    return list;
}

void http_trust_use(const struct http_trust *trust, void *curl)
{
    if (trust->ca)
        curl_easy_setopt((CURL *)curl, CURLOPT_CAINFO, trust->ca);
    if (trust->client_cert)
        curl_easy_setopt((CURL *)curl, CURLOPT_SSLCERT, trust->client_cert);
    if (trust->client_key)
        curl_easy_setopt((CURL *)curl, CURLOPT_SSLKEY, trust->client_key);
}

static void set_up(CURL *c, struct transfer *t, struct curl_slist *headers, char *message)
{
    const struct http_call *call = t->call;
    curl_easy_setopt(c, CURLOPT_URL, call->url);
    curl_easy_setopt(c, CURLOPT_PATH_AS_IS, 1L); /* an id of ".." must not become another path */
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_USERAGENT, "weir/" WEIR_VERSION);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)HTTP_CONNECT_TIMEOUT_MS);
    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)call->timeout_ms);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, message);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_bytes);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, t);
    http_trust_use(&call->trust, c);
    if (is_loopback(call->url))
        curl_easy_setopt(c, CURLOPT_NOPROXY, "*");
    if (call->on_idle) {
        curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, ask_idle);
        curl_easy_setopt(c, CURLOPT_XFERINFODATA, t);
    }
    if (strcmp(call->method, "GET") != 0) {
        curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, call->method);
        curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body.len);
        curl_easy_setopt(c, CURLOPT_POSTFIELDS, call->body.ptr ? call->body.ptr : "");
    }
}

/* "http://host:port": all that helps, and no password. */
static struct str shown_url(const char *url)
{
    const char *host = strstr(url, "://");
    size_t len = host ? (size_t)(host - url) + 3 : 0;
    len += strcspn(url + len, "/?#");
    return memchr(url, '@', len) ? STR("the server") : (struct str){url, len};
}

/* The server ended the handshake and said why; `reason` is OpenSSL's text of it, perhaps with more behind. */
static enum err_code explain_alert(struct str url, const char *reason, struct err *err)
{
    int len = (int)strcspn(reason, ",");
    bool is_ours = strstr(reason, "certificate") || strstr(reason, "unknown ca");
    if (is_ours)
        return err_set(err, ERR_AUTH_FORBIDDEN,
                       "%.*s does not accept the client's certificate, or misses it: %.*s; give one that it "
                       "trusts with --client-cert FILE and --client-key FILE",
                       STR_ARG(url), len, reason);
    return err_set(err, ERR_STORAGE_UNAVAILABLE,
                   "%.*s refuses the TLS connection: %.*s; check host and port of --url, and which versions "
                   "of TLS a proxy on the way allows",
                   STR_ARG(url), len, reason);
}

static enum err_code explain(const struct transfer *t, CURLcode rc, const char *message, struct err *err)
{
    struct str url = shown_url(t->call->url);
    url.len = url.len < 100 ? url.len : 100;
    if (t->too_large)
        return err_set(err, ERR_STORAGE_UNAVAILABLE, "%.*s: the answer is larger than %d MiB", STR_ARG(url),
                       HTTP_BODY_BYTES_MAX >> 20);
    switch ((int)rc) {
    case CURLE_COULDNT_CONNECT:
        return err_set(err, ERR_STORAGE_UNAVAILABLE,
                       "nothing answers at %.*s; start a server with `weir serve`, or name another "
                       "with --url",
                       STR_ARG(url));
    case CURLE_OPERATION_TIMEDOUT:
        return err_set(err, ERR_DEPENDENCY_TIMEOUT, "no answer in time from %.*s", STR_ARG(url));
    case CURLE_COULDNT_RESOLVE_HOST:
        return err_set(err, ERR_STORAGE_UNAVAILABLE, "cannot find the host of %.*s; check --url",
                       STR_ARG(url));
    case CURLE_PEER_FAILED_VERIFICATION:
        return err_set(err, ERR_STORAGE_UNAVAILABLE,
                       "%.*s is not trusted: %.80s; name the authority of its certificate with --ca FILE",
                       STR_ARG(url), message);
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
        return err_set(err, ERR_CONFIG_INVALID, "--ca, --client-cert or --client-key cannot be used: %.120s",
                       message);
    case CURLE_SSL_CLIENTCERT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_RECV_ERROR: /* TLS 1.3: the server judges a certificate after the client's side is done */
        if (!strstr(message, " alert "))
            break;
        return explain_alert(url, strstr(message, " alert ") + strlen(" alert "), err);
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return err_set(err, ERR_CONFIG_INVALID, "\"%.*s\" is no URL of a server; give --url http://HOST:PORT",
                       STR_ARG(url));
    }
    return err_set(err, ERR_STORAGE_UNAVAILABLE, "%.*s: %.120s", STR_ARG(url),
                   *message ? message : curl_easy_strerror(rc));
}

/* A line break inside a header would begin another one. */
static enum err_code check_headers(const struct http_call *call, struct err *err)
{
    const struct {
        const char *name, *value;
    } headers[] = {{"the API key", call->bearer},
                   {"the idempotency key", call->idempotency_key},
                   {"the event id", call->last_event_id}};
    for (size_t i = 0; i < LENGTH_OF(headers); i++)
        for (const char *c = headers[i].value; c && *c; c++)
            if ((unsigned char)*c < 0x20 || *c == 0x7F)
                return err_set(err, ERR_CONFIG_INVALID, "%s holds a control character", headers[i].name);
    return ERR_OK;
}

static int64_t retry_after_s(CURL *c)
{
    struct curl_header *h;
    int64_t seconds = 0;
    if (curl_easy_header(c, "Retry-After", 0, CURLH_HEADER, -1, &h) == CURLHE_OK)
        (void)!str_to_int(str_trim(str_of(h->value)), 0, INT32_MAX, &seconds);
    return seconds;
}

enum err_code http_call(const struct http_call *call, struct http_answer *ret_answer, struct err *err)
{
    char message[CURL_ERROR_SIZE] = "";
    struct transfer t = {.call = call, .answer = ret_answer};
    *ret_answer = (struct http_answer){0};
    if (check_headers(call, err) != ERR_OK)
        return err->code;
    t.curl = curl_easy_init();
    MUST(t.curl);
    struct curl_slist *headers = headers_of(call);
    set_up(t.curl, &t, headers, message);
    CURLcode rc = curl_easy_perform(t.curl);
    curl_easy_getinfo(t.curl, CURLINFO_RESPONSE_CODE, &ret_answer->status);
    ret_answer->retry_after_s = retry_after_s(t.curl);
    curl_slist_free_all(headers);
    curl_easy_cleanup(t.curl);
    if (rc == CURLE_OK || ret_answer->stopped)
        return ERR_OK;
    return explain(&t, rc, message, err);
}
