// C = op(A) op(B) for devices that are CPUs: a work-group is one work-item, one macro-tile of MC x NC results for one
// thread. Blocks of A and panels of B are computed into local memory (which is cache there); the register tile is
// MR x NR. The macro-tile is accumulated in local memory over blocks of K, then goes through the epilogue once.
// Other kernels may bring their own A: see A_BLOCK and A_TILE.
#ifndef V
#define V 8  // 4 8 16: floats of a register
#endif
#ifndef NV
#define NV 2  // 1..3: registers of a row of the tile
#endif
#ifndef MR
#define MR 6  // 4..14: rows of the tile
#endif
#ifndef KC
#define KC 256  // 64..512: depth of a block, a multiple of V
#endif
#ifndef TA
#define TA 0  // 0: A is [M, K], 1: [K, M]
#endif
#ifndef TB
#define TB 0  // 0: B is [K, N], 1: [N, K]
#endif
#ifndef FROM
#define FROM 1  // B comes: 0 in place ([K, N], no prologue), 1 packed here, 2 from panels packed before
#endif
#define NR (NV * V)

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define vec PASTE(float, V)
#define LOAD(p) PASTE(vload, V)(0, p)
#define STORE(value, p) PASTE(vstore, V)(value, 0, p)

// Operands and epilogue are rendered into the header; these defaults are tensors as they stand.
#ifndef A_PARAMS
#define A_PARAMS , global const float *A0, int A0_at
#define A_PASS , A0, A0_at
#define A_PLAIN 1
float A_1(int i, int c A_PARAMS) { return A0[A0_at + i]; }
vec PASTE(A_, V)(int i, int c A_PARAMS) { return LOAD(A0 + A0_at + i); }
#endif
#ifndef B_PARAMS
#define B_PARAMS , global const float *B0, int B0_at
#define B_PASS , B0, B0_at
#define B_PLAIN 1
float B_1(int i, int c B_PARAMS) { return B0[B0_at + i]; }
#if TB
float4 B_4(int i, int c B_PARAMS) { return vload4(0, B0 + B0_at + i); }
#else
vec PASTE(B_, V)(int i, int c B_PARAMS) { return LOAD(B0 + B0_at + i); }
#endif
#endif
#ifndef Y_PARAMS
#define Y_PARAMS , global float *Y_out0, int Y_out0_at
#define Y_PASS , Y_out0, Y_out0_at
#define Y_SUMS 0
#define Y_SUM_ARGS
void Y_1(float value, int i, int c Y_PARAMS) { Y_out0[Y_out0_at + i] = value; }
#if V > 4
void Y_4(float4 value, int i, int c Y_PARAMS) { vstore4(value, 0, Y_out0 + Y_out0_at + i); }
#endif
void PASTE(Y_, V)(vec value, int i, int c Y_PARAMS) { STORE(value, Y_out0 + Y_out0_at + i); }
#endif

// The block of A in local memory: A_AT(m, k) with a constant stride along m if A's rows run along k, and along k if not.
#if TA
#define A_AT(m, k) ((k)*a_stride + (m))
#elif defined(A_TILE)
#define A_AT(m, k) ((m)*a_stride + (k))
#else
#define A_STRIDE (KC + V)
#define A_AT(m, k) ((m)*A_STRIDE + (k))
#endif

// A_BLOCK(a, a_stride, base, m0, rows, k0, depth) computes rows m0.. and columns k0.. of op(A) into `a`; `base` is the
// first element of the batch item. A header that defines it brings A from elsewhere (patches of an image).
#ifndef A_BLOCK
#define A_BLOCK(a, a_stride, base, m0, rows, k0, depth) a_block(a, a_stride, base, m0, rows, k0, depth, M, K A_PASS)
void a_block(local float *a, int a_stride, int base, int m0, int rows, int k0, int depth, int M, int K A_PARAMS) {
#if TA
  const int inner = M, outer = depth, width = rows, row0 = k0, column0 = m0, stride = a_stride;
#else
  const int inner = K, outer = rows, width = depth, row0 = m0, column0 = k0, stride = A_STRIDE;
#endif
  for (int r = 0; r < outer; ++r) {
    const int from = base + (row0 + r) * inner + column0;
    local float *to = a + r * stride;
    int c = 0;
    for (; c + V <= width; c += V) STORE(PASTE(A_, V)(from + c, column0 + c A_PASS), to + c);
    for (; c < width; ++c) to[c] = A_1(from + c, column0 + c A_PASS);
  }
}
#endif

