#include <stdlib.h>

#include "base/must.h"
#include "base/random.h"
#include "http/http_internal.h"
#include "http/target.h"

#include "base/banned.h"

const char *http_method_text(enum http_method m)
{
#define X(name) [HTTP_##name] = #name,
    static const char *const names[] = {HTTP_METHODS(X)};
#undef X
    MUST((unsigned)m < HTTP_METHOD_COUNT);
    return names[m];
}

/* The next exchange of connection c; counted as busy until it is given back. */
struct exchange *exchange_take(struct http_conn *c)
{
    struct http_loop *l = c->loop;
    struct exchange *ex = l->pool;
    if (ex) {
        l->pool = ex->next;
        l->pool_count--;
    } else {
        ex = must_alloc(sizeof *ex);
        ex->pub.arena = arena_new(ARENA_FIRST_BYTES);
    }
    struct http_exchange *x = &ex->pub;
    x->loop = l;
    x->conn = c;
    x->context = l->server->config.context;
    x->method = HTTP_OTHER;
    x->peer = c->peer;
    x->over_unix_socket = c->over_unix_socket;
    x->peer_is_loopback = c->peer_is_loopback;
    x->request_id = uuid_v4();
    c->x = ex;
    conn_idle(c, PEERS_NOT_IDLE);
    count_add(&l->busy_count, 1);
    return ex;
}

static void buffer_reuse(struct strbuf *b)
{
    if (b->cap > POOLED_BUFFER_BYTES_MAX)
        strbuf_free(b);
    else
        strbuf_clear(b);
}

static struct exchange *exchange_free(struct exchange *ex)
{
    arena_free(ex->pub.arena);
    strbuf_free(&ex->pub.reply_headers);
    strbuf_free(&ex->pub.reply_body);
    strbuf_free(&ex->out);
    strbuf_free(&ex->body_in);
    free(ex);
    return NULL;
}

/* Memory is kept, everything said in the last exchange is forgotten. */
static void exchange_forget(struct exchange *ex)
{
    buffer_reuse(&ex->pub.reply_headers);
    buffer_reuse(&ex->pub.reply_body);
    buffer_reuse(&ex->out);
    buffer_reuse(&ex->body_in);
    arena_reset(ex->pub.arena);
    struct exchange kept = {
        .pub = {.arena = ex->pub.arena,
                .reply_headers = ex->pub.reply_headers,
                .reply_body = ex->pub.reply_body},
        .out = ex->out,
        .body_in = ex->body_in,
    };
    memcpy(ex, &kept, sizeof kept);
}

void exchange_give_back(struct http_loop *l, struct exchange *ex)
{
    heavy_ends(l, ex);
    unsent_ends(ex);
    held_by_exchange(ex, 0);
    if (ex->pub.server_state != EXCHANGE_STREAM || ex->held) /* a stream left the count when it began */
        count_add(&l->busy_count, -1);
    if (l->pool_count == POOLED_EXCHANGES_MAX) {
        exchange_free(ex);
        return;
    }
    exchange_forget(ex);
    ex->next = l->pool;
    l->pool = ex;
    l->pool_count++;
}

void exchange_pool_free(struct http_loop *l)
{
    while (l->pool) {
        struct exchange *ex = l->pool;
        l->pool = ex->next;
        exchange_free(ex);
    }
    l->pool_count = 0;
}

void exchange_list_add(struct exchange **list, struct exchange *ex)
{
    ex->prev = NULL;
    ex->next = *list;
    if (ex->next)
        ex->next->prev = ex;
    *list = ex;
}

void exchange_list_remove(struct exchange **list, struct exchange *ex)
{
    if (ex->prev)
        ex->prev->next = ex->next;
    else
        *list = ex->next;
    if (ex->next)
        ex->next->prev = ex->prev;
    ex->next = ex->prev = NULL;
}

struct str http_header(const struct http_exchange *x, const char *name)
{
    struct str wanted = str_of(name);
    for (uint32_t i = 0; i < x->header_count; i++)
        if (str_equal_nocase(x->headers[i].name, wanted))
            return x->headers[i].value;
    return STR_ABSENT;
}

enum err_code http_query(struct http_exchange *x, const char *name, struct str *ret_value, struct err *err)
{
    return target_query(x->arena, x->query, str_of(name), ret_value, err);
}

void http_reply_header(struct http_exchange *x, const char *name, struct str value)
{
    strbuf_add_text(&x->reply_headers, name);
    strbuf_add(&x->reply_headers, ": ", 2);
    for (size_t i = 0; i < value.len; i++) {
        char c = value.ptr[i];
        bool control = (unsigned char)c < 0x20 || c == 0x7F; /* would end the line, or worse */
        strbuf_add_char(&x->reply_headers, control ? ' ' : c);
    }
    strbuf_add(&x->reply_headers, "\r\n", 2);
}

void http_answer(struct http_exchange *x)
{
    /* Sent when the callback has returned: until then the handler may still look at its exchange. */
    MUST(x->status >= 200 && x->status <= 599);
    if (exchange_of(x)->held) {
        stream_answer_held(exchange_of(x));
        return;
    }
    MUST(x->server_state == EXCHANGE_RUNNING);
    x->server_state = EXCHANGE_ANSWERED;
}

void http_resume(struct http_exchange *x)
{
    struct http_loop *l = x->loop;
    struct http_exchange *first = atomic_load_explicit(&l->resumed, memory_order_relaxed);
    do
        x->next_resumed = first;
    while (!atomic_compare_exchange_weak(&l->resumed, &first, x));
}
