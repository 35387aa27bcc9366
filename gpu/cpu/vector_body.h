/* The text of every vector_*.c: the loops for float, then for double, then
 * conversions and normals, then the table. The file including it says which
 * SLEEF functions and registers it has. */
#include <float.h>
#include <math.h>
#include <string.h>
#include <Random123/philox.h>
#include "op_list.h"
#include "op_macros.h"

/* The macro argument after a lookup: SECOND(LOOKUP_key, otherwise) gives what
 * LOOKUP_key hides behind its comma, or `otherwise` when there is no such. */
#define SECOND(...) SECOND_OF(__VA_ARGS__, 0, 0)
#define SECOND_OF(a, b, ...) b

/* The ops.def column `vector` to SLEEF's accuracy class. Of sin, cos and tan
 * those are taken in which a lane does not depend on its neighbours. */
#define ACCURACY_hypot_u05 0, u05
#define ACCURACY_erfc_u15 0, u15
#define ACCURACY_sin_u10 0, EVEN_u10
#define ACCURACY_cos_u10 0, EVEN_u10
#define ACCURACY_tan_u10 0, EVEN_u10

/* SLEEF's functions that do not carry the operations' own names. */
#define SLEEF_OF_gamma 0, tgamma
#define SLEEF_OF_sin 0, EVEN(sin)
#define SLEEF_OF_cos 0, EVEN(cos)
#define SLEEF_OF_tan 0, EVEN(tan)

/* The elements of two vectors, one after the other, that the places name. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define SHUFFLED(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#endif
#endif
#ifndef SHUFFLED
#define SHUFFLED(a, b, ...) \
    __builtin_shuffle(a, b, (TYPED(places)){__VA_ARGS__})
#endif

#define LIMIT(f32, f64) (sizeof(T) == 4 ? (f32) : (f64))

/* Where SLEEF 3.5 is mended, as masks of the lanes of x, and of y and the
 * result r. ITSELF: small arguments that are the value, and of which it gives a
 * neighbour, or of the smallest 0. LIBM: where it overflows too early, or
 * misses an ulp (of gamma and lgamma two); libm computes those, in the next
 * wider type. */
#define BEYOND(x, limit) (((x) > (T)(limit)) | ((x) < -(T)(limit)))
#define BETWEEN(x, low, high) (((x) > (T)(low)) & ((x) < (T)(high)))
#define SIZE_BETWEEN(x, low, high) \
    (BETWEEN(x, low, high) | BETWEEN(-(x), low, high))
#define WITHIN(x, limit) BETWEEN(x, -(limit), limit)

#define ITSELF_tan(x) 0, WITHIN(x, LIMIT(0x1p-13, 0x1p-27))

#define ITSELF_tanh(x) 0, WITHIN(x, LIMIT(0x1p-13, 0x1p-27))

#define ITSELF_atanh(x) 0, WITHIN(x, LIMIT(0x1p-13, 0x1p-27))

#define ITSELF_asinh(x) 0, WITHIN(x, LIMIT(0x1p-13, 0x1p-27))
#define LIBM_asinh(x) 0, BEYOND(x, LIMIT(1e18, 1e153))

#define LIBM_acosh(x) 0, (x) > (T)LIMIT(1e18, 1e153)

#define ITSELF_log1p(x) 0, WITHIN(x, LIMIT(0x1p-26, 0x1p-55))
#define LIBM_log1p(x) 0, (x) > (T)LIMIT(1e38, 1e300)

