#include "cli/flags.h"

#include "base/must.h"
#include "cli/suggest.h"

#include "base/banned.h"

const struct flag flag_table[FLAG_COUNT] = {
#define X(id, name, short_form, value, help) [FLAG_##id] = {name, short_form, value, help},
    FLAG_LIST(X)
#undef X
};

static const char *const flag_names[FLAG_COUNT] = {
#define X(id, name, short_form, value, help) [FLAG_##id] = name,
    FLAG_LIST(X)
#undef X
};

enum { SHOWN_MAX = 60 };

/* Where a flag has another value or sense than in general. The first line that fits counts; a command is
 * named by its beginning. */
static const struct {
    const char *command;
    enum flag_id id;
    const char *value, *help;
} particular[] = {
    {"client key", FLAG_QUEUE, "NAME[,NAME]", "jobs and tasks of these queues only; default every queue"},
    {"job cancel", FLAG_LIMIT, "N", "jobs at most; default all that match"},
    {"job retry", FLAG_LIMIT, "N", "jobs at most; default all that match"},
    {"queue list", FLAG_LIMIT, "N", "queues on a page, 1 to 1000; default 1000"},
    {"queue set", FLAG_RETRY, "auto|manual|none", "who retries a failed job that does not say"},
    {"queue set", FLAG_MAX_RETRIES, "N|none", "how often, at most jobs.retry_max"},
    {"queue set", FLAG_QUEUE_TTL, "SECONDS|none",
     "a job that nobody claims for so long is CANCELED, expired"},
    {"queue set", FLAG_RETENTION, "SECONDS|none", "finished jobs leave so long after their end"},
    {"run get", FLAG_AT, "SEQ", "the run as of this record; 0 is before the first"},
    {"run events", FLAG_AFTER, "SEQ", "only records behind this one"},
    {"run events", FLAG_FOLLOW, NULL, "wait for more, until the run ends"},
    {"run events", FLAG_LIMIT, "N", "records at most, 1 to 1000; default all"},
    {"run list", FLAG_STATE, "STATUS", "PENDING, RUNNING, PAUSED, COMPLETED, FAILED or CANCELLED"},
    {"run list", FLAG_PROJECT, "P", "only runs of this project"},
    {"run start", FLAG_PROJECT, "P", "project of the run; default `default`"},
    {"run start", FLAG_WAIT, NULL, "wait until the run has ended, then show it"},
    {"run signal", FLAG_PAYLOAD, "JSON", "the payload as a whole; @FILE reads a file, - reads stdin"},
    {"run signal", FLAG_PARAMS, "JSON", "of update-params: merged into the run's"},
    {"run signal", FLAG_FORCE, NULL, "of retry-step, retry-run and emergency-stop (forceKill)"},
    {"run signal", FLAG_REASON, "TEXT", "why; kept in the record; destructive signals need one"},
    {"run approve", FLAG_REASON, "TEXT", "why; kept in the record"},
    {"run reject", FLAG_REASON, "TEXT", "why; kept in the record"},
    {"run ", FLAG_LIMIT, "N", "rows on a page, 1 to 200; default 50"},
    {"run ", FLAG_SUB, "NAME", "who acts, in a token made here; default the user's name"},
    {"run ", FLAG_ROLE, "ROLE[,ROLE]", "its role in a token made here; default Admin"},
    {"run ", FLAG_TENANT, "TENANT", "its tenant in a token made here; default `default`"},
};

struct flag flag_of_command(enum flag_id id, const char *command)
{
    struct flag f = flag_table[id];
    for (size_t i = 0; i < LENGTH_OF(particular); i++)
        if (particular[i].id == id && str_starts(str_of(command), particular[i].command)) {
            f.value = particular[i].value;
            f.help = particular[i].help;
            break;
        }
    return f;
}

int flag_find(struct str name)
{
    for (int i = 0; i < FLAG_COUNT; i++)
        if (str_is(name, flag_table[i].name))
            return i;
    return -1;
}

static int find_short(char c)
{
    for (int i = 0; i < FLAG_COUNT; i++)
        if (c && flag_table[i].short_form == c)
            return i;
    return -1;
}

static enum err_code unknown_flag(struct flags *f, struct str text, struct str name, struct err *err)
{
    f->unknown = name;
    const char *near = suggest_nearest(name, flag_names, FLAG_COUNT);
    return err_set(err, ERR_CONFIG_INVALID, "unknown flag %.*s%s%s%s",
                   (int)(text.len < SHOWN_MAX ? text.len : SHOWN_MAX), text.ptr,
                   near ? "; did you mean --" : "", near ? near : "", near ? "?" : "");
}

static enum err_code add_set(struct flags *f, const char *value, struct err *err)
{
    if (!strchr(value, '=') || value[0] == '=')
        return err_set(err, ERR_CONFIG_INVALID, "--set needs KEY=VALUE, not \"%.60s\"", value);
    if (f->set_count == FLAG_SETS_MAX)
        return err_set(err, ERR_CONFIG_INVALID, "--set may be given %d times; use --config FILE",
                       FLAG_SETS_MAX);
    f->sets[f->set_count++] = value;
    f->value[FLAG_SET] = value;
    return ERR_OK;
}

static enum err_code check_value(enum flag_id id, const char *value, struct err *err)
{
    if (id == FLAG_OUTPUT && strcmp(value, "table") != 0 && strcmp(value, "json") != 0)
        return err_set(err, ERR_CONFIG_INVALID, "--output must be table or json, not \"%.40s\"", value);
    return ERR_OK;
}

