#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs what is missing for building (deps.sh demo) or for everything (deps.sh check, the default).
# As root with apt-get: installs. Otherwise: prints the exact package names (of Debian, Fedora, Arch or
# Alpine), and fails only when a required package is missing. Plain sh: it runs before anything is
# installed. `deps.sh names` prints the names of all of them.
set -u
goal=${1:-check}

# Names of a Debian (and Ubuntu) package elsewhere; -: part of another package, or there is none.
names() {
    cat <<'END'
Debian                  Fedora               Arch                     Alpine
make                    make                 make                     make
gcc                     gcc                  gcc                      gcc
libc6-dev               glibc-devel          -                        musl-dev
pkg-config              pkgconf-pkg-config   pkgconf                  pkgconf
libhwloc-dev            hwloc-devel          hwloc                    hwloc-dev
libcjson-dev            cjson-devel          cjson                    cjson-dev
libpcre2-dev            pcre2-devel          pcre2                    pcre2-dev
zlib1g-dev              zlib-devel           zlib                     zlib-dev
libutf8proc-dev         utf8proc-devel       libutf8proc              utf8proc-dev
libedit-dev             libedit-devel        libedit                  libedit-dev
libmicrohttpd-dev       libmicrohttpd-devel  libmicrohttpd            libmicrohttpd-dev
libopenmpi-dev          openmpi-devel        openmpi                  openmpi-dev
openmpi-bin             openmpi              -                        openmpi
opencl-headers          opencl-headers       opencl-headers           opencl-headers
libopenblas0-pthread    openblas-serial      openblas                 openblas
g++                     gcc-c++              -                        g++
clang                   clang                clang                    clang
libclang-rt-dev         compiler-rt          compiler-rt              compiler-rt
libcunit1-dev           CUnit-devel          cunit                    cunit-dev
cmake                   cmake                cmake                    cmake
tidy                    tidy                 tidy                     tidyhtml
patch                   patch                patch                    patch
pocl-opencl-icd         pocl                 pocl                     -
ocl-icd-libopencl1      ocl-icd              ocl-icd                  opencl-icd-loader
libclblast1             clblast              clblast                  -
gcc-aarch64-linux-gnu   gcc-aarch64-linux-gnu aarch64-linux-gnu-gcc   -
libc6-dev-arm64-cross   -                    aarch64-linux-gnu-glibc  -
qemu-user               qemu-user            qemu-user                qemu-aarch64
END
}
# The missing packages by the names of a column.
called() { # COLUMN
    names | awk -v column="$1" -v missing=" $missing " '
        index(missing, " " $1 " ") > 0 && $column != "-" { printf " %s", $column }'
}
# How to install them: by the package manager of this machine, or by all where none is known.
how_to_install() {
    if has apt-get; then
        echo "apt-get install --no-install-recommends $missing"
    elif has dnf; then
        echo "dnf install$(called 2)"
    elif has pacman; then
        echo "pacman -S --needed$(called 3)"
    elif has apk; then
        echo "apk add$(called 4)"
    else
        echo "one of
  Debian, Ubuntu: apt-get install --no-install-recommends $missing
  Fedora:         dnf install$(called 2)
  Arch:           pacman -S --needed$(called 3)
  Alpine:         apk add$(called 4)"
    fi
}
[ "$goal" != names ] || { names; exit 0; }
required='' optional=''

has() { command -v "$1" >/dev/null 2>&1; }
need() { required="$required $1"; }
want() { optional="$optional $1"; }
has_library() { PATH="$PATH:/sbin:/usr/sbin" ldconfig -p 2>/dev/null | grep -q "$1"; }
# Whether the compiler $1 can build an (almost) empty program with the options that follow.
builds() {
    compiler=$1
    shift
    folder=$(mktemp -d) || return 1
    printf '%s\n' "$program" >"$folder/probe.c"
    # Libraries come after the program: linkers read from left to right.
    "$compiler" -o "$folder/probe" "$folder/probe.c" "$@" >/dev/null 2>&1
    result=$?
    rm -rf "$folder"
    return $result
}
fuzzer='int LLVMFuzzerTestOneInput(const void *data, unsigned long n)
{ return data == 0 && n > 0; }'