#ifdef FUSED
#define LOOP_OF_exp 0, OWN_PLAIN_LOOP
#define LOOP_OF_log 0, OWN_PLAIN_LOOP
#define LOOP_OF_tanh 0, OWN_PLAIN_LOOP
#define LOOP_OF_exp2 0, OWN_PLAIN_LOOP
#define LOOP_OF_expm1 0, OWN_PLAIN_LOOP
#define LOOP_OF_sinh 0, OWN_PLAIN_LOOP
#define LOOP_OF_cosh 0, OWN_PLAIN_LOOP
#define LOOP_OF_log2 0, OWN_PLAIN_LOOP
#define LOOP_OF_log10 0, OWN_PLAIN_LOOP
#define LOOP_OF_log1p 0, OWN_MENDED_LOOP
#define LOOP_OF_cbrt 0, OWN_PLAIN_LOOP
#define LOOP_OF_atan 0, OWN_PLAIN_LOOP
#define LOOP_OF_atan2 0, OWN_PLAIN_LOOP
#define LOOP_OF_asin 0, OWN_PLAIN_LOOP
#define LOOP_OF_acos 0, OWN_PLAIN_LOOP
#define LOOP_OF_asinh 0, OWN_MENDED_LOOP
#define LOOP_OF_acosh 0, OWN_MENDED_LOOP
#define LOOP_OF_atanh 0, OWN_MENDED_LOOP
#define LOOP_OF_pow 0, OWN_F64_LOOP
#define EXACT_LOOP_OF_mod 0, EXACT_LOOP
#define LOOP_OF_sin 0, OWN_F32_LOOP
#define LOOP_OF_cos 0, OWN_F32_LOOP
#define LOOP_OF_tan 0, OWN_F32_LOOP
#else
#define LOOP_OF_asinh 0, MENDED_LOOP
#define LOOP_OF_acosh 0, MENDED_LOOP
#define LOOP_OF_atanh 0, MENDED_LOOP
#define LOOP_OF_tan 0, MENDED_LOOP
#define LOOP_OF_sinh 0, MENDED_LOOP
#define LOOP_OF_cosh 0, MENDED_LOOP
#define LOOP_OF_log1p 0, MENDED_LOOP
#define LOOP_OF_exp 0, F64_LOOP
#define LOOP_OF_tanh 0, MENDED_LOOP
#define LOOP_OF_pow 0, F64_LOOP
#endif

/* Comparisons whose masks become bytes by hand, where that is told. */
#ifdef BYTES_OF_f32
#define TRUTH_OF_lt 0, COMPARED
#define TRUTH_OF_le 0, COMPARED
#define TRUTH_OF_gt 0, COMPARED
#define TRUTH_OF_ge 0, COMPARED
#define TRUTH_OF_eq 0, COMPARED
#define TRUTH_OF_ne 0, COMPARED
#define TRUTH_OF_signbit 0, SIGN_TRUTH
#endif

#define LIBM_exp(x) 0, BETWEEN(x, 709.78, 709.79)

#define LIBM_sinh(x) 0, SIZE_BETWEEN(x, LIMIT(88, 709), LIMIT(90, 711))

#define LIBM_cosh(x) 0, SIZE_BETWEEN(x, LIMIT(88, 709), LIMIT(90, 711))

#define LOOP_OF_erf 0, F32_LOOP
#define LIBM_erf(x) 0, SIZE_BETWEEN(x, 0, 0x1p-120)

#define LOOP_OF_gamma 0, MENDED_LOOP
#define LIBM_gamma(x)                \
    0, ((x) < (T)LIMIT(-30, -170)) | \
           BETWEEN(x, LIMIT(35, 171.6), LIMIT(35.1, 171.7))

#define LOOP_OF_lgamma 0, MENDED_LOOP
#define LIBM_lgamma(x) 0, ((x) < (T)-2.3) | ((x) > (T)LIMIT(1e36, 1e305))

#define LIBM_2_pow(x, y, r) \
    0, BEYOND(r, 0x1p1023) & ((x)*0 == 0) & ((y)*0 == 0) & ((x) != 0)

/* libm's functions that do not carry the operations' own names. lgamma itself
 * writes to a global variable. */
#define LIBM_OF_gamma 0, tgamma
#define LIBM_OF_lgamma 0, lgamma_of

