// conv2d and its two gradients, one output after another in plain loops: the reference of the fast kernels, right for any
// shape. Images are [N, H, W, Cin], results [N, OH, OW, Cout], weights [KH, KW, Cin / groups, Cout].

// PART: 0 computes y from (x, w), 1 dx from (dy, w), 2 dw from (x, dy).
#ifndef PART
#define PART 0
#endif

// Operands and epilogue are rendered into the header; these defaults are tensors as they stand.
#ifndef A_PARAMS
#define A_PARAMS , global const float *a0, int a0_at
#define A_PASS , a0, a0_at
float A_1(int i, int c A_PARAMS) { return a0[a0_at + i]; }
#endif
#ifndef B_PARAMS
#define B_PARAMS , global const float *b0, int b0_at
#define B_PASS , b0, b0_at
float B_1(int i, int c B_PARAMS) { return b0[b0_at + i]; }
#endif
#ifndef Y_PARAMS
#define Y_PARAMS , global float *y0, int y0_at
#define Y_PASS , y0, y0_at
#define Y_SUMS 0
#define Y_SUM_ARGS
void Y_1(float value, int i, int c Y_PARAMS) { y0[y0_at + i] = value; }
#endif

#define SIZE_PARAMS                                                                                                    \
  int N, int H, int W, int Cin, int OH, int OW, int Cout, int KH, int KW, int stride_h, int stride_w, int pad_h,       \
      int pad_w, int dilation_h, int dilation_w, int groups
#define SIZE_PASS                                                                                                      \
  N, H, W, Cin, OH, OW, Cout, KH, KW, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups

#if PART == 0
float one_result(int row, int co, SIZE_PARAMS A_PARAMS B_PARAMS) {
  const int ow = row % OW, oh = row / OW % OH, n = row / OW / OH;
  const int depth = Cin / groups;
  const int first = co / (Cout / groups) * depth;
  float sum = 0.0f;
  for (int kh = 0; kh < KH; ++kh) {
    const int h = oh * stride_h - pad_h + kh * dilation_h;
    if (h < 0 || h >= H) continue;
    for (int kw = 0; kw < KW; ++kw) {
      const int w = ow * stride_w - pad_w + kw * dilation_w;
      if (w < 0 || w >= W) continue;
      for (int ci = 0; ci < depth; ++ci) {
        sum += A_1(((n * H + h) * W + w) * Cin + first + ci, first + ci A_PASS) *
               B_1(((kh * KW + kw) * depth + ci) * Cout + co, co B_PASS);
      }
    }
  }
  return sum;
}
#elif PART == 1
float one_result(int row, int ci, SIZE_PARAMS A_PARAMS B_PARAMS) {
  const int w = row % W, h = row / W % H, n = row / W / H;
  const int depth = Cin / groups, width = Cout / groups;
  const int first = ci / depth * width;
  float sum = 0.0f;
  for (int kh = 0; kh < KH; ++kh) {
    const int oh = (h + pad_h - kh * dilation_h) / stride_h;
    if (h + pad_h < kh * dilation_h || oh >= OH || oh * stride_h != h + pad_h - kh * dilation_h) continue;
    for (int kw = 0; kw < KW; ++kw) {
      const int ow = (w + pad_w - kw * dilation_w) / stride_w;
      if (w + pad_w < kw * dilation_w || ow >= OW || ow * stride_w != w + pad_w - kw * dilation_w) continue;
      for (int co = first; co < first + width; ++co) {
        sum += A_1(((n * OH + oh) * OW + ow) * Cout + co, co A_PASS) *
               B_1(((kh * KW + kw) * depth + ci % depth) * Cout + co, co B_PASS);
      }
    }
  }
  return sum;
}
#else
float one_result(int row, int co, SIZE_PARAMS A_PARAMS B_PARAMS) {
  const int depth = Cin / groups;
  const int kw = row / depth % KW, kh = row / depth / KW;
  const int ci = co / (Cout / groups) * depth + row % depth;
  float sum = 0.0f;
  for (int n = 0; n < N; ++n) {
    for (int oh = 0; oh < OH; ++oh) {
      const int h = oh * stride_h - pad_h + kh * dilation_h;
      if (h < 0 || h >= H) continue;
      float line = 0.0f;  // a sum of sums: N * OH * OW terms one by one would lose digits
      for (int ow = 0; ow < OW; ++ow) {
        const int w = ow * stride_w - pad_w + kw * dilation_w;
        if (w < 0 || w >= W) continue;
        line += A_1(((n * H + h) * W + w) * Cin + ci, ci A_PASS) * B_1(((n * OH + oh) * OW + ow) * Cout + co, co B_PASS);
      }
      sum += line;
    }
  }
  return sum;
}
#endif

#if Y_SUMS > 0
#define SUMS_PARAMS , global float *partials, int partials_at
#else
#define SUMS_PARAMS
#endif

// A work-item takes `rows_each` of the result's `rows` rows, in one of its `channels` columns, and leaves the sums of
// these rows in partials[item / channels][sum][channel].
kernel void conv2d_plain(int rows, int channels, int rows_each, SIZE_PARAMS A_PARAMS B_PARAMS Y_PARAMS SUMS_PARAMS) {
  const int c = get_global_id(0) % channels;
  const int chunk = get_global_id(0) / channels;
  if (chunk * rows_each >= rows) return;
#if Y_SUMS > 0
  float sums[Y_SUMS];
  for (int i = 0; i < Y_SUMS; ++i) sums[i] = 0.0f;
#endif
  const int end = min(rows, (chunk + 1) * rows_each);
  for (int row = chunk * rows_each; row < end; ++row) {
    Y_1(one_result(row, c, SIZE_PASS A_PASS B_PASS), row * channels + c, c Y_SUM_ARGS Y_PASS);
  }
#if Y_SUMS > 0
  for (int i = 0; i < Y_SUMS; ++i) partials[partials_at + (chunk * Y_SUMS + i) * channels + c] = sums[i];
#endif
}
