#!/usr/bin/env bash
# kernel_lint.sh CLANG FOLDER: compiles every .cl file of FOLDER alone, as OpenCL C 1.2 with its defaults, warnings being
# errors. kernel_lint.sh CLANG --self-test checks the check.
set -euo pipefail

clang=$1 folder=$2
lint() {
  "$clang" -x cl -cl-std=CL1.2 -Xclang -finclude-default-header -fsyntax-only -Wall -Wextra -Wno-unused-parameter \
    -Wno-unused-function -Werror "$1"
}

if [[ $folder == --self-test ]]; then
  file=$(mktemp --suffix .cl)
  trap 'rm -f "$file"' EXIT
  echo 'kernel void good(global float* x) { x[get_global_id(0)] = 1.0f; }' >"$file"
  lint "$file"
  for bad in 'x[get_global_id(0)] = UNKNOWN;' 'x[0] = work_group_reduce_add(x[0]);' 'int unused;' 'generic float* p = x; *p = 1;'; do
    echo "kernel void bad(global float* x) { $bad }" >"$file"
    ! lint "$file" 2>/dev/null || { echo "not noticed: $bad" >&2 && exit 1; }
  done
  exit
fi
shopt -s nullglob
files=("$folder"/*.cl)
((${#files[@]})) || { echo "no .cl file in $folder" >&2 && exit 1; }
failed=0
for file in "${files[@]}"; do lint "$file" || failed=1; done
echo "${#files[@]} kernel files compiled alone by $("$clang" --version | head -n 1)"
exit "$failed"
