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

// Taps first, first + stride, ... of a pixel at `at` (padding counted) reach pixels at / stride, and from there on down.
typedef struct {
  int tap, place;   // the first that reaches dy
  int count;
} Reach;

Reach reach(int at, int taps, int stride, int dilation, int size) {
  const int tap = stride == 1 ? 0 : at % stride, place = stride == 1 ? at : at / stride;
  const int down = stride == 1 ? dilation : 1;
  const int skipped = place < size ? 0 : (place - size + down) / down;
  const int last = min((taps - tap + stride - 1) / stride, place / down + 1);
  const Reach result = {tap + skipped * stride, place - skipped * down, max(last - skipped, 0)};
  return result;
}

// A work-item makes rows_each pixels of dx, all channels. Sums of chunk r go to partials[r][Y_SUMS][Cin]. Of stride and
// dilation along an axis one is 1.
kernel void conv2d_collect(int rows_each, int N, int H, int W, int Cin, int OH, int OW, int Cout, int KH, int KW,
                           int stride_h, int stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w, int groups,
                           global const float *parts, int parts_at Y_PARAMS SUMS_PARAMS) {
  const int chunk = get_global_id(0);
  const int begin = chunk * rows_each, end = min(N * H * W, begin + rows_each);
  // From one tap that reaches a pixel to the next, along both axes.
  const int next_w = (stride_w - (stride_w == 1 ? dilation_w : 1) * KH * KW) * Cin;
  const int next_h = (stride_h * KW - (stride_h == 1 ? dilation_h : 1) * OW * KH * KW) * Cin;
  for (int c = 0; c < Cin; c += VEC) {
#if Y_SUMS > 0
    vec sums[Y_SUMS];
    for (int s = 0; s < Y_SUMS; ++s) sums[s] = (vec)(0.0f);
#endif
    int w = begin % W, h = begin / W % H, image = begin / W / H;
    Reach high = reach(h + pad_h, KH, stride_h, dilation_h, OH);
    for (int row = begin; row < end; ++row) {
      const Reach wide = reach(w + pad_w, KW, stride_w, dilation_w, OW);
      const int pixel = (image * OH + high.place) * OW + wide.place;
      global const float *from =
          parts + parts_at + ((pixel * KH + high.tap) * KW + wide.tap) * Cin + c;
      vec sum = (vec)(0.0f);
      for (int i = 0; i < high.count; ++i)
        for (int j = 0; j < wide.count; ++j) sum += *(global const vec *)(from + i * next_h + j * next_w);
      PASTE(Y_, VEC)(sum, row * Cin + c, c Y_SUM_ARGS Y_PASS);
      if (++w == W) {
        w = 0;
        if (++h == H) {
          h = 0;
          ++image;
        }
        high = reach(h + pad_h, KH, stride_h, dilation_h, OH);
      }
    }
#if Y_SUMS > 0
    for (int s = 0; s < Y_SUMS; ++s)
      *(global vec *)(partials + partials_at + (chunk * Y_SUMS + s) * Cin + c) = sums[s];
#endif
  }
}
