// C = op(A) op(B) for GPUs: a work-item keeps TM x TN results in registers and reads its operands straight from memory,
// four floats at a time along rows, no local memory. Indices run (no 64-bit arithmetic in the loop); an operand without a
// prologue may come through an image, which has a cache of its own on Adreno.
#ifndef TA
#define TA 0  // 0: A is [M, K], 1: [K, M]
#endif
#ifndef TB
#define TB 0  // 0: B is [K, N], 1: [N, K]
#endif
#ifndef TM
#define TM 4  // 1..8: rows of a work-item; a multiple of 4 with TA
#endif
#ifndef TN
#define TN 4  // 4 8: columns of a work-item
#endif
#ifndef VEC
#define VEC 1  // 1: 4 divides K, N and, with TA, M, else M >= TM; 0: any sizes, one float at a time
#endif
#ifndef IMAGE
#define IMAGE 0  // 0: none, 1: B, 2: A, 3: both come through images (VEC, no prologue)
#endif
#ifndef KSTEP
#define KSTEP 4  // 1 4: of K at a time; 1, with TA and VEC and without TB, needs the fewest registers
#endif
#ifndef GX
#define GX 8  // work-group, along columns
#endif
#ifndef GY
#define GY 8  // work-group, along rows
#endif
#define TN4 (TN / 4)
#define TM4 ((TM + 3) / 4)

// Operands and epilogue are rendered into the header; these defaults are tensors as they stand.
#ifndef A_PARAMS
#define A_PARAMS , global const float *A0, int A0_at
#define A_PASS , A0, A0_at
#define A_PLAIN 1
float A_1(int i, int c A_PARAMS) { return A0[A0_at + i]; }
float4 A_4(int i, int c A_PARAMS) { return *(global const float4 *)(A0 + A0_at + i); }
#endif
#ifndef B_PARAMS
#define B_PARAMS , global const float *B0, int B0_at
#define B_PASS , B0, B0_at
#define B_PLAIN 1
float B_1(int i, int c B_PARAMS) { return B0[B0_at + i]; }
float4 B_4(int i, int c B_PARAMS) { return *(global const float4 *)(B0 + B0_at + i); }
#endif
#ifndef Y_PARAMS
#define Y_PARAMS , global float *Y_out0, int Y_out0_at
#define Y_PASS , Y_out0, Y_out0_at
#define Y_SUMS 0
#define Y_SUM_ARGS
void Y_1(float value, int i, int c Y_PARAMS) { Y_out0[Y_out0_at + i] = value; }
void Y_4(float4 value, int i, int c Y_PARAMS) { *(global float4 *)(Y_out0 + Y_out0_at + i) = value; }
#endif

// Operands by fours: `i` and `c` count float4s.
#if IMAGE & 2
#define A_IMAGE , read_only image1d_buffer_t a_image
#define LOAD_A(i, c) read_imagef(a_image, i)
#elif A_PLAIN
#define A_IMAGE
#define LOAD_A(i, c) ((global const float4 *)(A0 + A0_at))[i]
#else
#define A_IMAGE
#define LOAD_A(i, c) A_4(4 * (i), 4 * (c)A_PASS)
#endif
#if IMAGE & 1
#define B_IMAGE , read_only image1d_buffer_t b_image
#define LOAD_B(i, c) read_imagef(b_image, i)
#elif B_PLAIN
#define B_IMAGE
#define LOAD_B(i, c) ((global const float4 *)(B0 + B0_at))[i]
#else
#define B_IMAGE
#define LOAD_B(i, c) B_4(4 * (i), 4 * (c)B_PASS)
#endif
#if Y_SUMS > 0
#define SUM_PARAMS , global float *partial, int partial_at
#else
#define SUM_PARAMS
#endif

// Rows of a 4 x 4 block from its columns.
#define TURN(to, r0, r1, r2, r3)                                                                                       \
  to(0) = (float4)(r0.x, r1.x, r2.x, r3.x);                                                                            \
  to(1) = (float4)(r0.y, r1.y, r2.y, r3.y);                                                                            \
  to(2) = (float4)(r0.z, r1.z, r2.z, r3.z);                                                                            \
  to(3) = (float4)(r0.w, r1.w, r2.w, r3.w);

#if !VEC
// op(A)[m][k .. k + 3] and op(B)[k][n .. n + 3]; zeros outside.
float4 scalars_of_a(int base, int m, int k, int end, int M, int K A_PARAMS) {
  if (m >= M) return (float4)(0.0f);
#if TA
#define AT(p) (k + p < end ? A_1(base + (k + p) * M + m, m A_PASS) : 0.0f)
#else
#define AT(p) (k + p < end ? A_1(base + m * K + k + p, k + p A_PASS) : 0.0f)
#endif
  return (float4)(AT(0), AT(1), AT(2), AT(3));
#undef AT
}

