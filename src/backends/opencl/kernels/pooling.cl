// Maximum and average pooling on [N, H, W, C] and their gradients, which gather, so that no two work-items write the
// same place. A work-item computes VEC channels of a pixel of one row, and goes on along the row as long as the launch
// is narrower than it.
#ifndef VEC
#define VEC 1  // 1 2 4 8 16
#endif
#ifndef OVERLAP
#define OVERLAP 0  // 0: VEC divides C; 1: a pixel's last vector ends with C and computes some channels again (CPUs)
#endif
#ifndef APART
#define APART 0  // 1: windows neither overlap nor leave a pixel out, and a work-item goes through its row (CPUs)
#endif

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#if VEC == 1
#define vec float
#define ivec int
#define bytes uchar
#define TO_BYTES convert_uchar
#define TO_INTS convert_int
#else
#define vec PASTE(float, VEC)
#define ivec PASTE(int, VEC)
#define bytes PASTE(uchar, VEC)
#define TO_BYTES PASTE(convert_uchar, VEC)
#define TO_INTS PASTE(convert_int, VEC)
#endif

#if OVERLAP && VEC > 1
#define LOAD(p) PASTE(vload, VEC)(0, p)
#define LOAD_BYTES(p) PASTE(vload, VEC)(0, p)
#define STORE(value, p) PASTE(vstore, VEC)(value, 0, p)
#define STORE_BYTES(value, p) PASTE(vstore, VEC)(value, 0, p)
#else
#define LOAD(p) (*(global const vec *)(p))
#define LOAD_BYTES(p) (*(global const bytes *)(p))
#define STORE(value, p) (*(global vec *)(p) = (value))
#define STORE_BYTES(value, p) (*(global bytes *)(p) = (value))
#endif

// H W of the images, OH OW of the pooled ones, C channels; rows = N * OH or N * H of what is computed. Window position
// k of pooled row oh is image row oh * SH - PT + kh * DH.
#define GEOMETRY \
  int rows, int H, int W, int C, int OH, int OW, int KH, int KW, int SH, int SW, int PT, int PL, int DH, int DW

#define VECTORS ((C + VEC - 1) / VEC)  // a pixel

// Vector number j of a row: pixel j / VECTORS, from channel CHANNEL(j) on.
#define CHANNEL(j) min((j) % VECTORS * VEC, C - VEC)

// How many of the window's positions from `first` on lie within the image.
static int positions(int first, int window, int size) { return min(first + window, size) - max(first, 0); }

kernel void max_pool(global const float *x, int x_at, global float *y, int y_at, global uchar *index, int index_at,
                     GEOMETRY) {
  int row = get_global_id(1);
  if (row >= rows) return;
  int n = row / OH;
  int top = (row - n * OH) * SH - PT;
  for (int j = get_global_id(0); j < OW * VECTORS; j += get_global_size(0)) {
    int at = j / VECTORS;
    int c = CHANNEL(j);
    int left = at * SW - PL;
    vec best = (vec)(-INFINITY);
    ivec where = (ivec)(0);
    for (int kh = 0; kh < KH; ++kh) {
      int h = top + kh * DH;
      if (h < 0 || h >= H) continue;
      for (int kw = 0; kw < KW; ++kw) {
        int v = left + kw * DW;
        if (v < 0 || v >= W) continue;
        vec value = LOAD(x + x_at + ((n * H + h) * W + v) * C + c);
        ivec better = (value > best) | ((value != value) & (best == best));  // the first of ties, and the first NaN
        best = select(best, value, better);
        where = select(where, (ivec)(kh * KW + kw), better);
      }
    }
    STORE(best, y + y_at + (row * OW + at) * C + c);
    STORE_BYTES(TO_BYTES(where), index + index_at + (row * OW + at) * C + c);
  }
}

