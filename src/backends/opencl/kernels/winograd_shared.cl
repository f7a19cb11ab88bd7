// The transform of an image for Winograd's F(4x4, 3x3) (winograd.cl) on GPUs: six work-items share a tile, by way of local
// memory, since its 36 elements would not fit into their registers.
#ifndef VEC
#define VEC 4  // 1 2 4: divides the channels
#endif
#ifndef PART
#define PART 0  // the transform: 0 of a source, 3 of a cotangent
#endif
#ifndef LX
#define LX 16  // work-items along channels
#endif

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#if VEC == 1
#define vec float
#else
#define vec PASTE(float, VEC)
#endif

// The operand is rendered into the header; this default is a tensor as it stands.
#ifndef X_PARAMS
#define X_PARAMS , global const float *X0, int X0_at
#define X_PASS , X0, X0_at
vec PASTE(X_, VEC)(int i, int c X_PARAMS) { return *(global const vec *)(X0 + X0_at + i); }
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

// The matrix, applied to a line.
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
#else
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
#endif

// Zero beside the image. The nearest pixel is loaded then: there is no branch, so that loads overlap.
vec pixel(int h, int w, int H, int W, int C, int from, int c X_PARAMS) {
  const int inside = h >= 0 && h < H && w >= 0 && w < W;
  const vec x = PASTE(X_, VEC)(from + (clamp(h, 0, H - 1) * W + clamp(w, 0, W - 1)) * C, c X_PASS);
  return inside ? x : (vec)(0.0f);
}

// Channels channel0.. of tiles first.. of an image [images, H, W, C] to [36][tiles][channels]. A tile begins at its first
// result less the padding. get_group_id(1) is the tile: the first IN of its work-items transform a column each, then all
// of them a row.
__attribute__((reqd_work_group_size(LX, OUT, 1))) kernel void winograd_shared(
    int H, int W, int C, int tiles_h, int tiles_w, int pad_h, int pad_w, int first, int tiles, int channel0,
    int channels, global float *to, int to_at X_PARAMS) {
  local vec between[OUT][IN][LX];
  const int lane = (int)get_local_id(0), line_at = (int)get_local_id(1), t = (int)get_group_id(1);
  const int c = (int)get_global_id(0) * VEC;
  const Tile tile = tile_at(first + t, tiles_h, tiles_w);
  vec x[IN], y[OUT];
  if (line_at < IN && c < channels) {
    const int from = tile.image * H * W * C + channel0 + c;
#pragma unroll
    for (int i = 0; i < IN; ++i)
      x[i] = pixel(tile.h - pad_h + i, tile.w - pad_w + line_at, H, W, C, from, channel0 + c X_PASS);
    line(x, y);
#pragma unroll
    for (int i = 0; i < OUT; ++i) between[i][line_at][lane] = y[i];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (c < channels) {
#pragma unroll
    for (int j = 0; j < IN; ++j) x[j] = between[line_at][j][lane];
    line(x, y);
    const int plane = tiles * channels;
    global float *out = to + to_at + line_at * OUT * plane + t * channels + c;
#pragma unroll
    for (int j = 0; j < OUT; ++j) *(global vec *)(out + j * plane) = y[j];
  }
}
