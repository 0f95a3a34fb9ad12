"""What is measured. One file per subject; a peer is a further file with a class of the same methods.

A subject starts from nothing in a given folder, takes the same 300-byte jobs, and answers each step
with a dict like the line weir-load prints: seconds, jobs, requests, errors, calls {name: p50_us,
p99_us, p999_us, max_us}, cpu_user_s and cpu_system_s of the load's own process. A step it does not
have is None, and its cell stays empty.

    start(folder, **settings) -> seconds until it serves     stop() -> seconds    root_pid
    version() -> text                                        stored_bytes() -> int
    null submit batch drain lifecycle pickup get             commits() -> int or None
"""