#if APART
// Each pooled pixel gives its window, so that index and dy are read once: rows = N * OH.
kernel void max_pool_grad(global const uchar *index, int index_at, global const float *dy, int dy_at,
                          global float *dx, int dx_at, GEOMETRY) {
  int row = get_global_id(1);
  if (row >= rows) return;
  for (int at = 0; at < OW; ++at) {
    for (int j = 0; j < VECTORS; ++j) {
      int c = CHANNEL(j);
      int from = (row * OW + at) * C + c;
      ivec where = TO_INTS(LOAD_BYTES(index + index_at + from));
      vec value = LOAD(dy + dy_at + from);
      for (int kh = 0; kh < KH; ++kh) {
        for (int kw = 0; kw < KW; ++kw) {
          vec mine = select((vec)(0.0f), value, where == (ivec)(kh * KW + kw));
          STORE(mine, dx + dx_at + (((row * KH + kh) * OW + at) * KW + kw) * C + c);
        }
      }
    }
  }
}
#else
kernel void max_pool_grad(global const uchar *index, int index_at, global const float *dy, int dy_at,
                          global float *dx, int dx_at, GEOMETRY) {
  int row = get_global_id(1);
  if (row >= rows) return;
  int n = row / H;
  int below = row - n * H + PT;
  for (int j = get_global_id(0); j < W * VECTORS; j += get_global_size(0)) {
    int at = j / VECTORS;
    int c = CHANNEL(j);
    int right = at + PL;
    vec sum = (vec)(0.0f);
    for (int kh = 0; kh < KH; ++kh) {
      int oh = (below - kh * DH) / SH;
      if (below < kh * DH || oh * SH != below - kh * DH || oh >= OH) continue;
      for (int kw = 0; kw < KW; ++kw) {
        int ow = (right - kw * DW) / SW;
        if (right < kw * DW || ow * SW != right - kw * DW || ow >= OW) continue;
        int from = ((n * OH + oh) * OW + ow) * C + c;
        ivec mine = TO_INTS(LOAD_BYTES(index + index_at + from)) == (ivec)(kh * KW + kw);
        sum += select((vec)(0.0f), LOAD(dy + dy_at + from), mine);
      }
    }
    STORE(sum, dx + dx_at + (row * W + at) * C + c);
  }
}
#endif

// `with_padding`: a window's size counts, not the positions within the image.
kernel void avg_pool(global const float *x, int x_at, global float *y, int y_at, GEOMETRY, int with_padding) {
  int row = get_global_id(1);
  if (row >= rows) return;
  int n = row / OH;
  int top = (row - n * OH) * SH - PT;
  for (int j = get_global_id(0); j < OW * VECTORS; j += get_global_size(0)) {
    int at = j / VECTORS;
    int c = CHANNEL(j);
    int left = at * SW - PL;
    vec sum = (vec)(0.0f);
    for (int h = max(top, 0); h < min(top + KH, H); ++h)
      for (int v = max(left, 0); v < min(left + KW, W); ++v) sum += LOAD(x + x_at + ((n * H + h) * W + v) * C + c);
    int count = with_padding ? KH * KW : max(positions(top, KH, H) * positions(left, KW, W), 1);
    STORE(sum * (1.0f / (float)count), y + y_at + (row * OW + at) * C + c);
  }
}

kernel void avg_pool_grad(global const float *dy, int dy_at, global float *dx, int dx_at, GEOMETRY,
                          int with_padding) {
  int row = get_global_id(1);
  if (row >= rows) return;
  int n = row / H;
  int below = row - n * H + PT;
  for (int j = get_global_id(0); j < W * VECTORS; j += get_global_size(0)) {
    int at = j / VECTORS;
    int c = CHANNEL(j);
    int right = at + PL;
    vec sum = (vec)(0.0f);
    for (int kh = 0; kh < KH; ++kh) {
      int oh = (below - kh) / SH;
      if (below < kh || oh * SH != below - kh || oh >= OH) continue;
      for (int kw = 0; kw < KW; ++kw) {
        int ow = (right - kw) / SW;
        if (right < kw || ow * SW != right - kw || ow >= OW) continue;
        int count = with_padding ? KH * KW : positions(oh * SH - PT, KH, H) * positions(ow * SW - PL, KW, W);
        sum += LOAD(dy + dy_at + ((n * OH + oh) * OW + ow) * C + c) * (1.0f / (float)count);
      }
    }
    STORE(sum, dx + dx_at + (row * W + at) * C + c);
  }
}
