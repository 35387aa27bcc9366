/* The innermost loops for AVX2 with FMA (x86-64 from 2013 on). */
#if defined(__x86_64__) && !defined(__clang__)
#pragma GCC target("avx2,fma")
#endif
#include "vector.h"

/* The preprocessor alone does not know what the pragma sets, and a cache of
 * compilations that asks it must see all that is included. */
#if defined(__x86_64__) && (!defined(__clang__) || defined(__AVX2__))
#include <immintrin.h>
#include <sleef.h>
#define TABLE gpu_cpu_vector_avx2
#define TABLE_NAME "AVX2"
#define USE_SLEEF
#define HAS_SORT
#define MULTIPLY_32(a, b) (blocks) _mm256_mul_epu32((__m256i)(a), (__m256i)(b))
#define REGISTER 32
#define TILE_ROWS 6
#define ADD_PRODUCT_f32(sum, x, y) _mm256_fmadd_ps(x, y, sum)
#define ADD_PRODUCT_f64(sum, x, y) _mm256_fmadd_pd(x, y, sum)
#define LANES_f32 8
#define LOAD_f32(p) _mm256_loadu_ps(p)
#define STORE_f32(p, v) _mm256_storeu_ps(p, v)
#define ANY_f32(m) _mm256_movemask_ps((__m256)(m))
#define SLEEF_f32(name, accuracy) Sleef_##name##f8_##accuracy##avx2
#define LANES_f64 4
#define LOAD_f64(p) _mm256_loadu_pd(p)
#define STORE_f64(p, v) _mm256_storeu_pd(p, v)
#define ANY_f64(m) _mm256_movemask_pd((__m256d)(m))
#define SLEEF_f64(name, accuracy) Sleef_##name##d4_##accuracy##avx2
#define EVEN(name) finz_##name
#define EVEN_u10 u10
#define SINCOSPI Sleef_sincospid4_u05avx2
#define SINCOSPI_PAIR Sleef___m256d_2
#define FUSED
#define MIN_f32(x, y) _mm256_min_ps(x, y)
#define MAX_f32(x, y) _mm256_max_ps(x, y)
#define UNORDERED_f32(x, y) _mm256_cmp_ps(x, y, _CMP_UNORD_Q)
#define SCALED_f32(x, k) scaled_f32(x, k)
#define MIN_f64(x, y) _mm256_min_pd(x, y)
#define MAX_f64(x, y) _mm256_max_pd(x, y)
#define UNORDERED_f64(x, y) _mm256_cmp_pd(x, y, _CMP_UNORD_Q)
#define SCALED_f64(x, k) scaled_f64(x, k)
#define ROOT_f32(x) _mm256_sqrt_ps(x)
#define INVERSE_f32(x) (1 / (x))
#define ROOT_f64(x) _mm256_sqrt_pd(x)
#define INVERSE_f64(x) (1 / (x))
#define LOOK_UP(table, place) \
    _mm256_i64gather_pd(table, (__m256i)((place)&15), 8)
#define LOOK_UP_32(table, place) \
    _mm256_i32gather_ps(table, (__m256i)((place)&31), 4)
#define WIDE_LOW(x) _mm256_cvtps_pd(_mm256_castps256_ps128(x))
#define WIDE_HIGH(x) _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))
#define NARROWED(low, high)                                            \
    _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(low)), \
                         _mm256_cvtpd_ps(high), 1)
#define BYTES_OF_f32(to, masks) bytes_of_f32(to, (const __m256i *)(masks))
#define BYTES_OF_f64(to, masks) bytes_of_f64(to, (const __m256i *)(masks))

/* Of 32 masks bytes of 0 and 1. Packing goes on in each half of a register, so
 * that at the end pieces of both halves take turns. */
static inline void bytes_of_f32(uint8_t *to, const __m256i masks[4])
{
    __m256i low = _mm256_packs_epi32(masks[0], masks[1]);
    __m256i high = _mm256_packs_epi32(masks[2], masks[3]);
    __m256i ones =
        _mm256_and_si256(_mm256_packs_epi16(low, high), _mm256_set1_epi8(1));
    __m128i first = _mm256_castsi256_si128(ones);
    __m128i second = _mm256_extracti128_si256(ones, 1);
    _mm_storeu_si128((__m128i *)to, _mm_unpacklo_epi32(first, second));
    _mm_storeu_si128((__m128i *)to + 1, _mm_unpackhi_epi32(first, second));
}

static inline __m256i even_words(__m256i x, __m256i y)
{
    return _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(x),
                                                 _mm256_castsi256_ps(y), 0x88));
}

static inline void bytes_of_f64(uint8_t *to, const __m256i masks[8])
{
    __m256i low = _mm256_packs_epi32(even_words(masks[0], masks[1]),
                                     even_words(masks[2], masks[3]));
    __m256i high = _mm256_packs_epi32(even_words(masks[4], masks[5]),
                                      even_words(masks[6], masks[7]));
    __m256i ones =
        _mm256_and_si256(_mm256_packs_epi16(low, high), _mm256_set1_epi8(1));
    __m128i first = _mm256_castsi256_si128(ones);
    __m128i second = _mm256_extracti128_si256(ones, 1);
    _mm_storeu_si128((__m128i *)to, _mm_unpacklo_epi16(first, second));
    _mm_storeu_si128((__m128i *)to + 1, _mm_unpackhi_epi16(first, second));
}

#include "vector_body.h"
#else
const gpu_cpu_vector gpu_cpu_vector_avx2 = {0};
#endif
