/* The YAML file: a tree of maps whose leaves are settings.
 *
 * Read event by event, so every fault knows its line. Anchors, aliases and a second document are
 * refused: a settings file has no use for them, and they are how small files become large. */
#include <errno.h>
#include <stdlib.h>
#include <yaml.h>

#include "base/must.h"
#include "config/settings_internal.h"

#include "base/banned.h"

enum { FILE_BYTES_MAX = 1024 * 1024, KEY_MAX = 128, PARTS_MAX = 4 };

struct reader {
    yaml_parser_t yaml;
    struct settings *settings;
    const char *name;
    size_t set_in_line[SETTING_COUNT]; /* 0: not yet; a key twice in one file is a mistake */
    char where[160];                   /* "weir.yaml:12: " of the event in hand */
    struct err *err;
};

static void event_delete(yaml_event_t *event)
{
    yaml_event_delete(event);
}

static void point_at(struct reader *r, size_t line)
{
    snprintf(r->where, sizeof r->where, "%.128s:%zu: ", r->name, line + 1);
}

static enum err_code next_event(struct reader *r, yaml_event_t *ret_event)
{
    yaml_event_delete(ret_event);
    if (!yaml_parser_parse(&r->yaml, ret_event)) {
        point_at(r, r->yaml.problem_mark.line);
        return err_set(r->err, ERR_CONFIG_INVALID, "%snot valid YAML: %s", r->where,
                       r->yaml.problem ? r->yaml.problem : "unreadable");
    }
    point_at(r, ret_event->start_mark.line);
    bool anchored = ret_event->type == YAML_ALIAS_EVENT ||
                    (ret_event->type == YAML_SCALAR_EVENT && ret_event->data.scalar.anchor) ||
                    (ret_event->type == YAML_SEQUENCE_START_EVENT && ret_event->data.sequence_start.anchor) ||
                    (ret_event->type == YAML_MAPPING_START_EVENT && ret_event->data.mapping_start.anchor);
    if (anchored)
        return err_set(r->err, ERR_CONFIG_INVALID, "%sanchors and aliases are not allowed here", r->where);
    return ERR_OK;
}

static struct str scalar_text(const yaml_event_t *event)
{
    return (struct str){(const char *)event->data.scalar.value, event->data.scalar.length};
}

/* Nothing, `~` and `null` without quotes mean "no value". */
static struct str scalar_value(const yaml_event_t *event)
{
    struct str text = scalar_text(event);
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    return plain && (str_is(text, "~") || str_is(text, "null")) ? STR("") : text;
}

static enum err_code note_line(struct reader *r, const struct setting *d, size_t line)
{
    size_t *first = &r->set_in_line[d - settings_table];
    if (*first)
        return err_set(r->err, ERR_CONFIG_INVALID, "%s%s is set twice, first in line %zu", r->where, d->key,
                       *first);
    *first = line + 1;
    return ERR_OK;
}

/* A sequence for a key that takes a comma list. The start event is already read. */
static enum err_code read_list(struct reader *r, const struct setting *d, struct strbuf *ret_list)
{
    yaml_event_t event CLEANUP(event_delete) = {0};
    for (;;) {
        enum err_code code = next_event(r, &event);
        if (code)
            return code;
        if (event.type == YAML_SEQUENCE_END_EVENT)
            return ERR_OK;
        if (event.type != YAML_SCALAR_EVENT)
            return err_set(r->err, ERR_CONFIG_INVALID, "%s%s must be a list of plain values", r->where,
                           d->key);
        struct str item = scalar_text(&event);
        if (!item.len || memchr(item.ptr, ',', item.len))
            return err_set(r->err, ERR_CONFIG_INVALID, "%s%s has an item that is empty or has a comma in it",
                           r->where, d->key);
        if (ret_list->len)
            strbuf_add_char(ret_list, ',');
        strbuf_add_str(ret_list, item);
        if (ret_list->len > SETTING_TEXT_MAX)
            return err_set(r->err, ERR_CONFIG_INVALID, "%s%s is longer than %d bytes", r->where, d->key,
                           SETTING_TEXT_MAX);
    }
}

static enum err_code read_leaf(struct reader *r, const struct setting *d, const yaml_event_t *value)
{
    enum err_code code = note_line(r, d, value->start_mark.line);
    if (code)
        return code;
    if (value->type == YAML_SCALAR_EVENT)
        return setting_assign(r->settings, d, scalar_value(value), ORIGIN_FILE, r->where, r->err);
    if (value->type != YAML_SEQUENCE_START_EVENT || !setting_is_list(d))
        return err_set(r->err, ERR_CONFIG_INVALID, "%s%s must be one value, got a %s", r->where, d->key,
                       value->type == YAML_SEQUENCE_START_EVENT ? "list" : "map");
    char where[sizeof r->where];
    memcpy(where, r->where, sizeof where); /* the items move it */
    struct strbuf list CLEANUP(strbuf_free) = {0};
    code = read_list(r, d, &list);
    if (code)
        return code;
    return setting_assign(r->settings, d, strbuf_str(&list), ORIGIN_FILE, where, r->err);
}

