// Winograd's F(4x4, 3x3): the transforms around a product for each of the 36 elements of a tile, which the gemm kernels
// compute. A work-item takes VEC channels (or every get_global_size(0)-th VEC of them) of `each` tiles. Points 0, 1, -1,
// 2, -2 and infinity, as in Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks". GPUs transform images with
// winograd_shared.cl.
#ifndef VEC
#define VEC 1  // 1 2 4 8 16: divides the channels
#endif
#ifndef PART
#define PART 0  // the transform: 0 of a source, 1 of weights, 2 to results, 3 of a cotangent, 4 to a weight gradient
#endif
#ifndef TURNED
#define TURNED 0  // weights: 0 for the convolution, 1 for its input gradient
#endif

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#if VEC == 1
#define vec float
#else
#define vec PASTE(float, VEC)
#endif
#define AT(p) (*(global vec *)(p))
#define AT_CONST(p) (*(global const vec *)(p))
// From plane to plane: a running pointer spares most of the arithmetic.
#define STORE_NEXT(value)                                                                                              \
  {                                                                                                                    \
    AT(out) = value;                                                                                                   \
    out += plane;                                                                                                      \
  }
#define CHANNELS(c, count) for (int c = (int)get_global_id(0) * VEC; c < count; c += (int)get_global_size(0) * VEC)
#define TILES(t, tiles, each)                                                                                          \
  for (int t = (int)get_global_id(1) * each; t < min(tiles, ((int)get_global_id(1) + 1) * each); ++t)

// Operand and epilogue are rendered into the header; these defaults are tensors as they stand.
#ifndef X_PARAMS
#define X_PARAMS , global const float *X0, int X0_at
#define X_PASS , X0, X0_at
vec PASTE(X_, VEC)(int i, int c X_PARAMS) { return AT_CONST(X0 + X0_at + i); }
#endif
#ifndef Y_PARAMS
#define Y_PARAMS , global float *Y_out0, int Y_out0_at
#define Y_PASS , Y_out0, Y_out0_at
#define Y_SUMS 0
#define Y_SUM_ARGS
void PASTE(Y_, VEC)(vec value, int i, int c Y_PARAMS) { AT(Y_out0 + Y_out0_at + i) = value; }
#endif
#if Y_SUMS > 0
#define SUM_PARAMS , int sum_row, global float *partial, int partial_at
#else
#define SUM_PARAMS
#endif

// Where a tile lies: its image, and the row and column of its first result.
typedef struct {
  int image, h, w;
} Tile;

Tile tile_at(int tile, int tiles_h, int tiles_w) {
  const int row = tile / tiles_w;
  const Tile result = {row / tiles_h, row % tiles_h * 4, (tile - row * tiles_w) * 4};
  return result;
}

// Each matrix, applied to a line.
#if PART == 0
#define IN 6
#define OUT 6
void line(const vec *x, vec *y) {
  const vec even = x[4] - 4.0f * x[2], odd = x[3] - 4.0f * x[1];
  const vec even2 = x[4] - x[2], odd2 = 2.0f * (x[3] - x[1]);
  y[0] = 4.0f * x[0] + (x[4] - 5.0f * x[2]);
  y[1] = even + odd;
  y[2] = even - odd;
  y[3] = even2 + odd2;
  y[4] = even2 - odd2;
  y[5] = 4.0f * x[1] + (x[5] - 5.0f * x[3]);
}
#elif PART == 1
#define IN 3
#define OUT 6
void line(const vec *x, vec *y) {
  const vec ends = (-1.0f / 6) * (x[0] + x[2]), ends2 = (1.0f / 24) * x[0] + (1.0f / 6) * x[2];
  y[0] = 0.25f * x[0];
  y[1] = ends - (1.0f / 6) * x[1];
  y[2] = ends + (1.0f / 6) * x[1];
  y[3] = ends2 + (1.0f / 12) * x[1];
  y[4] = ends2 - (1.0f / 12) * x[1];
  y[5] = x[2];
}
#elif PART == 2
#define IN 6
#define OUT 4
void line(const vec *x, vec *y) {
  const vec sum = x[1] + x[2], difference = x[1] - x[2], sum2 = x[3] + x[4], difference2 = x[3] - x[4];
  y[0] = x[0] + sum + sum2;
  y[1] = difference + 2.0f * difference2;
  y[2] = sum + 4.0f * sum2;
  y[3] = 8.0f * difference2 + (difference + x[5]);
}
#elif PART == 3
#define IN 4
#define OUT 6
void line(const vec *x, vec *y) {
  const vec even = x[0] + x[2], odd = x[1] + x[3];
  const vec even2 = x[0] + 4.0f * x[2], odd2 = 8.0f * x[3] + 2.0f * x[1];
  y[0] = x[0];
  y[1] = even + odd;
  y[2] = even - odd;
  y[3] = even2 + odd2;
  y[4] = even2 - odd2;
  y[5] = x[3];
}
#else
#define IN 6
#define OUT 3
void line(const vec *x, vec *y) {
  const vec sum2 = x[3] + x[4], inner = (-1.0f / 6) * (x[1] + x[2]);
  y[0] = 0.25f * x[0] + ((1.0f / 24) * sum2 + inner);
  y[1] = (1.0f / 12) * (x[3] - x[4]) + (1.0f / 6) * (x[2] - x[1]);
  y[2] = (1.0f / 6) * sum2 + (inner + x[5]);
}
#endif

