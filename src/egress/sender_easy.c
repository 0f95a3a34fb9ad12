/* Every option of every outbound transfer, and what curl calls back on. */
#include "egress/sender_internal.h"

#include <stdio.h>
#include <unistd.h>

#include "base/must.h"
#include "egress/retry_after.h"

#include "base/banned.h"

enum {
    DNS_KEPT_S = 10,
    CONNECTION_IDLE_S = 60,
    CONNECTION_LIFE_S = 300,  /* so that a receiver that moved is noticed */
    READ_BUFFER_BYTES = 4096, /* per transfer under way; curl's own choice would be 16 KiB */
};

#define SET(easy, option, value) MUST(curl_easy_setopt(easy, option, value) == CURLE_OK)

void transfer_lookup_over(struct egress_transfer *t)
{
    if (t->looking_up)
        t->egress->lookups--;
    t->looking_up = false;
}

/* --- callbacks ---------------------------------------------------------------------------------- */

/* Called when a host is not in curl's cache; also for one that is an address, which needs no thread. */
static int start_lookup(void *resolver_state, void *reserved, void *self)
{
    struct egress_transfer *t = self;
    (void)resolver_state, (void)reserved;
    if (t->looking_up || t->host_is_address)
        return 0;
    t->lookups_full = !t->trusted && t->egress->lookups >= t->egress->config.lookups_max;
    if (t->lookups_full)
        return 1;
    t->looking_up = true;
    t->egress->lookups++;
    return 0;
}

/* Curl would go on to the next address, with pauses; the round that denied it ends it instead. */
static void deny(struct egress_transfer *t, const char *reason)
{
    t->denied = reason;
    if (t->in_denied)
        return;
    t->in_denied = true;
    t->next_denied = t->egress->denied;
    t->egress->denied = t;
}

/* The guard. After one denial no other address is tried: a name with a private answer beside a public
 * one is an attack or a mistake, and which of them comes first is chance. */
