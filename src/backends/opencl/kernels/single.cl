// One piece of work in a launch of its own. Its code, SINGLE_BODY, its parameters and the macros that it is written with
// stand before this text (single.cpp).
#ifndef LOCAL
#define LOCAL 1  // work-items of a group: 1 (CPUs), 64, 128
#endif
#ifndef SINGLE_BODY
#define SINGLE_PARAMS global uchar* single_0, int single_0_at
#define SINGLE_BODY
#define SINGLE_SCRATCH
#endif

__attribute__((reqd_work_group_size(LOCAL, 1, 1))) kernel void single(SINGLE_PARAMS) {
  SINGLE_SCRATCH
  SINGLE_BODY
}
