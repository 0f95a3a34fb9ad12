/* Each process kind from inside: what it must not do fails, what it is there for works. Every attempt is
 * also made without a sandbox, where it succeeds: a refusal by anything else would prove nothing. */
#include "case.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/must.h"
#include "base/str.h"
#include "runtime/sandbox.h"
#include "runtime/sandbox_internal.h"
#include "runtime/scratch_file.h"
#include "machine.h"

#include "base/banned.h"

enum { NO_SANDBOX = SANDBOX_COUNT, BY_SIGNAL = 1000 };

static struct settings settings;
static char base[] = "/tmp/weir-sandbox-XXXXXX";
static char data[64], database[80], outside[64], unix_path[80];
static struct sockaddr_in listener_address;
static int listener, unix_listener, scratch_fd;

/* An attempt returns 0 or -1 with errno. */
typedef int attempt(void);

static int open_as(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);
    return fd < 0 ? -1 : close(fd);
}

static int read_the_database(void)
{
    return open_as(database, O_RDONLY);
}
static int write_the_database(void)
{
    return open_as(database, O_RDWR);
}
static int make_a_file_outside(void)
{
    return open_as(outside, O_WRONLY | O_CREAT) || unlink(outside) ? -1 : 0;
}
static int read_outside(void)
{
    return open_as("/bin/sh", O_RDONLY);
}
static int read_hosts(void)
{
    return open_as("/etc/hosts", O_RDONLY);
}
static int use_the_scratch_file(void)
{
    return pwrite(scratch_fd, "x", 1, 0) == 1 ? ftruncate(scratch_fd, 0) : -1;
}

static int rename_in_data(void)
{
    char next[96];
    snprintf(next, sizeof next, "%s.next", database);
    return rename(database, next) == 0 ? rename(next, database) : -1;
}

static int make_a_socket(int family, int type)
{
    int fd = socket(family, type | SOCK_CLOEXEC, 0);
    return fd < 0 ? -1 : close(fd);
}
static int internet_socket(void)
{
    return make_a_socket(AF_INET, SOCK_STREAM);
}
static int packet_socket(void)
{
    return make_a_socket(AF_PACKET, SOCK_RAW);
}

static int connect_out(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int done = fd < 0 ? -1 : connect(fd, (struct sockaddr *)&listener_address, sizeof listener_address);
    int number = errno;
    if (fd >= 0)
        close(fd);
    errno = number;
    return done;
}

static int listen_for_others(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int done = fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof any) ? -1 : listen(fd, 1);
    int number = errno;
    if (fd >= 0)
        close(fd);
    errno = number;
    return done;
}

static int connect_to_core(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memcpy(address.sun_path, unix_path, strlen(unix_path));
    int done = fd < 0 ? -1 : connect(fd, (struct sockaddr *)&address, sizeof address);
    int number = errno;
    if (fd >= 0)
        close(fd);
    errno = number;
    return done;
}

static int resolve_a_name(void)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    if (getaddrinfo("localhost", "80", &hints, &found) != 0)
        return -1;
    freeaddrinfo(found);
    return 0;
}

static int execute(void)
{
    char *const arguments[] = {(char[]){"true"}, NULL}, *const nothing[] = {NULL};
    return execve("/bin/true", arguments, nothing); /* does not return where it is allowed; ends with 0 */
}

static int fork_once(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    return pid < 0 || waitpid(pid, NULL, 0) != pid ? -1 : 0;
}

static void *nothing_to_do(void *self)
{
    return self;
}
static int start_a_thread(void)
{
    pthread_t id;
    errno = pthread_create(&id, NULL, nothing_to_do, NULL);
    return errno || pthread_join(id, NULL) ? -1 : 0;
}

static int signal_another(void)
{
    return kill(getppid(), 0);
}
static int trace_another(void)
{
    return (int)ptrace(PTRACE_SEIZE, getppid(), NULL, NULL);
}
static int write_and_execute_memory(void)
{
    void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? -1 : munmap(at, 4096);
}

static int execute_what_was_written(void)
{
    void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? -1 : mprotect(at, 4096, PROT_READ | PROT_EXEC);
}

static int leave_the_group(void)
{
    return unshare(CLONE_FILES);
}
static int read_the_memory_of_another(void)
{
    return (int)process_vm_readv(getppid(), NULL, 0, NULL, 0, 0);
}
static int uring(void)
{
    char parameters[120] = {0};
    long fd = syscall(SYS_io_uring_setup, 1, parameters);
    return fd < 0 ? -1 : close((int)fd);
}
static int lower_the_priority(void)
{
    return setpriority(PRIO_PROCESS, 0, 10);
}
static int ask_for_a_limit_of_another(void)
{
    struct rlimit limit;
    return prlimit(getppid(), RLIMIT_NOFILE, NULL, &limit);
}
static int new_call_of_a_later_kernel(void)
{
    return syscall(500) < 0 && errno == ENOSYS ? 0 : -1;
}

