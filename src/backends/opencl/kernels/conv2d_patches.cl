// Patches of an image as the operand A of gemm_panel.cl, never stored: goes before that file. Row r of the patch matrix is
// pixel (rh, rw) of a grid [.., RH, RW], its columns are (kh, kw, c): what tap (kh, kw) sees of the image [.., H, W, C],
// zero outside of it. Along h that is image row (rh * step_h + first_h + kh * tap_h) / div_h where it is whole.
#ifndef V
#define V 8  // 4 8 16: floats of a register, as in gemm_panel.cl
#endif
#ifndef TA
#define TA 0  // 0: A is [pixels, columns], 1: the other way round
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

#define A_PARAMS                                                                                                       \
  X_PARAMS, int p_size, int p_H, int p_W, int p_C, int p_RH, int p_RW, int p_KW, int p_step_h, int p_step_w,           \
      int p_first_h, int p_first_w, int p_tap_h, int p_tap_w, int p_div_h, int p_div_w
#define A_PASS                                                                                                         \
  X_PASS, p_size, p_H, p_W, p_C, p_RH, p_RW, p_KW, p_step_h, p_step_w, p_first_h, p_first_w, p_tap_h, p_tap_w,         \
      p_div_h, p_div_w
#define A_PLAIN 0

// `count` elements from `i` on, channel c being the first. Without a prologue whole vectors are copied, also where the
// last one is longer than what is left: what stands behind is written later. Not so where that would be beyond a buffer.
void patch_copy(local float *to, int i, int c, int count, int exact A_PARAMS) {
  int done = 0;
#if X_PLAIN
  const int end = exact || i + count + V > p_size ? count - V + 1 : count;
#else
  const int end = count - V + 1;
#endif
  for (; done < end; done += V) PASTE(vstore, V)(PASTE(X_, V)(i + done, c + done X_PASS), 0, to + done);
  for (; done < count; ++done) to[done] = X_1(i + done, c + done X_PASS);
}

// What tap `k` sees along one axis; -1 if nothing.
int patch_place(int at, int tap, int k, int div, int size) {
  const int place = at + k * tap;
  if (div == 1) return place < size ? max(place, -1) : -1;
  return place >= 0 && place % div == 0 && place / div < size ? place / div : -1;
}

// Columns column0.. of the rows row0.. .
void patches(local float *a, int stride, int row0, int rows, int column0, int columns A_PARAMS) {
  const int tap0 = column0 / p_C, c0 = column0 - tap0 * p_C;
  const int kh0 = tap0 / p_KW, kw0 = tap0 - kh0 * p_KW;
  int rw = row0 % p_RW, rh = row0 / p_RW % p_RH, image = row0 / p_RW / p_RH;
#if X_PLAIN
  // Whole kernel rows, that stand together in the image where none of them lies beside it: no look at each tap.
  const int run = p_KW * p_C, line = p_tap_h * p_W * p_C;
  const int runs = p_tap_w == 1 && p_div_w == 1 && p_div_h == 1 && column0 % run == 0 && columns % run == 0
                       ? columns / run
                       : 0;
#endif
  for (int r = 0; r < rows; ++r) {
    const int exact = TA && r == rows - 1;
    const int at_h = rh * p_step_h + p_first_h, at_w = rw * p_step_w + p_first_w;
    local float *to = a + r * stride;
    int left = columns, c = c0, kh = kh0, kw = kw0;
#if X_PLAIN
    const int top = at_h + kh0 * p_tap_h, bottom = top + (runs - 1) * p_tap_h;
    if (runs > 0 && min(top, bottom) >= 0 && max(top, bottom) < p_H && at_w >= 0 && at_w + p_KW <= p_W) {
      const int from = ((image * p_H + top) * p_W + at_w) * p_C;
      for (int i = 0; i < runs; ++i) patch_copy(to + i * run, from + i * line, 0, run, exact A_PASS);
      left = 0;
    }
#endif
    while (left > 0) {
      const int h = patch_place(at_h, p_tap_h, kh, p_div_h, p_H);
      int taps = 1;
#if X_PLAIN
      // Neighbouring taps see neighbouring pixels: one piece, if all of it lies in the image.
      const int w0 = at_w + kw, w1 = at_w + p_KW;
      if (h >= 0 && p_tap_w == 1 && p_div_w == 1 && w0 >= 0 && w1 <= p_W) taps = p_KW - kw;
#endif
      const int count = min(taps * p_C - c, left);
      const int w = h < 0 ? -1 : patch_place(at_w, p_tap_w, kw, p_div_w, p_W);
      if (w >= 0) {
        patch_copy(to, ((image * p_H + h) * p_W + w) * p_C + c, c, count, exact A_PASS);
      } else {
        for (int i = 0; i < count; ++i) to[i] = 0.0f;
      }
      to += count;
      left -= count;
      c = 0;
      kw += taps;
      if (kw >= p_KW) {
        kw = 0;
        ++kh;
      }
    }
    if (++rw == p_RW) {
      rw = 0;
      if (++rh == p_RH) {
        rh = 0;
        ++image;
      }
    }
  }
}

#if TA
#define A_BLOCK(a, a_stride, base, m0, rows, k0, depth) patches(a, a_stride, k0, depth, m0, rows A_PASS)
#else
#define A_BLOCK(a, a_stride, base, m0, rows, k0, depth) patches(a, A_STRIDE, m0, rows, k0, depth A_PASS)
#endif