float4 scalars_of_b(int base, int n, int k, int end, int N, int K B_PARAMS) {
  if (k >= end) return (float4)(0.0f);
#if TB
#define AT(p) (n + p < N ? B_1(base + (n + p) * K + k, k B_PASS) : 0.0f)
#else
#define AT(p) (n + p < N ? B_1(base + k * N + n + p, n + p B_PASS) : 0.0f)
#endif
  return (float4)(AT(0), AT(1), AT(2), AT(3));
#undef AT
}
#endif

// Sums over the rows of a work-group, added up in the order of rows.
#if Y_SUMS > 0
#define BEGIN_SUMS(type)                                                                                               \
  local type *rows = (local type *)row_sums;                                                                           \
  type sums[Y_SUMS];                                                                                                   \
  _Pragma("unroll") for (int s = 0; s < Y_SUMS; ++s) sums[s] = (type)(0.0f);
#define END_SUMS(type, column)                                                                                         \
  _Pragma("unroll") for (int s = 0; s < Y_SUMS; ++s) {                                                                 \
    rows[(int)get_local_id(1) * GX + (int)get_local_id(0)] = sums[s];                                                  \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                                      \
    if (get_local_id(1) == 0 && column < N) {                                                                          \
      type total = (type)(0.0f);                                                                                       \
      for (int y = 0; y < GY; ++y) total += rows[y * GX + (int)get_local_id(0)];                                       \
      const int block = z * (int)get_num_groups(1) + (int)get_group_id(1);                                             \
      *(global type *)(partial + partial_at + (block * Y_SUMS + s) * N + column) = total;                              \
    }                                                                                                                  \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                                      \
  }
#else
#define BEGIN_SUMS(type)
#define END_SUMS(type, column)
#endif
// A column, or four, of the work-item's results.
#define FINISH(STORE, type, VALUE, offset)                                                                             \
  {                                                                                                                    \
    const int column = n + offset;                                                                                     \
    BEGIN_SUMS(type)                                                                                                   \
    _Pragma("unroll") for (int i = 0; i < TM; ++i) {                                                                   \
      const int row = m0 + i;                                                                                          \
      if (row >= m && row < M && column < N)                                                                           \
        STORE(VALUE, (z * M + row) * N + column, column Y_SUM_ARGS Y_PASS);                                            \
    }                                                                                                                  \
    END_SUMS(type, column)                                                                                             \
  }

#define FINISH_FOUR(j)                                                                                                 \
  FINISH(Y_1, float, sum[i][j].x, 4 * j)                                                                               \
  FINISH(Y_1, float, sum[i][j].y, 4 * j + 1)                                                                           \
  FINISH(Y_1, float, sum[i][j].z, 4 * j + 2)                                                                           \
  FINISH(Y_1, float, sum[i][j].w, 4 * j + 3)

