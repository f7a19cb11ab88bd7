#!/usr/bin/env bash
# library_size.sh COMPILER STRIP LIBRARY DIR: prints how large LIBRARY is inside an app: linked whole into a shared
# library, stripped.
set -euo pipefail

compiler=$1 strip=$2 library=$3 dir=$4
"$compiler" -shared -o "$dir/libstoker-app.so" -Wl,--whole-archive "$library" -Wl,--no-whole-archive \
  -Wl,-z,max-page-size=16384
"$strip" "$dir/libstoker-app.so"
bytes=$(stat -c %s "$dir/libstoker-app.so")
echo "libstoker, stripped, for $("$compiler" -dumpmachine): $bytes bytes ($((bytes / 1024)) KiB)"
