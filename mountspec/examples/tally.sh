#!/bin/sh
# A service in shell: it reads its arguments as JSON from stdin and writes its result as JSON to stdout; lines on stderr go
# to the job's log. It counts the files below a directory of the agent's projects by file name extension.
set -eu
path=$(sed -n 's/.*"path" *: *"\([^"]*\)".*/\1/p')
path=${path:-/projects}
if [ ! -d "$path" ]; then
    printf '{"error": {"code": "not_found", "message": "there is no directory %s"}}' "$path"
    exit 1
fi
echo "counting below $path" >&2
find "$path" -type f -name '*.*' | sed 's/.*\.//' | sort | uniq -c | awk '
    BEGIN { printf "{\"endings\": {" }
    $2 ~ /^[A-Za-z0-9_-]+$/ { printf "%s\"%s\": %d", separator, $2, $1; separator = ", " }
    END { print "}}" }'