/* ---- one attempt in a process of its own ---- */

enum { ALONE = 0, UNDER_ROOT = 1, NETWORK_CLOSED = 2 };

static void enter(enum sandbox_id id)
{
    struct err err;
    if (sandbox_enter(id, &settings, &err) == ERR_OK)
        return;
    fprintf(stderr, "%s\n", err.detail);
    _exit(255);
}

static void become(int id, int how)
{
    static const int caught_by_cmocka[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS};
    struct err err;
    for (size_t i = 0; i < LENGTH_OF(caught_by_cmocka); i++)
        signal(caught_by_cmocka[i], SIG_DFL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    if (how & UNDER_ROOT)
        enter(SANDBOX_ROOT);
    if (id != NO_SANDBOX)
        enter((enum sandbox_id)id);
    if (how & NETWORK_CLOSED && sandbox_close_network(&settings, &err) != ERR_OK)
        _exit(255);
}

/* 0, an errno, or BY_SIGNAL and the signal. */
static int outcome(int id, attempt *try, int how)
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        become(id, how);
        _exit(try() == 0 ? 0 : errno);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? BY_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

#define REFUSED (-1) /* EPERM or EACCES */
#define KILLED  (BY_SIGNAL + SIGSYS)
#define ANY     (-2) /* the sanitizer needs it */

/* What comes of an attempt in root, core, core on PostgreSQL, gateway, runner. */
struct expectation {
    const char *name;
    attempt *try;
    int outcomes[SANDBOX_COUNT];
    bool needs_landlock, needs_tcp_rules;
};

#define EXPECT(function, ...)                                                                                \
    {                                                                                                        \
        .name = #function, .try = function, .outcomes = { __VA_ARGS__ }                                      \
    }
#define EXPECT_FILES(function, ...)                                                                          \
    {                                                                                                        \
        .name = #function, .try = function, .outcomes = {__VA_ARGS__}, .needs_landlock = true                \
    }
#define EXPECT_TCP(function, ...)                                                                            \
    {                                                                                                        \
        .name = #function, .try = function, .outcomes = {__VA_ARGS__}, .needs_tcp_rules = true               \
    }
#define FORK  (SANDBOX_SANITIZED ? ANY : REFUSED)
#define TRACE (SANDBOX_SANITIZED ? ANY : KILLED)

/* clang-format off */
static const struct expectation expectations[] = {
    /*                                     root     core     shared   gateway  runner */
    EXPECT(execute,                        KILLED,  KILLED,  KILLED,  KILLED,  KILLED),
    EXPECT(leave_the_group,                KILLED,  KILLED,  KILLED,  KILLED,  KILLED),
    EXPECT(read_the_memory_of_another,     KILLED,  KILLED,  KILLED,  KILLED,  KILLED),
    EXPECT(trace_another,                  TRACE,   TRACE,   TRACE,   TRACE,   TRACE),
    EXPECT(uring,                          REFUSED, REFUSED, REFUSED, REFUSED, REFUSED),
    EXPECT(packet_socket,                  REFUSED, REFUSED, REFUSED, REFUSED, REFUSED),
    EXPECT(write_and_execute_memory,       REFUSED, REFUSED, REFUSED, REFUSED, REFUSED),
    EXPECT(execute_what_was_written,       REFUSED, REFUSED, REFUSED, REFUSED, REFUSED),
    EXPECT(ask_for_a_limit_of_another,     REFUSED, REFUSED, REFUSED, REFUSED, REFUSED),
    EXPECT(fork_once,                      0,       FORK,    FORK,    FORK,    FORK),
    EXPECT(signal_another,                 0,       FORK,    FORK,    FORK,    FORK),
    EXPECT(internet_socket,                0,       0,       0,       0,       REFUSED),
    EXPECT_TCP(connect_out,                0,       REFUSED, 0,       0,       REFUSED),
    EXPECT(listen_for_others,              0,       0,       0,       REFUSED, REFUSED),
    EXPECT(connect_to_core,                0,       0,       0,       0,       0),
    EXPECT(start_a_thread,                 0,       0,       0,       0,       0),
    EXPECT(resolve_a_name,                 0,       0,       0,       0,       ANY),
    EXPECT(new_call_of_a_later_kernel,     0,       0,       0,       0,       0),
    EXPECT(lower_the_priority,             0,       REFUSED, REFUSED, REFUSED, 0),
    EXPECT(use_the_scratch_file,           0,       0,       0,       REFUSED, 0),
    EXPECT(rename_in_data,                 0,       0,       0,       REFUSED, REFUSED),
    EXPECT(write_the_database,             0,       0,       0,       REFUSED, REFUSED),
    EXPECT_FILES(read_the_database,        0,       0,       0,       REFUSED, REFUSED),
    EXPECT_FILES(make_a_file_outside,      REFUSED, REFUSED, REFUSED, REFUSED, REFUSED),
    EXPECT_FILES(read_outside,             REFUSED, REFUSED, REFUSED, REFUSED, REFUSED),
    EXPECT_FILES(read_hosts,               0,       0,       0,       0,       REFUSED),
};
/* clang-format on */

static bool applies(const struct expectation *e, int wanted)
{
    int abi = sandbox_landlock_abi();
    return wanted != ANY &&
           !(wanted == REFUSED && ((e->needs_landlock && abi < 1) || (e->needs_tcp_rules && abi < 4)));
}

static void expect(const struct expectation *e, enum sandbox_id id, int how)
{
    int wanted = e->outcomes[id], found = outcome((int)id, e->try, how);
    if (!applies(e, wanted))
        return;
    bool fits = wanted == REFUSED ? found == EPERM || found == EACCES : found == wanted;
    if (!fits)
        fail_msg("%s in sandbox %d (%d): %d instead of %d", e->name, (int)id, how, found, wanted);
}

/* No process may do it, so where the machine does not let us, either, nothing can be seen. */
static bool is_kept_from_all(const struct expectation *e)
{
    for (enum sandbox_id id = 0; id < SANDBOX_COUNT; id++)
        if (e->outcomes[id] != REFUSED && e->outcomes[id] != KILLED && e->outcomes[id] != TRACE)
            return false;
    return true;
}

TEST(every_process_does_what_it_is_there_for_and_nothing_else)
{
    for (size_t i = 0; i < LENGTH_OF(expectations); i++) {
        const struct expectation *e = &expectations[i];
        int without = outcome(NO_SANDBOX, e->try, ALONE);
        if (without != 0 && is_kept_from_all(e) && !machine_cannot(e->name, strerror(without)))
            continue; /* the machine refuses it before we can */
        if (without != 0)
            fail_msg("%s fails without a sandbox too: %d", e->name, without);
        for (enum sandbox_id id = 0; id < SANDBOX_COUNT; id++) {
            expect(e, id, ALONE);
            if (id != SANDBOX_ROOT)
                expect(e, id, UNDER_ROOT);
        }
    }
}

static int in_an_older_thread_gate[2];

static void *connect_when_told(void *self)
{
    char byte;
    (void)self;
    if (read(in_an_older_thread_gate[0], &byte, 1) != 1)
        return NULL;
    return internet_socket() == 0 ? NULL : (void *)(intptr_t)errno;
}

/* The thread is there before the network is closed. */
static int connect_in_an_older_thread(void)
{
    pthread_t id;
    struct err err;
    void *result;
    if (pipe(in_an_older_thread_gate) || pthread_create(&id, NULL, connect_when_told, NULL) ||
        sandbox_close_network(&settings, &err) != ERR_OK || write(in_an_older_thread_gate[1], "g", 1) != 1 ||
        pthread_join(id, &result))
        return -1;
    errno = (int)(intptr_t)result;
    return errno ? -1 : 0;
}

TEST(core_on_its_own_file_reaches_nobody_once_it_listens)
{
    static attempt *const tries[] = {internet_socket, connect_out, connect_to_core, listen_for_others};
    for (size_t i = 0; i < LENGTH_OF(tries); i++)
        assert_int_equal(outcome(SANDBOX_CORE, tries[i], UNDER_ROOT | NETWORK_CLOSED), EPERM);
    assert_int_equal(outcome(SANDBOX_CORE, connect_in_an_older_thread, UNDER_ROOT), EPERM);
    assert_int_equal(outcome(NO_SANDBOX, connect_in_an_older_thread, ALONE), EPERM); /* that wall alone */
    assert_int_equal(outcome(SANDBOX_CORE, write_the_database, UNDER_ROOT | NETWORK_CLOSED), 0);
}

static void set(const char *key, const char *value)
{
    struct err err;
    if (settings_set(&settings, key, value, ORIGIN_FLAG, &err) != ERR_OK)
        fail_msg("%s", err.detail);
}

static void open_settings(void)
{
    settings_init(&settings);
    set("data", data);
}

TEST(core_on_postgres_may_connect_for_good)
{
    set("store.url", "postgres://weir@127.0.0.1/weir?sslrootcert=%2Fbin%2Fsh");
    int out = outcome(SANDBOX_CORE_SHARED, connect_out, UNDER_ROOT | NETWORK_CLOSED);
    int certificate = outcome(SANDBOX_CORE_SHARED, read_outside, UNDER_ROOT);
    settings_free(&settings);
    open_settings();
    assert_int_equal(out, 0);
    assert_int_equal(certificate, 0); /* the file that the URL names */
}

TEST(the_setting_is_obeyed)
{
    set("runtime.sandbox", "off");
    int off = outcome(SANDBOX_RUNNER, execute, UNDER_ROOT);
    set("runtime.sandbox", "log");
    int logged = outcome(SANDBOX_RUNNER, execute, UNDER_ROOT);
    set("runtime.sandbox", "enforce");
    assert_int_equal(off, 0);
    assert_int_equal(logged, 0);
    assert_int_equal(outcome(SANDBOX_RUNNER, execute, UNDER_ROOT), KILLED);
}

/* The kernel takes the shorter rules of older kernels: so each ABI can be tried on a new one. */
TEST(old_kernels_guard_files_too)
{
    for (int abi = 1; abi <= sandbox_landlock_abi(); abi++) {
        int status;
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            bool readable = read_the_database() == 0;
            if (!readable || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
                sandbox_paths_enter(SANDBOX_GATEWAY, &settings, abi) != 0)
                _exit(254);
            _exit(read_the_database() == 0 ? 0 : read_hosts() == 0 ? errno : 255);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), EACCES);
    }
}