// Where the tile of rows m0 + m.. begins in the block, what lies between its rows (with TA: along K), and the runs in
// which its K stands. A header may define these together with A_BLOCK: windows into an image.
#ifndef A_TILE
#define A_TILE(m0, m) A_AT(m, 0)
#define A_STEP MC
#define A_RUNS(depth) 1
#define A_RUN(depth) depth
#define A_RUN_STEP 0
#define A_DEPTH KC
#endif

// B in panels of NR columns, [depth][NR] each: in local memory if packed here, in the workspace if packed before.
#if FROM == 1
#define B_SPACE local
#else
#define B_SPACE global
#endif
#if FROM != 0
// Columns n0.. and rows k0.. of op(B); the panel's columns from `columns` on are zero.
void b_panel(B_SPACE float *b, int base, int n0, int columns, int k0, int depth, int N, int K B_PARAMS) {
#if TB
  for (int n = 0; n < NR; n += 4) {
    const int from = base + (n0 + n) * K + k0;
    int k = 0;
    // 4 x 4 elements are turned round in registers.
    for (; n + 4 <= columns && k + 4 <= depth; k += 4) {
      const float4 r0 = B_4(from + k, k0 + k B_PASS), r1 = B_4(from + K + k, k0 + k B_PASS);
      const float4 r2 = B_4(from + 2 * K + k, k0 + k B_PASS), r3 = B_4(from + 3 * K + k, k0 + k B_PASS);
      vstore4((float4)(r0.x, r1.x, r2.x, r3.x), 0, b + k * NR + n);
      vstore4((float4)(r0.y, r1.y, r2.y, r3.y), 0, b + (k + 1) * NR + n);
      vstore4((float4)(r0.z, r1.z, r2.z, r3.z), 0, b + (k + 2) * NR + n);
      vstore4((float4)(r0.w, r1.w, r2.w, r3.w), 0, b + (k + 3) * NR + n);
    }
    for (; k < depth; ++k)
      for (int j = n; j < n + 4; ++j)
        b[k * NR + j] = j < columns ? B_1(base + (n0 + j) * K + k0 + k, k0 + k B_PASS) : 0.0f;
  }
#else
  for (int k = 0; k < depth; ++k) {
    const int from = base + (k0 + k) * N + n0;
    B_SPACE float *to = b + k * NR;
    int n = 0;
    for (; n + V <= columns; n += V) STORE(PASTE(B_, V)(from + n, n0 + n B_PASS), to + n);
    for (; n < columns; ++n) to[n] = B_1(from + n, n0 + n B_PASS);
    for (; n < NR; ++n) to[n] = 0.0f;
  }
#endif
}
#endif

#if FROM == 2
// All panels of B, [batch][panels][K][NR]: get_global_id(0) is the block of K, (1) the panel, (2) the batch item.
kernel void gemm_pack(int N, int K, int b_batch, global float *panels, int panels_at B_PARAMS) {
  const int k0 = (int)get_global_id(0) * KC, panel = (int)get_global_id(1), item = (int)get_global_id(2);
  const int at = (item * (int)get_global_size(1) + panel) * K + k0;
  b_panel(panels + panels_at + at * NR, item * b_batch, panel * NR, min(NR, N - panel * NR), k0, min(KC, K - k0), N,
          K B_PASS);
}
#endif

