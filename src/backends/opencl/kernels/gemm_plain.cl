// C = op(A) op(B), one result after another in plain loops: the reference of the fast kernels, right for any shape. A
// work-item makes rows_each rows of one column.
#ifndef TA
#define TA 0  // 0: A is [M, K], 1: [K, M]
#endif
#ifndef TB
#define TB 0  // 0: B is [K, N], 1: [N, K]
#endif

// Operands and epilogue are rendered into the header; these defaults are tensors as they stand.
#ifndef A_PARAMS
#define A_PARAMS , global const float *A0, int A0_at
#define A_PASS , A0, A0_at
float A_1(int i, int c A_PARAMS) { return A0[A0_at + i]; }
#endif
#ifndef B_PARAMS
#define B_PARAMS , global const float *B0, int B0_at
#define B_PASS , B0, B0_at
float B_1(int i, int c B_PARAMS) { return B0[B0_at + i]; }
#endif
#ifndef Y_PARAMS
#define Y_PARAMS , global float *Y_out0, int Y_out0_at
#define Y_PASS , Y_out0, Y_out0_at
#define Y_SUMS 0
#define Y_SUM_ARGS
void Y_1(float value, int i, int c Y_PARAMS) { Y_out0[Y_out0_at + i] = value; }
#endif

#if Y_SUMS > 0
#define SUM_PARAMS , global float *partial, int partial_at
#else
#define SUM_PARAMS
#endif

// get_global_id(0) is the column, (1) the chunk of rows, which are counted over the whole batch. Sums of chunk r go to
// partial[r][Y_SUMS][N].
kernel void gemm_plain(int rows, int M, int N, int K, int rows_each, int a_batch,
                       int b_batch A_PARAMS B_PARAMS SUM_PARAMS Y_PARAMS) {
  const int n = (int)get_global_id(0), chunk = (int)get_global_id(1);
  if (n >= N) return;
#if Y_SUMS > 0
  float sums[Y_SUMS];
  for (int s = 0; s < Y_SUMS; ++s) sums[s] = 0.0f;
#endif
  for (int row = chunk * rows_each; row < min(rows, (chunk + 1) * rows_each); ++row) {
    const int m = row % M, a = row / M * a_batch, b = row / M * b_batch;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) {
      const float x = TA ? A_1(a + k * M + m, m A_PASS) : A_1(a + m * K + k, k A_PASS);
      const float y = TB ? B_1(b + n * K + k, k B_PASS) : B_1(b + k * N + n, n B_PASS);
      sum += x * y;
    }
    Y_1(sum, row * N + n, n Y_SUM_ARGS Y_PASS);
  }
#if Y_SUMS > 0
  for (int s = 0; s < Y_SUMS; ++s) partial[partial_at + (chunk * Y_SUMS + s) * N + n] = sums[s];
#endif
}
