# SPDX-License-Identifier: MIT
"""Compares the structures of the package with the headers: a C program prints sizes and offsets."""
import ctypes
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tandem_infer import _native

INCLUDE = Path(__file__).resolve().parents[3] / "include"


def program():
    """The C program's text."""
    lines = ["#include <stddef.h>", "#include <stdio.h>", '#include "tandem/llama.h"',
             '#include "tandem/tandem.h"', "int main(void)", "{"]
    for name, (struct, _) in _native.STRUCTS.items():
        lines.append(f'    printf("{name} %zu\\n", sizeof(struct tandem_{name}));')
        for field in struct._fields_:
            lines.append(f'    printf("{name}.{field[0]} %zu %zu\\n", '
                         f"offsetof(struct tandem_{name}, {field[0]}), "
                         f"sizeof(((struct tandem_{name} *)0)->{field[0]}));")
    return "\n".join(lines + ["    return 0;", "}", ""])


def differences():
    """Lines that differ, [] where all is well; None without headers or a compiler."""
    compiler = shutil.which(os.environ.get("CC", "cc").split()[-1]) or shutil.which("gcc")
    if compiler is None or not INCLUDE.exists():
        return None
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "layout.c"
        source.write_text(program())
        subprocess.check_call([compiler, "-std=c11", "-I", str(INCLUDE), str(source), "-o",
                               str(source.with_suffix(""))])
        printed = subprocess.check_output([str(source.with_suffix(""))], text=True)
    said = {words[0]: [int(word) for word in words[1:]]
            for words in (line.split() for line in printed.splitlines())}
    wrong = []
    for name, (struct, is_whole) in _native.STRUCTS.items():
        size = ctypes.sizeof(struct)
        if said[name][0] < size or (is_whole and said[name][0] != size):
            wrong.append(f"struct tandem_{name}: {said[name][0]} bytes in C, {size} here")
        for field in struct._fields_:
            member = getattr(struct, field[0])
            if said[f"{name}.{field[0]}"] != [member.offset, member.size]:
                wrong.append(f"tandem_{name}.{field[0]}: offset and size "
                             f"{said[f'{name}.{field[0]}']} in C, {[member.offset, member.size]} here")
    return wrong
