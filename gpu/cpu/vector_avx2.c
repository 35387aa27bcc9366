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
#include "vector_body.h"
#else
const gpu_cpu_vector gpu_cpu_vector_avx2 = {0};
#endif
