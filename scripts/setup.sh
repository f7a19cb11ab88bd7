# shellcheck shell=bash
# shellcheck disable=SC2034  # the lists are read by the scripts that source this file
# Shared by ./train and ./test: finds out what is missing, installs it, builds a preset with progress. To be sourced from
# the repository's root with `set -euo pipefail`; no_install=1 names what is missing and stops instead.

say() { printf '\033[1m==>\033[0m %s\n' "$*"; }
[[ -t 1 ]] || say() { printf '==> %s\n' "$*"; }
stop() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# What is needed, as Debian's package and how to find it on any system: a command (or one of several), a C++ header, a
# shared library, a module of Python's or a file. What is wanted is installed where it can be, and missed without harm.
needed_to_build='
g++                    command c++
cmake                  command cmake
ninja-build            command ninja
libhwy-dev             header  hwy/highway.h
nlohmann-json3-dev     header  nlohmann/json.hpp
libcli11-dev           header  CLI/CLI.hpp
zlib1g-dev             header  zlib.h
opencl-c-headers       header  CL/cl_ext.h'
wanted_to_build='
libjs-chart.js         file    /usr/share/javascript/chart.js/chart.min.js'
needed_to_test='
libgtest-dev           header  gtest/gtest.h
python3                command python3
ocl-icd-libopencl1     library libOpenCL.so.1
pocl-opencl-icd        file    /etc/OpenCL/vendors/pocl*'
wanted_to_test='
chromium-headless-shell command chromium-headless-shell|chromium|google-chrome'
needed_for_all='
clang                  command clang++
libclang-rt-dev        file    /usr/lib/llvm-*/lib/clang/*/lib/*/libclang_rt.fuzzer*
clang-tidy             command clang-tidy
clang-format           command clang-format
shellcheck             command shellcheck
oclgrind               command oclgrind
python3-venv           module  ensurepip'
needed_for_aarch64='
g++-aarch64-linux-gnu  command aarch64-linux-gnu-g++
qemu-user              command qemu-aarch64
libhwy-dev:arm64       file    /usr/lib/aarch64-linux-gnu/libhwy.*
libgtest-dev:arm64     file    /usr/lib/aarch64-linux-gnu/libgtest.*
zlib1g-dev:arm64       file    /usr/lib/aarch64-linux-gnu/libz.*'

is_there() {
  local names
  IFS='|' read -ra names <<<"$2"
  case $1 in
    command) [[ -n $(type -P "${names[@]}") ]] ;;
    header) printf '#if !__has_include(<%s>)\n#error\n#endif\n' "$2" | c++ -std=c++20 -x c++ -E - >/dev/null 2>&1 ;;
    library) [[ $(PATH=$PATH:/sbin ldconfig -p 2>/dev/null) == *"$2 ("* ]] ;;
    module) python3 -c "import $2" 2>/dev/null ;;
    file) compgen -G "$2" >/dev/null ;;
  esac
}

# missing LIST: prints the packages of LIST that are not there.
missing() {
  local package kind what
  while read -r package kind what; do
    [[ -z $package ]] || is_there "$kind" "$what" || printf '%s ' "$package"
  done <<<"$1"
}

can_be_root() { [[ $(id -u) == 0 ]] || command -v sudo >/dev/null; }

as_root() {
  if [[ $(id -u) == 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    stop "installing needs root or sudo; or install yourself and use --no-install"
  fi
}

apt() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@"; }

# ensure LIST [WANTED]: installs what is missing of both with apt-get. Stops and names what is still missing of LIST; says
# what is still missing of WANTED.
ensure() {
  local packages wanted
  packages=$(missing "$1") wanted=$(missing "${2:-}")
  [[ -n $packages$wanted ]] || return 0
  if [[ -z ${no_install:-} ]] && command -v apt-get >/dev/null && { [[ -n $packages ]] || can_be_root; }; then
    install_packages "$packages" "$wanted"
    packages=$(missing "$1") wanted=$(missing "${2:-}")
    [[ -z $packages ]] || stop "still missing after installing: $packages"
  elif [[ -n $packages ]]; then
    [[ -n ${no_install:-} ]] || packages+="; there is no apt-get here to install them with"
    stop "missing (as Debian names them): $packages"
  fi
  [[ -z $wanted ]] || say "Going on without (as Debian names it): $wanted"
}

# install_packages PACKAGES WANTED: of WANTED only what this system knows, for apt-get installs all or nothing; and for
# WANTED alone the package lists are not fetched again and again.
install_packages() {
  local packages=$1 one
  if [[ $packages == *:arm64* ]] && ! dpkg --print-foreign-architectures | grep -qx arm64; then
    as_root dpkg --add-architecture arm64
  fi
  [[ -z $packages ]] || apt update || say "Not every package list could be updated; going on with what there is"
  for one in $2; do
    [[ $(apt-cache policy "$one" 2>/dev/null) != *Candidate:\ [0-9]* ]] || packages+="$one "
  done
  [[ -n $packages ]] || return 0
  say "Installing $packages"
  # shellcheck disable=SC2086  # a list of words
  apt install -y --no-install-recommends $packages 2>&1 | sed -n 's/^Setting up \([^ ]*\).*/    \1/p; /^E:/p' || true
}

check_cmake() {
  local version
  version=$(cmake --version | sed -n '1s/.* //p')
  printf '3.25\n%s\n' "$version" | sort -VC || stop "cmake $version is too old: 3.25 or later is needed"
}

# build PRESET: configures if need be and builds. Without a terminal, one line for each tenth of the work.
build() {
  local preset=$1 started=$SECONDS
  say "Building ($preset)"
  [[ -f build/$preset/build.ninja ]] || cmake --preset "$preset" >"$(log_of "$preset")" ||
    { cat "$(log_of "$preset")" && stop "cmake --preset $preset failed"; }
  if [[ -t 1 ]]; then
    ninja -C "build/$preset"
  else
    ninja -C "build/$preset" | awk '
      match($0, /^\[[0-9]+\/[0-9]+\]/) {
        split(substr($0, 2, RLENGTH - 2), n, "/")
        tenth = int(10 * n[1] / n[2])
        if (tenth != last) { printf "    %d of %d\n", n[1], n[2]; fflush(); last = tenth }
        next
      }
      /^ninja: (Entering|no work)|^-- / { next }
      { print; fflush() }'
  fi
  say "Built ($preset) in $((SECONDS - started)) s"
}

log_of() {
  mkdir -p build
  printf 'build/%s-configure.log' "$1"
}

# Where scripts/install_intel_opencl puts Intel's OpenCL runtime, and tests/CMakeLists.txt looks for it.
intel_opencl_folder() { printf '%s/stoker/intel-opencl' "${XDG_CACHE_HOME:-$HOME/.cache}"; }
