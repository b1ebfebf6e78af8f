#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: make_deb.sh OUT      (make deb)
# Builds the Debian packages from a copy of the tree, so that no build results stay there, puts them into
# OUT and checks them with lintian. Needs debhelper, dh-python and what the build needs.
set -eu
out=$(realpath -m "${1:-build/deb}")
cd "$(dirname "$0")/../.."
command -v dpkg-buildpackage >/dev/null && command -v dh >/dev/null || {
    echo "make deb: no debhelper; install with (as root): apt-get install debhelper dh-python lintian" >&2
    exit 1
}
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir "$stage/tandem"
# The files that git tracks, in their current state; without git, all but build results.
if git rev-parse --git-dir >/dev/null 2>&1; then
    git ls-files -z | tar c --null --ignore-failed-read -T - | tar x -C "$stage/tandem"
else
    tar c --exclude=./build --exclude=./.git . | tar x -C "$stage/tandem"
fi
log=$out/build.log
mkdir -p "$out"
rm -f "$out"/*.deb "$out"/*.changes "$out"/*.buildinfo
echo "building the packages; the log is $log"
(cd "$stage/tandem" && dpkg-buildpackage -us -uc -b -j"$(nproc)") >"$log" 2>&1 || {
    tail -20 "$log"
    exit 1
}
cp "$stage"/*.deb "$stage"/*.changes "$stage"/*.buildinfo "$out"
ls "$out"/*.deb
if command -v lintian >/dev/null; then
    lintian --fail-on error --tag-display-limit 0 "$out"/*.changes
else
    echo "lintian is not installed: the packages were not looked at"
fi
