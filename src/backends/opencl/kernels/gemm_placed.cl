// C = op(A) B between tensors as they stand, for devices that are CPUs: nothing is packed, the register tile MR x NR goes
// straight to the result. A work-group is one work-item, MC rows of one item of the batch for one thread.
#ifndef V
#define V 8  // 4 8 16: floats of a register
#endif
#ifndef NV
#define NV 2  // 1 2: registers of a row of the tile; NV * V divides N
#endif
#ifndef MR
#define MR 6  // 1..14: rows of the tile, at most M
#endif
#ifndef TA
#define TA 0  // 0: A is [M, K], 1: [K, M]
#endif
#define NR (NV * V)

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define vec PASTE(float, V)
#define LOAD(p) PASTE(vload, V)(0, p)
#define STORE(value, p) PASTE(vstore, V)(value, 0, p)

// What takes the result may be rendered into the header; this default stores it.
#ifndef Y_PARAMS
#define Y_PARAMS , global float *Y_out0, int Y_out0_at
#define Y_PASS , Y_out0, Y_out0_at
void PASTE(Y_, V)(vec value, int i, int c Y_PARAMS) { STORE(value, Y_out0 + Y_out0_at + i); }
#endif

#if TA
#define A_AT(m, k) ((k)*M + (m))
#else
#define A_AT(m, k) ((m)*K + (k))
#endif

// get_group_id(1) is the block of MC rows, (2) the item. Where MR does not divide the rows, the last tile begins earlier,
// and stores some of them again.
__attribute__((reqd_work_group_size(1, 1, 1))) kernel void gemm_placed(
    int M, int N, int K, int MC, global const float *A0, int A0_at, global const float *B0, int B0_at Y_PARAMS) {
  const int item = (int)get_group_id(2), m0 = (int)get_group_id(1) * MC, end = min(M, m0 + MC);
  global const float *a = A0 + A0_at + item * M * K;
  for (int n = 0; n < N; n += NR) {
    for (int block = m0; block < end; block += MR) {
      const int m = min(block, M - MR);
      global const float *b = B0 + B0_at + item * N * K + n;
      vec sum[MR][NV];
#pragma unroll
      for (int i = 0; i < MR; ++i)
#pragma unroll
        for (int j = 0; j < NV; ++j) sum[i][j] = (vec)(0.0f);
      for (int k = 0; k < K; ++k, b += N) {
        vec y[NV];
#pragma unroll
        for (int j = 0; j < NV; ++j) y[j] = LOAD(b + j * V);
#pragma unroll
        for (int i = 0; i < MR; ++i) {
          const vec x = (vec)(a[A_AT(m + i, k)]);
#pragma unroll
          for (int j = 0; j < NV; ++j) sum[i][j] += x * y[j];
        }
      }
#pragma unroll
      for (int i = 0; i < MR; ++i)
#pragma unroll
        for (int j = 0; j < NV; ++j)
          PASTE(Y_, V)(sum[i][j], (item * M + m + i) * N + n + j * V, n + j * V Y_PASS);
    }
  }
}
