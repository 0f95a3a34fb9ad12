"""Writes a C file with the numbered SQL files as strings: embed_migrations.py OUT FILE..."""
import sys


def quoted(text):
    lines = []
    for line in text.splitlines():
        if line.strip():
            lines.append('    "' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"')
    return "\n".join(lines)


out, files = sys.argv[1], sorted(sys.argv[2:])
with open(out, "w") as f:
    f.write('#include "store/migrations/migrations.h"\n\nconst char *const store_migrations[] = {\n')
    for name in files:
        with open(name) as sql:
            f.write(quoted(sql.read()) + ",\n")
    f.write("};\n")
