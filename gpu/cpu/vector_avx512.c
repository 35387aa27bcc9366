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
#define HAS_SORT
#define MULTIPLY_32(a, b) (blocks) _mm512_mul_epu32((__m512i)(a), (__m512i)(b))
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
#define FUSED
#define MIN_f32(x, y) _mm512_min_ps(x, y)
#define MAX_f32(x, y) _mm512_max_ps(x, y)
#define SCALED_f32(x, k) _mm512_scalef_ps(x, k)
#define MIN_f64(x, y) _mm512_min_pd(x, y)
#define MAX_f64(x, y) _mm512_max_pd(x, y)
#define SCALED_f64(x, k) _mm512_scalef_pd(x, k)
#define ROOT_f32(x) _mm512_sqrt_ps(x)
#define INVERSE_f32(x) _mm512_rcp14_ps(x)
#define ROOT_f64(x) _mm512_sqrt_pd(x)
#define INVERSE_f64(x) near_inverse(x)
#define LOOK_UP(table, place)                                        \
    _mm512_permutex2var_pd(_mm512_loadu_pd(table), (__m512i)(place), \
                           _mm512_loadu_pd((table) + 8))
#define LOOK_UP_32(table, place)                                     \
    _mm512_permutex2var_ps(_mm512_loadu_ps(table), (__m512i)(place), \
                           _mm512_loadu_ps((table) + 16))
#define WIDE_LOW(x) _mm512_cvtps_pd(_mm512_castps512_ps256(x))
#define WIDE_HIGH(x) _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1))
#define NARROWED(low, high)                                          \
    _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)), \
                       _mm512_cvtpd_ps(high), 1)

/* 1 / x, all but 28 bits. */
static inline __m512d near_inverse(__m512d x)
{
    __m512d inverse = _mm512_rcp14_pd(x), one = _mm512_set1_pd(1);
    return _mm512_fmadd_pd(inverse, _mm512_fnmadd_pd(x, inverse, one), inverse);
}

#include "vector_body.h"
#else
const gpu_cpu_vector gpu_cpu_vector_avx512 = {0};
#endif
