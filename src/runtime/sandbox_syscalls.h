/* runtime/sandbox_syscalls.h - the system calls of each process, in one list. Only for sandbox_*.c.
 *
 * To allow one more: its name in the group it belongs to. Names are libseccomp's (`scmp_sys_resolver`);
 * one that this machine's architecture does not have is passed over. Calls whose arguments matter stand
 * in sandbox_syscalls.c and are named here for the table of the documentation only where it says so. */
#ifndef WEIR_RUNTIME_SANDBOX_SYSCALLS_H
#define WEIR_RUNTIME_SANDBOX_SYSCALLS_H

#include "runtime/sandbox.h"

enum {
    BY_CORE = 1 << SANDBOX_CORE | 1 << SANDBOX_CORE_SHARED,
    BY_CORE_SQLITE = 1 << SANDBOX_CORE,
    BY_GATEWAY = 1 << SANDBOX_GATEWAY,
    BY_RUNNER = 1 << SANDBOX_RUNNER,
    BY_ALL = BY_CORE | BY_GATEWAY | BY_RUNNER,
    BY_ROOT = 0, /* root has every group: its children inherit its wall */
};

/* X(what the group is for, by whom, names) */
#define SANDBOX_SYSCALLS(X)                                                                                  \
    X("reading and writing what is open", BY_ALL,                                                            \
      "read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 close close_range lseek "    \
      "fcntl dup dup2 dup3 fstat pipe pipe2 eventfd2")                                                       \
    X("waiting", BY_ALL,                                                                                     \
      "poll ppoll select pselect6 epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 nanosleep "    \
      "clock_nanosleep alarm timerfd_create timerfd_settime timerfd_gettime setitimer restart_syscall")      \
    X("memory", BY_ALL, "brk munmap mremap madvise membarrier")                                              \
    X("threads", BY_ALL,                                                                                     \
      "futex futex_waitv set_robust_list get_robust_list set_tid_address rseq arch_prctl sched_yield "       \
      "sched_getaffinity getcpu gettid exit exit_group")                                                     \
    X("signals to itself", BY_ALL,                                                                           \
      "rt_sigaction rt_sigprocmask rt_sigreturn rt_sigtimedwait rt_sigpending rt_sigsuspend pause "          \
      "sigaltstack")                                                                                         \
    X("asking who and when", BY_ALL,                                                                         \
      "clock_gettime clock_getres gettimeofday time times getrusage getrlimit getpid getppid getpgrp "       \
      "getpgid getsid getuid geteuid getgid getegid getresuid getresgid getgroups uname sysinfo getrandom "  \
      "getpriority")                                                                                         \
    X("looking at files", BY_ALL,                                                                            \
      "stat lstat newfstatat statx readlink readlinkat access faccessat faccessat2 getdents64 getcwd "       \
      "statfs fstatfs umask")                                                                                \
    X("changing files", BY_CORE,                                                                             \
      "rename renameat renameat2 unlink unlinkat mkdir mkdirat rmdir chmod fchmod fchmodat fchown "          \
      "truncate fallocate fsync fdatasync sync_file_range flock utimensat")                                  \
    X("one file without a name", BY_CORE | BY_RUNNER, "ftruncate fadvise64")                                 \
    X("a lower priority", BY_RUNNER, "setpriority")                                                          \
    X("using a socket", BY_ALL,                                                                              \
      "connect sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg shutdown getsockname getpeername "          \
      "getsockopt setsockopt")                                                                               \
    X("a local address for a socket", BY_CORE | BY_GATEWAY, "bind")                                          \
    X("taking connections", BY_CORE, "listen accept accept4")                                                \
    X("a wall more", BY_CORE_SQLITE, "seccomp")                                                              \
    X("other processes and their walls", BY_ROOT,                                                            \
      "fork vfork wait4 waitid kill tgkill tkill setpgid signalfd4 pidfd_open pidfd_send_signal seccomp "    \
      "landlock_create_ruleset landlock_add_rule landlock_restrict_self")

/* Calls that no code of Weir makes: a process that makes one is ended. Allowed nowhere. */
#define SANDBOX_HOSTILE                                                                                      \
    "execve execveat ptrace process_vm_readv process_vm_writev process_madvise kcmp pidfd_getfd "            \
    "init_module finit_module delete_module kexec_load kexec_file_load bpf perf_event_open userfaultfd "     \
    "mount umount2 pivot_root chroot move_mount open_tree fsopen fsmount fsconfig mount_setattr "            \
    "setns unshare reboot swapon swapoff iopl ioperm modify_ldt open_by_handle_at acct quotactl "            \
    "settimeofday clock_settime adjtimex clock_adjtime"

#endif