static inline double lgamma_of(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

static inline long double lgamma_ofl(long double x)
{
    int sign;
    return lgammal_r(x, &sign);
}

/* The same words as functions: nested macros hide from the compiler that the
 * loop has no branch. */
#undef LARGER
#undef SMALLER
#define LARGER(x, y) TYPED(larger)(x, y)
#define SMALLER(x, y) TYPED(smaller)(x, y)

/* f64 first, as f32's loops use some of its functions; what follows at once
 * is of f64's lanes. */
#define T double
#define BITS int64_t
#define M(function) function
#define WIDER(function) function##l
#define TYPED(name) name##_f64
#define ADD_PRODUCT ADD_PRODUCT_f64
#ifdef USE_SLEEF
#define WORD int64_t
#define UNSIGNED uint64_t
#define F32_LOOP PLAIN_LOOP
#define F64_LOOP MENDED_LOOP
#define OWN_F64_LOOP OWN_MENDED_LOOP
#define OWN_F32_LOOP MENDED_LOOP
#define LANES LANES_f64
#define ANY ANY_f64
#define LOAD LOAD_f64
#define STORE STORE_f64
#define SLEEF SLEEF_f64
#define MIN MIN_f64
#define MAX MAX_f64
#ifdef UNORDERED_f64
#define UNORDERED UNORDERED_f64
#endif
#define SCALED SCALED_f64
#define INVERSE INVERSE_f64
#define ROOT ROOT_f64
#ifdef BYTES_OF_f64
#define BYTES_OF BYTES_OF_f64
#endif
#endif
#include "vector_loops.h"

#define CONVERSION(name, to_type, from_type, expression)   \
    static void name(void *to, const void *from, size_t n) \
    {                                                      \
        to_type *r = to;                                   \
        const from_type *x = from;                         \
        for (size_t i = 0; i < n; i++)                     \
            r[i] = (to_type)(expression);                  \
    }
CONVERSION(f32_to_f64, double, float, x[i])
CONVERSION(f64_to_f32, float, double, x[i])
CONVERSION(f32_to_bool, uint8_t, float, x[i] != 0)
CONVERSION(f64_to_bool, uint8_t, double, x[i] != 0)
CONVERSION(bool_to_f32, float, uint8_t, x[i] != 0)
CONVERSION(bool_to_f64, double, uint8_t, x[i] != 0)

/* n bytes in registers, where that is much faster than memmove: its instruction
 * for so many (rep movsb) takes 17 times as long on a Zen 4 where what is
 * written begins less than a line behind what is read, pages aside. */
typedef uint8_t bytes
    __attribute__((vector_size(REGISTER), aligned(1), may_alias));

static void copy_bytes(void *to, const void *from, size_t n)
{
    enum { PAGE = 4096, LINE = 64, LEAST = 1024, AT_ONCE = 4 * REGISTER };
    uintptr_t behind = (uintptr_t)to - (uintptr_t)from;
    if (n < LEAST || behind % PAGE == 0 || behind % PAGE >= LINE ||
        behind < n) {
        memmove(to, from, n);
        return;
    }
    size_t i = 0;
    for (; i + AT_ONCE <= n; i += AT_ONCE) {
        const bytes *x = (const bytes *)((const char *)from + i);
        bytes *r = (bytes *)((char *)to + i);
        bytes a = x[0], b = x[1], c = x[2], d = x[3];
        r[0] = a;
        r[1] = b;
        r[2] = c;
        r[3] = d;
    }
    memmove((char *)to + i, (const char *)from + i, n - i);
}

#define PLAIN_COPY(name, type)                             \
    static void name(void *to, const void *from, size_t n) \
    {                                                      \
        copy_bytes(to, from, n * sizeof(type));            \
    }
PLAIN_COPY(f32_to_f32, float)
PLAIN_COPY(f64_to_f64, double)
PLAIN_COPY(bool_to_bool, uint8_t)

/* How many of n bytes, each 0 or 1, are 1. */
static size_t count_bytes(const uint8_t *x, size_t n)
{
    enum { MOST = 255, LANES_OF_BYTES = 64 };
    size_t sum = 0, i = 0;
    while (i + LANES_OF_BYTES <= n) {
        uint8_t lane[LANES_OF_BYTES] = {0};
        for (int k = 0; k < MOST && i + LANES_OF_BYTES <= n; k++) {
            for (int l = 0; l < LANES_OF_BYTES; l++)
                lane[l] = (uint8_t)(lane[l] + x[i + (size_t)l]);
            i += LANES_OF_BYTES;
        }
        for (int l = 0; l < LANES_OF_BYTES; l++)
            sum += lane[l];
    }
    for (; i < n; i++)
        sum += x[i];
    return sum;
}

#ifdef MULTIPLY_32
enum { BLOCKS = REGISTER / 8, SIDE_BY_SIDE = 2 };

typedef uint64_t blocks __attribute__((vector_size(REGISTER)));

/* So many registers of blocks of Philox from `first` on. A word has 64 bits, of
 * which the lower half counts: what products leave above it is never read. */
static void philox_blocks(uint32_t (*to)[4], uint64_t first, uint64_t call,
                          uint64_t seed)
{
    blocks c[SIDE_BY_SIDE][4], zero = {0}, place = zero;
    blocks k0 = zero + (uint32_t)seed, k1 = zero + (seed >> 32);
    blocks m0 = zero + PHILOX_M4x32_0, m1 = zero + PHILOX_M4x32_1;
    for (int l = 0; l < BLOCKS; l++)
        place[l] = first + (uint64_t)l;
    for (int s = 0; s < SIDE_BY_SIDE; s++) {
        c[s][0] = place + (uint64_t)(s * BLOCKS);
        c[s][1] = c[s][0] >> 32;
        c[s][2] = zero + (uint32_t)call;
        c[s][3] = zero + (call >> 32);
    }
    for (int round = 0; round < philox4x32_rounds; round++) {
        for (int s = 0; s < SIDE_BY_SIDE; s++) {
            blocks x = MULTIPLY_32(c[s][0], m0), y = MULTIPLY_32(c[s][2], m1);
            c[s][0] = y >> 32 ^ c[s][1] ^ k0;
            c[s][1] = y;
            c[s][2] = x >> 32 ^ c[s][3] ^ k1;
            c[s][3] = x;
        }
        k0 += PHILOX_W32_0;
        k1 += PHILOX_W32_1;
    }
    for (int s = 0; s < SIDE_BY_SIDE; s++) {
        blocks front = (c[s][0] & UINT32_MAX) | c[s][1] << 32;
        blocks back = (c[s][2] & UINT32_MAX) | c[s][3] << 32;
        for (int l = 0; l < BLOCKS; l++) {
            uint64_t pair[] = {front[l], back[l]};
            memcpy(to[s * BLOCKS + l], pair, sizeof pair);
        }
    }
}
#endif

static void philox(uint32_t (*to)[4], uint64_t first, size_t n, uint64_t call,
                   uint64_t seed)
{
    philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
    uint32_t call_low = (uint32_t)call, call_high = (uint32_t)(call >> 32);
#ifdef MULTIPLY_32
    enum { STEP = SIDE_BY_SIDE * BLOCKS };
    for (; n >= STEP; n -= STEP, to += STEP, first += STEP)
        philox_blocks(to, first, call, seed);
#endif
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        uint64_t block = first + i;
        philox4x32_ctr_t c = {
            {(uint32_t)block, (uint32_t)(block >> 32), call_low, call_high}};
        c = philox4x32(c, key);
        to[i][0] = c.v[0];
        to[i][1] = c.v[1];
        to[i][2] = c.v[2];
        to[i][3] = c.v[3];
    }
}

