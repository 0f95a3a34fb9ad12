/* Checks of the sandbox: the features of the kernel, and the state of the running processes. */
#include <limits.h>
#include <stdio.h>

#include "base/json.h"
#include "cli/doctor.h"
#include "runtime/sandbox.h"

#include "base/banned.h"

enum { TOPOLOGY_BYTES_MAX = 65536 };

struct walls {
    int processes, filtered;
};

/* "2" of the line "Seccomp:\t2": a filter. False when it is no process of Weir's (any more). */
static bool look_at_process(int64_t pid, bool *ret_filtered)
{
    char path[48], line[256];
    bool ours = false;
    *ret_filtered = false;
    snprintf(path, sizeof path, "/proc/%lld/status", (long long)pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        ours = ours || strncmp(line, "Name:\tweir", 10) == 0;
        *ret_filtered = *ret_filtered || strncmp(line, "Seccomp:\t2", 10) == 0;
    }
    if (file)
        fclose(file);
    return ours;
}

static struct walls look_at_topology(const char *data_dir)
{
    static char text[TOPOLOGY_BYTES_MAX];
    struct walls found = {0};
    char path[PATH_MAX];
    const struct json *root = NULL;
    struct err err;
    if (snprintf(path, sizeof path, "%s/topology.json", data_dir) >= (int)sizeof path)
        return found;
    FILE *file = fopen(path, "re");
    if (!file)
        return found;
    struct str content = {text, fread(text, 1, sizeof text, file)};
    fclose(file);
    struct arena *a = arena_new(4096);
    const struct json *list =
        json_parse(a, content, &root, &err) == ERR_OK ? json_get(root, "processes") : NULL;
    for (const struct json *p = list ? list->child : NULL; p; p = p->next) {
        const struct json *number = json_get(p, "pid");
        int64_t pid;
        bool filtered;
        if (number && json_to_int(number, &pid) && look_at_process(pid, &filtered)) {
            found.processes++;
            found.filtered += filtered;
        }
    }
    arena_free(a);
    return found;
}

struct finding doctor_sandbox(const struct doctor *d)
{
    enum sandbox_mode mode = sandbox_mode(&d->settings);
    int abi = sandbox_landlock_abi();
    struct walls w = look_at_topology(d->settings.data_dir);
    char running[80] = "", files[48] = "no Landlock";
    if (w.processes)
        snprintf(running, sizeof running, "; %d of %d running processes have their filter", w.filtered,
                 w.processes);
    if (abi)
        snprintf(files, sizeof files, "Landlock ABI %d", abi);
    if (mode != SANDBOX_OFF && !sandbox_has_seccomp())
        return finding(FINDING_FAIL, "set runtime.sandbox to off, or use a kernel with seccomp",
                       "this kernel has no seccomp");
    if (mode != SANDBOX_ENFORCE)
        return finding(FINDING_WARN, "set runtime.sandbox to enforce", "runtime.sandbox is %s; %s%s",
                       d->settings.runtime_sandbox, files, running);
    if (w.filtered < w.processes)
        return finding(FINDING_WARN, "restart it: it was started with another setting", "%s%s", files,
                       running);
    return finding(abi ? FINDING_OK : FINDING_WARN,
                   "a kernel with Landlock (5.13, lsm=landlock) also guards files; see "
                   "docs/operations/sandbox.md",
                   "seccomp, %s%s", files, running);
}
