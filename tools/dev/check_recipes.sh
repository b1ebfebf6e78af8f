#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: check_recipes.sh [RECIPE...]         (default: all folders of tests/recipes)
# CONTRIBUTING.md promises how few files an addition touches. Each recipe is a folder with a patch and a
# program: the patch adds one thing to the product and is applied to a copy, the program tests what was
# added. The patch's first line says how many files of the product it may touch. All recipes share one
# copy and one build, but each patch also has to fit the tree alone.
set -u
cd "$(dirname "$0")/../.."
. tools/dev/files.sh
root=$PWD
copy=$root/build/recipes/tree
recipes=${*:-$(cd tests/recipes && printf '%s\n' */ | tr -d /)}
begin=$SECONDS
command -v patch >/dev/null || { echo "SKIP recipes: no patch"; exit 0; }

rm -rf "$copy"
mkdir -p "$copy"
project_files $rooms include tools mk Makefile tandem.pc.in |
    xargs -d '\n' cp -p --parents -t "$copy"
mkdir -p "$copy/docs/examples"
cp docs/table.schema.json "$copy/docs/"
cp tests/recipes/*.h "$copy/docs/examples/"

ready=''
for recipe in $recipes; do
    patch=$root/tests/recipes/$recipe/$recipe.patch
    limit=$(sed -n '1s/.*at most \([0-9]*\) files.*/\1/p' "$patch")
    touched=$(sed -nE 's,^(--- a|\+\+\+ b)/([^[:space:]]*).*,\2,p' "$patch" | sort -u |
        grep -cE "^($(either $rooms include tools))/")
    echo "$recipe: $touched files of the product, at most ${limit:-?}"
    if [ -z "$limit" ] || [ "$touched" -gt "$limit" ]; then
        complain "tests/recipes/$recipe: touches $touched files of the product, at most ${limit:-'(no number given)'}"
    fi
    # Patches that change the same place of a list would not apply after one another.
    if ! patch -s -p1 -F0 --dry-run <"$patch"; then
        complain "tests/recipes/$recipe: does not fit the tree; make the patch anew"
    elif ! (cd "$copy" && patch -s -p1 --no-backup-if-mismatch <"$patch"); then
        complain "tests/recipes/$recipe: does not fit beside the other recipes"
    else
        cp "tests/recipes/$recipe/test_$recipe.c" "$copy/docs/examples/recipe_$recipe.c"
        ready="$ready $recipe"
    fi
done

unset MAKEFLAGS MFLAGS MAKELEVEL
make_jobs=${JOBS_MAKE:-$(nproc)}
for recipe in $ready; do
    program=../out/example-recipe_$recipe
    if ! make -s --no-print-directory -C "$copy" -j"$make_jobs" BUILD=../out ASSERT=1 WERROR=1 CFLAGS=-O0 "$program" >/dev/null; then
        complain "tests/recipes/$recipe: does not build"
    elif ! (cd "$copy" && TANDEM_TABLE=none timeout 60 "$program"); then
        complain "tests/recipes/$recipe: its test failed"
    else
        echo "$recipe: good"
    fi
done
echo "$((SECONDS - begin)) s"
finish check_recipes
