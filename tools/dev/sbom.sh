#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: sbom.sh FOLDER > sbom.json      (make sbom)
# What the libraries and tools in FOLDER consist of, as CycloneDX 1.5 (https://cyclonedx.org/docs/1.5/json/): the
# shared libraries that they are linked with, those that they load when they run (if installed), and the Debian
# packages with versions that these come from on this machine. The same input gives the same bytes: no date, no number.
set -eu
cd "$(dirname "$0")/../.."
folder=${1:-build}
version=$(sed -n 's/^#define TANDEM_VERSION_STRING "\(.*\)"/\1/p' include/tandem/version.h)
distribution=$(. /etc/os-release 2>/dev/null && echo "$ID-${VERSION_ID:-unknown}" || echo unknown)

linked() { ldd "$folder"/{libtandem.so,libtandem-llama.so,mulmat-tune,tandem-llama} $(ls "$folder/tandem-server" 2>/dev/null) | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p'; }
# The names that the library tries, in the order in which it tries them.
loaded() {
    grep -ohE '"lib(openblas|OpenCL|clblast)[a-z]*\.so\.[0-9]+"' backends/*/*.c | tr -d '"' | while read -r name; do
        PATH="$PATH:/sbin:/usr/sbin" ldconfig -p | sed -n "s,.*$name .* => ,,p" | head -1
    done
}
# One component; several libraries of a package are one.
components() {
    { linked | grep -v '/libtandem' | sed 's/^/linked /'; loaded | sed 's/^/loaded /'; } | sort -u |
        while read -r use path; do
            file=$(readlink -f "$path")
            # (Packages of before the merged /usr list their files in /lib.)
            package=$({ dpkg -S "$file" || dpkg -S "${file#/usr}"; } 2>/dev/null | head -1 | sed 's/:.*//') || package=
            echo "$use ${package:-$(basename "$path")} \
$(dpkg-query -W -f '${Version} ${Architecture}' "$package" 2>/dev/null || echo 'unknown unknown')"
        done | sort -u
}

cat <<END
{
  "bomFormat": "CycloneDX",
  "specVersion": "1.5",
  "version": 1,
  "metadata": {
    "component": {"type": "library", "bom-ref": "tandem", "name": "tandem", "version": "$version",
      "licenses": [{"license": {"id": "MIT"}}]}
  },
  "components": [
END
components | awk -v distribution="$distribution" '
    function escaped(text) {gsub(/%/, "%25", text); gsub(/\+/, "%2B", text); gsub(/:/, "%3A", text); return text}
    {
        purl = "pkg:deb/debian/" escaped($2) "@" escaped($3) "?arch=" $4 "&distro=" distribution
        printf "%s    {\"type\": \"library\", \"bom-ref\": \"%s\", \"name\": \"%s\", \"version\": \"%s\",\n", comma, $2, $2, $3
        printf "      \"purl\": \"%s\",\n", purl
        printf "      \"properties\": [{\"name\": \"tandem:use\", \"value\": \"%s\"}]}", $1
        comma = ",\n"
        refs = refs (refs == "" ? "" : ", ") "\"" $2 "\""
    }
    END {printf "\n  ],\n  \"dependencies\": [{\"ref\": \"tandem\", \"dependsOn\": [%s]}]\n}\n", refs}'
