"""Every page: its links, and the commands that it tells people to type."""
import functools
import glob
import os
import re

import pytest

from harness.weir_server import REPOSITORY

pytestmark = pytest.mark.any_store
PAGES = [os.path.relpath(path, REPOSITORY) for path in
         [os.path.join(REPOSITORY, "README.md"), os.path.join(REPOSITORY, "ARCHITECTURE.md"),
          os.path.join(REPOSITORY, "deploy", "README.md"),
          *sorted(glob.glob(os.path.join(REPOSITORY, "docs", "*.md"))),
          *sorted(glob.glob(os.path.join(REPOSITORY, "docs", "operations", "*.md")))]]
GLOSSARY = "docs/glossary.md"
COMMAND = re.compile(r"(?:^|[|(;&]|\bsudo -u weir )\s*(?:\$ )?(?:build/)?weir ([a-z][^|;&#)]*)")
MISTAKES = [["job", "lsit"], ["job", "list", "--stat", "failed"]]  # that a page shows on purpose


@functools.cache
def text_of(page):
    """A page without its fenced blocks, and the blocks."""
    with open(os.path.join(REPOSITORY, page), encoding="utf-8") as file:
        whole = file.read()
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", whole, re.M | re.S)
    return re.sub(r"^```.*?^```$", "", whole, flags=re.M | re.S), blocks


def anchors(page):
    """What may follow a # behind the name of a page: its headings, as Markdown names them, and marks."""
    prose, _ = text_of(page)
    found = set(re.findall(r'<a id="([^"]+)">', prose))
    for heading in re.findall(r"^#+ (.+)$", prose, re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", text_of(page)[0]):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, anchor = target.partition("#")
        there = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        assert os.path.exists(os.path.join(REPOSITORY, there)), f"{page}: {target}: no such file"
        if anchor:
            assert anchor in anchors(there), f"{page}: {target}: no such heading"


def test_the_glossary_has_each_word_once_and_others_link_to_it():
    prose, _ = text_of(GLOSSARY)
    words = re.findall(r'^\| <a id="([^"]+)"></a>([^|]+) \|', prose, re.M)
    assert len(words) > 30 and len(set(words)) == len(words)
    assert all(mark == name.replace(" ", "-") for mark, name in words)
    linked = [page for page in PAGES if page != GLOSSARY and "glossary.md" in text_of(page)[0]]
    assert len(linked) >= 5, linked


def commands_of(page):
    """The command lines of `weir` in the blocks of a page, as words without the program's name."""
    for language, block in text_of(page)[1]:
        if language not in ("", "sh"):
            continue
        joined = re.sub(r"\\\n\s*", " ", re.sub(r"<<'END'.*?^END$", "", block, flags=re.M | re.S))
        for line in joined.splitlines():
            if not language and not line.startswith("$ "):
                continue  # output
            yield from (found.split() for found in COMMAND.findall(line))


@pytest.fixture(name="helps", scope="module")
def help_of_commands(weir):
    """A function: the help text of a command, asked for once."""
    listed = weir.cli("help").stdout

    @functools.cache
    def of(words):
        names = [" ".join(words[:n]) for n in (3, 2, 1)]
        known = [name for name in names if re.search(rf"^  weir {re.escape(name)}(?: |$)", listed, re.M)]
        assert known, f"no command: weir {' '.join(words)}"
        return weir.cli(*known[0].split(), "--help").stdout

    return of


def unknown_flags(words, helps):
    """The flags of a command line that its command does not have."""
    said = helps(tuple(word for word in words[:3] if re.fullmatch(r"[a-z][a-z-]*", word)))
    return [flag for flag in (word.partition("=")[0] for word in words if re.match(r"--[a-z]", word))
            if not re.search(rf"{flag}(?![\w-])", said)]


@pytest.mark.parametrize("page", PAGES)
def test_every_command_and_flag_of_a_page_exists(page, helps):
    for words in commands_of(page):
        if words not in MISTAKES:
            assert not unknown_flags(words, helps), f"{page}: weir {' '.join(words)}"


def test_commands_are_found_and_mistakes_seen(helps):
    """Controls: pages have many commands, and neither a wrong command nor a wrong flag passes."""
    assert len(list(commands_of("docs/cli.md"))) > 50 and len(list(commands_of("README.md"))) > 15
    assert unknown_flags(["job", "list", "--stat", "failed"], helps) == ["--stat"]
    with pytest.raises(AssertionError):
        unknown_flags(["jobs", "list"], helps)
