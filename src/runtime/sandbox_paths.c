/* The wall of files and ports: Landlock, as much of it as the kernel has.
 *
 * Landlock's numbers are written out here: the kernel's header is often older than the kernel. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/must.h"
#include "base/str.h"
#include "runtime/sandbox_internal.h"
#include "runtime/sandbox_syscalls.h"
#include "runtime/scratch_file.h"

#include "base/banned.h"

/* linux/landlock.h, ABI 6 */
#define MAY_EXECUTE     (UINT64_C(1) << 0)
#define MAY_WRITE_FILE  (UINT64_C(1) << 1)
#define MAY_READ_FILE   (UINT64_C(1) << 2)
#define MAY_READ_DIR    (UINT64_C(1) << 3)
#define MAY_REMOVE_DIR  (UINT64_C(1) << 4)
#define MAY_REMOVE_FILE (UINT64_C(1) << 5)
#define MAY_MAKE_DIR    (UINT64_C(1) << 7)
#define MAY_MAKE_REG    (UINT64_C(1) << 8)
#define MAY_MAKE_SOCK   (UINT64_C(1) << 9)
#define MAY_TRUNCATE    (UINT64_C(1) << 14)

#define ALL_OF_ABI_1 ((UINT64_C(1) << 13) - 1)
#define ALL_OF_ABI_2 ((UINT64_C(1) << 14) - 1) /* moves between directories */
#define ALL_OF_ABI_3 ((UINT64_C(1) << 15) - 1) /* truncation */
#define ALL_OF_ABI_5 ((UINT64_C(1) << 16) - 1) /* ioctl of devices */

#define TCP_BIND      UINT64_C(1) /* ABI 4 */
#define TCP_CONNECT   UINT64_C(2)
#define SCOPED_SOCKET UINT64_C(1) /* ABI 6: abstract Unix sockets of others */
#define SCOPED_SIGNAL UINT64_C(2) /* and signals to others */

#define FOR_READING (MAY_READ_FILE | MAY_READ_DIR)
#define FOR_WRITING                                                                                          \
    (FOR_READING | MAY_WRITE_FILE | MAY_TRUNCATE | MAY_REMOVE_FILE | MAY_REMOVE_DIR | MAY_MAKE_DIR |         \
     MAY_MAKE_REG | MAY_MAKE_SOCK)
#define FOR_A_FILE                                                                                           \
    (MAY_EXECUTE | MAY_WRITE_FILE | MAY_READ_FILE | MAY_TRUNCATE) /* a rule about one knows these */

struct ruleset_attr {
    uint64_t handled_fs, handled_net, scoped;
};

struct path_beneath_attr {
    uint64_t allowed;
    int32_t parent_fd;
} __attribute__((packed));

enum { CREATE_VERSION = 1, RULE_PATH_BENEATH = 1 };

/* X(path, rights, by whom, why). Whole directories where a single file is replaced by rename: a rule
 * follows the file that was there, and a resolver that reads the old resolv.conf is blind. */
#define SANDBOX_PATHS(X)                                                                                     \
    X("/etc", FOR_READING, BY_CORE | BY_GATEWAY, "resolver, certificates, time zone")                        \
    X("/usr/lib", FOR_READING, BY_CORE | BY_GATEWAY, "libraries of name resolution")                         \
    X("/lib", FOR_READING, BY_CORE | BY_GATEWAY, "the same")                                                 \
    X("/lib64", FOR_READING, BY_CORE | BY_GATEWAY, "the same")                                               \
    X("/usr/share", FOR_READING, BY_CORE | BY_GATEWAY, "certificates, time zones")                           \
    X("/usr/local/share", FOR_READING, BY_CORE | BY_GATEWAY, "certificates")                                 \
    X("/run/systemd/resolve", FOR_READING, BY_CORE | BY_GATEWAY, "resolver")                                 \
    X("/run/resolvconf", FOR_READING, BY_CORE | BY_GATEWAY, "resolver")                                      \
    X("/run/NetworkManager", FOR_READING, BY_CORE | BY_GATEWAY, "resolver")                                  \
    X("/etc/ssl", FOR_READING, BY_RUNNER, "configuration of OpenSSL")                                        \
    X("/usr/lib/ssl", FOR_READING, BY_RUNNER, "the same")                                                    \
    X("/proc", FOR_READING, BY_CORE, "metrics of the process itself")                                        \
    X("/sys/devices/system/cpu", FOR_READING, BY_ALL, "number of CPUs")                                      \
    X("/dev/null", FOR_READING | MAY_WRITE_FILE, BY_ALL, "nothing")                                          \
    X("/dev/urandom", FOR_READING, BY_ALL, "randomness")