/* x becomes log(exp(x) + exp(y)): the larger and log1p(exp(-d)), where d, the
 * distance, is held exactly; and with more bits where the two nearly cancel,
 * so that less than `share` of the second is left. */
#ifdef USE_SLEEF
static void logaddexp_lanes(double *xv, const double *yv, double share)
{
    lanes_f64 x = LOAD(xv), y = LOAD(yv), zero = {0};
    mask_f64 first = (x > y) | (x != x);
    lanes_f64 high = choose_f64(first, x, y), low = choose_f64(first, y, x);
    lanes_f64 d = choose_f64(low == high, zero, low - high);
    lanes_f64 part = d - low, rest = (low - (d - part)) - (high + part);
    lanes_f64 e = SLEEF(exp, u10)(d);
    e = choose_f64(rest - rest == 0, e + e * rest, e);
    lanes_f64 more = SLEEF(log1p, u10)(e), sum = high + more;
    lanes_f64 least = share * more;
    mask_f64 is_near = (high < 0) & (sum < least) & (sum > -least);
    for (int l = 0; ANY(is_near) && l < LANES; l++)
        sum[l] = is_near[l] ? gpu_cpu_logaddexp(x[l], y[l]) : sum[l];
    STORE(xv, sum);
}
#else
enum { LANES = 1 };

