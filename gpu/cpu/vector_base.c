/* The innermost loops for any processor; on x86-64 with SLEEF's own dispatch
 * over 16-byte registers. */
#include "vector.h"

#define TABLE gpu_cpu_vector_base
#ifdef __x86_64__
#include <emmintrin.h>
#include <sleef.h>
#define TABLE_NAME "SSE2"
#define USE_SLEEF
#define MULTIPLY_32(a, b) (blocks) _mm_mul_epu32((__m128i)(a), (__m128i)(b))
#define LANES_f32 4
#define LOAD_f32(p) _mm_loadu_ps(p)
#define STORE_f32(p, v) _mm_storeu_ps(p, v)
#define ANY_f32(m) _mm_movemask_ps((__m128)(m))
#define SLEEF_f32(name, accuracy) Sleef_##name##f4_##accuracy
#define LANES_f64 2
#define LOAD_f64(p) _mm_loadu_pd(p)
#define STORE_f64(p, v) _mm_storeu_pd(p, v)
#define ANY_f64(m) _mm_movemask_pd((__m128d)(m))
#define SLEEF_f64(name, accuracy) Sleef_##name##d2_##accuracy
#define EVEN(name) cinz_##name
#define EVEN_u10 u10sse2
#define SINCOSPI Sleef_sincospid2_u05
#define SINCOSPI_PAIR Sleef___m128d_2
#else
#define TABLE_NAME "plain C"
#endif
#define REGISTER 16
#define TILE_ROWS 4
#define ADD_PRODUCT_f32(sum, x, y) ((sum) + (x) * (y))
#define ADD_PRODUCT_f64(sum, x, y) ((sum) + (x) * (y))
#include "vector_body.h"