static int make_core_dumps_possible(void)
{
    errno = EACCES;
    return prctl(PR_GET_DUMPABLE) == 1 ? 0 : -1;
}

TEST(memory_is_not_for_others_unless_asked_for)
{
    static const enum sandbox_id all[] = {SANDBOX_ROOT, SANDBOX_CORE, SANDBOX_GATEWAY, SANDBOX_RUNNER};
    assert_int_equal(prctl(PR_GET_DUMPABLE), 1); /* the control */
    set("runtime.sandbox", "off");               /* so that asking is allowed */
    for (size_t i = 0; i < LENGTH_OF(all); i++)
        assert_int_not_equal(outcome((int)all[i], make_core_dumps_possible, ALONE), 0);
    set("runtime.core_dumps", "on");
    assert_int_equal(outcome(SANDBOX_CORE, make_core_dumps_possible, ALONE), 0);
    set("runtime.core_dumps", "off");
    set("runtime.sandbox", "enforce");
}

/* docs/operations/sandbox.md holds the tables as the lists give them; write what this prints. */
TEST(the_documentation_has_the_lists)
{
    static char page[65536];
    char *tables = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&tables, &len);
    assert_non_null(out);
    sandbox_markdown(out);
    fclose(out);
    FILE *file = fopen(getenv("WEIR_SANDBOX_PAGE"), "re");
    assert_non_null(file);
    page[fread(page, 1, sizeof page - 1, file)] = 0;
    fclose(file);
    bool same = strstr(page, tables) != NULL;
    if (!same)
        fputs(tables, stderr);
    free(tables);
    assert_true(same);
}

