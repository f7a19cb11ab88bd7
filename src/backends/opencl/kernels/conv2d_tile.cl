// conv2d (PART 0) and conv2d_input_grad (PART 1) for GPUs: implicit GEMM without local memory, for one group of channels.
// The result has RH x RW pixels of N channels, each a sum over taps and over the K channels of an image of H x W pixels.
// A work-item computes TM pixels of a row times TN channels. Taps along w are unrolled, so that a pixel that several of
// them see is loaded once; rows of the kernel and channels are one flat loop, in which only running indices change.
//
// An input gradient of stride s falls apart into s launches, one for each phase of the column: such a launch sees the
// taps kw0, kw0 + s, ... alone, and goes through the result's columns phase, phase + s, ...

// PART: 0 computes y from (x, w), 1 dx from (dy, w).
#ifndef PART
#define PART 0
#endif
// TM: pixels of a work-item, 1..8. TN: channels of a work-item, 4 or 8.
#ifndef TM
#define TM 4
#endif
#ifndef TN
#define TN 8
#endif
// LX, LY: work-items of a group, along channels and along pixels.
#ifndef LX
#define LX 8
#endif
#ifndef LY
#define LY 16
#endif
// TAPS: taps along w that are unrolled, 1..7. With 1 there may be more: then PASSES is 1.
#ifndef TAPS
#define TAPS 3
#endif
#ifndef PASSES
#define PASSES 0
#endif
// STEP: the image's pixels from one pixel of the result to the next, 1..4.
#ifndef STEP
#define STEP 1
#endif
// VEC_K, VEC_N: 1 if K, or N, is a multiple of 4.
#ifndef VEC_K
#define VEC_K 1
#endif
#ifndef VEC_N
#define VEC_N 1
#endif
// IMAGE: 1 if the weights are read through an image view (their innermost size is a multiple of 4).
#ifndef IMAGE
#define IMAGE 1
#endif
// POINTERS: 1 if a running pointer for each pixel is cheaper than an index.
#ifndef POINTERS
#define POINTERS 1
#endif

// Operand and epilogue are rendered into the header; these defaults are tensors as they stand.
#ifndef A_PARAMS
#define A_PARAMS , global const float *A0, int A0_at
#define A_PASS , A0, A0_at
#define A_PLAIN 1
float A_1(int i, int c A_PARAMS) { return A0[A0_at + i]; }
float4 A_4(int i, int c A_PARAMS) { return *(global const float4 *)(A0 + A0_at + i); }
#endif
#ifndef Y_PARAMS
#define Y_PARAMS , global float *Y0, int Y0_at
#define Y_PASS , Y0, Y0_at
#define Y_SUMS 0
#define Y_SUM_ARGS
void Y_1(float value, int i, int c Y_PARAMS) { Y0[Y0_at + i] = value; }
void Y_4(float4 value, int i, int c Y_PARAMS) { *(global float4 *)(Y0 + Y0_at + i) = value; }
#endif

// K and all distances are counted in units of UNIT channels.
#if VEC_K
#define UNIT 4
typedef float4 Depth;
typedef int4 DepthBits;
#define as_Depth as_float4
#define as_DepthBits as_int4
#define LOAD_A A_4
#else
#define UNIT 1
typedef float Depth;
typedef int DepthBits;
#define as_Depth as_float
#define as_DepthBits as_int
#define LOAD_A A_1
#endif

// The weights' index counts floats, or float4 where their innermost size is a multiple of 4.
#if PART == 0 ? VEC_N : VEC_K
#define W_UNIT 4
#else
#define W_UNIT 1
#endif
#if IMAGE
#define W_PARAMS , read_only image1d_buffer_t w
#define W_PASS , w
#define W4(i) read_imagef(w, i)
#else
#define W_PARAMS , global const float *w, int w_at
#define W_PASS , w, w_at
#define W4(i) (((global const float4 *)(w + w_at))[i])
#define W1(i) w[w_at + (i)]
#endif

