/* How a command line becomes one of the commands. */
#include "cli/cli.h"

#include <stdarg.h>
#include <unistd.h>

#include "base/must.h"
#include "cli/command.h"
#include "cli/suggest.h"

#include "base/banned.h"

void cli_fault(const char *fmt, ...)
{
    va_list ap;
    fflush(stdout); /* so that on a terminal the answer comes first */
    fputs("weir: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

void cli_note(const struct invocation *in, const char *fmt, ...)
{
    va_list ap;
    if (in->quiet)
        return;
    fflush(stdout);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

int cli_err(const struct err *err)
{
    cli_fault("%s", err->detail);
    return (int)exit_code_of_err(err->code);
}

static size_t words_in(const char *name)
{
    size_t n = 1;
    for (; *name; name++)
        n += *name == ' ';
    return n;
}

struct str command_head(const char *name, size_t words_wanted)
{
    size_t len = 0;
    for (size_t seen = 0; name[len]; len++)
        if (name[len] == ' ' && ++seen == words_wanted)
            break;
    return (struct str){name, len};
}

/* A command keeps its former name as an alias. */
static const char *present_name(const char *word)
{
    return strcmp(word, "simulate") == 0 ? "traffic" : word;
}

/* How many of the words stand at the beginning of the command's name, one behind the other. */
static size_t words_shared(const char *name, const char *const *words, size_t count)
{
    struct str rest = str_of(name);
    size_t n = 0;
    while (n < count && rest.len && str_is(str_cut(&rest, ' '), present_name(words[n])))
        n++;
    return n;
}

const struct command *command_find(const char *const *words, size_t count, size_t *ret_used)
{
    const struct command *best = NULL;
    size_t best_used = 0;
    EACH_COMMAND (c) {
        size_t all = words_in(c->name);
        if (all > best_used && words_shared(c->name, words, count) == all) {
            best = c;
            best_used = all;
        }
    }
    *ret_used = best_used;
    return best;
}

int command_refuse(const char *const *words, size_t count)
{
    const char *candidates[COMMANDS_MAX];
    char texts[COMMANDS_MAX][SUGGEST_WORD_MAX];
    size_t depth = 0, n = 0;
    EACH_COMMAND (c) {
        size_t shared = words_shared(c->name, words, count);
        depth = shared > depth ? shared : depth;
    }
    if (depth == count) { /* "weir job": a noun alone */
        help_print(stderr, words, count);
        return CLI_USAGE;
    }
    EACH_COMMAND (c) {
        if (words_shared(c->name, words, count) != depth || words_in(c->name) <= depth)
            continue;
        struct str head = command_head(c->name, depth + 1);
        size_t skip = depth ? command_head(c->name, depth).len + 1 : 0;
        MUST(n < COMMANDS_MAX);
        snprintf(texts[n], sizeof texts[n], "%.*s", (int)(head.len - skip), head.ptr + skip);
        candidates[n] = texts[n];
        n++;
    }
    const char *near = suggest_nearest(str_of(words[depth]), candidates, n);
    fputs("weir: unknown command \"weir", stderr);
    for (size_t i = 0; i <= depth; i++)
        fprintf(stderr, " %.40s", words[i]);
    fputs("\"", stderr);
    if (near) {
        fputs("; did you mean \"weir", stderr);
        for (size_t i = 0; i < depth; i++)
            fprintf(stderr, " %s", words[i]);
        fprintf(stderr, " %s\"?", near);
    } else {
        fputs("; `weir help` lists them all", stderr);
    }
    fputc('\n', stderr);
    return CLI_USAGE;
}

/* The command has no such flag: says which one of its own was probably meant; gives CLI_USAGE. */
static int refuse_flag(const struct command *c, struct str name)
{
    const char *own[FLAG_COUNT];
    size_t count = 0;
    for (int i = 0; i < FLAG_COUNT; i++)
        if ((c->flags | FLAGS_COMMON) & (flag_set)1 << i)
            own[count++] = flag_table[i].name;
    const char *near = suggest_nearest(name, own, count);
    int shown = (int)(name.len < SUGGEST_WORD_MAX ? name.len : SUGGEST_WORD_MAX);
    if (near)
        cli_fault("weir %s takes no --%.*s; did you mean --%s?", c->name, shown, name.ptr, near);
    else
        cli_fault("weir %s takes no --%.*s; see `weir %s --help`", c->name, shown, name.ptr, c->name);
    return CLI_USAGE;
}

/* False: a flag or argument does not belong to the command; told. */
static bool check_use(const struct invocation *in)
{
    const struct command *c = in->command;
    flag_set foreign = flags_given(in->flags) & ~(c->flags | FLAGS_COMMON);
    for (int i = 0; foreign && i < FLAG_COUNT; i++)
        if (foreign & (flag_set)1 << i) {
            refuse_flag(c, str_of(flag_table[i].name));
            return false;
        }
    if (in->arg_count < c->args_min) {
        cli_fault("usage: weir %s %s", c->name, c->arguments);
        return false;
    }
    if (in->arg_count > c->args_max) {
        cli_fault("unexpected argument \"%.60s\"; usage: weir %s%s%s", in->args[c->args_max], c->name,
                  *c->arguments ? " " : "", c->arguments);
        return false;
    }
    return true;
}

/* Output that could not be written is a failure, unless one has been told already. */
static int flushed(int code)
{
    bool lost = fflush(stdout) != 0 || ferror(stdout);
    if (lost && code == CLI_OK)
        cli_fault("cannot write the output");
    return lost && code == CLI_OK ? CLI_FAILED : code;
}

static int run(const struct command *command, const struct flags *f, size_t used, int argc, char **argv)
{
    const char *output = f->value[FLAG_OUTPUT];
    struct invocation in = {
        .command = command,
        .flags = f,
        .args = f->words + used,
        .arg_count = f->word_count - used,
        .json = output && strcmp(output, "json") == 0,
        .quiet = flags_has(f, FLAG_QUIET),
        .argc = argc,
        .argv = argv,
    };
    return check_use(&in) ? command->run(&in) : CLI_USAGE;
}

int cli_main(int argc, char **argv)
{
    struct flags f;
    struct err err;
    size_t used;
    if (flags_parse(argc, argv, &f, &err) != ERR_OK) {
        const struct command *named = f.unknown.ptr ? command_find(f.words, f.word_count, &used) : NULL;
        return named ? refuse_flag(named, f.unknown) : cli_err(&err);
    }
    if (!f.word_count && flags_has(&f, FLAG_VERSION))
        f.words[f.word_count++] = "version";
    const struct command *command = command_find(f.words, f.word_count, &used);
    bool wants_help = flags_has(&f, FLAG_HELP) || !f.word_count;
    if (wants_help && help_print(stdout, f.words, command ? used : f.word_count))
        return flushed(CLI_OK);
    if (!command)
        return command_refuse(f.words, f.word_count);
    char **kept CLEANUP(flags_drop) = NULL;
    if (command->run != command_serve) { /* which reads its settings in another process */
        kept = flags_keep(argc, argv);
        flags_hide_secrets(argc, argv);
        MUST(flags_parse(argc, kept, &f, &err) == ERR_OK);
        if (f.word_count == 0)
            f.words[f.word_count++] = "version";
    }
    return flushed(run(command, &f, used, argc, argv));
}
