// conv2d_weight_grad for GPUs: implicit GEMM without local memory, for one group of channels. dw is a matrix
// [KH * KW * Cin, Cout]; a work-item computes TM of its rows (channels of one tap) times TN columns, over the images of
// one part. The pixels at which the tap sees the image are one flat loop, in which only running indices change.
// gemm_reduce.cl adds the parts up.

// TM: rows of a work-item, 4 or 8, a divisor of Cin (1 without VEC_M). TN: columns of a work-item, 4 or 8; 8 only where
// it divides Cout.
#ifndef TM
#define TM 8
#endif
#ifndef TN
#define TN 8
#endif
// LX, LY: work-items of a group, along columns and along rows.
#ifndef LX
#define LX 8
#endif
#ifndef LY
#define LY 8
#endif
// VEC_M, VEC_N: 1 if Cin, or Cout, is a multiple of 4.
#ifndef VEC_M
#define VEC_M 1
#endif
#ifndef VEC_N
#define VEC_N 1
#endif
// PIXELS: neighbours that a step of the loop takes, 1, 2 or 4; those beyond the end of a row are masked.
#ifndef PIXELS
#define PIXELS 4
#endif
// POINTERS: 1 if a running pointer into x is cheaper than an index.
#ifndef POINTERS
#define POINTERS 1
#endif
// IMAGE: 1 if dy is read through an image view (needs VEC_N), 2 if x is, too (needs VEC_M). On Adreno that spares the
// arithmetic of 64-bit addresses.
#ifndef IMAGE
#define IMAGE 1
#endif

// Operands are rendered into the header; these defaults are tensors as they stand.
#if IMAGE == 2
#define X_PARAMS , read_only image1d_buffer_t x
#else
#ifndef A_PARAMS
#define A_PARAMS , global const float *A0, int A0_at
#define A_PASS , A0, A0_at
#define A_PLAIN 1
float A_1(int i, int c A_PARAMS) { return A0[A0_at + i]; }
float4 A_4(int i, int c A_PARAMS) { return *(global const float4 *)(A0 + A0_at + i); }
#endif
#define X_PARAMS A_PARAMS
#endif
#if IMAGE
#define DY_PARAMS , read_only image1d_buffer_t dy
#define LOAD_B(i, n) read_imagef(dy, i)
#else
#ifndef B_PARAMS
#define B_PARAMS , global const float *B0, int B0_at
#define B_PASS , B0, B0_at
float B_1(int i, int c B_PARAMS) { return B0[B0_at + i]; }
float4 B_4(int i, int c B_PARAMS) { return *(global const float4 *)(B0 + B0_at + i); }
#endif
#define DY_PARAMS B_PARAMS
#if VEC_N
#define LOAD_B(i, n) B_4((i) * 4, n B_PASS)
#else
#define LOAD_1(i, n) ((n) < Cout ? B_1(i, n B_PASS) : 0.0f)
#define LOAD_B(i, n) (float4)(LOAD_1(i, n), LOAD_1(i + 1, n + 1), LOAD_1(i + 2, n + 2), LOAD_1(i + 3, n + 3))
#endif
#endif

#define UNROLL _Pragma("unroll")
#define GN (TN / 4)
#if VEC_M
#define GM (TM / 4)
typedef float4 Rows;
#define UNIT_M 4
#define AS_ROWS as_float4
#define AS_BITS as_int4
#if IMAGE == 2
#define LOAD_A(i, c) read_imagef(x, i)
#else
#define LOAD_A(i, c) A_4((i) * 4, c A_PASS)
#endif
#else
#define GM 1
typedef float Rows;
#define UNIT_M 1
#define AS_ROWS as_float
#define AS_BITS as_int
#define LOAD_A(i, c) A_1(i, c A_PASS)
#endif
// Indices of x and dy count float4 where they can.
#if VEC_N
#define UNIT_N 4
#else
#define UNIT_N 1
#endif

#if A_PLAIN && POINTERS && VEC_M && IMAGE != 2
#define USE_POINTERS 1
#else
#define USE_POINTERS 0
#endif

// One pixel's product, of the four (or the one) rows from i * 4 on.
#if VEC_M
#define PRODUCT(i, g, a, b)                                                                                            \
  acc[(i) * 4][g] = mad((a).x, b, acc[(i) * 4][g]);                                                                    \
  acc[(i) * 4 + 1][g] = mad((a).y, b, acc[(i) * 4 + 1][g]);                                                            \
  acc[(i) * 4 + 2][g] = mad((a).z, b, acc[(i) * 4 + 2][g]);                                                            \
  acc[(i) * 4 + 3][g] = mad((a).w, b, acc[(i) * 4 + 3][g]);
#else
#define PRODUCT(i, g, a, b) acc[i][g] = mad(a, b, acc[i][g]);
#endif

