/* Help comes from the two tables: commands (command_tables.c) and flags (flags.h). */
#include "cli/command.h"

#include "base/banned.h"

enum { NAME_WIDTH = 34 };

static bool begins_with(const char *name, const char *const *words, size_t count)
{
    struct str rest = str_of(name);
    for (size_t i = 0; i < count; i++)
        if (!rest.len || !str_is(str_cut(&rest, ' '), words[i]))
            return false;
    return true;
}

static void print_line(FILE *out, const struct command *c)
{
    char left[80];
    snprintf(left, sizeof left, "%s%s%s", c->name, *c->arguments ? " " : "", c->arguments);
    fprintf(out, "  weir %-*s %s\n", NAME_WIDTH, left, c->help);
}

static void print_flag(FILE *out, const struct flag *f)
{
    char left[80];
    snprintf(left, sizeof left, "%s%c%s--%s%s%s", f->short_form ? "-" : " ",
             f->short_form ? f->short_form : ' ', f->short_form ? ", " : "  ", f->name, f->value ? " " : "",
             f->value ? f->value : "");
    fprintf(out, "  %-*s %s\n", NAME_WIDTH, left, f->help);
}

static void print_command(FILE *out, const struct command *c)
{
    fprintf(out, "%s\n\nusage: weir %s%s%s [FLAG...]\n\n", c->help, c->name, *c->arguments ? " " : "",
            c->arguments);
    for (int i = 0; i < FLAG_COUNT; i++)
        if ((c->flags | FLAG_BIT(HELP)) & (flag_set)1 << i) {
            struct flag f = flag_of_command((enum flag_id)i, c->name);
            print_flag(out, &f);
        }
}

static void print_exit_codes(FILE *out)
{
    const char *between = "";
    fputs("Exit codes: ", out);
#define X(name, number, meaning) fprintf(out, "%s%d %s", between, number, meaning), between = ", ";
    EXIT_LIST(X)
#undef X
    fputs(".\n", out);
}

static void print_all(FILE *out)
{
    fputs("weir " WEIR_VERSION " - a durable job queue\n\nusage: weir COMMAND [ARGUMENT...] [FLAG...]\n\n",
          out);
    EACH_COMMAND (c)
        print_line(out, c);
    fputs("\n`weir COMMAND --help` shows a command's flags. `-o json` gives JSON; data goes to stdout,\n"
          "messages to stderr. ",
          out);
    print_exit_codes(out);
}

bool help_print(FILE *out, const char *const *words, size_t count)
{
    size_t used, found = 0;
    const struct command *named = command_find(words, count, &used);
    if (!count) {
        print_all(out);
        return true;
    }
    if (named && used == count) {
        print_command(out, named);
        return true;
    }
    EACH_COMMAND (c) {
        if (!begins_with(c->name, words, count))
            continue;
        if (!found++)
            fputs("usage:\n", out);
        print_line(out, c);
    }
    if (found)
        fputs("\nAdd --help to any of them for its flags.\n", out);
    return found > 0;
}

int command_help(const struct invocation *in)
{
    if (help_print(stdout, in->args, in->arg_count))
        return CLI_OK;
    return command_refuse(in->args, in->arg_count);
}