// Where vector j of a tile's columns begins. In place nothing is read beyond a row of B: the last vector ends with it,
// and computes some columns again.
#if FROM == 0
#define COLUMN(j) min((j)*V, last)
#else
#define COLUMN(j) ((j)*V)
#endif

// The tile c[MR][NR] (+)= A B over `runs` times `run` of K. K stays rolled: the tile fills the registers.
void tile(local const float *a, int a_stride, int runs, int run, int run_step, B_SPACE const float *b, int b_stride,
          int last, local float *c, int c_stride, int first) {
  vec sum[MR][NV];
#pragma unroll
  for (int i = 0; i < MR; ++i)
#pragma unroll
    for (int j = 0; j < NV; ++j) sum[i][j] = first ? (vec)(0.0f) : LOAD(c + i * c_stride + COLUMN(j));
  for (int r = 0; r < runs; ++r, a += run_step) {
    for (int k = 0; k < run; ++k, b += b_stride) {
      vec y[NV];
#pragma unroll
      for (int j = 0; j < NV; ++j) y[j] = LOAD(b + COLUMN(j));
#pragma unroll
      for (int i = 0; i < MR; ++i) {
        const vec x = (vec)(a[A_AT(i, k)]);
#pragma unroll
        for (int j = 0; j < NV; ++j) sum[i][j] += x * y[j];
      }
    }
  }
#pragma unroll
  for (int i = 0; i < MR; ++i)
#pragma unroll
    for (int j = 0; j < NV; ++j) STORE(sum[i][j], c + i * c_stride + COLUMN(j));
}

#if Y_SUMS > 0
#define SUM_PARAMS , global float *partial, int partial_at
#define SUM_PASS , partial, partial_at
#else
#define SUM_PARAMS
#define SUM_PASS
#endif

// Rows m0.. and columns n0.. of the result, from the macro-tile c. `row0` counts rows over the whole batch; sums over
// the macro-tile's rows go to row `block` of partial[blocks][Y_SUMS][N].
void finish(local const float *c, int c_stride, int row0, int rows, int n0, int columns, int block,
            int N SUM_PARAMS Y_PARAMS) {
#if Y_SUMS > 0
  global float *to = partial + partial_at + block * Y_SUMS * N + n0;
  int n = 0;
  for (; n + V <= columns; n += V) {
    vec sums[Y_SUMS];
    for (int s = 0; s < Y_SUMS; ++s) sums[s] = (vec)(0.0f);
    for (int m = 0; m < rows; ++m)
      PASTE(Y_, V)(LOAD(c + m * c_stride + n), (row0 + m) * N + n0 + n, n0 + n Y_SUM_ARGS Y_PASS);
    for (int s = 0; s < Y_SUMS; ++s) STORE(sums[s], to + s * N + n);
  }
  for (; n < columns; ++n) {
    float sums[Y_SUMS];
    for (int s = 0; s < Y_SUMS; ++s) sums[s] = 0.0f;
    for (int m = 0; m < rows; ++m)
      Y_1(c[m * c_stride + n], (row0 + m) * N + n0 + n, n0 + n Y_SUM_ARGS Y_PASS);
    for (int s = 0; s < Y_SUMS; ++s) to[s * N + n] = sums[s];
  }
#else
  for (int m = 0; m < rows; ++m) {
    const int at = (row0 + m) * N + n0;
    int n = 0;
    for (; n + V <= columns; n += V) PASTE(Y_, V)(LOAD(c + m * c_stride + n), at + n, n0 + n Y_PASS);
    for (; n + 4 <= columns; n += 4) Y_4(vload4(0, c + m * c_stride + n), at + n, n0 + n Y_PASS);
    for (; n < columns; ++n) Y_1(c[m * c_stride + n], at + n, n0 + n Y_PASS);
  }
#endif
}

