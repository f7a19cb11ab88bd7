#!/usr/bin/env bash
# glibc_only.sh NM LIBRARY: fails if the library needs a function that glibc has and Android's bionic (API 24) has not.
# The compiler's own references (__*_chk, stack protector) exist in both.
set -euo pipefail

nm=$1
library=$2
forbidden='secure_getenv|qsort_r|error|error_at_line|argp_.*|backtrace.*|gnu_get_libc_.*|get_current_dir_name'
forbidden+='|canonicalize_file_name|strfry|memfrob|mallinfo2|malloc_info|pthread_(set|get)affinity_np|pthread_cancel'
forbidden+='|pthread_.*clock(join|lock|wait).*|pthread_tryjoin_np|pthread_timedjoin_np|getcontext|makecontext|swapcontext|aio_.*|mq_.*'
forbidden+='|shm_open|shm_unlink|glob|globfree|wordexp|iconv.*|nl_langinfo|getloadavg|on_exit|open_by_handle_at'
forbidden+='|copy_file_range|memfd_create|getentropy|getrandom|reallocarray|explicit_bzero|strverscmp|random_r'
forbidden+='|drand48_r|exp10f?|pow10f?|posix_spawn.*|syncfs|mlock2|preadv2|pwritev2|sem_clockwait|aligned_alloc'

# Undefined symbols, without their version suffix.
found=$("$nm" --undefined-only "$library" 2>/dev/null | awk '$1 == "U" {sub(/@.*/, "", $2); print $2}' | sort -u |
  grep -Ex "$forbidden" || true)
if [[ -n $found ]]; then
  echo "these are not in Android's libc (API 24), but $library calls them:" >&2
  echo "$found" >&2
  exit 1
fi
echo "no glibc-only function in $(basename "$library")"
