/* The innermost loops for AVX-512 (the x86-64-v4 level). */
#if defined(__x86_64__) && !defined(__clang__)
#pragma GCC target("arch=x86-64-v4,prefer-vector-width=512")
#endif
#include "vector.h"

/* The preprocessor alone does not know what the pragma sets, and a cache of
 * compilations that asks it must see all that is included. */
#if defined(__x86_64__) && (!defined(__clang__) || defined(__AVX512DQ__))
#include <immintrin.h>
#include <sleef.h>
#define TABLE gpu_cpu_vector_avx512
#define TABLE_NAME "AVX-512"
#define USE_SLEEF
#define REGISTER 64
#define TILE_ROWS 8
#define ADD_PRODUCT_f32(sum, x, y) _mm512_fmadd_ps(x, y, sum)
#define ADD_PRODUCT_f64(sum, x, y) _mm512_fmadd_pd(x, y, sum)
#define LANES_f32 16
#define LOAD_f32(p) _mm512_loadu_ps(p)
#define STORE_f32(p, v) _mm512_storeu_ps(p, v)
#define ANY_f32(m) _mm512_movepi32_mask((__m512i)(m))
#define SLEEF_f32(name, accuracy) Sleef_##name##f16_##accuracy##avx512f
#define LANES_f64 8
#define LOAD_f64(p) _mm512_loadu_pd(p)
#define STORE_f64(p, v) _mm512_storeu_pd(p, v)
#define ANY_f64(m) _mm512_movepi64_mask((__m512i)(m))
#define SLEEF_f64(name, accuracy) Sleef_##name##d8_##accuracy##avx512f
#define EVEN(name) finz_##name
#define EVEN_u10 u10
#define SINCOSPI Sleef_sincospid8_u05avx512f
#define SINCOSPI_PAIR Sleef___m512d_2
#include "vector_body.h"
#else
const gpu_cpu_vector gpu_cpu_vector_avx512 = {0};
#endif