// get_group_id(2) is the batch item, or, with k_each < K (a multiple of 4), the part of K: then the result is one of
// [parts][M][N]. Sums over the rows of a work-group go to partial[groups along rows][Y_SUMS][N].
__attribute__((reqd_work_group_size(GX, GY, 1))) kernel void gemm_direct(
    int M, int N, int K, int k_each, int a_batch, int b_batch A_IMAGE B_IMAGE A_PARAMS B_PARAMS SUM_PARAMS Y_PARAMS) {
#if Y_SUMS > 0
  local float4 row_sums[GX * GY];  // here, for OpenCL C allows local variables in a kernel's outermost scope only
#endif
  const int n = (int)get_global_id(0) * TN, m = (int)get_global_id(1) * TM;
  const int z = (int)get_group_id(2), item = k_each < K ? 0 : z;
  const int begin = k_each < K ? z * k_each : 0, end = min(K, begin + k_each);
#if VEC && !TA
  const int m0 = min(m, M - TM);  // the last work-items compute some rows again, and store only their own
#else
  const int m0 = m;
#endif
  float4 sum[TM][TN4];
#pragma unroll
  for (int i = 0; i < TM; ++i)
#pragma unroll
    for (int j = 0; j < TN4; ++j) sum[i][j] = (float4)(0.0f);

#if VEC
  // Columns past the edge read the last ones, and are not stored.
#if TA
  const int a_step = M >> 2;
  int a_at[TM4], a_c[TM4];
#pragma unroll
  for (int i = 0; i < TM4; ++i) {
    a_c[i] = min((m >> 2) + i, a_step - 1);
    a_at[i] = (item * a_batch >> 2) + begin * a_step + a_c[i];
  }
#else
  const int a_step = K >> 2;
  int a_at = (item * a_batch + m0 * K + begin) >> 2;
#endif
#if TB
  const int b_step = K >> 2;
  int b_at[TN4];
#pragma unroll
  for (int j = 0; j < TN4; ++j) b_at[j] = (item * b_batch + min(n + 4 * j, N - 4) * K + begin) >> 2;
#else
  const int b_step = N >> 2;
  int b_at[TN4], b_c[TN4];
#pragma unroll
  for (int j = 0; j < TN4; ++j) {
    b_c[j] = min((n >> 2) + j, b_step - 1);
    b_at[j] = (item * b_batch >> 2) + begin * b_step + b_c[j];
  }
#endif
#endif

#if KSTEP == 1
  for (int k = begin; k < end; ++k) {
    float4 a[TM4], b[TN4];
#pragma unroll
    for (int i = 0; i < TM4; ++i) {
      a[i] = LOAD_A(a_at[i], a_c[i]);
      a_at[i] += a_step;
    }
#pragma unroll
    for (int j = 0; j < TN4; ++j) {
      b[j] = LOAD_B(b_at[j], b_c[j]);
      b_at[j] += b_step;
    }
#pragma unroll
    for (int i = 0; i < TM4; ++i)
#pragma unroll
      for (int j = 0; j < TN4; ++j) {
        sum[4 * i][j] += a[i].x * b[j];
        sum[4 * i + 1][j] += a[i].y * b[j];
        sum[4 * i + 2][j] += a[i].z * b[j];
        sum[4 * i + 3][j] += a[i].w * b[j];
      }
  }
#else
  for (int k = begin; k < end; k += 4) {
    float4 a[4 * TM4], b[4][TN4];  // a[row], four of K each; b[of K][column / 4]
#if VEC && TA
#pragma unroll
    for (int i = 0; i < TM4; ++i) {
      const float4 r0 = LOAD_A(a_at[i], a_c[i]), r1 = LOAD_A(a_at[i] + a_step, a_c[i]);
      const float4 r2 = LOAD_A(a_at[i] + 2 * a_step, a_c[i]), r3 = LOAD_A(a_at[i] + 3 * a_step, a_c[i]);
#define TO(p) a[4 * i + p]
      TURN(TO, r0, r1, r2, r3)
#undef TO
      a_at[i] += 4 * a_step;
    }
#elif VEC
#pragma unroll
    for (int i = 0; i < TM; ++i) a[i] = LOAD_A(a_at + i * a_step, k >> 2);
    ++a_at;
#else
#pragma unroll
    for (int i = 0; i < TM; ++i) a[i] = scalars_of_a(item * a_batch, m + i, k, end, M, K A_PASS);
#endif
#if VEC && TB
#pragma unroll
    for (int j = 0; j < TN4; ++j) {
      const float4 r0 = LOAD_B(b_at[j], k >> 2), r1 = LOAD_B(b_at[j] + b_step, k >> 2);
      const float4 r2 = LOAD_B(b_at[j] + 2 * b_step, k >> 2), r3 = LOAD_B(b_at[j] + 3 * b_step, k >> 2);
#define TO(p) b[p][j]
      TURN(TO, r0, r1, r2, r3)
#undef TO
      ++b_at[j];
    }
#elif VEC
#pragma unroll
    for (int p = 0; p < 4; ++p)
#pragma unroll
      for (int j = 0; j < TN4; ++j) {
        b[p][j] = LOAD_B(b_at[j], b_c[j]);
        b_at[j] += b_step;
      }
#else
#pragma unroll
    for (int p = 0; p < 4; ++p)
#pragma unroll
      for (int j = 0; j < TN4; ++j) b[p][j] = scalars_of_b(item * b_batch, n + 4 * j, k + p, end, N, K B_PASS);
#endif
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
      for (int j = 0; j < TN4; ++j) {
        sum[i][j] += a[i].x * b[0][j];
        sum[i][j] += a[i].y * b[1][j];
        sum[i][j] += a[i].z * b[2][j];
        sum[i][j] += a[i].w * b[3][j];
      }
  }
#endif

#if VEC
  FINISH(Y_4, float4, sum[i][0], 0)
#if TN4 > 1
  FINISH(Y_4, float4, sum[i][1], 4)
#endif
#else
  FINISH_FOUR(0)
#if TN4 > 1
  FINISH_FOUR(1)
#endif
#endif
}
