#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: check_install.sh BUILD       (the variant whose results are installed, e.g. build/release)
# Installs into an empty DESTDIR, builds and runs a program for each library against it by pkg-config
# and by CMake, runs the installed tools, imports the Python package, follows the links of the documents,
# and uninstalls: nothing may be left. debian/ names the same version and the same files.
set -u
cd "$(dirname "$0")/../.."
. tools/dev/files.sh
build=${1:-build/release}
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
# Not /usr/lib: the library folder has more levels on Debian, and the package files must cope.
places=(BUILD="$build" DESTDIR="$stage/root" PREFIX=/opt/t libdir=/opt/t/lib/machine)
log=$stage/log
version=$(sed -n 's/^#define TANDEM_VERSION_STRING "\(.*\)"/\1/p' include/tandem/version.h)
run() { # WHAT COMMAND...
    local what=$1
    shift
    "$@" >"$log" 2>&1 || { complain "$what failed: $*"; tail -20 "$log"; }
}

run "make install" make "${places[@]}" install
lib=$stage/root/opt/t/lib/machine
export LD_LIBRARY_PATH=$lib
# Not exported: with other flags from pkg-config, the next make would rebuild everything while other checks
# run the built files.
installed_flags() {
    PKG_CONFIG_PATH=$lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$stage/root pkg-config "$@"
}

for name in libtandem libtandem-llama; do
    readelf -d "$lib/$name.so" 2>/dev/null | grep -q "SONAME.*\\[$name\\.so\\.[0-9.]*\\]" ||
        complain "$name.so has no SONAME"
done
for name in libggml-tandem.so libggml-blas-tandem.so; do
    names=$(nm -D --defined-only "$lib/ggml/$name" | awk '{print $3}' | sort | tr '\n' ' ')
    [ "$names" = "ggml_backend_init ggml_backend_score " ] || complain "$name exports '$names'"
done
# shellcheck disable=SC2046 # flags are words
run "building with pkg-config" gcc -std=c11 -Wall -Werror tests/install/hello.c -o "$stage/hello" \
    $(installed_flags --cflags --libs tandem)
run "the program built with pkg-config" "$stage/hello"
# shellcheck disable=SC2046
run "building a session with pkg-config" gcc -std=c11 -Wall -Werror docs/examples/first_session.c \
    -o "$stage/session" $(installed_flags --cflags --libs tandem-llama)
run "the session built with pkg-config" "$stage/session"
# shellcheck disable=SC2046
run "building with pkg-config --static" gcc -std=c11 tests/install/hello.c -o "$stage/hello-static" \
    $(installed_flags --cflags tandem) "$lib/libtandem.a" \
    $(installed_flags --libs-only-l --static tandem | sed 's/-ltandem //')
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

# Manual pages: what --help lists stands in them, in the order of the help texts, and nothing else.
helps() { # TOOL [COMMAND..]
    local command
    "$@" --help
    for command in $("$@" --help | grep -oE '^  [a-z][-a-z]* ' | grep -vwE 'help|version'); do
        helps "$@" "$command"
    done
}
for tool in "$stage"/root/opt/t/bin/*; do
    page=$stage/root/opt/t/share/man/man1/$(basename "$tool").1
    [ -e "$page" ] || { complain "$(basename "$page") is not installed"; continue; }
    differ=$(diff <(helps "$tool" | grep -oE '^  [-a-z][^ ,]*' | tr -d ' ') \
        <(grep -A1 '^\.TP$' "$page" | sed -n 's/\\-/-/g; s/^\.B \\&\([^ ,]*\).*/\1/p')) ||
        complain "$(basename "$page") differs from --help: $(head -5 <<<"$differ")"
    if command -v groff >/dev/null; then
        says=$(groff -man -ww -Tutf8 "$page" 2>&1 >/dev/null)
        [ -z "$says" ] || complain "$(basename "$page"): groff says $(head -3 <<<"$says")"
    else
        echo "SKIP check_install: no groff"
    fi
done
# Completions: of the beginning of a command, and of an option after a word that is not a command.
completes() { # EXPECTED WORD...
    local expected=$1 said
    shift
    said=$(bash -c '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _${1//-/_}; echo "${COMPREPLY[*]}"' \
        "$stage/root/opt/t/share/bash-completion/completions/$1" "$@" 2>&1)
    [ "$said" = "$expected" ] || complain "completion of '$*' gives '$said', expected '$expected'"
}
completes bench mulmat-tune ben
completes --older-than mulmat-tune table prune table.json --old
completes "inspect" tandem-llama ins
completes "--temp" tandem-llama run model.gguf --tem
# shellcheck disable=SC2046
run "building a plugin with pkg-config" gcc -std=c11 -Wall -Werror -shared -fPIC \
    docs/examples/backend.c -o "$stage/plugin.so" $(installed_flags --cflags tandem)
for tool in "mulmat-tune profiles" "tandem-llama demo --help"; do
    # shellcheck disable=SC2086 # a command and its words
    run "the plugin in $tool" "$stage"/root/opt/t/bin/$tool --plugin "$stage/plugin.so"
done

# Documents: every link leads to a file that was installed, every example is there.
docs=$stage/root/opt/t/share/doc/tandem
for text in "$docs"/*.md; do
    while IFS= read -r target; do
        [ -e "$docs/$target" ] || complain "$(basename "$text"): its link to $target leads nowhere"
    done <<<"$(grep -oE '\]\([^):# ]+[)#]' "$text" | sed 's/^](//; s/[)#]$//')"
done
for example in docs/examples/*.c bindings/python/examples/*.py; do
    [ -e "$docs/examples/$(basename "$example")" ] || complain "$example is not installed"
done

# Python, without files of the tree: the installed package finds the installed libraries.
if command -v python3 >/dev/null; then
    run "make install-python" make "${places[@]}" install-python
    python=$(dirname "$(find "$stage/root" -name tandem_infer)")
    says=$(cd / && env -u TANDEM_INFER_LIBRARY PYTHONPATH="$python" PYTHONDONTWRITEBYTECODE=1 python3 -c '
import importlib.metadata, tandem_infer
print(tandem_infer.version(), importlib.metadata.version("tandem-infer"), tandem_infer.ggml_backend_path())')
    [ "$says" = "$version $version $lib/ggml/libggml-tandem.so" ] ||
        complain "the installed Python package says '$says'"
else
    echo "SKIP check_install: no python3"
fi

run "make uninstall" make "${places[@]}" uninstall
left=$(find "$stage/root" -mindepth 1 -not -type d -o -name '*tandem*' -o -name ggml)
[ -z "$left" ] || complain "make uninstall leaves: $left"

# Into the running system, as a user without a DESTDIR does: the last lines say what to do next.
run "make install without DESTDIR" make BUILD="$build" PREFIX="$stage/mine" install
built=$(grep -E '^  (CC|AR|LD) ' "$log" | head -3)
[ -z "$built" ] || complain "make install builds again what was built: $built"
tail -15 "$log" | grep -q '^  ldconfig$' || complain "make install does not end with a word on ldconfig"
run "make uninstall without DESTDIR" make BUILD="$build" PREFIX="$stage/mine" uninstall

# The Debian packages are of this version, and named after the library's file.
grep -q "^Package: libtandem$(cut -d. -f1,2 <<<"$version")\$" debian/control ||
    complain "debian/control: no package is named after libtandem.so.$(cut -d. -f1,2 <<<"$version")"
sed -n 1p debian/changelog | grep -qF "tandem ($version)" ||
    complain "debian/changelog: its first entry is not of $version"
finish check_install