// Sums over what a work-item makes go to row sum_row + get_global_id(1) of partial[rows][Y_SUMS][C].
#if Y_SUMS > 0
#define BEGIN_SUMS                                                                                                     \
  vec sums[Y_SUMS];                                                                                                    \
  for (int s = 0; s < Y_SUMS; ++s) sums[s] = (vec)(0.0f);
#define END_SUMS(count, each, C, c)                                                                                    \
  if ((int)get_global_id(1) * each < count) {                                                                          \
    const int row = sum_row + (int)get_global_id(1);                                                                   \
    for (int s = 0; s < Y_SUMS; ++s) AT(partial + partial_at + (row * Y_SUMS + s) * C + c) = sums[s];                  \
  }
#else
#define BEGIN_SUMS
#define END_SUMS(count, each, C, c)
#endif

// Columns, then rows: LOAD(i, j) gives element i, j of a square of IN x IN, column by column, STORE(i, j, value) takes
// those of OUT x OUT, row by row. A square may stand on its side in both. Written out: Mesa's compiler leaves loops of this
// length rolled, and the square in memory.
#define LINES_3(DO) DO(0) DO(1) DO(2)
#define LINES_4(DO) LINES_3(DO) DO(3)
#define LINES_6(DO) LINES_4(DO) DO(4) DO(5)
#define COLUMN(j)                                                                                                      \
  {                                                                                                                    \
    vec x[IN], y[OUT];                                                                                                 \
    _Pragma("unroll") for (int i = 0; i < IN; ++i) x[i] = LOAD(i, j);                                                  \
    line(x, y);                                                                                                        \
    _Pragma("unroll") for (int i = 0; i < OUT; ++i) between[i][j] = y[i];                                              \
  }
#define ROW(i)                                                                                                         \
  {                                                                                                                    \
    vec y[OUT];                                                                                                        \
    line(between[i], y);                                                                                               \
    _Pragma("unroll") for (int j = 0; j < OUT; ++j) STORE(i, j, y[j])                                                 \
  }
#define TRANSFORM                                                                                                      \
  {                                                                                                                    \
    vec between[OUT][IN];                                                                                              \
    PASTE(LINES_, IN)(COLUMN)                                                                                          \
    PASTE(LINES_, OUT)(ROW)                                                                                            \
  }


#if PART == 0 || PART == 3
// Zero beside the image. The nearest pixel is loaded then: there is no branch, so that loads overlap.
vec pixel(int h, int w, int H, int W, int C, int from, int c X_PARAMS) {
  const int inside = h >= 0 && h < H && w >= 0 && w < W;
  const vec x = PASTE(X_, VEC)(from + (clamp(h, 0, H - 1) * W + clamp(w, 0, W - 1)) * C, c X_PASS);
  return inside ? x : (vec)(0.0f);
}

