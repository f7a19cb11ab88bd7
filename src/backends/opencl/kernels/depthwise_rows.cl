// Depthwise convolution with 3x3 filters: a work-item computes bands of ROWS output rows of VEC channels, column by
// column, with the filter and the unfinished columns in registers, so that each source pixel is loaded (and its prologue
// computed) once a band. X and DY are operands with their prologues, Y the epilogue (render.h). Assumes that VEC divides
// C, dilation 1, and strides of STRIDE both ways.
#ifndef VEC
#define VEC 4  // 1 2 4 8 16
#endif
#ifndef ROWS
#define ROWS 2  // 1 2 4; even where TRANSPOSED with STRIDE 2
#endif
#ifndef STRIDE
#define STRIDE 1  // 1 2
#endif
#ifndef TRANSPOSED
#define TRANSPOSED 0  // 0: y from x; 1: dx from dy
#endif
#ifndef PHASE
#define PHASE 1  // 0 1: padding above, modulo 2 (TRANSPOSED with STRIDE 2)
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

// LLVM splits 512-bit vectors on some CPUs unless a function says that it wants them.
#ifdef __has_attribute
#if VEC == 16 && __has_attribute(min_vector_width)
#define WIDE __attribute__((min_vector_width(512)))
#endif
#endif
#ifndef WIDE
#define WIDE
#endif

#if TRANSPOSED && STRIDE == 2
#define SCATTER 1  // a source pixel adds to 3 x 3 pixels of the result, which are 2 apart from its neighbour's
#define SOURCES (ROWS / 2 + 1)  // source rows of a band
#else
#define SCATTER 0
#define SOURCES ((ROWS - 1) * STRIDE + 3)
#endif

// A band of an image: H x W pixels of C channels, `at` is the element at row `top`, column 0 and channel c.
typedef struct {
  int H, W, C, top, at, c;
} Rows;

static Rows rows_from(int n, int top, int H, int W, int C, int c) {
  Rows rows = {H, W, C, top, (n * H + top) * W * C + c, c};
  return rows;
}

static bool has_pixel(const Rows *rows, int i, int column) {
  return rows->top + i >= 0 && rows->top + i < rows->H && column >= 0 && column < rows->W;
}

// A column of the source; what lies outside the image is zero.
static void load_x(vec x[SOURCES], const Rows *rows, int column X_PARAMS) {
#pragma unroll
  for (int i = 0; i < SOURCES; ++i) {
    x[i] = (vec)(0.0f);
    if (has_pixel(rows, i, column)) x[i] = LOAD_X(rows->at + (i * rows->W + column) * rows->C, rows->c X_PASS);
  }
}

// Whether source row i of a band meets its result row r in filter row kh. With SCATTER a result row oh reads source row
// (oh + pad - kh) / 2 where that is whole, else oh * STRIDE - pad + kh.
static bool meets(int i, int r, int kh) {
  return SCATTER ? 2 * (i - 1 + PHASE) == r + PHASE - kh : r * STRIDE + kh == i;
}

// Adds a source column times filter column kw to a column of the result.
static void add_column(vec y[ROWS], const vec x[SOURCES], const vec f[9], int kw) {
#pragma unroll
  for (int i = 0; i < SOURCES; ++i)
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
      for (int kh = 0; kh < 3; ++kh)
        if (meets(i, r, kh)) y[r] += x[i] * f[kh * 3 + kw];
}

static void set_column(vec to[ROWS], const vec from[ROWS]) {
#pragma unroll
  for (int r = 0; r < ROWS; ++r) to[r] = from[r];
}

static void clear_column(vec to[ROWS]) {
#pragma unroll
  for (int r = 0; r < ROWS; ++r) to[r] = (vec)(0.0f);
}

static void store_y(const vec y[ROWS], const Rows *rows, int column, vec *sums Y_PARAMS) {
#pragma unroll
  for (int r = 0; r < ROWS; ++r)
    if (has_pixel(rows, r, column))
      STORE_Y(y[r], rows->at + (r * rows->W + column) * rows->C, rows->c Y_SUM_ARGS Y_PASS);
}

// One band of the result. x and y say where source and result begin; PL is the padding to the left.
static void band_of(const Rows *x_rows, const Rows *y_rows, int PL, const vec f[9], vec *sums X_PARAMS Y_PARAMS) {
  vec x[SOURCES];
  vec a[ROWS];  // unfinished columns of the result
  vec b[ROWS];
  clear_column(a);
  clear_column(b);
#if SCATTER
  for (int v = 0; 2 * v - PL < y_rows->W; ++v) {
    load_x(x, x_rows, v X_PASS);
    add_column(a, x, f, 0);
    store_y(a, y_rows, 2 * v - PL, sums Y_PASS);
    add_column(b, x, f, 1);
    store_y(b, y_rows, 2 * v - PL + 1, sums Y_PASS);
    clear_column(a);
    clear_column(b);
    add_column(a, x, f, 2);
  }
#elif STRIDE == 2
  load_x(x, x_rows, -PL X_PASS);
  add_column(a, x, f, 0);
  for (int o = 0; o < y_rows->W; ++o) {
    load_x(x, x_rows, 2 * o - PL + 1 X_PASS);
    add_column(a, x, f, 1);
    load_x(x, x_rows, 2 * o - PL + 2 X_PASS);
    add_column(a, x, f, 2);
    clear_column(b);
    add_column(b, x, f, 0);
    store_y(a, y_rows, o, sums Y_PASS);
    set_column(a, b);
  }
#else
  vec d[ROWS];
  for (int o = clamp(PL - 2, -2, 0); o < y_rows->W; ++o) {
    load_x(x, x_rows, o + 2 - PL X_PASS);
    clear_column(d);
    add_column(a, x, f, 2);
    add_column(b, x, f, 1);
    add_column(d, x, f, 0);
    store_y(a, y_rows, o, sums Y_PASS);
    set_column(a, b);
    set_column(b, d);
  }
#endif
}

