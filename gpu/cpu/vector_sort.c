/* Numbers in order: Hoare's quicksort, whose partitions move a register at a
 * time, down to blocks that a network sorts in registers; and, by the same
 * tables, what a mask wants of them. For AVX2, which what has AVX-512 runs as
 * well.
 *
 * Source: Bramas, A novel hybrid quicksort algorithm vectorized using AVX-512,
 * 2017, for the two; Batcher, Sorting networks and their applications, 1968. */
#if defined(__x86_64__) && !defined(__clang__)
#pragma GCC target("avx2,fma,popcnt,bmi")
#endif
#include "cpu.h"
#include "vector.h"

#if defined(__x86_64__) && (!defined(__clang__) || defined(__AVX2__))
#include <immintrin.h>
#include <math.h>
#include <string.h>

enum {
    AT_A_TIME = 4,  /* registers that are read and then parted */
    MANY = 1 << 10, /* numbers, of which a larger sample is taken */
    DEPTH = 40      /* partitions; of 2^17 numbers a dozen as a rule */
};

static int most_partitions = DEPTH;

void gpu_cpu_set_sort_depth(int partitions)
{
    most_partitions = partitions > 0 ? partitions : DEPTH;
}

#define BLOCK(rows) ((rows)*LANES)
#define LOAD(p) _mm256_loadu_si256((const __m256i *)(p))

/* Which lane comes to each place of a register, as bytes: those whose bit of
 * the mask is not set first, the others behind them, in their order. */
#define LANE(mask, lane, lanes)                         \
    ((mask) >> (lane)&1                                 \
         ? (lanes)-__builtin_popcount((mask) >> (lane)) \
         : (lane)-__builtin_popcount((mask) & ((1 << (lane)) - 1)))
#define AT_8(mask, lane) ((uint64_t)(lane) << 8 * LANE(mask, lane, 8))
#define AT_4(mask, lane) \
    ((uint64_t)(0x100 + 0x202 * (lane)) << 16 * LANE(mask, lane, 4))
#define PLACES_8(m)                                                   \
    (AT_8(m, 0) | AT_8(m, 1) | AT_8(m, 2) | AT_8(m, 3) | AT_8(m, 4) | \
     AT_8(m, 5) | AT_8(m, 6) | AT_8(m, 7))
#define PLACES_4(m) (AT_4(m, 0) | AT_4(m, 1) | AT_4(m, 2) | AT_4(m, 3))
#define EACH_4(f, m) f(m), f(m + 1), f(m + 2), f(m + 3)
#define EACH_16(f, m) \
    EACH_4(f, m), EACH_4(f, m + 4), EACH_4(f, m + 8), EACH_4(f, m + 12)
#define EACH_64(f, m) \
    EACH_16(f, m), EACH_16(f, m + 16), EACH_16(f, m + 32), EACH_16(f, m + 48)

static const uint64_t places_8[256] = {
    EACH_64(PLACES_8, 0), EACH_64(PLACES_8, 64), EACH_64(PLACES_8, 128),
    EACH_64(PLACES_8, 192)};
static const uint64_t places_4[16] = {EACH_16(PLACES_4, 0)};

INLINE __m256i places_of(const uint64_t *row)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)row));
}