// Channels channel0.. of tiles first.. of an image [images, H, W, C] to [36][tiles][channels]. A tile begins at its first
// result less the padding.
kernel void winograd_source(int H, int W, int C, int tiles_h, int tiles_w, int pad_h, int pad_w, int first, int tiles,
                            int each, int channel0, int channels, global float *to, int to_at X_PARAMS) {
  const int plane = tiles * channels;
  CHANNELS(c, channels) {
    TILES(t, tiles, each) {
      const Tile tile = tile_at(first + t, tiles_h, tiles_w);
      const int from = tile.image * H * W * C + channel0 + c;
      global float *out = to + to_at + t * channels + c;
#define LOAD(i, j) pixel(tile.h - pad_h + i, tile.w - pad_w + j, H, W, C, from, channel0 + c X_PASS)
#define STORE(i, j, value) STORE_NEXT(value)
      TRANSFORM
#undef LOAD
#undef STORE
    }
  }
}
#endif

#if PART == 1
// VEC weights that stand `step` apart.
vec strided(global const float *from, int step) {
#if VEC == 1
  return *from;
#else
  float lanes[VEC];
#pragma unroll
  for (int i = 0; i < VEC; ++i) lanes[i] = from[i * step];
  return PASTE(vload, VEC)(0, lanes);
#endif
}

// Weights [3, 3, Cin, Cout] to [36][rows][columns]: rows are input channels, columns result channels from column0 on. For
// the input gradient it is the other way round, and the kernel is turned round. Rows stand in the place of tiles.
kernel void winograd_weights(int Cin, int Cout, int rows, int column0, int columns, int each, global float *to,
                             int to_at, global const float *from, int from_at) {
  const int plane = rows * columns, tap = Cin * Cout;
  CHANNELS(c, columns) {
    TILES(r, rows, each) {
      global float *out = to + to_at + r * columns + c;
#if TURNED
      global const float *in = from + from_at + 8 * tap + (column0 + c) * Cout + r;
#define LOAD(i, j) strided(in - (i * 3 + j) * tap, Cout)
#else
      global const float *in = from + from_at + r * Cout + column0 + c;
#define LOAD(i, j) AT_CONST(in + (i * 3 + j) * tap)
#endif
#define STORE(i, j, value) STORE_NEXT(value)
      TRANSFORM
#undef LOAD
#undef STORE
    }
  }
}
#endif

#if PART == 2 || PART == 4
// The 36 elements of a tile, from plane to plane.
vec next(global const float **in, int plane) {
  const vec value = AT_CONST(*in);
  *in += plane;
  return value;
}
#endif

#if PART == 2
// Products [36][tiles][channels] to channels channel0.. of the result [images, H, W, C], tiles first...
kernel void winograd_result(int H, int W, int C, int tiles_h, int tiles_w, int first, int tiles, int each, int channel0,
                            int channels, global const float *from, int from_at Y_PARAMS SUM_PARAMS) {
  const int plane = tiles * channels;
  CHANNELS(c, channels) {
    BEGIN_SUMS
    TILES(t, tiles, each) {
      const Tile tile = tile_at(first + t, tiles_h, tiles_w);
      const int at = ((tile.image * H + tile.h) * W + tile.w) * C + channel0 + c;
      global const float *in = from + from_at + t * channels + c;
#define LOAD(i, j) next(&in, plane)
#define STORE(j, i, value)                                                                                             \
  if (tile.h + i < H && tile.w + j < W)                                                                                \
    PASTE(Y_, VEC)(value, at + (i * W + j) * C, channel0 + c Y_SUM_ARGS Y_PASS);
      TRANSFORM
#undef LOAD
#undef STORE
    }
    END_SUMS(tiles, each, C, channel0 + c)
  }
}
#endif

#if PART == 4
// The product [36][Cin][columns] to columns column0.. of the gradient [3, 3, Cin, Cout]. Rows stand in
// the place of tiles.
kernel void winograd_filter(int Cin, int Cout, int column0, int columns, int each, global const float *from,
                            int from_at Y_PARAMS SUM_PARAMS) {
  const int plane = Cin * columns;
  CHANNELS(c, columns) {
    BEGIN_SUMS
    TILES(r, Cin, each) {
      global const float *in = from + from_at + r * columns + c;
      const int at = r * Cout + column0 + c;
#define LOAD(i, j) next(&in, plane)
#define STORE(j, i, value) PASTE(Y_, VEC)(value, at + (i * OUT + j) * Cin * Cout, column0 + c Y_SUM_ARGS Y_PASS);
      TRANSFORM
#undef LOAD
#undef STORE
    }
    END_SUMS(Cin, each, Cout, column0 + c)
  }
}
#endif
