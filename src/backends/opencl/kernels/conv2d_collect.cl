// The end of an input gradient that was computed tap by tap: `parts` [N * OH * OW, KH * KW, Cin] holds what each pixel of
// dy gives to each tap; a pixel of dx adds up what reaches it, in the order of taps, then comes the epilogue.
#ifndef VEC
#define VEC 1  // 1 4 8 16: divides Cin
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
#define SUMS_PARAMS , global float *partials, int partials_at
#else
#define SUMS_PARAMS
#endif

// A work-item makes rows_each pixels of dx, all channels. Sums of chunk r go to partials[r][Y_SUMS][Cin].
kernel void conv2d_collect(int rows_each, int N, int H, int W, int Cin, int OH, int OW, int Cout, int KH, int KW,
                           int stride_h, int stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w, int groups,
                           global const float *parts, int parts_at Y_PARAMS SUMS_PARAMS) {
  const int chunk = get_global_id(0);
  const int end = min(N * H * W, (chunk + 1) * rows_each);
  for (int c = 0; c < Cin; c += VEC) {
#if Y_SUMS > 0
    vec sums[Y_SUMS];
    for (int s = 0; s < Y_SUMS; ++s) sums[s] = (vec)(0.0f);
#endif
    for (int row = chunk * rows_each; row < end; ++row) {
      const int w = row % W, h = row / W % H, image = row / W / H;
      vec sum = (vec)(0.0f);
      for (int kh = 0; kh < KH; ++kh) {
        const int at_h = h + pad_h - kh * dilation_h;
        if (at_h < 0 || at_h % stride_h != 0 || at_h / stride_h >= OH) continue;
        for (int kw = 0; kw < KW; ++kw) {
          const int at_w = w + pad_w - kw * dilation_w;
          if (at_w < 0 || at_w % stride_w != 0 || at_w / stride_w >= OW) continue;
          const int pixel = (image * OH + at_h / stride_h) * OW + at_w / stride_w;
          sum += *(global const vec *)(parts + parts_at + ((pixel * KH + kh) * KW + kw) * Cin + c);
        }
      }
      PASTE(Y_, VEC)(sum, row * Cin + c, c Y_SUM_ARGS Y_PASS);
    }
#if Y_SUMS > 0
    for (int s = 0; s < Y_SUMS; ++s)
      *(global vec *)(partials + partials_at + (chunk * Y_SUMS + s) * Cin + c) = sums[s];
#endif
  }
}