static enum err_code read_map(struct reader *r, struct str prefix, int depth);

/* The value behind `key`, which is the full dotted name. */
static enum err_code read_value(struct reader *r, struct str key, int depth)
{
    char key_where[sizeof r->where];
    memcpy(key_where, r->where, sizeof key_where);
    yaml_event_t value CLEANUP(event_delete) = {0};
    enum err_code code = next_event(r, &value);
    if (code)
        return code;
    const struct setting *d = setting_find(key);
    if (d)
        return read_leaf(r, d, &value);
    if (!setting_is_section(key))
        return setting_unknown(key, key_where, r->err);
    if (value.type == YAML_MAPPING_START_EVENT)
        return read_map(r, key, depth + 1);
    if (value.type == YAML_SCALAR_EVENT && scalar_value(&value).len == 0)
        return ERR_OK; /* a section whose lines are all commented out */
    return err_set(r->err, ERR_CONFIG_INVALID, "%s%.*s is a section; set its keys below it", key_where,
                   STR_ARG(key));
}

/* Members up to the end of a map whose start is already read. */
static enum err_code read_map(struct reader *r, struct str prefix, int depth)
{
    MUST(depth <= PARTS_MAX); /* only sections of known keys lead deeper */
    for (;;) {
        yaml_event_t name CLEANUP(event_delete) = {0};
        enum err_code code = next_event(r, &name);
        if (code || name.type == YAML_MAPPING_END_EVENT)
            return code;
        if (name.type != YAML_SCALAR_EVENT)
            return err_set(r->err, ERR_CONFIG_INVALID, "%sa key must be plain text", r->where);
        struct str part = scalar_text(&name);
        char key[KEY_MAX];
        int n =
            snprintf(key, sizeof key, "%.*s%s%.*s", STR_ARG(prefix), prefix.len ? "." : "", STR_ARG(part));
        if (n < 0 || (size_t)n >= sizeof key || memchr(part.ptr, 0, part.len))
            return setting_unknown(part, r->where, r->err);
        code = read_value(r, (struct str){key, (size_t)n}, depth);
        if (code)
            return code;
    }
}

static enum err_code read_stream(struct reader *r)
{
    yaml_event_t event CLEANUP(event_delete) = {0};
    bool seen = false;
    for (;;) {
        enum err_code code = next_event(r, &event);
        if (code || event.type == YAML_STREAM_END_EVENT)
            return code;
        if (event.type == YAML_DOCUMENT_START_EVENT && seen)
            return err_set(r->err, ERR_CONFIG_INVALID, "%sa second document is not allowed here", r->where);
        if (event.type == YAML_STREAM_START_EVENT || event.type == YAML_DOCUMENT_START_EVENT ||
            event.type == YAML_DOCUMENT_END_EVENT)
            continue;
        seen = true;
        if (event.type == YAML_SCALAR_EVENT && scalar_value(&event).len == 0)
            continue; /* a file of comments */
        if (event.type != YAML_MAPPING_START_EVENT)
            return err_set(r->err, ERR_CONFIG_INVALID,
                           "%sexpected lines such as `server.listen: "
                           "127.0.0.1:8080`",
                           r->where);
        code = read_map(r, STR(""), 0);
        if (code)
            return code;
    }
}

enum err_code settings_load_text(struct settings *s, const char *name, struct str text, struct err *err)
{
    struct reader r = {.settings = s, .name = name, .err = err};
    MUST(yaml_parser_initialize(&r.yaml));
    yaml_parser_set_input_string(&r.yaml, (const unsigned char *)text.ptr, text.len);
    enum err_code code = read_stream(&r);
    yaml_parser_delete(&r.yaml);
    return code;
}

static void file_close(FILE **f)
{
    if (*f)
        fclose(*f);
}

enum err_code settings_load_file(struct settings *s, const char *path, struct err *err)
{
    FILE *f CLEANUP(file_close) = fopen(path, "re");
    if (!f)
        return err_set(err, ERR_CONFIG_INVALID, "%.180s: %s", path, strerror(errno));
    struct strbuf text CLEANUP(strbuf_free) = {0};
    char chunk[4096];
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, f)) > 0;) {
        strbuf_add(&text, chunk, n);
        if (text.len > FILE_BYTES_MAX)
            return err_set(err, ERR_CONFIG_INVALID, "%.180s: larger than %d bytes", path, FILE_BYTES_MAX);
    }
    if (ferror(f))
        return err_set(err, ERR_CONFIG_INVALID, "%.180s: %s", path, strerror(errno));
    return settings_load_text(s, path, text.ptr ? strbuf_str(&text) : STR(""), err);
}
