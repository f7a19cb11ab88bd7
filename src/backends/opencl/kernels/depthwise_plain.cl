// Depthwise convolution, its input gradient and its weight gradient, the plain way: any window, VEC channels and one
// output pixel (one filter tap) at a time. X and DY are operands with their prologues, Y the epilogue (render.h).
// Assumes that VEC divides C.
#ifndef VEC
#define VEC 1  // 1 2 4 8 16
#endif
#ifndef TRANSPOSED
#define TRANSPOSED 0  // 0: y from x; 1: dx from dy
#endif

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#if VEC == 1
#define vec float
#else
#define vec PASTE(float, VEC)
#endif
#define LOAD_X PASTE(X_, VEC)
#define LOAD_DY PASTE(DY_, VEC)
#define STORE_Y PASTE(Y_, VEC)

#ifndef X_PARAMS
#define X_PARAMS , global const float *X0, int X0_at
#define X_PASS , X0, X0_at
static vec LOAD_X(int i, int c X_PARAMS) { return *(global const vec *)(X0 + X0_at + i); }
#endif
#ifndef DY_PARAMS
#define DY_PARAMS , global const float *DY0, int DY0_at
#define DY_PASS , DY0, DY0_at
static vec LOAD_DY(int i, int c DY_PARAMS) { return *(global const vec *)(DY0 + DY0_at + i); }
#endif
#ifndef Y_PARAMS
#define Y_PARAMS , global float *Y0, int Y0_at
#define Y_PASS , Y0, Y0_at
#define Y_SUMS 0
#define Y_SUM_ARGS
static void STORE_Y(vec value, int i, int c Y_PARAMS) { *(global vec *)(Y0 + Y0_at + i) = value; }
#endif

#if Y_SUMS > 0
#define SUMS_PARAMS , global float *partial, int partial_at
#else
#define SUMS_PARAMS
#endif

// H W of the source, OH OW of the result, KH KW of the filter, C channels. Forward a source row is
// oh * SH - PT + kh * DH; transposed it is (oh + PT - kh * DH) / SH where that is whole.
#define GEOMETRY \
  int H, int W, int C, int OH, int OW, int KH, int KW, int SH, int SW, int PT, int PL, int DH, int DW

// Where output position o reads with filter position k; negative: nowhere.
static int source_of(int o, int k, int stride, int pad, int dilation, int size) {
#if TRANSPOSED
  int scaled = o + pad - k * dilation;
  int at = scaled / stride;
  return scaled >= 0 && at * stride == scaled && at < size ? at : -1;
#else
  int at = o * stride - pad + k * dilation;
  return at < size ? at : -1;
#endif
}

// Work-item (channels, block): `block` neighbouring pixels of the result.
kernel void depthwise_plain(global const float *w, int w_at, GEOMETRY, int pixels,
                            int block SUMS_PARAMS X_PARAMS Y_PARAMS) {
  int c = get_global_id(0) * VEC;
  int first = get_global_id(1) * block;
  if (c >= C || first >= pixels) return;
  int end = min(first + block, pixels);
#if Y_SUMS > 0
  vec sums[Y_SUMS];
  for (int s = 0; s < Y_SUMS; ++s) sums[s] = (vec)(0.0f);
#endif
  for (int p = first; p < end; ++p) {
    int ow = p % OW;
    int oh = p / OW % OH;
    int n = p / OW / OH;
    vec value = (vec)(0.0f);
    for (int kh = 0; kh < KH; ++kh) {
      int h = source_of(oh, kh, SH, PT, DH, H);
      if (h < 0) continue;
      for (int kw = 0; kw < KW; ++kw) {
        int v = source_of(ow, kw, SW, PL, DW, W);
        if (v < 0) continue;
        value += LOAD_X(((n * H + h) * W + v) * C + c, c X_PASS) *
                 *(global const vec *)(w + w_at + (kh * KW + kw) * C + c);
      }
    }
    STORE_Y(value, p * C + c, c Y_SUM_ARGS Y_PASS);
  }
#if Y_SUMS > 0
  for (int s = 0; s < Y_SUMS; ++s)
    *(global vec *)(partial + partial_at + (get_global_id(1) * Y_SUMS + s) * C + c) = sums[s];
#endif
}

// H W of x, OH OW of dy. Work-item (channels, filter tap, block): a partial gradient of `block` pixels of dy, at
// [block, tap, C].
kernel void depthwise_weight_grad_plain(global float *partial, int partial_at, GEOMETRY, int pixels,
                                        int block X_PARAMS DY_PARAMS) {
  int c = get_global_id(0) * VEC;
  int tap = get_global_id(1);
  int first = get_global_id(2) * block;
  if (c >= C || first >= pixels) return;
  int end = min(first + block, pixels);
  vec sum = (vec)(0.0f);
  for (int p = first; p < end; ++p) {
    int h = p / OW % OH * SH - PT + tap / KW * DH;
    int v = p % OW * SW - PL + tap % KW * DW;
    if (h < 0 || h >= H || v < 0 || v >= W) continue;
    int n = p / OW / OH;
    sum += LOAD_X(((n * H + h) * W + v) * C + c, c X_PASS) * LOAD_DY(p * C + c, c DY_PASS);
  }
  *(global vec *)(partial + partial_at + (get_global_id(2) * KH * KW + tap) * C + c) = sum;
}
