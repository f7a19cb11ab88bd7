# shellcheck shell=bash
# Where the virtual phone GPUs are, for the scripts of tools/phones and the tests. To be sourced.
phones=${STOKER_PHONES_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/stoker-phones}

phones_are_built() {
  [[ -f $phones/libRusticlOpenCL.so.1 && -f $phones/libfreedreno_noop_drm_shim.so && -f $phones/libpanfrost_noop_drm_shim.so ]]
}