/* `attached` is what stands behind '=' or behind a short form, or NULL. */
static enum err_code take(struct flags *f, enum flag_id id, const char *attached, int argc, char **argv,
                          int *at, struct err *err)
{
    const struct flag *flag = &flag_table[id];
    if (!flag->value) {
        if (attached)
            return err_set(err, ERR_CONFIG_INVALID, "--%s takes no value", flag->name);
        f->value[id] = "";
        return ERR_OK;
    }
    if (!attached) {
        bool another = *at + 1 < argc && strncmp(argv[*at + 1], "--", 2) == 0;
        if (*at + 1 >= argc || another)
            return err_set(err, ERR_CONFIG_INVALID, "--%s needs a value: --%s %s", flag->name, flag->name,
                           flag->value);
        attached = argv[++*at];
    }
    if (id == FLAG_SET)
        return add_set(f, attached, err);
    f->value[id] = attached;
    return check_value(id, attached, err);
}

static enum err_code parse_long(struct flags *f, int argc, char **argv, int *at, struct err *err)
{
    const char *text = argv[*at];
    const char *equals = strchr(text, '=');
    struct str name = {text + 2, equals ? (size_t)(equals - text) - 2 : strlen(text) - 2};
    int id = flag_find(name);
    if (id < 0)
        return unknown_flag(f, (struct str){text, name.len + 2}, name, err);
    return take(f, (enum flag_id)id, equals ? equals + 1 : NULL, argc, argv, at, err);
}

static enum err_code parse_short(struct flags *f, int argc, char **argv, int *at, struct err *err)
{
    const char *text = argv[*at];
    int id = find_short(text[1]);
    if (id < 0)
        return unknown_flag(f, str_of(text), str_of(text + 1), err);
    const char *attached = text[2] == '=' ? text + 3 : text[2] ? text + 2 : NULL;
    return take(f, (enum flag_id)id, attached, argc, argv, at, err);
}

enum err_code flags_parse(int argc, char **argv, struct flags *ret_flags, struct err *err)
{
    struct flags *f = ret_flags;
    bool flags_ended = false;
    *f = (struct flags){0};
    for (int i = 1; i < argc; i++) {
        const char *text = argv[i];
        enum err_code code = ERR_OK;
        if (!flags_ended && strcmp(text, "--") == 0)
            flags_ended = true;
        else if (!flags_ended && strncmp(text, "--", 2) == 0)
            code = parse_long(f, argc, argv, &i, err);
        else if (!flags_ended && text[0] == '-' && text[1])
            code = parse_short(f, argc, argv, &i, err);
        else if (f->word_count < FLAG_WORDS_MAX)
            f->words[f->word_count++] = text;
        else
            code = err_set(err, ERR_CONFIG_INVALID, "too many arguments");
        if (code)
            return code;
    }
    return ERR_OK;
}

flag_set flags_given(const struct flags *f)
{
    flag_set given = 0;
    for (int i = 0; i < FLAG_COUNT; i++)
        if (f->value[i])
            given |= (flag_set)1 << i;
    return given;
}

enum err_code flags_int(const struct flags *f, enum flag_id id, int64_t min, int64_t max, int64_t *ret,
                        struct err *err)
{
    if (!f->value[id] || str_to_int(str_of(f->value[id]), min, max, ret))
        return ERR_OK;
    return err_set(err, ERR_CONFIG_INVALID, "--%s must be an integer from %lld to %lld, not \"%.40s\"",
                   flag_table[id].name, (long long)min, (long long)max, f->value[id]);
}

/* One number and its unit, cut off `rest`; a unit has to be smaller than `below_ms`. 0: there is none. */
static int64_t take_part(struct str *rest, int64_t below_ms, int64_t *ret_ms)
{
    static const struct {
        const char *unit;
        int64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    enum { DIGITS_MAX = 11 };
    size_t digits = 0, letters = 0;
    int64_t number;
    while (digits < rest->len && rest->ptr[digits] >= '0' && rest->ptr[digits] <= '9')
        digits++;
    while (digits + letters < rest->len && rest->ptr[digits + letters] >= 'a' &&
           rest->ptr[digits + letters] <= 'z')
        letters++;
    struct str unit = {rest->ptr + digits, letters};
    if (digits > DIGITS_MAX || !str_to_int((struct str){rest->ptr, digits}, 0, INT64_MAX, &number))
        return 0;
    for (size_t i = 0; i < LENGTH_OF(units); i++)
        if (str_is(unit, units[i].unit) && units[i].ms < below_ms) {
            *rest = (struct str){rest->ptr + digits + letters, rest->len - digits - letters};
            *ret_ms = number * units[i].ms;
            return units[i].ms;
        }
    return 0;
}

bool duration_parse(struct str text, int64_t *ret_ms)
{
    const int64_t year_ms = INT64_C(366) * 24 * 3600 * 1000;
    int64_t seconds, sum_ms = 0, part_ms, unit_ms = INT64_MAX;
    if (str_to_int(text, 0, year_ms / 1000, &seconds) && text.ptr[0] != '-') {
        *ret_ms = seconds * 1000;
        return true;
    }
    for (struct str rest = text; rest.len || !text.len; sum_ms += part_ms)
        if (!(unit_ms = take_part(&rest, unit_ms, &part_ms)))
            return false;
    *ret_ms = sum_ms;
    return sum_ms <= year_ms;
}
