#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: check_table_schema.sh TABLE.json...
# Validates JSON tables against docs/table.schema.json; skipped, with a note, without python3-jsonschema.
set -u
if ! python3 -c 'import jsonschema' 2>/dev/null; then
    echo "check_table_schema: left out, python3-jsonschema is not installed"
    exit 0
fi
python3 - "$@" <<'PYTHON'
import json
import sys

import jsonschema

with open("docs/table.schema.json") as file:
    schema = json.load(file)
jsonschema.Draft7Validator.check_schema(schema)
failed = 0
for path in sys.argv[1:]:
    with open(path) as file:
        table = json.load(file)
    for error in jsonschema.Draft7Validator(schema).iter_errors(table):
        print(f"{path}: {'/'.join(map(str, error.path))}: {error.message}")
        failed = 1
sys.exit(failed)
PYTHON
