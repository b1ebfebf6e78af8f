#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: check_install.sh BUILD       (the variant whose results are installed, e.g. build/release)
# Installs into an empty DESTDIR, builds and runs a program for each library against it by pkg-config
# and by CMake, runs the installed tools, and uninstalls: nothing may be left.
set -u
cd "$(dirname "$0")/../.."
. tools/dev/files.sh
build=${1:-build/release}
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
# Not /usr/lib: the library folder has more levels on Debian, and the package files must cope.
places=(BUILD="$build" DESTDIR="$stage/root" PREFIX=/opt/t libdir=/opt/t/lib/machine)
log=$stage/log
run() { # WHAT COMMAND...
    local what=$1
    shift
    "$@" >"$log" 2>&1 || { complain "$what failed: $*"; tail -20 "$log"; }
}

run "make install" make "${places[@]}" install
lib=$stage/root/opt/t/lib/machine
export LD_LIBRARY_PATH=$lib
export PKG_CONFIG_PATH=$lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$stage/root

for name in libtandem libtandem-llama; do
    readelf -d "$lib/$name.so" 2>/dev/null | grep -q "SONAME.*\\[$name\\.so\\.[0-9.]*\\]" ||
        complain "$name.so has no SONAME"
done
for name in libggml-tandem.so libggml-blas-tandem.so; do
    names=$(nm -D --defined-only "$lib/$name" | awk '{print $3}' | sort | tr '\n' ' ')
    [ "$names" = "ggml_backend_init ggml_backend_score " ] || complain "$name exports '$names'"
done
# shellcheck disable=SC2046 # flags are words
run "building with pkg-config" gcc -std=c11 -Wall -Werror tests/install/hello.c -o "$stage/hello" \
    $(pkg-config --cflags --libs tandem)
run "the program built with pkg-config" "$stage/hello"
# shellcheck disable=SC2046
run "building a session with pkg-config" gcc -std=c11 -Wall -Werror docs/examples/first_session.c \
    -o "$stage/session" $(pkg-config --cflags --libs tandem-llama)
run "the session built with pkg-config" "$stage/session"
# shellcheck disable=SC2046
run "building with pkg-config --static" gcc -std=c11 tests/install/hello.c -o "$stage/hello-static" \
    $(pkg-config --cflags tandem) "$lib/libtandem.a" \
    $(pkg-config --libs-only-l --static tandem | sed 's/-ltandem //')
run "the program with the static library" env -u LD_LIBRARY_PATH "$stage/hello-static"
if command -v cmake >/dev/null; then
    run "cmake" cmake -S tests/install -B "$stage/cmake" -DCMAKE_PREFIX_PATH="$stage/root/opt/t" \
        -DTandem_DIR="$lib/cmake/Tandem" -DCMAKE_C_COMPILER=gcc
    run "cmake --build" cmake --build "$stage/cmake"
    run "the program built with cmake" "$stage/cmake/hello"
    run "the session built with cmake" "$stage/cmake/session"
else
    echo "SKIP check_install: no cmake"
fi
for tool in "$stage"/root/opt/t/bin/*; do
    run "the installed $(basename "$tool")" env -u LD_LIBRARY_PATH "$tool" help
done
# shellcheck disable=SC2046
run "building a plugin with pkg-config" gcc -std=c11 -Wall -Werror -shared -fPIC \
    docs/examples/backend.c -o "$stage/plugin.so" $(pkg-config --cflags tandem)
for tool in "mulmat-tune profiles" "tandem-llama demo --help"; do
    # shellcheck disable=SC2086 # a command and its words
    run "the plugin in $tool" "$stage"/root/opt/t/bin/$tool --plugin "$stage/plugin.so"
done
run "make uninstall" make "${places[@]}" uninstall
left=$(find "$stage/root" -type f -o -type l)
[ -z "$left" ] || complain "make uninstall leaves: $left"
finish check_install