#define UNROLL _Pragma("unroll")
#define GN (TN / 4)
#if TAPS > 1
#define SPOTS ((TM - 1) * STEP + TAPS)
#define SPOT_STEP 1
#else
#define SPOTS TM
#define SPOT_STEP STEP
#endif
#if A_PLAIN && POINTERS
#define USE_POINTERS 1
#else
#define USE_POINTERS 0
#endif
// Which spot tap u of pixel j sees.
#if TAPS == 1
#define SPOT(j, u) (j)
#elif PART == 0
#define SPOT(j, u) ((j) * STEP + (u))
#else
#define SPOT(j, u) ((j) + TAPS - 1 - (u))
#endif

#if Y_SUMS > 0
#define SUMS_PARAMS , int first_sum, global float *partials, int partials_at
#else
#define SUMS_PARAMS
#endif

// Rows of the weights' tile for channels n..n+3: b[i] belongs to channel k + i of the image. `at` is the place of (k, n).
#if PART == 0
#if VEC_N
#define WEIGHTS(at, i, n) W4((at) + (i) * (N / 4))
#else
#define WEIGHT(at, i, n, c) ((n) + (c) < N ? W1((at) + (i) * N + (c)) : 0.0f)
#define WEIGHTS(at, i, n)                                                                                              \
  (float4)(WEIGHT(at, i, n, 0), WEIGHT(at, i, n, 1), WEIGHT(at, i, n, 2), WEIGHT(at, i, n, 3))
#endif
#else
// Weights stand along K: rows n..n+3 are loaded, and turned.
#if VEC_N
#define WEIGHT_ROW(at, n, c) ((at) + (c) * (K / W_UNIT))
#else
#define WEIGHT_ROW(at, n, c) ((at) + (min((n) + (c), N - 1) - (n)) * (K / W_UNIT))
#endif
#endif

// Stores channel n0 + first (or four from there on) of all pixels. A group leaves one row of partial sums. Written out,
// since no compiler unrolls a loop with a barrier.
#if VEC_N
typedef float4 Channels;
#else
typedef float Channels;
#endif
#if Y_SUMS > 0
#define SUMS_CLEAR                                                                                                     \
  Channels sums[Y_SUMS];                                                                                               \
  UNROLL for (int s = 0; s < Y_SUMS; ++s) sums[s] = (Channels)(0.0f);
#define SUMS_REDUCE(n)                                                                                                 \
  UNROLL for (int s = 0; s < Y_SUMS; ++s) shared[s][get_local_id(1)][get_local_id(0)] = sums[s];                       \
  barrier(CLK_LOCAL_MEM_FENCE);                                                                                        \
  if (get_local_id(1) == 0 && (n) < N) {                                                                               \
    for (int s = 0; s < Y_SUMS; ++s) {                                                                                 \
      Channels total = (Channels)(0.0f);                                                                               \
      for (int y = 0; y < LY; ++y) total += shared[s][y][get_local_id(0)];                                             \
      const int row = (first_sum + (int)get_group_id(1)) * Y_SUMS + s;                                                 \
      *(global Channels *)(partials + partials_at + row * N + (n)) = total;                                            \
    }                                                                                                                  \
  }                                                                                                                    \
  barrier(CLK_LOCAL_MEM_FENCE);
#else
#define SUMS_CLEAR
#define SUMS_REDUCE(n)
#endif
#define STORE(first, value, store)                                                                                     \
  {                                                                                                                    \
    const int n = n0 + (first);                                                                                        \
    SUMS_CLEAR                                                                                                         \
    UNROLL for (int j = 0; j < TM; ++j) {                                                                              \
      const int rw = phase + (column + j) * step_rw;                                                                   \
      if (active && n < N && rw < RW) store(value, ((image * RH + rh) * RW + rw) * N + n, n Y_SUM_ARGS Y_PASS);        \
    }                                                                                                                  \
    SUMS_REDUCE(n)                                                                                                     \
  }