/* ---- what the attempts are made on ---- */

static int listen_on(int family, const void *address, socklen_t len)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, address, len), 0);
    assert_int_equal(listen(fd, 64), 0);
    return fd;
}

static void open_listeners(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    socklen_t len = sizeof listener_address;
    listener = listen_on(AF_INET, &any, sizeof any);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&listener_address, &len), 0);
    memcpy(path.sun_path, unix_path, strlen(unix_path));
    unix_listener = listen_on(AF_UNIX, &path, sizeof path);
}

static int open_world(void **state)
{
    char temporary[80];
    (void)state;
    assert_non_null(mkdtemp(base));
    snprintf(data, sizeof data, "%s/data", base);
    snprintf(database, sizeof database, "%s/weir.db", data);
    snprintf(outside, sizeof outside, "%s/outside", base);
    snprintf(unix_path, sizeof unix_path, "%s/core.sock", data);
    snprintf(temporary, sizeof temporary, "%s/tmp", base);
    assert_int_equal(mkdir(data, 0700), 0);
    assert_int_equal(mkdir(temporary, 0700), 0);
    setenv("TMPDIR", temporary, 1); /* else root might write to all of /tmp, where `base` is */
    assert_int_equal(open_as(database, O_RDWR | O_CREAT), 0);
    scratch_fd = scratch_file_open();
    assert_true(scratch_fd >= 0);
    open_settings();
    open_listeners();
    return 0;
}

static int close_world(void **state)
{
    char command[96];
    (void)state;
    settings_free(&settings);
    close(listener);
    close(unix_listener);
    close(scratch_fd);
    snprintf(command, sizeof command, "rm -rf %s", base);
    return system(command);
}

int main(void)
{
    return test_run("tests", open_world, close_world);
}
