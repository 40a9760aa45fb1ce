#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_doxygen.py ROOT XML: every public name of the headers is in Doxygen's output, with a comment:
functions, types, macros. An enumerator and a member need none of their own where their type has one."""
import glob
import os
import re
import sys
import xml.etree.ElementTree as Tree


def text_of(node):
    return "".join(node.itertext()).strip() if node is not None else ""


def has_comment(node):
    return any(text_of(node.find(kind)) for kind in ("briefdescription", "detaileddescription", "inbodydescription"))


def in_headers(root):
    """Names that a program sees: all that begins with attune_ or ATTUNE_ outside of comments, include guards apart."""
    names = set()
    for path in glob.glob(os.path.join(root, "include/attune/*.h")):
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)
        names |= set(re.findall(r"\b(?:attune|ATTUNE)_\w+", re.sub(r"(?m)^#\s*include.*$", "", text)))
    return {name for name in names if not re.fullmatch(r"ATTUNE_(\w+_)?H|ATTUNE_API", name)}


def in_output(folder):
    """What Doxygen has of each name: True with a comment, False without."""
    found = {}

    def see(name, commented):
        found[name] = found.get(name, False) or commented

    for path in glob.glob(os.path.join(folder, "*.xml")):
        for compound in Tree.parse(path).getroot().iter("compounddef"):
            if compound.get("kind") in ("struct", "union"):
                see(compound.findtext("compoundname"), has_comment(compound))
            if compound.get("kind") not in ("file", "struct", "union"):
                continue
            for member in compound.iter("memberdef"):
                commented = has_comment(member)
                if member.get("kind") != "variable":
                    see(member.findtext("name"), commented)
                for value in member.iter("enumvalue"):
                    see(value.findtext("name"), commented or has_comment(value))
    return found


def main(root, folder):
    names, found = in_headers(root), in_output(folder)
    wrong = [f"{name} is not in the reference" for name in sorted(names - set(found))]
    wrong += [f"{name} has no comment in the reference" for name in sorted(names & set(found)) if not found[name]]
    for line in wrong:
        print(line)
    print(f"{len(names)} public names, {len(wrong)} wrong")
    return 1 if wrong or len(names) < 100 else 0


sys.exit(main(sys.argv[1], sys.argv[2]))
