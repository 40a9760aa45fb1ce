#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_mirrors.py SOURCE CC [FC LIBRARY]: what the Python package and the Fortran module say of structs, enumerations
and functions is what the public headers have: a C program prints sizes, offsets and numbers, and the headers' text
gives names and their order. Exit 77: no compiler; without FC the Fortran types are compared by their members' names
only."""
import ctypes
import glob
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
COMMENT = re.compile(r"/\*.*?\*/", re.S)
PREFIXES = {"attune_status": "ATTUNE_", "attune_mode": "ATTUNE_MODE_", "attune_measure": "ATTUNE_MEASURE_",
            "attune_source": "ATTUNE_SOURCE_", "attune_device_kind": "ATTUNE_DEVICE_",
            "attune_memory_kind": "ATTUNE_KIND_", "attune_activation": "ATTUNE_ACTIVATION_"}


def headers(source):
    return "\n".join(COMMENT.sub("", open(path, encoding="utf-8").read())
                     for path in sorted(glob.glob(os.path.join(source, "include", "attune", "*.h"))))


def members(text, struct):
    """Names of a struct's members, in order; None: there is no such struct."""
    found = re.search(r"typedef struct %s \{([^}]*)\} %s;" % (struct, struct), text)
    if not found:
        return None
    names = []
    for declaration in found[1].split(";"):
        for part in declaration.split(","):
            name = re.search(r"(\w+)(?:\[[^\]]*\])*\s*$", part.strip())
            if name:
                names.append(name[1])
    return names


def enumerators(text, enum):
    found = re.search(r"typedef enum %s \{([^}]*)\} %s;" % (enum, enum), text)
    return dict(re.findall(r"(\w+)\s*=\s*(-?\d+)", found[1])) if found else None


def prototype(text, function):
    """A function's result and the kinds of its arguments: "pointer", or the type's name."""
    found = re.search(r"ATTUNE_API\s+([\w\s]+?\**)\s*\b%s\(([^)]*)\);" % function, text)
    if not found:
        return None
    def kind(declaration):
        words = re.sub(r"\bconst\b", "", declaration)
        if "*" in words or "[" in words:
            return "pointer"
        return words.split()[0]
    arguments = [kind(part) for part in found[2].split(",")] if found[2].strip() != "void" else []
    result = "pointer" if "*" in found[1] else found[1].split()[0]
    return result, arguments


def run_c(source, cc, folder, structs, text):
    lines = ["#include <attune/attune.h>", "#include <attune/tools.h>", "#include <stddef.h>", "#include <stdio.h>", "int main(void) {"]
    for struct in structs:
        lines.append(f'  printf("{struct} %zu\\n", sizeof({struct}));')
        for name in members(text, struct):
            lines.append(f'  printf("{struct}.{name} %zu\\n", offsetof({struct}, {name}));')
    for name in ("DIMS", "PROBLEM_CHARS", "BROADCAST", "VERSION_MAJOR", "VERSION_MINOR"):
        name = "ATTUNE_" + name
        lines.append(f'  printf("{name} %lld\\n", (long long){name});')
    lines.append("  return 0;\n}")
    return run_program(lines, folder, "c", [cc, "-std=c11", "-I", os.path.join(source, "include")])


def run_program(lines, folder, end, command, more=()):
    path, program = os.path.join(folder, "layout." + end), os.path.join(folder, "layout_" + end)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    subprocess.run([*command, path, *more, "-o", program], check=True)
    printed = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout
    return {line.split()[0]: int(line.split()[1]) for line in printed.splitlines()}


def python(source, text, c, failures):
    sys.path.insert(0, os.path.join(source, "bindings", "python"))
    from attune import _c

    for struct, mirror in _c.STRUCTS.items():
        own = [field[0] for field in mirror._fields_]
        if own != members(text, struct):
            failures.append(f"_c.py, {struct}: members are {own}; the header has {members(text, struct)}")
            continue
        offsets = {f"{struct}.{name}": getattr(mirror, name).offset for name in own}
        compare(f"_c.py, {struct}", {struct: ctypes.sizeof(mirror), **offsets},
                {name: value for name, value in c.items() if name.split(".")[0] == struct}, failures)
    for enum, mirror in _c.ENUMS.items():
        prefix = PREFIXES.get(enum, "ATTUNE_")
        compare(f"_c.py, {enum}", {prefix + word.upper(): number for word, number in mirror.items()},
                {name: int(number) for name, number in enumerators(text, enum).items()}, failures)
    compare("_c.py", {"ATTUNE_DIMS": _c.DIMS, "ATTUNE_PROBLEM_CHARS": _c.PROBLEM_CHARS,
                      "ATTUNE_BROADCAST": _c.BROADCAST, "ATTUNE_VERSION_MAJOR": _c.VERSION[0],
                      "ATTUNE_VERSION_MINOR": _c.VERSION[1]},
            {name: value for name, value in c.items() if name.isupper()}, failures)
    kinds = {ctypes.c_int: "int", ctypes.c_double: "double", ctypes.c_size_t: "size_t", ctypes.c_uint64: "uint64_t",
             ctypes.c_int64: "int64_t", None: "void", _c.STATUS: "attune_status"}
    enums = set(_c.ENUMS) - {"attune_status"}
    # An enumeration is an int; c_size_t and c_uint64 are one type here, so both names will do.
    alike = lambda own, word: own == word or (own == "int" and word in enums) or {own, word} == {"size_t", "uint64_t"}
    for function, (result, arguments) in _c.FUNCTIONS.items():
        said = prototype(text, function)
        own = kinds.get(result, "pointer"), [kinds.get(argument, "pointer") for argument in arguments]
        if said is None:
            failures.append(f"_c.py: the headers have no {function}")
        elif not (alike(own[0], said[0]) and len(own[1]) == len(said[1]) and all(map(alike, own[1], said[1]))):
            failures.append(f"_c.py, {function}: {own}; the header has {said}")


