"""What the figures were taken on: cores, memory, disk with its measured sync time, commit."""
import mmap
import os
import platform
import subprocess
import time

from measure import processes

SYNC_BYTES = 4096
TOUCH_SHARE = 0.7   # of the memory that is free
TOUCH_BYTES = 64 << 20


def output_of(*command, cwd=None):
    """A command's first line; "" when it fails or is not there."""
    try:
        ran = subprocess.run(command, cwd=cwd, check=False, capture_output=True, text=True)
    except OSError:
        return ""
    return ran.stdout.strip().partition("\n")[0] if ran.returncode == 0 else ""


def sync_times(folder, seconds, recycled):
    """Sorted seconds per write + fdatasync of 4 KiB: appended, or written over as a recycled log."""
    path = os.path.join(folder, "sync.probe")
    block, times, written = b"x" * SYNC_BYTES, [], 0
    file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    try:
        if recycled:
            os.write(file, block * 4096)
            os.fsync(file)
        end = time.monotonic() + seconds
        while (start := time.monotonic()) < end:
            os.pwrite(file, block, written % (4096 * SYNC_BYTES) if recycled else written)
            os.fdatasync(file)
            written += SYNC_BYTES
            times.append(time.monotonic() - start)
    finally:
        os.close(file)
        os.unlink(path)
    return sorted(times)


def touch_memory():
    """Uses most of the free memory once. A virtual machine gets its memory when it first touches it, which
    is slow: whoever grows into it, a store with many jobs in the page cache, would pay for that."""
    with open("/proc/meminfo", encoding="ascii") as file:
        free = next(int(line.split()[1]) << 10 for line in file if line.startswith("MemFree:"))
    with mmap.mmap(-1, TOUCH_BYTES + int(free * TOUCH_SHARE)) as memory:
        block = b"x" * TOUCH_BYTES
        for _ in range(len(memory) // TOUCH_BYTES):
            memory.write(block)


def disk_sync(folder, seconds=1.0):
    """fdatasync of this disk, now: per second and milliseconds."""
    found = {}
    for name, recycled in (("append", False), ("overwrite", True)):
        times = sync_times(folder, seconds, recycled)
        found[name] = {"per_second": round(len(times) / sum(times)),
                       "p50_ms": round(times[len(times) // 2] * 1e3, 3),
                       "p99_ms": round(times[len(times) * 99 // 100] * 1e3, 3)}
    return found


def cpu_model():
    """The processor's name as the kernel gives it."""
    for line in processes.read("/proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def file_system(folder):
    """Type of the file system that holds the folder."""
    return output_of("findmnt", "-n", "-o", "FSTYPE", "-T", folder)


def commit(repository):
    """The commit measured; '+changes' when the tree differs from it."""
    name = output_of("git", "rev-parse", "--short=12", "HEAD", cwd=repository)
    changed = output_of("git", "status", "--porcelain", "--", "src", "bench", cwd=repository)
    return (name or "none yet") + ("+changes" if changed else "")


def facts(repository, folder):
    """Everything about the machine a reader needs to judge the figures."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cores": os.cpu_count(),
        "cpu": cpu_model(),
        "memory_gib": round(pages / 2**30, 1),
        "kernel": platform.release(),
        "file_system": file_system(folder),
        "fdatasync": disk_sync(folder),
        "load_average": round(os.getloadavg()[0], 2),
        "commit": commit(repository),
    }
