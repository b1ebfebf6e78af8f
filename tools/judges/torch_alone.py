# SPDX-License-Identifier: MIT
# Makes the torch of an environment importable without the 3 GB of NVIDIA's libraries that its wheel
# links: for each one that is missing, a library of that name whose functions all fail. Nothing here
# computes on a GPU. Needs cc and readelf; the stubs are placed beside torch's own libraries, where its
# loader looks first.
#
# usage: PYTHON torch_alone.py
import glob
import os
import re
import subprocess
import sysconfig
import tempfile


def read(option, path):
    return subprocess.run(["readelf", "-W", option, path], capture_output=True, text=True).stdout


def symbols(path):
    """(name, version or "", whether it is defined here) of each dynamic symbol."""
    for line in read("--dyn-syms", path).splitlines():
        words = line.split()
        if len(words) > 7 and words[0][:-1].isdigit():
            name, _, version = words[7].replace("@@", "@").partition("@")
            yield name, version, words[6] != "UND"


def versions(path):
    """(library, version) of each version that a library asks of another."""
    library = ""
    for line in read("-V", path).splitlines():
        found = re.search(r"File: (\S+)", line)
        library = found[1] if found else library
        found = re.search(r"Name: (\S+) .*Flags", line)
        if found and library:
            yield library, found[1]


def build(folder, soname, functions):
    """`functions`: of each version ("": none) the names."""
    with tempfile.TemporaryDirectory() as here:
        source, script = os.path.join(here, "a.c"), os.path.join(here, "a.map")
        with open(source, "w") as file:
            for name in sorted(set().union(*functions.values())):
                is_text = re.search("String$|Name$", name)
                file.write(f'const char *{name}(void) {{ return "no GPU"; }}\n' if is_text else
                           f"long {name}(void) {{ return 999; }}\n")
        with open(script, "w") as file:
            file.writelines(f"{version} {{ global: {' '.join(n + ';' for n in sorted(names))} }};\n"
                            for version, names in functions.items() if version)
        subprocess.run(["cc", "-w", "-fno-builtin", "-shared", "-fPIC", source, f"-Wl,-soname,{soname}",
                        "-o", os.path.join(folder, soname)] +
                       ([f"-Wl,--version-script={script}"] if os.path.getsize(script) else []), check=True)


def main():
    package = os.path.join(sysconfig.get_path("platlib"), "torch")
    folder = os.path.join(package, "lib")
    parts = glob.glob(os.path.join(folder, "*.so*"))
    needed = {name for path in parts for name in re.findall(r"NEEDED.*\[(.*)\]", read("-d", path))}
    there = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True).stdout
    there = set(re.findall(r"^\s*(\S+) ", there, re.M)) | {os.path.basename(path) for path in parts}
    every = {s for path in parts for s in symbols(path)}
    defined = {name for name, _, is_here in every if is_here}
    wanted = {(n, v) for n, v, is_here in every if not is_here and n not in defined}
    asked = {pair for path in parts for pair in versions(path)}
    missing = sorted(n for n in needed - there if re.match("lib(cu|nv|nccl)", n))
    plain = {n for n, v in wanted if v == "" and re.match("_*(cu|nv|nccl)", n)}
    for soname in missing:
        functions = {v: {n for n, of in wanted if of == v} for library, v in asked if library == soname}
        build(folder, soname, functions or {"": plain})
    print(f"torch: {len(missing)} of NVIDIA's libraries have stand-ins")


if __name__ == "__main__":
    main()