/* So many lanes, of 32 bits each, from the first on. */
INLINE __m256i first_lanes(int n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

#define PS(x) _mm256_castsi256_ps(x)
#define PD(x) _mm256_castsi256_pd(x)
#define OF_PS(x) _mm256_castps_si256(x)
#define OF_PD(x) _mm256_castpd_si256(x)
#define CHOOSE(a, b, lanes) _mm256_blend_epi32(a, b, lanes)

#define KEY float
#define BITS uint32_t
#define LANES 8
#define TYPED(name) name##_f32
#define FILLED(key) OF_PS(_mm256_set1_ps(key))
#define FIRST(n) first_lanes(n)
#define MASKED_LOAD(p, mask) OF_PS(_mm256_maskload_ps(p, mask))
#define MIN(a, b) OF_PS(_mm256_min_ps(PS(a), PS(b)))
#define MAX(a, b) OF_PS(_mm256_max_ps(PS(a), PS(b)))
#define ABOVE(a, b) _mm256_cmp_ps(PS(a), PS(b), _CMP_GT_OQ)
#define MASK(m) (unsigned)_mm256_movemask_ps(m)
#define PLACES(mask) places_of(&places_8[mask])
#define ZIP_LOW(a, b) _mm256_unpacklo_epi32(a, b)
#define ZIP_HIGH(a, b) _mm256_unpackhi_epi32(a, b)
#define MIDDLE(a) _mm256_cvtss_f32(PS(MIRROR_4(a)))
#define MIRROR_2(a) _mm256_shuffle_epi32(a, 0xb1)
#define MIRROR_4(a) _mm256_shuffle_epi32(a, 0x1b)
#define SWAP_4(a) _mm256_shuffle_epi32(a, 0x4e)
#define MIRROR_ALL(a) _mm256_permute4x64_epi64(MIRROR_4(a), 0x4e)
#define UPPER_2 0xaa
#define UPPER_4 0xcc
#define UPPER_ALL 0xf0
#include "vector_sort_body.h"

#define KEY double
#define BITS uint64_t
#define LANES 4
#define TYPED(name) name##_f64
#define FILLED(key) OF_PD(_mm256_set1_pd(key))
#define FIRST(n) first_lanes(2 * (n))
#define MASKED_LOAD(p, mask) OF_PD(_mm256_maskload_pd(p, mask))
#define MIN(a, b) OF_PD(_mm256_min_pd(PD(a), PD(b)))
#define MAX(a, b) OF_PD(_mm256_max_pd(PD(a), PD(b)))
#define ABOVE(a, b) _mm256_cmp_pd(PD(a), PD(b), _CMP_GT_OQ)
#define MASK(m) (unsigned)_mm256_movemask_pd(m)
#define PLACES(mask) places_of(&places_4[mask])
#define ZIP_LOW(a, b) _mm256_unpacklo_epi64(a, b)
#define ZIP_HIGH(a, b) _mm256_unpackhi_epi64(a, b)
#define MIDDLE(a) _mm256_cvtsd_f64(PD(MIRROR_2(a)))
#define MIRROR_2(a) _mm256_shuffle_epi32(a, 0x4e)
#define MIRROR_ALL(a) _mm256_permute4x64_epi64(a, 0x1b)
#define UPPER_2 0xcc
#define UPPER_ALL 0xf0
#include "vector_sort_body.h"

/* --- what a mask wants -----------------------------------------------------
 */

/* Bit k: byte k, of eight that are 0 or 1, is 0. */
INLINE unsigned unwanted(const uint8_t *truth)
{
    uint64_t bytes;
    memcpy(&bytes, truth, sizeof bytes);
    return (unsigned)(bytes * 0x0102040810204080 >> 56) ^ 0xff;
}

/* A register whose lanes without a bit come first. */
INLINE void put_first(void *to, const void *x, __m256i places)
{
    __m256i v = _mm256_permutevar8x32_epi32(LOAD(x), places);
    _mm256_storeu_si256(to, v);
}

#define NONE 0xff /* of unwanted: eight elements that are passed over */

size_t gpu_cpu_pack_f32(void *to, const void *xv, const uint8_t *truth,
                        size_t n)
{
    const float *x = xv;
    float *end = to;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        unsigned out = unwanted(truth + i);
        if (out == NONE)
            continue;
        put_first(end, x + i, places_of(&places_8[out]));
        end += 8 - __builtin_popcount(out);
    }
    for (; i < n; i++) {
        *end = x[i];
        end += truth[i];
    }
    return (size_t)(end - (float *)to);
}

size_t gpu_cpu_pack_f64(void *to, const void *xv, const uint8_t *truth,
                        size_t n)
{
    const double *x = xv;
    double *end = to;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        unsigned out = unwanted(truth + i), low = out & 15, high = out >> 4;
        if (out == NONE)
            continue;
        put_first(end, x + i, places_of(&places_4[low]));
        end += 4 - __builtin_popcount(low);
        put_first(end, x + i + 4, places_of(&places_4[high]));
        end += 4 - __builtin_popcount(high);
    }
    for (; i < n; i++) {
        *end = x[i];
        end += truth[i];
    }
    return (size_t)(end - (double *)to);
}

size_t gpu_cpu_pack_places(double *to, const uint8_t *truth, size_t n,
                           double first)
{
    double *end = to;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        unsigned out = unwanted(truth + i);
        if (out == NONE)
            continue;
        __m256i lanes = places_of(&places_8[out]);
        __m128i low = _mm256_castsi256_si128(lanes);
        __m128i high = _mm256_extracti128_si256(lanes, 1);
        __m256d from = _mm256_set1_pd(first + (double)i);
        _mm256_storeu_pd(end, _mm256_add_pd(from, _mm256_cvtepi32_pd(low)));
        _mm256_storeu_pd(end + 4,
                         _mm256_add_pd(from, _mm256_cvtepi32_pd(high)));
        end += 8 - __builtin_popcount(out);
    }
    for (; i < n; i++) {
        *end = first + (double)i;
        end += truth[i];
    }
    return (size_t)(end - to);
}
#else
void gpu_cpu_set_sort_depth(int partitions)
{
    (void)partitions;
}
#endif