static void logaddexp_lanes(double *x, const double *y, double share)
{
    double high = LARGER(*x, *y), low = SMALLER(*x, *y);
    double d = low == high ? 0 : low - high, part = d - low;
    double rest = (low - (d - part)) - (high + part), e = exp(d);
    e = rest - rest == 0 ? e + e * rest : e;
    double more = log1p(e), sum = high + more;
    *x = high < 0 && fabs(sum) < share * more ? gpu_cpu_logaddexp(*x, *y) : sum;
}
#endif

#define LOGADDEXP_PART(type, count, share)     \
    do {                                       \
        double x[LANES] = {0}, y[LANES] = {0}; \
        for (size_t l = 0; l < (count); l++) { \
            x[l] = (double)xs[i + l];          \
            y[l] = (double)ys[i + l];          \
        }                                      \
        logaddexp_lanes(x, y, share);          \
        for (size_t l = 0; l < (count); l++)   \
            r[i + l] = (type)x[l];             \
    } while (0)

#define LOGADDEXP_LOOP(name, type, share)                                      \
    static void name(void *rv, const void *xv, const void *yv, const void *zv, \
                     size_t n)                                                 \
    {                                                                          \
        const type *xs = xv, *ys = yv;                                         \
        type *r = rv;                                                          \
        size_t i = 0;                                                          \
        (void)zv;                                                              \
        for (; i + LANES <= n; i += LANES)                                     \
            LOGADDEXP_PART(type, LANES, share);                                \
        if (i < n)                                                             \
            LOGADDEXP_PART(type, n - i, share);                                \
    }
LOGADDEXP_LOOP(loop_logaddexp_f32, float, 0x1p-26)
LOGADDEXP_LOOP(loop_logaddexp_f64, double, 1)

/* Box and Muller, A note on the generation of random normal deviates, 1958. */
#ifdef USE_SLEEF
static void normal_step(double *a, double *b)
{
    double r[LANES], s[LANES], c[LANES];
    STORE(r, SLEEF(log, u10)(LOAD(a)));
    for (int i = 0; i < LANES; i++) {
        r[i] = sqrt(-2 * r[i]);
        s[i] = 2 * b[i];
    }
    SINCOSPI_PAIR pair = SINCOSPI(LOAD(s));
    STORE(s, pair.x);
    STORE(c, pair.y);
    for (int i = 0; i < LANES; i++) {
        a[i] = r[i] * c[i];
        b[i] = r[i] * s[i];
    }
}

static void normal(double *a, double *b, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        normal_step(a + i, b + i);
    if (i == n)
        return;
    double ta[LANES] = {0}, tb[LANES] = {0};
    memcpy(ta, a + i, (n - i) * sizeof *a);
    memcpy(tb, b + i, (n - i) * sizeof *b);
    normal_step(ta, tb);
    memcpy(a + i, ta, (n - i) * sizeof *a);
    memcpy(b + i, tb, (n - i) * sizeof *b);
}
#else
static void normal(double *a, double *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double r = sqrt(-2 * log(a[i]));
        double angle = 6.28318530717958647692 * b[i];
        a[i] = r * cos(angle);
        b[i] = r * sin(angle);
    }
}
#endif

#undef T
#undef BITS
#undef M
#undef WIDER
#undef TYPED
#undef ADD_PRODUCT
#undef WORD
#undef F32_LOOP
#undef F64_LOOP
#undef OWN_F64_LOOP
#undef OWN_F32_LOOP
#undef LANES
#undef ANY
#undef LOAD
#undef STORE
#undef SLEEF
#undef UNSIGNED
#undef MIN
#undef MAX
#undef UNORDERED
#undef SCALED
#undef INVERSE
#undef ROOT
#undef BYTES_OF

#define T float
#define BITS int32_t
#define M(function) function##f
#define WIDER(function) function
#define TYPED(name) name##_f32
#define ADD_PRODUCT ADD_PRODUCT_f32
#ifdef USE_SLEEF
#define F32
#define WORD int32_t
#define UNSIGNED uint32_t
#define F32_LOOP MENDED_LOOP
#define F64_LOOP PLAIN_LOOP
#define OWN_F64_LOOP OWN_PLAIN_LOOP
#define OWN_F32_LOOP OWN_MENDED_LOOP
#define LANES LANES_f32
#define ANY ANY_f32
#define LOAD LOAD_f32
#define STORE STORE_f32
#define SLEEF SLEEF_f32
#define MIN MIN_f32
#define MAX MAX_f32
#ifdef UNORDERED_f32
#define UNORDERED UNORDERED_f32
#endif
#define SCALED SCALED_f32
#define INVERSE INVERSE_f32
#define ROOT ROOT_f32
#ifdef BYTES_OF_f32
#define BYTES_OF BYTES_OF_f32
#endif
#endif
#include "vector_loops.h"

