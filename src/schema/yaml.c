/* YAML into the JSON tree. libyaml reads; YAML that has no form in JSON is refused. */
#include "schema/openapi.h"

#include <yaml.h>

#include "base/banned.h"

struct reader {
    yaml_parser_t parser;
    struct arena *arena;
    struct err *err;
    unsigned depth;
};

static enum err_code fail(struct reader *r, yaml_mark_t mark, const char *what)
{
    return err_set(r->err, ERR_CONFIG_INVALID, "line %zu, column %zu: %s", mark.line + 1, mark.column + 1,
                   what);
}

static enum err_code next_event(struct reader *r, yaml_event_t *event)
{
    if (yaml_parser_parse(&r->parser, event))
        return ERR_OK;
    return fail(r, r->parser.problem_mark, r->parser.problem ? r->parser.problem : "cannot be read as YAML");
}

/* Gives a plain scalar the type that JSON would give it. */
static void resolve_plain(struct reader *r, struct json *j)
{
    struct err ignored;
    const struct json *value;
    struct str text = j->text;
    if (!text.len || str_is(text, "~")) {
        j->type = JSON_NULL;
    } else if (strchr("-0123456789tfn", text.ptr[0]) &&
               json_parse(r->arena, text, &value, &ignored) == ERR_OK) {
        j->type = value->type;
    }
    if (j->type != JSON_STRING && j->type != JSON_NUMBER)
        j->text = STR_ABSENT;
}

static enum err_code read_scalar(struct reader *r, const yaml_event_t *event, struct json *j)
{
    j->type = JSON_STRING;
    j->text.ptr = arena_copy(r->arena, event->data.scalar.value, event->data.scalar.length);
    j->text.len = event->data.scalar.length;
    if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        resolve_plain(r, j);
    return ERR_OK;
}

static enum err_code read_value(struct reader *r, const yaml_event_t *event, struct json *j);

/* Takes the next event; *ret_end when it closes the container, else the value is read into *j. */
static enum err_code read_next(struct reader *r, yaml_event_type_t end, struct json *j, bool *ret_end)
{
    yaml_event_t event;
    enum err_code code = next_event(r, &event);
    if (code != ERR_OK)
        return code;
    *ret_end = event.type == end;
    if (!*ret_end)
        code = read_value(r, &event, j);
    yaml_event_delete(&event);
    return code;
}

static bool has_key(const struct json *object, struct str key)
{
    for (const struct json *j = object->child; j; j = j->next)
        if (str_equal(j->key, key))
            return true;
    return false;
}

static enum err_code read_key(struct reader *r, const struct json *object, struct str *ret_key, bool *ret_end)
{
    yaml_event_t event;
    enum err_code code = next_event(r, &event);
    if (code != ERR_OK)
        return code;
    *ret_end = event.type == YAML_MAPPING_END_EVENT;
    if (!*ret_end) {
        struct json name = {0};
        if (event.type != YAML_SCALAR_EVENT || event.data.scalar.anchor || event.data.scalar.tag) {
            code = fail(r, event.start_mark, "a key must be a plain name");
        } else {
            name.text.len = event.data.scalar.length;
            name.text.ptr = arena_copy(r->arena, event.data.scalar.value, name.text.len);
            *ret_key = name.text;
            if (has_key(object, name.text))
                code = fail(r, event.start_mark, "this key was there before");
        }
    }
    yaml_event_delete(&event);
    return code;
}

/* Elements of a sequence or members of a mapping, up to its end. */
static enum err_code read_children(struct reader *r, struct json *container, yaml_mark_t mark)
{
    bool object = container->type == JSON_OBJECT, end = false;
    struct json *last = NULL;
    if (++r->depth > JSON_DEPTH_MAX)
        return fail(r, mark, "nested too deep");
    for (;;) {
        struct str key = STR_ABSENT;
        enum err_code code = object ? read_key(r, container, &key, &end) : ERR_OK;
        if (code != ERR_OK || end)
            return r->depth--, code;
        struct json *j = ARENA_NEW(r->arena, struct json);
        code = read_next(r, object ? YAML_NO_EVENT : YAML_SEQUENCE_END_EVENT, j, &end);
        if (code != ERR_OK || end)
            return r->depth--, code;
        j->key = key;
        if (last)
            last->next = j;
        else
            container->child = j;
        last = j;
        container->count++;
    }
}

static enum err_code read_value(struct reader *r, const yaml_event_t *event, struct json *j)
{
    const unsigned char *anchor = NULL, *tag = NULL;
    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
        j->type = JSON_ARRAY;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
        j->type = JSON_OBJECT;
    } else {
        return fail(r, event->start_mark, "expected a value; aliases are not supported");
    }
    if (anchor || tag)
        return fail(r, event->start_mark, "anchors and tags are not supported");
    if (event->type == YAML_SCALAR_EVENT)
        return read_scalar(r, event, j);
    return read_children(r, j, event->start_mark);
}

static enum err_code expect(struct reader *r, yaml_event_type_t type, const char *what)
{
    yaml_event_t event;
    enum err_code code = next_event(r, &event);
    if (code != ERR_OK)
        return code;
    if (event.type != type)
        code = fail(r, event.start_mark, what);
    yaml_event_delete(&event);
    return code;
}

static enum err_code read_document(struct reader *r, const struct json **ret_root)
{
    bool end;
    struct json *root = ARENA_NEW(r->arena, struct json);
    enum err_code code = expect(r, YAML_STREAM_START_EVENT, "expected YAML");
    if (code == ERR_OK)
        code = expect(r, YAML_DOCUMENT_START_EVENT, "expected a document");
    if (code == ERR_OK)
        code = read_next(r, YAML_NO_EVENT, root, &end);
    if (code == ERR_OK)
        code = expect(r, YAML_DOCUMENT_END_EVENT, "expected the end of the document");
    if (code == ERR_OK)
        code = expect(r, YAML_STREAM_END_EVENT, "only one document is supported");
    if (code == ERR_OK)
        *ret_root = root;
    return code;
}

enum err_code yaml_to_json(struct arena *a, struct str yaml, const struct json **ret_root, struct err *err)
{
    struct reader r = {.arena = a, .err = err};
    if (!yaml_parser_initialize(&r.parser))
        return err_set(err, ERR_INTERNAL, "no memory to read YAML");
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)(yaml.ptr ? yaml.ptr : ""), yaml.len);
    enum err_code code = read_document(&r, ret_root);
    yaml_parser_delete(&r.parser);
    return code;
}
