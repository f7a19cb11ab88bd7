// The end of gemm_panel.cl where a product is what each pixel of dy [OH, OW] gives to each tap (kh, kw, c): added to the
// image dx [H, W, C] that lies in local memory, instead of being stored. Goes before that file.
#ifndef V
#define V 8  // 4 8 16: floats of a register, as in gemm_panel.cl
#endif

#ifndef PASTE
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#endif

#define SCATTER_PARAMS                                                                                                 \
  int s_H, int s_W, int s_C, int s_OW, int s_KH, int s_KW, int s_stride_h, int s_stride_w, int s_pad_h, int s_pad_w,   \
      int s_dilation_h, int s_dilation_w
#define SCATTER_PASS                                                                                                   \
  s_H, s_W, s_C, s_OW, s_KH, s_KW, s_stride_h, s_stride_w, s_pad_h, s_pad_w, s_dilation_h, s_dilation_w

void scatter_run(local const float *from, int count, local float *to) {
  int i = 0;
  for (; i + V <= count; i += V)
    PASTE(vstore, V)(PASTE(vload, V)(0, to + i) + PASTE(vload, V)(0, from + i), 0, to + i);
  for (; i < count; ++i) to[i] += from[i];
}

// The rows of `c` are pixels first.. of dy. Neighbouring taps are neighbours in the image too, unless they are dilated.
void scatter(local const float *c, int c_stride, int first, int pixels, local float *image, SCATTER_PARAMS) {
  const int taps = s_dilation_w == 1 ? s_KW : 1;
  for (int r = 0; r < pixels; ++r) {
    const int oh = (first + r) / s_OW, ow = first + r - oh * s_OW;
    for (int kh = 0; kh < s_KH; ++kh) {
      const int h = oh * s_stride_h - s_pad_h + kh * s_dilation_h;
      if (h < 0 || h >= s_H) continue;
      for (int kw = 0; kw < s_KW; kw += taps) {
        const int w = ow * s_stride_w - s_pad_w + kw * s_dilation_w;
        const int low = max(0, -w), high = min(taps, s_W - w);
        if (low < high)
          scatter_run(c + r * c_stride + (kh * s_KW + kw + low) * s_C, (high - low) * s_C,
                      image + (h * s_W + w + low) * s_C);
      }
    }
  }
}