static gpu_cpu_loop *const loops_f32[GPU_OPS] = {
#define OP(name, arity, expression, vector, help, example, result) \
    [GPU_OP_##name] = loop_##name##_f32,
#define TEST OP
#define REDUCTION(...)
#include "ops.def"
};

static gpu_cpu_loop *const loops_f64[GPU_OPS] = {
#define OP(name, arity, expression, vector, help, example, result) \
    [GPU_OP_##name] = loop_##name##_f64,
#define TEST OP
#define REDUCTION(...)
#include "ops.def"
};

static gpu_cpu_loop *const truths_f32[GPU_OPS] = {
#define OP(...)
#define TEST(name, ...) [GPU_OP_##name] = truth_##name##_f32,
#define REDUCTION(...)
#include "ops.def"
};

static gpu_cpu_loop *const truths_f64[GPU_OPS] = {
#define OP(...)
#define TEST(name, ...) [GPU_OP_##name] = truth_##name##_f64,
#define REDUCTION(...)
#include "ops.def"
};

const gpu_cpu_vector TABLE = {
    .name = TABLE_NAME,
    .map = {loops_f32, loops_f64},
    .truth = {truths_f32, truths_f64},
    .convert =
        {
            {f32_to_f32, f32_to_f64, f32_to_bool},
            {f64_to_f32, f64_to_f64, f64_to_bool},
            {bool_to_f32, bool_to_f64, bool_to_bool},
        },
    .sum = {sum_f32, sum_f64},
    .prod = {prod_f32, prod_f64},
    .smallest = {smallest_f32, smallest_f64},
    .largest = {largest_f32, largest_f64},
    .smallest_number = {smallest_number_f32, smallest_number_f64},
    .largest_number = {largest_number_f32, largest_number_f64},
    .moments = {moments_f32, moments_f64},
    .sum_rows = {sum_rows_f32, sum_rows_f64},
    .squares_rows = {squares_rows_f32, squares_rows_f64},
    .moments_rows = {moments_rows_f32, moments_rows_f64},
    .smallest_rows = {smallest_rows_f32, smallest_rows_f64},
    .largest_rows = {largest_rows_f32, largest_rows_f64},
    .smallest_number_rows = {smallest_number_rows_f32,
                             smallest_number_rows_f64},
    .largest_number_rows = {largest_number_rows_f32, largest_number_rows_f64},
    .scan_row = {scan_row_f32, scan_row_f64},
    .smallest_places = {smallest_places_f32, smallest_places_f64},
    .largest_places = {largest_places_f32, largest_places_f64},
    .turn = {turn_f32, turn_f64},
    .find = {find_f32, find_f64},
    .smallest_place = {smallest_place_f32, smallest_place_f64},
    .largest_place = {largest_place_f32, largest_place_f64},
    .count = count_bytes,
    .dot = {dot_f32, dot_f64},
    .farthest = {farthest_f32, farthest_f64},
    .tile_rows = TILE_ROWS,
    .tile_cols = {2 * REGISTER / sizeof(float), 2 * REGISTER / sizeof(double)},
    .tile = {tile_f32, tile_f64},
    .rows_by_vector = {rows_by_vector_f32, rows_by_vector_f64},
    .columns_by_vector = {columns_by_vector_f32, columns_by_vector_f64},
    .subtract_row = {subtract_row_f32, subtract_row_f64},
    .divide_row = {divide_row_f32, divide_row_f64},
    .solve_rows = {solve_rows_f32, solve_rows_f64},
#ifdef HAS_SORT
    .sort = {gpu_cpu_sort_numbers_f32, gpu_cpu_sort_numbers_f64},
    .split = {gpu_cpu_split_numbers_f32, gpu_cpu_split_numbers_f64},
    .pack = {gpu_cpu_pack_f32, gpu_cpu_pack_f64},
    .pack_places = gpu_cpu_pack_places,
#endif
    .philox = philox,
    .normal = normal,
};
