// Windows into an image as the operand A of gemm_panel.cl, neither stored nor gathered: goes before that file. Rows of
// the image, with zeros around them, are brought into local memory, where a pixel's window is KH runs of KW * C floats.
// Without TA a macro-tile is whole rows of pixels, with TA a block of K is; both lie in one image.
#ifndef V
#define V 8  // 4 8 16: floats of a register, as in gemm_panel.cl
#endif
#ifndef TA
#define TA 0  // 0: A is [pixels, (kh, kw, c)], 1: the other way round
#endif

#ifndef PASTE
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#endif

// The image is rendered into the header; this default is a tensor as it stands.
#ifndef X_PARAMS
#define X_PARAMS , global const float *X0, int X0_at
#define X_PASS , X0, X0_at
#define X_PLAIN 1
float X_1(int i, int c X_PARAMS) { return X0[X0_at + i]; }
PASTE(float, V) PASTE(X_, V)(int i, int c X_PARAMS) { return PASTE(vload, V)(0, X0 + X0_at + i); }
#endif

// PW: pixels of a row with its zeros. step, tap: rows from a pixel to the one below it, and from a tap.
#define A_PARAMS                                                                                                       \
  X_PARAMS, int p_H, int p_W, int p_C, int p_PW, int p_OH, int p_OW, int p_KH, int p_KW, int p_step_h, int p_step_w,   \
      int p_pad_h, int p_pad_w, int p_tap_h
#define A_PASS                                                                                                         \
  X_PASS, p_H, p_W, p_C, p_PW, p_OH, p_OW, p_KH, p_KW, p_step_h, p_step_w, p_pad_h, p_pad_w, p_tap_h
#define A_PLAIN 0

// `count` floats from element i on, which is channel 0 of a pixel.
void window_copy(local float *to, int i, int count, int C X_PARAMS) {
#if X_PLAIN
  const int run = count;
#else
  const int run = C;
#endif
  for (int at = 0; at < count; at += run) {
    int c = 0;
    for (; c + V <= run; c += V) PASTE(vstore, V)(PASTE(X_, V)(i + at + c, c X_PASS), 0, to + at + c);
    for (; c < run; ++c) to[at + c] = X_1(i + at + c, c X_PASS);
  }
}

void window_zeros(local float *to, int count) {
  for (int i = 0; i < count; ++i) to[i] = 0.0f;
}

// What `pixels` pixels from number `first` on see, whole rows.
void window_rows(local float *a, int first, int pixels A_PARAMS) {
  const int row = first / p_OW, image = row / p_OH;
  const int top = (row - image * p_OH) * p_step_h - p_pad_h;
  const int rows = (pixels / p_OW - 1) * p_step_h + (p_KH - 1) * p_tap_h + 1;
  for (int r = 0; r < rows; ++r, a += p_PW * p_C) {
    const int h = top + r;
    if (h < 0 || h >= p_H) {
      window_zeros(a, p_PW * p_C);
      continue;
    }
    window_zeros(a, p_pad_w * p_C);
    window_copy(a + p_pad_w * p_C, (image * p_H + h) * p_W * p_C, p_W * p_C, p_C X_PASS);
    window_zeros(a + (p_pad_w + p_W) * p_C, (p_PW - p_pad_w - p_W) * p_C);
  }
}

// See gemm_panel.cl.
#define A_ROW_STEP (p_step_h * p_PW * p_C)
#define A_TAP_STEP (p_tap_h * p_PW * p_C)
#define A_STEP (p_step_w * p_C)
#if TA
#define A_BLOCK(a, a_stride, base, m0, rows, k0, depth) window_rows(a, k0, depth A_PASS)
#define A_TILE(m0, m) ((m0 + m) / (p_KW * p_C) * A_TAP_STEP + (m0 + m) % (p_KW * p_C))
#define A_RUNS(depth) (depth / p_OW)
#define A_RUN(depth) p_OW
#define A_RUN_STEP A_ROW_STEP
#define A_DEPTH KC
#else
#define A_BLOCK(a, a_stride, base, m0, rows, k0, depth) window_rows(a, m0, rows A_PASS)
#define A_TILE(m0, m) ((m) / p_OW * A_ROW_STEP + (m) % p_OW * A_STEP)
#define A_RUNS(depth) p_KH
#define A_RUN(depth) (p_KW * p_C)
#define A_RUN_STEP A_TAP_STEP
#define A_DEPTH K
#endif