static const struct {
    const char *path, *why;
    uint64_t rights;
    unsigned who;
} paths[] = {
#define X(path, rights, who, why) {path, why, rights, who},
    SANDBOX_PATHS(X)
#undef X
};

/* Variables whose value is a file or directory that a library reads. */
static const struct {
    const char *name;
    unsigned who;
} variables[] = {
    {"SSL_CERT_FILE", BY_CORE | BY_GATEWAY},
    {"SSL_CERT_DIR", BY_CORE | BY_GATEWAY},
    {"OPENSSL_CONF", BY_ALL},
    {"PGPASSFILE", BY_CORE},
    {"PGSERVICEFILE", BY_CORE},
    {"PGSYSCONFDIR", BY_CORE},
    {"PGSSLCERT", BY_CORE},
    {"PGSSLKEY", BY_CORE},
    {"PGSSLROOTCERT", BY_CORE},
    {"PGSSLCRL", BY_CORE},
    {"PGSSLCRLDIR", BY_CORE},
};

static const char *const postgres_parameters[] = {"passfile",    "sslcert", "sslkey",
                                                  "sslrootcert", "sslcrl",  "sslcrldir"};
static const char *const postgres_home_files[] = {".pgpass", ".pg_service.conf", ".postgresql"};

struct rules {
    int fd;
    enum sandbox_id id;
    uint64_t handled;
    int failed; /* the first error, negative */
};

static bool is_for(const struct rules *r, unsigned who)
{
    return r->id == SANDBOX_ROOT || who >> r->id & 1;
}

int sandbox_landlock_abi(void)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_VERSION);
    return abi > 0 ? (int)abi : 0;
}

/* A path that does not exist needs no rule. */
static void grant(struct rules *r, const char *path, uint64_t rights)
{
    struct stat info;
    if (!path || !*path || r->failed)
        return;
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &info) == 0) {
        uint64_t fitting = S_ISDIR(info.st_mode) ? rights : rights & FOR_A_FILE;
        struct path_beneath_attr rule = {fitting & r->handled, fd};
        if (rule.allowed && syscall(SYS_landlock_add_rule, r->fd, RULE_PATH_BENEATH, &rule, 0) != 0)
            r->failed = -errno;
    }
    close(fd);
}

/* ---- paths that settings and environment name ---- */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

static void grant_encoded(struct rules *r, struct str value)
{
    char path[PATH_MAX];
    size_t n = 0;
    for (size_t i = 0; i < value.len && n < sizeof path - 1; i++) {
        bool escape = value.ptr[i] == '%' && i + 2 < value.len && hex_digit(value.ptr[i + 1]) >= 0 &&
                      hex_digit(value.ptr[i + 2]) >= 0;
        path[n++] =
            escape ? (char)(hex_digit(value.ptr[i + 1]) * 16 + hex_digit(value.ptr[i + 2])) : value.ptr[i];
        i += escape ? 2 : 0;
    }
    path[n] = 0;
    grant(r, path, FOR_READING);
}

static void grant_postgres_files(struct rules *r, const char *url)
{
    struct str query = str_of(url);
    str_cut(&query, '?');
    while (query.len) {
        struct str value = str_cut(&query, '&');
        struct str name = str_cut(&value, '=');
        for (size_t i = 0; i < LENGTH_OF(postgres_parameters); i++)
            if (str_equal(name, str_of(postgres_parameters[i])))
                grant_encoded(r, value);
    }
    const char *home = getenv("HOME");
    for (size_t i = 0; home && i < LENGTH_OF(postgres_home_files); i++) {
        char path[PATH_MAX];
        if (snprintf(path, sizeof path, "%s/%s", home, postgres_home_files[i]) < (int)sizeof path)
            grant(r, path, FOR_READING);
    }
}

static void grant_directory_of(struct rules *r, char *path, uint64_t rights)
{
    char *slash = strrchr(path, '/');
    if (slash == path)
        slash++;
    if (slash)
        *slash = 0;
    grant(r, slash ? path : ".", rights);
}

/* A file that is read again after others have replaced it: its directory, and that of the file which a link
 * leads to. Not the root directory, which would be everything. */
