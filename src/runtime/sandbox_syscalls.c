/* The wall of system calls: allowed by name, some of them by their arguments; the rest is refused. */
#include "runtime/sandbox_syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "base/must.h"
#include "base/str.h"
#include "runtime/sandbox_internal.h"

#include "base/banned.h"

enum {
    NAME_BYTES_MAX = 64,
    NUMBERS_MAX = 512, /* from here on x86-64 has the numbers of another ABI */
    FASTEST = 2,       /* libseccomp's binary tree instead of a row of comparisons */
};

#define NEW_NAMESPACES                                                                                       \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |            \
     CLONE_NEWNET)

static const struct {
    unsigned who;
    const char *what, *names;
} groups[] = {
#define X(what, who, names) {who, what, names},
    SANDBOX_SYSCALLS(X)
#undef X
};

/* The filter while it is written. `failed` keeps the first error: libseccomp's calls return it each. */
struct wall {
    scmp_filter_ctx filter;
    enum sandbox_id id;
    enum sandbox_mode mode;
    int failed;
    bool settled[NUMBERS_MAX]; /* there is a rule for this number */
};

static bool is_for(const struct wall *w, unsigned who)
{
    return w->id == SANDBOX_ROOT || who >> w->id & 1;
}

static int number_of(struct str name)
{
    char text[NAME_BYTES_MAX];
    MUST(name.len < sizeof text);
    memcpy(text, name.ptr, name.len);
    text[name.len] = 0;
    int number = seccomp_syscall_resolve_name(text);
    return number >= 0 && number < NUMBERS_MAX ? number : -1;
}

static void add(struct wall *w, uint32_t action, int number, const struct scmp_arg_cmp *condition)
{
    if (number < 0 || w->failed)
        return;
    w->settled[number] = true;
    w->failed = seccomp_rule_add_array(w->filter, action, number, condition ? 1 : 0, condition);
}

static void allow_when(struct wall *w, const char *name, struct scmp_arg_cmp condition)
{
    add(w, SCMP_ACT_ALLOW, number_of(str_of(name)), &condition);
}

static void allow(struct wall *w, const char *name)
{
    add(w, SCMP_ACT_ALLOW, number_of(str_of(name)), NULL);
}

static void allow_all(struct wall *w, const char *names)
{
    for (struct str rest = str_of(names); rest.len;)
        add(w, SCMP_ACT_ALLOW, number_of(str_cut(&rest, ' ')), NULL);
}

/* ---- calls whose arguments matter ---- */

static void allow_threads(struct wall *w)
{
    /* clone3 hides its flags from a filter. Told that there is none, libc uses clone. */
    add(w, SCMP_ACT_ERRNO(ENOSYS), number_of(STR("clone3")), NULL);
    if (w->id == SANDBOX_ROOT || SANDBOX_SANITIZED)
        allow_when(w, "clone", SCMP_A0(SCMP_CMP_MASKED_EQ, NEW_NAMESPACES, 0));
    else
        allow_when(w, "clone", SCMP_A0(SCMP_CMP_MASKED_EQ, NEW_NAMESPACES | CLONE_THREAD, CLONE_THREAD));
}

/* Memory is written or executed, never both; nothing written becomes executable. Name resolution loads
 * libraries, so who resolves names may map them. */
static void allow_memory(struct wall *w)
{
    const scmp_datum_t both = PROT_WRITE | PROT_EXEC;
    allow_when(w, "mmap", SCMP_A2(SCMP_CMP_MASKED_EQ, both, 0));
    allow_when(w, "mmap", SCMP_A2(SCMP_CMP_MASKED_EQ, both, PROT_WRITE));
    if (is_for(w, BY_CORE | BY_GATEWAY) || SANDBOX_SANITIZED)
        allow_when(w, "mmap", SCMP_A2(SCMP_CMP_MASKED_EQ, both, PROT_EXEC));
    allow_when(w, "mprotect", SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
}

static void allow_opening(struct wall *w)
{
    const scmp_datum_t changing = O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND;
    if (is_for(w, BY_CORE)) {
        allow(w, "open");
        allow(w, "openat");
    } else { /* a gateway and a runner only read */
        allow_when(w, "open", SCMP_A1(SCMP_CMP_MASKED_EQ, changing, O_RDONLY));
        allow_when(w, "openat", SCMP_A2(SCMP_CMP_MASKED_EQ, changing, O_RDONLY));
    }
}

static void allow_sockets(struct wall *w)
{
    static const int networks[] = {AF_INET, AF_INET6, AF_NETLINK}; /* the last: which addresses we have */
    allow_when(w, "socket", SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
    allow_when(w, "socketpair", SCMP_A0(SCMP_CMP_EQ, AF_UNIX));
    for (size_t i = 0; is_for(w, BY_CORE | BY_GATEWAY) && i < LENGTH_OF(networks); i++)
        allow_when(w, "socket", SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)networks[i]));
}

