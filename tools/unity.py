#!/usr/bin/env python3
"""Joins C++ files of one folder into files that include them, so that headers are read once for many.

    unity.py OUTPUT_FOLDER SOURCE...

Writes OUTPUT_FOLDER/*.cpp and prints their names, one a line. Files whose names of their own (in unnamed namespaces, of
macros) meet are kept apart, and so is a file whose own type has a name that another one uses for something else. Files that
compile themselves several times (Highway's foreach_target.h) stay alone.
"""
import pathlib
import re
import sys

LINES = 1600  # of a joined file: more saves little, and both cores should have work
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.DOTALL)
MACRO = re.compile(r"^#\s*define\s+(\w+)", re.MULTILINE)
NAME = re.compile(r"\b([A-Za-z_]\w*)\s*(?:\(|=|\{|\[|;|:(?!:))")
GTEST = re.compile(r"\b(?:TEST(?:_[FP])?|INSTANTIATE_TEST_SUITE_P|GTEST_\w+)\s*\(")  # called, not declared


def own_names(text):
    """Names that a file declares for itself alone: whatever stands before ( = { [ ; : at the outer level of an unnamed
    namespace, macros. Too many rather than too few."""
    names = set(MACRO.findall(text))
    at = text.find("namespace {")
    while at >= 0:
        depth, begin, outer = 0, text.index("{", at), []
        for i in range(begin, len(text)):
            if text[i] == "{":
                depth += 1
                if depth == 2:
                    outer.append("{")
            elif text[i] == "}":
                depth -= 1
                if depth == 0:
                    break
            elif depth == 1:
                outer.append(text[i])
        names.update(NAME.findall("".join(outer)))
        at = text.find("namespace {", i)
    return names


class Source:
    def __init__(self, path):
        self.path = path
        text = path.read_text(encoding="utf-8")
        self.lines = text.count("\n")
        self.alone = "foreach_target.h" in text
        text = GTEST.sub("(", COMMENT.sub(" ", text))
        self.words = set(re.findall(r"\w+", text))
        self.names = own_names(text)

    def fits(self, other):
        types = {name for name in self.names if name[0].isupper()} & other.words
        types |= {name for name in other.names if name[0].isupper()} & self.words
        return not (self.alone or other.alone or self.path.parent != other.path.parent or types or self.names & other.names)


def joined(paths):
    """Groups of files that fit together, of at most LINES."""
    groups = []
    for source in map(Source, paths):
        for group in groups:
            if sum(s.lines for s in group) + source.lines <= LINES and all(source.fits(s) for s in group):
                group.append(source)
                break
        else:
            groups.append([source])
    return [[source.path for source in group] for group in groups]


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    output = pathlib.Path(sys.argv[1])
    output.mkdir(parents=True, exist_ok=True)
    for number, files in enumerate(joined([pathlib.Path(name) for name in sys.argv[2:]])):
        if len(files) == 1:
            print(files[0])
            continue
        path = output / f"{files[0].parent.name}_{number}.cpp"
        text = "".join(f'#include "{name}"\n' for name in files)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