find_missing() {
    required='' optional=''
    has make || need make
    program='#include <stdio.h>
int main(void) { return puts("") < 0; }'
    if ! has gcc || ! builds gcc; then
        need gcc
        need libc6-dev
    fi
    has pkg-config || need pkg-config
    if has pkg-config; then
        pkg-config --exists hwloc || want libhwloc-dev
        pkg-config --exists libcjson || want libcjson-dev
        pkg-config --exists libpcre2-8 || want libpcre2-dev
        pkg-config --exists zlib || want zlib1g-dev
        pkg-config --exists libutf8proc || want libutf8proc-dev
        pkg-config --exists libedit || want libedit-dev
        pkg-config --exists libmicrohttpd || want libmicrohttpd-dev
        pkg-config --exists OpenCL-Headers || pkg-config --exists OpenCL || want opencl-headers
    else
        want libhwloc-dev
        want libcjson-dev
        want libpcre2-dev
        want zlib1g-dev
        want libutf8proc-dev
        want libedit-dev
        want libmicrohttpd-dev
        want opencl-headers
    fi
    # Found at run time, so no -dev package; any variant of it will do.
    has_library 'libopenblas\.so\.0' || want libopenblas0-pthread
    [ "$goal" = check ] || return 0

    # Ranks on several machines (the build finds MPICH, too).
    has pkg-config && pkg-config --exists ompi-c || want libopenmpi-dev
    has mpirun || want openmpi-bin
    has g++ || need g++
    program=$fuzzer
    has clang || need clang
    { has clang && builds clang -fsanitize=fuzzer,address,undefined; } || need libclang-rt-dev
    program='#include <CUnit/CUnit.h>
int main(void) { return CU_initialize_registry(); }'
    { has gcc && builds gcc -lcunit; } || need libcunit1-dev
    has cmake || want cmake
    has tidy || want tidy
    has patch || want patch
    # An OpenCL device that every machine can have: a CPU. And the matrix products of CLBlast.
    ls /etc/OpenCL/vendors/pocl*.icd >/dev/null 2>&1 || want pocl-opencl-icd
    has_library 'libOpenCL\.so\.1' || want ocl-icd-libopencl1
    has_library 'libclblast\.so\.1' || want libclblast1
    # The kernels for ARM: a cross compiler with its C library, and an emulator.
    if [ "$(uname -m)" != aarch64 ]; then
        has aarch64-linux-gnu-gcc || want gcc-aarch64-linux-gnu
        [ -e /usr/aarch64-linux-gnu/include/stdio.h ] || want libc6-dev-arm64-cross
        has qemu-aarch64 || want qemu-user
    fi
    # The build for Windows (wine, which would run it, is large: where it is there, it is used).
    has x86_64-w64-mingw32-gcc-posix || want gcc-mingw-w64-x86-64-posix
}

find_missing
missing=$(echo $required $optional)
[ -n "$missing" ] || exit 0

if has apt-get && [ "$(id -u)" = 0 ]; then
    echo "installing: $missing"
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086 # one word a package
    install_missing() { apt-get -q install -y --no-install-recommends $missing; }
    # A bare system has no package lists yet, and old lists name files that no longer exist: refresh and retry.
    install_missing || { apt-get -q update && install_missing; } || exit 1
    find_missing
    if [ -n "$required" ]; then
        echo "still missing after the installation:$required" >&2
        exit 1
    fi
    exit 0
fi

if [ -n "$required" ]; then
    echo "Missing:$required${optional:+ (and optional:$optional)}" >&2
else
    echo "Optional parts are missing:$optional" >&2
fi
echo "Install with (as root): $(how_to_install)" >&2
[ -z "$required" ]
