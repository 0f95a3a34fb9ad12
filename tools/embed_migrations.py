"""Writes a C file with the numbered SQL files of both databases: embed_migrations.py OUT FILE...

A file is DIALECT/NNN_name.sql. Numbers go from 1 on without a gap; one that a dialect has no file of changed
nothing there."""
import os
import sys


def quoted(text):
    lines = []
    for line in text.splitlines():
        if line.strip():
            lines.append('        "' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"')
    return "\n".join(lines)


out, files = sys.argv[1], {}
for name in sys.argv[2:]:
    dialect, number = os.path.basename(os.path.dirname(name)), int(os.path.basename(name)[:3])
    if dialect in files.setdefault(number, {}):
        sys.exit(f"{name}: there is another file {number:03} of {dialect}")
    files[number][dialect] = name
if sorted(files) != list(range(1, len(files) + 1)):
    sys.exit("migrations: the numbers have a gap")
with open(out, "w") as f:
    f.write('#include "store/migrations/migrations.h"\n\n')
    f.write(f'_Static_assert(STORE_SCHEMA_VERSION == {len(files)}, "the number of the last migration");\n\n')
    f.write("const struct store_migration store_migrations[STORE_SCHEMA_VERSION] = {\n")
    for number in sorted(files):
        f.write("    {\n")
        for dialect, name in sorted(files[number].items()):
            with open(name) as sql:
                f.write(f"        .{dialect} =\n{quoted(sql.read())},\n")
        f.write("    },\n")
    f.write("};\n")