static curl_socket_t open_socket(void *self, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct egress_transfer *t = self;
    const char *reason = NULL;
    (void)purpose;
    transfer_lookup_over(t);
    if (t->denied)
        return CURL_SOCKET_BAD;
    if (!t->trusted && !egress_address_allowed(&t->egress->config.policy, &address->addr, &reason)) {
        deny(t, reason);
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* Connected, nothing sent yet. Addresses are raced, so another one may have been denied meanwhile; and a
 * kept connection passes here too. */
static int before_request(void *self, char *peer, char *local, int peer_port, int local_port)
{
    struct egress_transfer *t = self;
    const char *reason = NULL;
    (void)local, (void)peer_port, (void)local_port;
    if (!t->denied && !t->trusted && !egress_address_text_allowed(&t->egress->config.policy, peer, &reason))
        t->denied = reason;
    return t->denied ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

static size_t take_head_line(char *bytes, size_t size, size_t count, void *self)
{
    struct egress_transfer *t = self;
    struct str value = {bytes, size * count}, line = value;
    t->head_bytes += line.len;
    t->head_lines++;
    if (t->head_bytes > EGRESS_HEAD_BYTES_MAX || t->head_lines > EGRESS_HEAD_LINES_MAX) {
        t->head_large = true;
        return CURL_WRITEFUNC_ERROR;
    }
    while (value.len && (value.ptr[value.len - 1] == '\r' || value.ptr[value.len - 1] == '\n'))
        value.len--;
    if (t->head_done) /* a trailer */
        return line.len;
    if (!value.len) {
        long status = 0;
        curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
        t->head_done = status >= 200;
        if (!t->head_done)
            t->retry_after_ms = -1; /* of a 1xx answer: not what is asked for */
    } else if (str_equal_nocase(str_cut(&value, ':'), STR("retry-after"))) {
        t->retry_after_ms = retry_after_ms(value, clock_wall_ms(t->egress->config.clock));
    }
    return line.len;
}

static size_t take_body(char *bytes, size_t size, size_t count, void *self)
{
    struct egress_transfer *t = self;
    size_t len = size * count;
    if (t->body_bytes < sizeof t->excerpt) {
        size_t room = sizeof t->excerpt - t->body_bytes;
        memcpy(t->excerpt + t->body_bytes, bytes, len < room ? len : room);
    }
    t->body_bytes += len;
    t->cut = t->body_bytes > EGRESS_ANSWER_BYTES_MAX;
    if (t->answer && !t->cut)
        strbuf_add(t->answer, bytes, len);
    return t->cut ? CURL_WRITEFUNC_ERROR : len;
}

/* --- options ------------------------------------------------------------------------------------ */

static void set_protocol(CURL *easy)
{
    SET(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    SET(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(easy, CURLOPT_HTTP09_ALLOWED, 0L);
    SET(easy, CURLOPT_POST, 1L);
    SET(easy, CURLOPT_PATH_AS_IS, 1L);
    SET(easy, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
    SET(easy, CURLOPT_FOLLOWLOCATION, 0L);
    SET(easy, CURLOPT_PROXY, ""); /* not by way of http_proxy from the environment */
    SET(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(easy, CURLOPT_HTTP_CONTENT_DECODING, 0L); /* compressed bombs stay small */
    SET(easy, CURLOPT_USERAGENT, "weir/" WEIR_VERSION);
}

static void set_tls(CURL *easy, const char *ca_file)
{
    SET(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    SET(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    SET(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    /* Sessions would be kept per handle, thousands of them; kept connections serve the same end. */
    SET(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);
    if (ca_file) {
        SET(easy, CURLOPT_CAINFO, ca_file);
        SET(easy, CURLOPT_CAPATH, NULL);
    }
}

static void set_connection(CURL *easy, struct egress_transfer *t)
{
    SET(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    SET(easy, CURLOPT_OPENSOCKETDATA, t);
    SET(easy, CURLOPT_PREREQFUNCTION, before_request);
    SET(easy, CURLOPT_PREREQDATA, t);
    SET(easy, CURLOPT_RESOLVER_START_FUNCTION, start_lookup);
    SET(easy, CURLOPT_RESOLVER_START_DATA, t);
    SET(easy, CURLOPT_NOSIGNAL, 1L);
    /* Without it, giving up on a lookup waits for its thread, and all requests of this loop with it. */
    SET(easy, CURLOPT_QUICK_EXIT, 1L);
    SET(easy, CURLOPT_DNS_CACHE_TIMEOUT, (long)DNS_KEPT_S);
    SET(easy, CURLOPT_MAXAGE_CONN, (long)CONNECTION_IDLE_S);
    SET(easy, CURLOPT_MAXLIFETIME_CONN, (long)CONNECTION_LIFE_S);
    SET(easy, CURLOPT_BUFFERSIZE, (long)READ_BUFFER_BYTES);
    SET(easy, CURLOPT_UPLOAD_BUFFERSIZE, 16L * 1024);
}

CURL *transfer_easy_new(struct egress_transfer *t)
{
    CURL *easy = curl_easy_init();
    MUST(easy);
    SET(easy, CURLOPT_PRIVATE, t);
    SET(easy, CURLOPT_ERRORBUFFER, t->curl_error);
    SET(easy, CURLOPT_HEADERFUNCTION, take_head_line);
    SET(easy, CURLOPT_HEADERDATA, t);
    SET(easy, CURLOPT_WRITEFUNCTION, take_body);
    SET(easy, CURLOPT_WRITEDATA, t);
    set_protocol(easy);
    set_tls(easy, t->egress->ca_file);
    set_connection(easy, t);
    return easy;
}

static void add_header(struct egress_transfer *t, const char *line)
{
    struct curl_slist *longer = curl_slist_append(t->headers, line);
    MUST(longer);
    t->headers = longer;
}

void transfer_easy_aim(struct egress_transfer *t, const struct egress_request *request)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    for (size_t i = 0; i < request->header_count; i++) {
        strbuf_clear(&text);
        strbuf_add_str(&text, request->headers[i]);
        add_header(t, text.ptr);
    }
    add_header(t, "Expect:");       /* no 100-continue: a second round trip for nothing */
    add_header(t, "Content-Type:"); /* curl would name a form's; the caller's own is sent all the same */
    strbuf_clear(&text);
    strbuf_add_str(&text, request->url);
    strbuf_clear(&t->body);
    strbuf_add_str(&t->body, request->body);
    SET(t->easy, CURLOPT_URL, text.ptr); /* curl copies it, but neither headers nor body */
    SET(t->easy, CURLOPT_HTTPHEADER, t->headers);
    SET(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->body.len);
    SET(t->easy, CURLOPT_POSTFIELDS, t->body.ptr ? t->body.ptr : "");
    if (request->get) /* behind the line above, which makes a POST of it */
        SET(t->easy, CURLOPT_HTTPGET, 1L);
    else
        SET(t->easy, CURLOPT_POST, 1L);
    SET(t->easy, CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
    SET(t->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)request->connect_timeout_ms);
}

/* --- failures ----------------------------------------------------------------------------------- */

static enum egress_failure failure_of(CURLcode ended)
{
    switch ((int)ended) { /* curl's list is longer than our business with it */
    case CURLE_COULDNT_RESOLVE_HOST:
        return EGRESS_DNS;
    case CURLE_COULDNT_CONNECT:
        return EGRESS_CONNECT;
    case CURLE_OPERATION_TIMEDOUT:
        return EGRESS_TIMEOUT;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
        return EGRESS_TLS;
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
        return EGRESS_CLOSED;
    }
    return EGRESS_PROTOCOL;
}

/* Curl's own words may hold addresses ("Failed to connect to 10.0.0.1 port 80"). */
static const char *plain_words(enum egress_failure failure)
{
    switch (failure) {
    case EGRESS_NONE:
        return "";
    case EGRESS_POLICY:
        return "the host's address is not allowed";
    case EGRESS_DNS:
        return "the host's name was not found";
    case EGRESS_CONNECT:
        return "nobody accepts connections there";
    case EGRESS_TIMEOUT:
        return "no complete answer in time";
    case EGRESS_CLOSED:
        return "the connection ended before the answer was complete";
    case EGRESS_TOO_LARGE:
        return "the head of the answer is too large";
    case EGRESS_CANCELLED:
        return "cancelled";
    case EGRESS_TLS:
    case EGRESS_PROTOCOL:
    case EGRESS_FAILURE_COUNT:
        break;
    }
    return NULL;
}

enum egress_failure transfer_failure(const struct egress_transfer *t, CURLcode ended,
                                     char error[EGRESS_ERROR_BYTES])
{
    enum egress_failure failure = failure_of(ended);
    if (ended == CURLE_OK) /* to curl, a connection that ends inside the head is an answer too */
        failure = t->head_done ? EGRESS_NONE : EGRESS_CLOSED;
    if (t->cut && ended == CURLE_WRITE_ERROR)
        failure = EGRESS_NONE;
    if (t->head_large ||
        (ended == CURLE_OUT_OF_MEMORY && !t->head_done)) /* curl's word for one endless line */
        failure = EGRESS_TOO_LARGE;
    if (t->lookups_full)
        failure = EGRESS_DNS;
    if (t->denied)
        failure = EGRESS_POLICY;
    const char *words = plain_words(failure);
    if (!words)
        words = *t->curl_error ? t->curl_error : curl_easy_strerror(ended);
    if (t->denied)
        snprintf(error, EGRESS_ERROR_BYTES, "%.60s: %.60s", words, t->denied);
    else
        snprintf(error, EGRESS_ERROR_BYTES, "%.120s",
                 t->lookups_full ? "too many names are being looked up" : words);
    return failure;
}
