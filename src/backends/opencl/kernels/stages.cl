// Many small pieces of work in one launch. The functions stage_0, stage_1, ... and STAGE_SWITCH, which calls them by
// number, stand before this text (stages.cpp). Table: word g is where work-group g finds its first stage; a stage is
//     function, next stage of the same group (0: none), barrier before that one, first group, groups, arguments.
#ifndef LOCAL
#define LOCAL 1  // work-items of a group: 1 (CPUs), 64, 128
#endif
#ifndef CHAIN
#define CHAIN 0  // 1: a group may have several stages
#endif
#ifndef STAGE_SWITCH
#define STAGE_SWITCH case 0: scratch[0] = (float)(item + items); break;
#define STAGE_BUFFERS global uchar* stage_b0
#endif

__attribute__((reqd_work_group_size(LOCAL, 1, 1))) kernel void stages(global const int* table, int table_at,
                                                                       STAGE_BUFFERS) {
  local float scratch[LOCAL];
  table += table_at;
  int at = table[get_group_id(0)];
#if CHAIN
  while (at != 0)
#endif
  {
    global const int* words = table + at;
    const int item = ((int)get_group_id(0) - words[3]) * LOCAL + (int)get_local_id(0);
    const int items = words[4] * LOCAL;
    switch (words[0]) {
      STAGE_SWITCH
      default: break;
    }
    at = words[1];
#if CHAIN && LOCAL > 1
    if (words[2] != 0) barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
#endif
  }
}