def fortran(source, text, c, fc, library, folder, failures):
    module = os.path.join(source, "bindings", "fortran", "attune.f90")
    code = re.sub(r"&\n\s*", "", open(module, encoding="utf-8").read())
    code = "\n".join(line.split("!")[0] for line in code.splitlines())
    types = {name: re.findall(r"::\s*(\w+)", body)
             for name, body in re.findall(r"type, bind\(C\), public :: (\w+)\n(.*?)end type", code, re.S)}
    if len(types) < 8:
        failures.append(f"attune.f90: only {sorted(types)} are types of C")
    for struct, own in types.items():
        if own != members(text, struct):
            failures.append(f"attune.f90, {struct}: members are {own}; the header has {members(text, struct)}")
    numbers = {name: int(value) for line in re.findall(r"parameter, public :: (.*)", code)
               for name, value in re.findall(r"(attune_\w+) = (-?\d+)", line)}
    every = {name.lower(): int(value) for body in re.findall(r"typedef enum \w+ \{([^}]*)\}", text)
             for name, value in re.findall(r"(\w+)\s*=\s*(-?\d+)", body)}
    every.update({name.lower(): value for name, value in c.items() if name.isupper()})
    compare("attune.f90", numbers, {name: every.get(name) for name in numbers}, failures)
    for enum in ("attune_status", "attune_dtype", "attune_accuracy", "attune_mode", "attune_measure", "attune_source"):
        for name in enumerators(text, enum):
            if name.lower() not in numbers:
                failures.append(f"attune.f90 lacks {name.lower()}")
    signatures(text, code, failures)
    if fc:
        layout = run_fortran(module, fc, library, folder, types)
        compare("attune.f90", layout, {name: c.get(name) for name in layout}, failures)


def run_fortran(module, fc, library, folder, types):
    lines = ["program layout", "use attune", "use, intrinsic :: iso_c_binding", "implicit none"]
    lines += [f"type({struct}), target :: x{i}" for i, struct in enumerate(types)]
    for i, (struct, names) in enumerate(types.items()):
        lines.append(f'call say("{struct}", int(c_sizeof(x{i}), c_intptr_t))')
        lines += [f'call say("{struct}.{name}", &\n  at(c_loc(x{i}%{name})) - at(c_loc(x{i})))' for name in names]
    lines += ["contains", "integer(c_intptr_t) function at(p)", "type(c_ptr), intent(in) :: p", "at = transfer(p, at)",
              "end function", "subroutine say(name, value)", "character(*), intent(in) :: name",
              "integer(c_intptr_t), intent(in) :: value", 'print "(a, 1x, i0)", name, value', "end subroutine",
              "end program"]
    subprocess.run([fc, "-J", folder, "-I", folder, "-c", module, "-o", os.path.join(folder, "attune.o")], check=True)
    return run_program(lines, folder, "f90", [fc, "-I", folder], [os.path.join(folder, "attune.o"), library,
                                                                  "-Wl,-rpath," + os.path.dirname(library)])


def signatures(text, code, failures):
    """Functions of C that the module declares: as many arguments, by value where C has values."""
    found = re.findall(r"(?:function|subroutine) \w+\(([\w, ]*)\)\s*bind\(C, name=\"(attune_\w+)\"\)(.*?)"
                       r"end (?:function|subroutine)", code, re.S)
    if len(found) < 15:
        failures.append(f"attune.f90: only {len(found)} functions of C are found in it")
    for names, function, body in found:
        said = prototype(text, function)
        if said is None:
            failures.append(f"attune.f90: the headers have no {function}")
            continue
        own = []
        for name in filter(None, (part.strip() for part in names.split(","))):
            declared = re.search(r"([\w]+)\((\w+)\)([^\n]*)::[^\n]*\b%s\b" % name, body)
            value = declared and "value" in declared[3]
            own.append({"c_double": "double", "c_int": "int", "c_size_t": "size_t", "c_ptr": "pointer"}.get(declared[2])
                       if value else "pointer" if declared else None)
        if own != said[1]:
            failures.append(f"attune.f90, {function}: {own}; the header has {said[1]}")


def compare(what, own, header, failures):
    for name in {**own, **header}:
        if own.get(name) != header.get(name):
            failures.append(f"{what}: {name} is {own.get(name)}; the headers have {header.get(name)}")


def main():
    source, cc, fc, library = (sys.argv + ["", ""])[1:5]
    if not cc:
        print("skipped: no C compiler")
        sys.exit(77)
    failures, text = [], headers(source)
    sys.path.insert(0, os.path.join(source, "bindings", "python"))
    from attune import _c
    structs = sorted(set(_c.STRUCTS))
    missing = [struct for struct in structs if members(text, struct) is None]
    with tempfile.TemporaryDirectory() as folder:
        if missing:
            failures.append(f"the headers have no {missing}")
        else:
            c = run_c(source, cc, folder, structs, text)
            python(source, text, c, failures)
            fortran(source, text, c, fc, library, folder, failures)
    print("\n".join(failures) or "the mirrors are as the headers are")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