// Channels n..n+3 of a row of the part's result.
void store(global float *to, float4 value, int n, int Cout) {
#if VEC_N
  if (n < Cout) *(global float4 *)(to + n) = value;
#else
  if (n < Cout) to[n] = value.x;
  if (n + 1 < Cout) to[n + 1] = value.y;
  if (n + 2 < Cout) to[n + 2] = value.z;
  if (n + 3 < Cout) to[n + 3] = value.w;
#endif
}

// Pixels [first, last) of `size` results see the image of `extent` pixels: at * stride + offset.
int first_pixel(int offset, int stride) { return offset < 0 ? (stride - 1 - offset) / stride : 0; }
int last_pixel(int offset, int stride, int extent, int size) {
  return offset < extent ? min(size, (extent - offset + stride - 1) / stride) : 0;
}

// images: of a part, get_global_id(2). tile_rows: tiles of a tap.
kernel __attribute__((reqd_work_group_size(LX, LY, 1))) void conv2d_weight_tile(
    int images, int tile_rows, int N, int H, int W, int Cin, int OH, int OW, int Cout, int KH, int KW, int stride_h,
    int stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w, global float *parts,
    int parts_at X_PARAMS DY_PARAMS) {
  const int n0 = get_global_id(0) * TN;
  const int tap = (int)get_global_id(1) / tile_rows;
  const int m0 = (int)get_global_id(1) % tile_rows * TM;
  const int part = get_global_id(2);
  if (n0 >= Cout || tap >= KH * KW) return;

  const int offset_h = tap / KW * dilation_h - pad_h, offset_w = tap % KW * dilation_w - pad_w;
  const int oh0 = first_pixel(offset_h, stride_h), ow0 = first_pixel(offset_w, stride_w);
  const int height = max(last_pixel(offset_h, stride_h, H, OH) - oh0, 0);
  const int width = max(last_pixel(offset_w, stride_w, W, OW) - ow0, 0);
  const int first = part * images;
  const int steps = (width + PIXELS - 1) / PIXELS;
  const int line = W * Cin / UNIT_M, CM = Cin / UNIT_M, CN = Cout / UNIT_N;
  // From one step to the next, at the end of a row, and at the end of an image besides.
  const int a_step = PIXELS * stride_w * CM, b_step = PIXELS * CN;
  const int a_row = stride_h * line - (steps - 1) * a_step, b_row = OW * CN - (steps - 1) * b_step;
  const int a_image = (H - height * stride_h) * line, b_image = (OH - height) * OW * CN;
  int a_at = ((first * H + oh0 * stride_h + offset_h) * W + ow0 * stride_w + offset_w) * CM + m0 / UNIT_M;
  int b_at = ((first * OH + oh0) * OW + ow0) * CN + n0 / UNIT_N;
#if USE_POINTERS
  global const float4 *a_from = (global const float4 *)(A0 + A0_at) + a_at;
  const int a_next = stride_w * CM;
#endif

  float4 acc[TM][GN];
  UNROLL for (int i = 0; i < TM; ++i) {
    UNROLL for (int g = 0; g < GN; ++g) acc[i][g] = (float4)(0.0f);
  }
  int step = 0, oh = 0;
  const int count = max(min(images, N - first), 0) * height * steps;
  for (int left = count; left > 0; --left) {
    UNROLL for (int p = 0; p < PIXELS; ++p) {
      const int is_pixel = p > 0 && step * PIXELS + p >= width ? 0 : -1;
#if USE_POINTERS
      global const float4 *a_pixel = p > 0 ? a_from + ((p * a_next) & is_pixel) : a_from;
#endif
      float4 b[GN];
      UNROLL for (int g = 0; g < GN; ++g) b[g] = LOAD_B(b_at + ((p * CN) & is_pixel) + g * (4 / UNIT_N), n0 + g * 4);
      UNROLL for (int i = 0; i < GM; ++i) {
#if USE_POINTERS
        Rows a = a_pixel[i];
#else
        Rows a = LOAD_A(a_at + ((p * stride_w * CM) & is_pixel) + i, m0 + i * 4);
#endif
        if (p > 0) a = AS_ROWS(AS_BITS(a) & is_pixel);
        UNROLL for (int g = 0; g < GN; ++g) { PRODUCT(i, g, a, b[g]) }
      }
    }
    ++step;
    const bool row_ends = step == steps;
    oh += row_ends ? 1 : 0;
    const bool image_ends = oh == height;
    const int a_ahead = (row_ends ? a_row : a_step) + (image_ends ? a_image : 0);
#if USE_POINTERS
    a_from += a_ahead;
#else
    a_at += a_ahead;
#endif
    b_at += (row_ends ? b_row : b_step) + (image_ends ? b_image : 0);
    step = row_ends ? 0 : step;
    oh = image_ends ? 0 : oh;
  }
  UNROLL for (int i = 0; i < TM; ++i) {
    UNROLL for (int g = 0; g < GN; ++g) {
      global float *to = parts + parts_at + ((part * KH * KW + tap) * Cin + m0 + i) * Cout;
      if (m0 + i < Cin) store(to, acc[i][g], n0 + g * 4, Cout);
    }
  }
}
