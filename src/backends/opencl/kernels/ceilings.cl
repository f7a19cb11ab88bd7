// Micro-benchmarks of a device's ceilings: multiply-adds in registers, streams through memory, and a kernel that does
// next to nothing. Each is run in several variants; the fastest counts.
#ifndef WIDTH
#define WIDTH 4  // 1, 4, 8, 16: floats of a vector
#endif
#ifndef CHAINS
#define CHAINS 8  // 4, 8, 12: multiply-adds of a work-item that do not wait for each other
#endif
#ifndef RUNS
#define RUNS 0  // 0: neighbours in memory are neighbouring work-items' (GPUs); 1: each has a run of its own (CPUs)
#endif

#if WIDTH == 1
typedef float Vector;
#define SUM(v) (v)
#elif WIDTH == 4
typedef float4 Vector;
#define SUM(v) (v.s0 + v.s1 + v.s2 + v.s3)
#elif WIDTH == 8
typedef float8 Vector;
#define SUM(v) (v.s0 + v.s1 + v.s2 + v.s3 + v.s4 + v.s5 + v.s6 + v.s7)
#else
typedef float16 Vector;
#define SUM(v) (v.s0 + v.s1 + v.s2 + v.s3 + v.s4 + v.s5 + v.s6 + v.s7 + v.s8 + v.s9 + v.sa + v.sb + v.sc + v.sd + v.se + v.sf)
#endif

// `rounds` times CHAINS multiply-adds of vectors. Values stay between 0 and 1.
kernel void ceilings_flops(int rounds, global float *out) {
  const float first = 0.001f * (float)((int)get_global_id(0) % 7 + 1);
  const Vector x = (Vector)(0.999f), y = (Vector)(0.001f);
  Vector a0 = (Vector)(first), a1 = a0 + 0.01f, a2 = a0 + 0.02f, a3 = a0 + 0.03f;
#if CHAINS > 4
  Vector a4 = a0 + 0.04f, a5 = a0 + 0.05f, a6 = a0 + 0.06f, a7 = a0 + 0.07f;
#endif
#if CHAINS > 8
  Vector a8 = a0 + 0.08f, a9 = a0 + 0.09f, a10 = a0 + 0.1f, a11 = a0 + 0.11f;
#endif
  for (int i = 0; i < rounds; ++i) {
    a0 = a0 * x + y;
    a1 = a1 * x + y;
    a2 = a2 * x + y;
    a3 = a3 * x + y;
#if CHAINS > 4
    a4 = a4 * x + y;
    a5 = a5 * x + y;
    a6 = a6 * x + y;
    a7 = a7 * x + y;
#endif
#if CHAINS > 8
    a8 = a8 * x + y;
    a9 = a9 * x + y;
    a10 = a10 * x + y;
    a11 = a11 * x + y;
#endif
  }
  Vector sum = a0 + a1 + a2 + a3;
#if CHAINS > 4
  sum += a4 + a5 + a6 + a7;
#endif
#if CHAINS > 8
  sum += a8 + a9 + a10 + a11;
#endif
  out[get_global_id(0)] = SUM(sum);
}

#if RUNS
#define FOR_VECTORS(i, n)                                                                         \
  for (int i = (int)get_global_id(0) * (n / (int)get_global_size(0)),                             \
           i##_end = ((int)get_global_id(0) + 1) * (n / (int)get_global_size(0)); i < i##_end; ++i)
#else
#define FOR_VECTORS(i, n) for (int i = (int)get_global_id(0); i < n; i += (int)get_global_size(0))
#endif

// n vectors, a multiple of the number of work-items.
kernel void ceilings_copy(int n, global const Vector *a, global const Vector *b, global Vector *out) {
  FOR_VECTORS(i, n) out[i] = a[i];
}

kernel void ceilings_triad(int n, global const Vector *a, global const Vector *b, global Vector *out) {
  FOR_VECTORS(i, n) out[i] = a[i] + 3.0f * b[i];
}

kernel void ceilings_nothing(int n, global float *out) {
  if ((int)get_global_id(0) < n) out[0] = 1.0f;
}