static void grant_replaced_file(struct rules *r, const char *path)
{
    char names[2][PATH_MAX];
    if (!path || snprintf(names[0], PATH_MAX, "%s", path) >= PATH_MAX)
        return;
    if (!realpath(path, names[1]))
        names[1][0] = 0;
    for (size_t i = 0; i < LENGTH_OF(names); i++) {
        grant(r, names[i], FOR_READING);
        if (strrchr(names[i], '/') != names[i])
            grant_directory_of(r, names[i], FOR_READING);
    }
}

static void grant_core(struct rules *r, const struct settings *s)
{
    char path[SETTINGS_STORE_URL_MAX];
    struct err ignored;
    grant(r, s->data_dir, FOR_WRITING);
    if (settings_store_is_postgres(s))
        grant_postgres_files(r, s->store_url);
    else if (settings_store_path(s, path, sizeof path, &ignored) == ERR_OK)
        grant_directory_of(r, path, FOR_WRITING); /* SQLite makes files beside the database */
    grant_replaced_file(r, s->tls_cert);
    grant_replaced_file(r, s->tls_key);
    grant_replaced_file(r, s->tls_client_ca);
    grant_replaced_file(r, s->tokens_issuers); /* and the keys of issuers beside it */
}

static void grant_all(struct rules *r, const struct settings *s)
{
    for (size_t i = 0; i < LENGTH_OF(paths); i++)
        if (is_for(r, paths[i].who))
            grant(r, paths[i].path, paths[i].rights);
    for (size_t i = 0; i < LENGTH_OF(variables); i++)
        if (is_for(r, variables[i].who))
            grant(r, getenv(variables[i].name), FOR_READING);
    if (is_for(r, BY_CORE))
        grant_core(r, s);
    if (r->id == SANDBOX_ROOT)
        grant(r, scratch_dir(), FOR_WRITING);
    static const char *const sanitizer[] = {"/proc", "/proc/self/exe", "/usr/lib", "/lib"};
    for (size_t i = 0; SANDBOX_SANITIZED && i < LENGTH_OF(sanitizer); i++)
        grant(r, sanitizer[i], FOR_READING);
}

/* ---- the wall ---- */

static uint64_t handled_fs(int abi)
{
    return abi >= 5 ? ALL_OF_ABI_5 : abi >= 3 ? ALL_OF_ABI_3 : abi == 2 ? ALL_OF_ABI_2 : ALL_OF_ABI_1;
}

static uint64_t handled_net(enum sandbox_id id)
{
    switch (id) {
    case SANDBOX_ROOT:
    case SANDBOX_CORE_SHARED:
        return 0;
    case SANDBOX_CORE:
        return TCP_CONNECT;
    case SANDBOX_GATEWAY:
        return TCP_BIND;
    case SANDBOX_RUNNER:
        return TCP_BIND | TCP_CONNECT;
    case SANDBOX_COUNT:
        break;
    }
    MUST(id < SANDBOX_COUNT);
    return 0;
}

int sandbox_paths_enter(enum sandbox_id id, const struct settings *s, int abi)
{
    if (!abi)
        return 0;
    struct ruleset_attr attr = {.handled_fs = handled_fs(abi), .handled_net = abi >= 4 ? handled_net(id) : 0};
    if (abi >= 6 && id != SANDBOX_ROOT)
        attr.scoped = SCOPED_SOCKET | SCOPED_SIGNAL;
    size_t size = abi >= 6 ? sizeof attr : abi >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
    struct rules r = {.id = id, .handled = attr.handled_fs};
    r.fd = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
    if (r.fd < 0)
        return -errno;
    grant_all(&r, s);
    if (!r.failed && syscall(SYS_landlock_restrict_self, r.fd, 0) != 0)
        r.failed = -errno;
    close(r.fd);
    return r.failed;
}

void sandbox_paths_markdown(FILE *out)
{
    fputs("| files | rights |", out);
    for (enum sandbox_id id = 0; id < SANDBOX_COUNT; id++)
        fprintf(out, " %s |", sandbox_name(id));
    fputs(" for |\n|---|---|", out);
    for (enum sandbox_id id = 0; id < SANDBOX_COUNT; id++)
        fputs("---|", out);
    fputs("---|\n", out);
    for (size_t i = 0; i < LENGTH_OF(paths); i++) {
        fprintf(out, "| `%s` | %s |", paths[i].path, paths[i].rights & MAY_WRITE_FILE ? "write" : "read");
        for (enum sandbox_id id = 0; id < SANDBOX_COUNT; id++)
            fputs(is_for(&(struct rules){.id = id}, paths[i].who) ? " yes |" : " |", out);
        fprintf(out, " %s |\n", paths[i].why);
    }
}