// H W of the source, OH OW of the result, C channels, PT and PL the padding above and to the left. TRANSPOSED with
// STRIDE 1 is a convolution with the filter turned round, whose padding is 2 less that of the forward one. Work-item
// (channels, block): `bands` of the `total` bands; an image has ceil(OH / ROWS) of them. All channels of a band come
// before the next band, so that on CPUs, where one work-item has them all, a band stays in the cache.
WIDE kernel void depthwise_rows(global const float *w, int w_at, int H, int W, int C, int OH, int OW, int PT, int PL,
                                int total, int bands SUMS_PARAMS X_PARAMS Y_PARAMS) {
  int block = get_global_id(1);
  int image_bands = (OH + ROWS - 1) / ROWS;
  for (int band = block * bands; band < min((block + 1) * bands, total); ++band) {
    int n = band / image_bands;
    int oh = (band - n * image_bands) * ROWS;
    int top = SCATTER ? (oh + PT + PHASE) / 2 - 1 : oh * STRIDE - PT;
    for (int c = get_global_id(0) * VEC; c < C; c += get_global_size(0) * VEC) {
      vec f[9];
#pragma unroll
      for (int k = 0; k < 9; ++k) {
        int tap = TRANSPOSED - SCATTER ? 8 - k : k;
        f[k] = *(global const vec *)(w + w_at + tap * C + c);
      }
      vec sums[Y_SUMS + 1];
#if Y_SUMS > 0
      global vec *kept = (global vec *)(partial + partial_at + block * Y_SUMS * C + c);
#pragma unroll
      for (int s = 0; s < Y_SUMS; ++s) sums[s] = band == block * bands ? (vec)(0.0f) : kept[s * (C / VEC)];
#endif
      Rows x = rows_from(n, top, H, W, C, c);
      Rows y = rows_from(n, oh, OH, OW, C, c);
      band_of(&x, &y, PL, f, sums X_PASS Y_PASS);
#if Y_SUMS > 0
#pragma unroll
      for (int s = 0; s < Y_SUMS; ++s) kept[s * (C / VEC)] = sums[s];
#endif
    }
  }
}

#if !TRANSPOSED
// A column of dy; what lies outside is zero.
static void load_dy(vec dy[ROWS], const Rows *rows, int column DY_PARAMS) {
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    dy[r] = (vec)(0.0f);
    if (has_pixel(rows, r, column)) dy[r] = LOAD_DY(rows->at + (r * rows->W + column) * rows->C, rows->c DY_PASS);
  }
}

// Adds to the gradient of filter column kw what a column of x and one of dy give.
static void add_grad(vec dw[9], const vec x[SOURCES], const vec dy[ROWS], int kw) {
#pragma unroll
  for (int i = 0; i < SOURCES; ++i)
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
      for (int kh = 0; kh < 3; ++kh)
        if (meets(i, r, kh)) dw[kh * 3 + kw] += x[i] * dy[r];
}

// One band of dy, `d` its last columns.
static void grad_of_band(const Rows *x_rows, const Rows *dy_rows, int PL, vec dw[9] X_PARAMS DY_PARAMS) {
  vec x[SOURCES];
  vec a[ROWS];
  vec b[ROWS];
  clear_column(a);
#if STRIDE == 2
  for (int o = 0; o <= dy_rows->W; ++o) {
    load_dy(b, dy_rows, o DY_PASS);
    load_x(x, x_rows, 2 * o - PL X_PASS);
    add_grad(dw, x, b, 0);
    add_grad(dw, x, a, 2);
    load_x(x, x_rows, 2 * o - PL + 1 X_PASS);
    add_grad(dw, x, b, 1);
    set_column(a, b);
  }
#else
  vec d[ROWS];
  clear_column(b);
  for (int o = 0; o < min(dy_rows->W + 2, x_rows->W + PL); ++o) {
    load_dy(d, dy_rows, o DY_PASS);
    load_x(x, x_rows, o - PL X_PASS);
    add_grad(dw, x, d, 0);
    add_grad(dw, x, b, 1);
    add_grad(dw, x, a, 2);
    set_column(a, b);
    set_column(b, d);
  }
#endif
}

// H W of x, OH OW of dy. Work-item (channels, block): the gradient from `bands` bands of dy, at [block, 9, C].
WIDE kernel void depthwise_weight_grad_rows(global float *partial, int partial_at, int H, int W, int C, int OH, int OW,
                                            int PT, int PL, int total, int bands X_PARAMS DY_PARAMS) {
  int block = get_global_id(1);
  int image_bands = (OH + ROWS - 1) / ROWS;
  for (int band = block * bands; band < min((block + 1) * bands, total); ++band) {
    int n = band / image_bands;
    int oh = (band - n * image_bands) * ROWS;
    for (int c = get_global_id(0) * VEC; c < C; c += get_global_size(0) * VEC) {
      global vec *kept = (global vec *)(partial + partial_at + block * 9 * C + c);
      vec dw[9];
#pragma unroll
      for (int k = 0; k < 9; ++k) dw[k] = band == block * bands ? (vec)(0.0f) : kept[k * (C / VEC)];
      Rows x = rows_from(n, oh * STRIDE - PT, H, W, C, c);
      Rows dy = rows_from(n, oh, OH, OW, C, c);
      grad_of_band(&x, &dy, PL, dw X_PASS DY_PASS);
#pragma unroll
      for (int k = 0; k < 9; ++k) kept[k * (C / VEC)] = dw[k];
    }
  }
}
#endif
