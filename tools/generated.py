"""What the generators of the build share: the files of a folder, and how their output is written."""
import os


def files_of(folder, ending):
    """The files of a folder with this ending, by name."""
    return sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(ending))


def write(path, text):
    """Writes the file when it would change: whoever includes it is compiled again only then."""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def write_depfile(path, output, sources):
    """Tells ninja what was read. A folder among the sources: a file that comes or goes counts, too."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{output}: {' '.join(sources)}\n")
