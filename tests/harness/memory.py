"""What lies in the memory of a process: /proc/PID/maps, pagemap and mem, for root or, where processes are
dumpable, their own user."""
import struct

PAGE = 4096
IN_MEMORY = 3 << 62  # present, or swapped out
SHADOW_BYTES = 8 << 30  # a sanitizer's shadow is larger, and holds no copy of anything


def readable_maps(pid):
    """(begin, end) of what the process may read."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        for line in maps:
            place, rights = line.split()[:2]
            begin, end = (int(text, 16) for text in place.split("-"))
            if rights.startswith("r") and end - begin < SHADOW_BYTES and "[v" not in line:
                yield begin, end


def runs_in_memory(pagemap, begin, end):
    """(begin, end) of pages one behind the other that were ever used."""
    pagemap.seek(begin // PAGE * 8)
    entries = pagemap.read((end - begin) // PAGE * 8)
    run = None
    for index, (entry,) in enumerate(struct.iter_unpack("=Q", entries)):
        if entry & IN_MEMORY and run is None:
            run = begin + index * PAGE
        elif not entry & IN_MEMORY and run is not None:
            yield run, begin + index * PAGE
            run = None
    if run is not None:
        yield run, end


def found_in(pid, markers):
    """Those of the markers that stand anywhere in the process. PermissionError where nobody may look."""
    found = set()
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory, \
            open(f"/proc/{pid}/pagemap", "rb", buffering=0) as pagemap:
        for area in readable_maps(pid):
            for begin, end in runs_in_memory(pagemap, *area):
                try:
                    memory.seek(begin)
                    content = memory.read(end - begin)
                except (OSError, OverflowError):
                    continue  # unmapped meanwhile, or a file that became shorter
                found.update(marker for marker in markers if marker.encode() in content)
    return found
