#include "http/problem.h"

#include "base/json_members.h"

#include "base/banned.h"

/* A member besides those that every problem has. */
struct member {
    const char *key;
    const struct uuid *id;
};

static void write_problem(struct json_writer *w, const struct err *err, int status,
                          const struct uuid *request_id, const struct member *more)
{
    char instance[UUID_TEXT_LEN + 1], type[96] = "urn:weir:problem:";
    struct str prefix = str_of(type), code = str_of(err_wire(err->code));
    size_t n = code.len < sizeof type - prefix.len ? code.len : sizeof type - prefix.len;
    memcpy(type + prefix.len, code.ptr, n);
    uuid_text(request_id, instance);
    jw_object(w);
    encode_str(w, "type", (struct str){type, prefix.len + n});
    encode_text(w, "title", err_title(err->code));
    encode_int(w, "status", status);
    encode_text(w, "detail", err_told(err));
    encode_text(w, "instance", instance);
    encode_str(w, "code", code);
    if (err_advice(err->code)[0])
        encode_text(w, "advice", err_advice(err->code));
    if (more) {
        char id[UUID_TEXT_LEN + 1];
        uuid_text(more->id, id);
        encode_text(w, more->key, id);
    }
    jw_object_end(w);
}

void problem_write(struct json_writer *w, const struct err *err, const struct uuid *request_id)
{
    write_problem(w, err, err_http_status(err->code), request_id, NULL);
}

static void reply(struct http_exchange *x, int status, const struct err *err, const struct member *more)
{
    struct json_writer w;
    x->status = status;
    x->content_type = "application/problem+json";
    strbuf_clear(&x->reply_body); /* an unfinished answer, if there is one */
    jw_start(&w, &x->reply_body);
    write_problem(&w, err, status, &x->request_id, more);
    if (status == 401)
        http_reply_header(x, "WWW-Authenticate", STR("Bearer"));
    int wait_s = err->retry_after_s;
    if (!wait_s && (status == 429 || status == 503))
        wait_s = 1;
    if (wait_s)
        strbuf_addf(&x->reply_headers, "Retry-After: %d\r\n", wait_s);
}

void problem_reply_status(struct http_exchange *x, int status, const struct err *err)
{
    reply(x, status, err, NULL);
}

void problem_reply(struct http_exchange *x, const struct err *err)
{
    reply(x, err_http_status(err->code), err, NULL);
}

void problem_reply_with(struct http_exchange *x, const struct err *err, const char *key,
                        const struct uuid *id)
{
    reply(x, err_http_status(err->code), err, &(struct member){key, id});
}