#ifdef SCATTER_PARAMS
// The product of one item of a batch, whose rows go to an image as conv2d_scatter.cl says, and that to the epilogue:
// get_group_id(0) is the item. K is at most KC. a, c hold MC x A_STRIDE and MC x NC floats, NC a multiple of NR.
__attribute__((reqd_work_group_size(1, 1, 1))) kernel void gemm_scatter(
    int pixels, int N, int K, int MC, int NC, local float *a, local float *c, local float *image,
    global const float *panels, int panels_at, SCATTER_PARAMS A_PARAMS SUM_PARAMS Y_PARAMS) {
  const int item = (int)get_group_id(0), M = pixels * (int)get_num_groups(0), a_stride = A_STEP;
  for (int i = 0; i < s_H * s_W * s_C; ++i) image[i] = 0.0f;
  for (int m0 = 0; m0 < pixels; m0 += MC) {
    const int rows = min(MC, pixels - m0);
    for (int m = rows; m % MR != 0; ++m)
      for (int k = 0; k < K; ++k) a[A_AT(m, k)] = 0.0f;
    A_BLOCK(a, a_stride, 0, item * pixels + m0, rows, 0, K);
    for (int n = 0; n < N; n += NR)
      for (int m = 0; m < rows; m += MR)
        tile(a + A_AT(m, 0), a_stride, 1, K, 0, panels + panels_at + n * K, NR, 0, c + m * NC + n, NC, 1);
    scatter(c, NC, m0, rows, image, SCATTER_PASS);
  }
  finish(image, s_C, item * s_H * s_W, s_H * s_W, 0, s_C, item, s_C SUM_PASS Y_PASS);
}
#else
// get_group_id(2) is the batch item, or, with k_each < K, the part of K: then the result is one of [parts][M][N]. MC is
// a multiple of MR, NC of NR. a, b, c hold MC x A_STRIDE (or KC x MC), KC x NR and MC x NC floats.
__attribute__((reqd_work_group_size(1, 1, 1))) kernel void gemm_panel(
    int M, int N, int K, int k_each, int MC, int NC, int a_batch, int b_batch, local float *a, local float *c,
#if FROM == 1
    local float *b
#else
    global const float *b, int b_at
#endif
        A_PARAMS B_PARAMS SUM_PARAMS Y_PARAMS) {
  const int z = (int)get_group_id(2), item = k_each < K ? 0 : z, a_stride = A_STEP;
  const int m0 = (int)get_group_id(1) * MC, n0 = (int)get_group_id(0) * NC;
  const int rows = min(MC, M - m0), columns = min(NC, N - n0);
  const int begin = k_each < K ? z * k_each : 0, end = min(K, begin + k_each);
  // Rows that only fill the last tile: any finite numbers do. Windows have none.
  for (int m = rows; m % MR != 0; ++m)
    for (int k = 0; k < min(KC, end - begin); ++k) a[A_AT(m, k)] = 0.0f;
  for (int k0 = begin; k0 < end; k0 += A_DEPTH) {
    const int depth = min(A_DEPTH, end - k0);
    A_BLOCK(a, a_stride, item * a_batch, m0, rows, k0, depth);
    for (int n = 0; n < columns; n += NR) {
#if FROM == 0
      global const float *panel = b + b_at + item * b_batch + k0 * N + n0 + n;
      const int stride = N;
#elif FROM == 1
      local const float *panel = b;
      const int stride = NR;
      b_panel(b, item * b_batch, n0 + n, min(NR, columns - n), k0, depth, N, K B_PASS);
#else
      const int panels = (N + NR - 1) / NR;
      global const float *panel =
          b + b_at + (((b_batch > 0 ? item : 0) * panels + (n0 + n) / NR) * K + k0) * NR;
      const int stride = NR;
#endif
      for (int m = 0; m < rows; m += MR)
        tile(a + A_TILE(m0, m), a_stride, A_RUNS(depth), A_RUN(depth), A_RUN_STEP, panel, stride, N - V - n0 - n,
             c + m * NC + n, NC, k0 == begin);
    }
  }
  finish(c, NC, z * M + m0, rows, n0, columns, z * (int)get_num_groups(1) + (int)get_group_id(1), N SUM_PASS Y_PASS);
}
#endif