static void allow_on_itself(struct wall *w)
{
    static const int options[] = {PR_SET_NAME,         PR_GET_NAME,    PR_SET_PDEATHSIG, PR_SET_DUMPABLE,
                                  PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, PR_GET_SECCOMP,   PR_SET_VMA};
    static const unsigned long requests[] = {TCGETS, FIONREAD, FIONBIO};
    scmp_datum_t self = (scmp_datum_t)getpid();
    for (size_t i = 0; i < LENGTH_OF(options); i++)
        allow_when(w, "prctl", SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)options[i]));
    for (size_t i = 0; i < LENGTH_OF(requests); i++)
        allow_when(w, "ioctl", SCMP_A1(SCMP_CMP_EQ, requests[i]));
    allow_when(w, "prlimit64", SCMP_A0(SCMP_CMP_EQ, 0));
    if (w->id != SANDBOX_ROOT) { /* root may signal others: it is in the list */
        allow_when(w, "kill", SCMP_A0(SCMP_CMP_EQ, self));
        allow_when(w, "tgkill", SCMP_A0(SCMP_CMP_EQ, self));
    }
}

/* ---- the rest ---- */

static void refuse_the_hostile(struct wall *w)
{
    for (struct str rest = str_of(SANDBOX_HOSTILE); rest.len;) {
        int number = number_of(str_cut(&rest, ' '));
        if (number >= 0 && !w->settled[number])
            add(w, SCMP_ACT_KILL_PROCESS, number, NULL);
    }
}

/* Libraries try what is new and fall back when it is not there; EPERM would stop them. */
static void refuse_the_unknown(struct wall *w)
{
    for (int number = 0; number < NUMBERS_MAX; number++) {
        char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
        if (!name)
            add(w, SCMP_ACT_ERRNO(ENOSYS), number, NULL);
        free(name);
    }
}

static void write_rules(struct wall *w)
{
    for (size_t i = 0; i < LENGTH_OF(groups); i++)
        if (is_for(w, groups[i].who))
            allow_all(w, groups[i].names);
    allow_threads(w);
    allow_memory(w);
    allow_opening(w);
    allow_sockets(w);
    allow_on_itself(w);
    if (SANDBOX_SANITIZED)
        allow_all(w, "ptrace wait4 prctl tgkill kill personality getdents");
    if (w->mode == SANDBOX_ENFORCE) {
        refuse_the_hostile(w);
        refuse_the_unknown(w);
    }
}

/* Takes the filter along, whether it could be loaded or not. */
static int load(scmp_filter_ctx filter, int failed)
{
    if (!failed)
        failed = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, FASTEST);
    if (!failed)
        failed = seccomp_load(filter);
    seccomp_release(filter);
    return failed;
}

static uint32_t refusal(enum sandbox_mode mode)
{
    return mode == SANDBOX_LOG ? SCMP_ACT_LOG : SCMP_ACT_ERRNO(EPERM);
}

int sandbox_syscalls_enter(enum sandbox_id id, enum sandbox_mode mode)
{
    struct wall w = {.filter = seccomp_init(refusal(mode)), .id = id, .mode = mode};
    if (!w.filter)
        return -ENOSYS;
    write_rules(&w);
    return load(w.filter, w.failed);
}

int sandbox_syscalls_close_network(enum sandbox_mode mode)
{
    struct wall w = {.filter = seccomp_init(SCMP_ACT_ALLOW), .mode = mode};
    if (!w.filter)
        return -ENOSYS;
    for (struct str rest = STR("socket socketpair connect bind listen"); rest.len;)
        add(&w, refusal(mode), number_of(str_cut(&rest, ' ')), NULL);
    if (!w.failed)
        w.failed = seccomp_attr_set(w.filter, SCMP_FLTATR_CTL_TSYNC, 1); /* the threads that are there too */
    return load(w.filter, w.failed);
}

/* ---- documentation ---- */

void sandbox_syscalls_markdown(FILE *out)
{
    fputs("| system calls for |", out);
    for (enum sandbox_id id = 0; id < SANDBOX_COUNT; id++)
        fprintf(out, " %s |", sandbox_name(id));
    fputs(" which |\n|---|", out);
    for (enum sandbox_id id = 0; id < SANDBOX_COUNT; id++)
        fputs("---|", out);
    fputs("---|\n", out);
    for (size_t i = 0; i < LENGTH_OF(groups); i++) {
        fprintf(out, "| %s |", groups[i].what);
        for (enum sandbox_id id = 0; id < SANDBOX_COUNT; id++)
            fputs(is_for(&(struct wall){.id = id}, groups[i].who) ? " yes |" : " |", out);
        fprintf(out, " `%s` |\n", groups[i].names);
    }
    fputs("| end of the process |", out);
    for (enum sandbox_id id = 0; id < SANDBOX_COUNT; id++)
        fputs(" never |", out);
    fprintf(out, " `%s` |\n", SANDBOX_HOSTILE);
}
