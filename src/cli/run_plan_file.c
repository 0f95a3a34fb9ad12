/* A plan in a file: JSON, or YAML, in which ids and versions that look like numbers are meant as text. */
#include "base/must.h"
#include "cli/json_argument.h"
#include "cli/run_internal.h"
#include "schema/openapi.h"

#include "base/banned.h"

/* How a value of the YAML is written as JSON. */
enum sense {
    SENSE_PLAN,  /* by the names of its members */
    SENSE_TEXT,  /* a number is a text that looks like one */
    SENSE_AS_IS, /* a step's config is for its worker only */
};

static enum sense sense_of(struct str key)
{
    static const char *const texts[] = {"planId", "planVersion", "stepId", "dependsOn", "queue"};
    for (size_t i = 0; i < LENGTH_OF(texts); i++)
        if (str_is(key, texts[i]))
            return SENSE_TEXT;
    return str_is(key, "config") ? SENSE_AS_IS : SENSE_PLAN;
}

static void write_value(struct json_writer *w, const struct json *j, enum sense sense);

static void write_children(struct json_writer *w, const struct json *j, enum sense sense)
{
    for (const struct json *child = j->child; child; child = child->next) {
        bool member = j->type == JSON_OBJECT;
        if (member)
            jw_key_str(w, child->key);
        write_value(w, child, member && sense == SENSE_PLAN ? sense_of(child->key) : sense);
    }
}

static void write_value(struct json_writer *w, const struct json *j, enum sense sense)
{
    switch (j->type) {
    case JSON_NULL:
        jw_null(w);
        break;
    case JSON_FALSE:
    case JSON_TRUE:
        jw_bool(w, j->type == JSON_TRUE);
        break;
    case JSON_NUMBER:
        if (sense == SENSE_TEXT)
            jw_str(w, j->text);
        else
            jw_raw(w, j->text);
        break;
    case JSON_STRING:
        jw_str(w, j->text);
        break;
    case JSON_ARRAY:
        jw_array(w);
        write_children(w, j, sense);
        jw_array_end(w);
        break;
    case JSON_OBJECT:
        jw_object(w);
        write_children(w, j, sense);
        jw_object_end(w);
        break;
    }
}

static enum err_code convert(struct arena *a, const char *name, struct str text, struct strbuf *out,
                             struct err *err)
{
    const struct json *root;
    struct err json_fault, yaml_fault;
    if (json_parse(a, text, &root, &json_fault) == ERR_OK && root->type == JSON_OBJECT) {
        strbuf_add_str(out, text);
        return ERR_OK;
    }
    bool braced = text.len && text.ptr[0] == '{';
    if (yaml_to_json(a, text, &root, &yaml_fault) != ERR_OK)
        return err_set(err, ERR_CONFIG_INVALID, "%.80s: %.160s", name,
                       braced ? json_fault.detail : yaml_fault.detail);
    if (root->type != JSON_OBJECT)
        return err_set(err, ERR_CONFIG_INVALID,
                       "%.80s holds no plan: planId, planVersion and steps are expected", name);
    struct json_writer w;
    jw_start(&w, out);
    write_value(&w, root, SENSE_PLAN);
    return ERR_OK;
}

enum err_code run_plan_file(const char *path, struct strbuf *out, struct err *err)
{
    struct strbuf text CLEANUP(strbuf_free) = {0};
    enum err_code code = file_argument_read(path, &text, err);
    if (code != ERR_OK)
        return code;
    struct arena *a = arena_new(65536);
    code = convert(a, strcmp(path, "-") == 0 ? "stdin" : path, strbuf_str(&text), out, err);
    arena_free(a);
    return code;
}
