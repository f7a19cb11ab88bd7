// The end of a product whose K was split: adds up the parts [parts][M][N] in their order, then the epilogue. A work-item
// makes VEC columns of rows_each rows.
#ifndef VEC
#define VEC 1  // 1 4 8 16: divides N
#endif

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#if VEC == 1
#define vec float
#else
#define vec PASTE(float, VEC)
#endif

// The epilogue is rendered into the header; this default stores the sum.
#ifndef Y_PARAMS
#define Y_PARAMS , global float *Y_out0, int Y_out0_at
#define Y_PASS , Y_out0, Y_out0_at
#define Y_SUMS 0
#define Y_SUM_ARGS
void PASTE(Y_, VEC)(vec value, int i, int c Y_PARAMS) { *(global vec *)(Y_out0 + Y_out0_at + i) = value; }
#endif

#if Y_SUMS > 0
#define SUM_PARAMS , global float *partial, int partial_at
#else
#define SUM_PARAMS
#endif

// get_global_id(0) counts columns, then chunks of rows. Sums of chunk r go to partial[r][Y_SUMS][N].
kernel void gemm_reduce(int M, int N, int parts, int rows_each, global const float *part,
                        int part_at SUM_PARAMS Y_PARAMS) {
  const int columns = N / VEC, chunk = (int)get_global_id(0) / columns;
  const int n = ((int)get_global_id(0) - chunk * columns) * VEC;
  if (chunk * rows_each >= M) return;
#if Y_SUMS > 0
  vec sums[Y_SUMS];
  for (int s = 0; s < Y_SUMS; ++s) sums[s] = (vec)(0.0f);
#endif
  for (int m = chunk * rows_each; m < min(M, (chunk + 1) * rows_each); ++m) {
    const int at = m * N + n;
    vec sum = (vec)(0.0f);
    for (int p = 0; p < parts; ++p) sum += *(global const vec *)(part + part_at + p * M * N + at);
    PASTE(Y_, VEC)(sum, at, n Y_SUM_ARGS Y_PASS);
  }
#if Y_SUMS > 0
  for (int s = 0; s < Y_SUMS; ++s) *(global vec *)(partial + partial_at + (chunk * Y_SUMS + s) * N + n) = sums[s];
#endif
}