#if VEC_N
#define STORE_GROUP(g) STORE((g) * 4, acc[j][g], Y_4)
#else
#define STORE_GROUP(g)                                                                                                 \
  STORE((g) * 4, acc[j][g].x, Y_1)                                                                                     \
  STORE((g) * 4 + 1, acc[j][g].y, Y_1)                                                                                 \
  STORE((g) * 4 + 2, acc[j][g].z, Y_1)                                                                                 \
  STORE((g) * 4 + 3, acc[j][g].w, Y_1)
#endif

// tile: TM pixels of a row. phase, step_rw: which columns of the result the launch computes. w_first: the image's column
// that spot 0 of the first tile sees. tap_b, row_b: weights (in W_UNIT) from one unrolled tap, or kernel row, to the
// next; pass_w, pass_b: columns and weights from one pass to the next.
kernel __attribute__((reqd_work_group_size(LX, LY, 1))) void conv2d_tile(
    int tiles, int N, int K, int RH, int RW, int H, int W, int KH, int stride_h, int pad_h, int dilation_h, int phase,
    int step_rw, int w_first, int first_b, int tap_b, int row_b, int passes, int pass_w,
    int pass_b A_PARAMS W_PARAMS Y_PARAMS SUMS_PARAMS) {
  const int n0 = get_global_id(0) * TN;
  const int tile = get_global_id(1);
  const bool active = tile < tiles && n0 < N;
  const int across = ((RW - phase + step_rw - 1) / step_rw + TM - 1) / TM;  // tiles in a row
  const int rh = tile / across % RH, image = tile / across / RH;
  const int column = tile % across * TM;

  // Kernel rows kh0 + i * kh_step, i in [first, last), see the image's rows top + i * down.
#if PART == 0
  const int kh0 = 0, kh_step = 1, down = dilation_h;
  const int top = rh * stride_h - pad_h;
  const int first = top < 0 ? (down - 1 - top) / down : 0;
  const int last = min(KH, (H - top + down - 1) / down);
  const int b_step = UNIT * N / W_UNIT;
  const int n_at = n0 / W_UNIT;
#else
  const int kh0 = (rh + pad_h) % stride_h, kh_step = stride_h;
  const int down = stride_h > 1 ? -1 : -dilation_h;
  const int top = (rh + pad_h - kh0) / stride_h;
  const int first = top >= H ? (top - H - down) / -down : 0;
  const int last = min((KH - kh0 + kh_step - 1) / kh_step, top / -down + 1);
  const int b_step = UNIT / W_UNIT;
  const int n_at = n0 * (K / W_UNIT);
#endif
  const int KU = K / UNIT;
  const int rows = active ? max(last - first, 0) : 0;
  const int next_a = (down * W - 1) * KU + 1, next_b = kh_step * row_b - (KU - 1) * b_step;
  // Where the tile's second half lies beyond the result, the first is computed twice.
  const int half_at = n0 + 4 < N ? (PART == 0 ? 4 / W_UNIT : 4 * (K / W_UNIT)) : 0;
#if USE_POINTERS
  global const Depth *image_data = (global const Depth *)(A0 + A0_at);
#endif

  float4 acc[TM][GN];
  UNROLL for (int j = 0; j < TM; ++j) {
    UNROLL for (int g = 0; g < GN; ++g) acc[j][g] = (float4)(0.0f);
  }
#if PASSES
  for (int pass = 0; pass < passes; ++pass) {
#else
  const int pass = 0;
#endif
  int b_at = first_b + pass * pass_b + (kh0 + first * kh_step) * row_b + n_at;
  const int w_at0 = w_first + pass * pass_w + column * STEP;
  const int row_at = (image * H + top + first * down) * W;
  // Spots beside the image are loaded from its first pixel, and masked.
#if USE_POINTERS
  int inside[SPOTS];
  global const Depth *a_at[SPOTS];
#define INSIDE(j) inside[j]
#else
  // One index and one register of bits: phones with few registers a work-item would spill.
  int bits = 0, a_at = (row_at + w_at0) * KU;
#define INSIDE(j) ((bits << (31 - (j))) >> 31)
#endif
  UNROLL for (int j = 0; j < SPOTS; ++j) {
    const int column_j = w_at0 + j * SPOT_STEP;
    const int is_inside = column_j >= 0 && column_j < W && rows > 0 ? -1 : 0;
#if USE_POINTERS
    inside[j] = is_inside;
    a_at[j] = image_data + (rows > 0 ? (row_at + clamp(column_j, 0, W - 1)) * KU : 0);
#else
    bits |= is_inside & (1 << j);
#endif
  }
  int k = 0;
  for (int left = rows * KU; left > 0; --left) {
    Depth a[SPOTS];
    UNROLL for (int j = 0; j < SPOTS; ++j) {
#if USE_POINTERS
      a[j] = as_Depth(as_DepthBits(*a_at[j]) & INSIDE(j));
#else
      const int at = (a_at + j * SPOT_STEP * KU) & INSIDE(j);
      a[j] = as_Depth(as_DepthBits(LOAD_A(at * UNIT, k * UNIT A_PASS)) & INSIDE(j));
#endif
    }
    UNROLL for (int u = 0; u < TAPS; ++u) {
      UNROLL for (int g = 0; g < GN; ++g) {
        const int n = n0 + g * 4;
        (void)n;  // whole rows of weights need no guard
        const int at = b_at + u * tap_b + (g == 0 ? 0 : half_at);
#if PART == 0 && VEC_K
        const float4 b0 = WEIGHTS(at, 0, n), b1 = WEIGHTS(at, 1, n), b2 = WEIGHTS(at, 2, n), b3 = WEIGHTS(at, 3, n);
#elif PART == 0
        const float4 b0 = WEIGHTS(at, 0, n);
#elif VEC_K
        const float4 r0 = W4(WEIGHT_ROW(at, n, 0)), r1 = W4(WEIGHT_ROW(at, n, 1));
        const float4 r2 = W4(WEIGHT_ROW(at, n, 2)), r3 = W4(WEIGHT_ROW(at, n, 3));
        const float4 b0 = (float4)(r0.x, r1.x, r2.x, r3.x), b1 = (float4)(r0.y, r1.y, r2.y, r3.y);
        const float4 b2 = (float4)(r0.z, r1.z, r2.z, r3.z), b3 = (float4)(r0.w, r1.w, r2.w, r3.w);
#else
        const float4 b0 = (float4)(W1(WEIGHT_ROW(at, n, 0)), W1(WEIGHT_ROW(at, n, 1)), W1(WEIGHT_ROW(at, n, 2)),
                                   W1(WEIGHT_ROW(at, n, 3)));
#endif
        UNROLL for (int j = 0; j < TM; ++j) {
#if VEC_K
          acc[j][g] = mad(a[SPOT(j, u)].x, b0, acc[j][g]);
          acc[j][g] = mad(a[SPOT(j, u)].y, b1, acc[j][g]);
          acc[j][g] = mad(a[SPOT(j, u)].z, b2, acc[j][g]);
          acc[j][g] = mad(a[SPOT(j, u)].w, b3, acc[j][g]);
#else
          acc[j][g] = mad(a[SPOT(j, u)], b0, acc[j][g]);
#endif
        }
      }
    }
    ++k;
    const bool ends = k == KU;
    const int ahead = ends ? next_a : 1;
    b_at += ends ? next_b : b_step;
    k = ends ? 0 : k;
#if USE_POINTERS
    UNROLL for (int j = 0; j < SPOTS; ++j) a_at[j] += ahead;
#else
    a_at += ahead;
#endif
  }
#if PASSES
  }
#endif

#if Y_SUMS > 0
  local Channels shared[Y_SUMS][LY][LX];
#endif
  STORE_GROUP(0)
#if TN == 8
  STORE_GROUP(1)
#endif
}
