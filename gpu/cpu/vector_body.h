/* The text of every vector_*.c: the loops for float, then for double, then
 * conversions and normals, then the table. The file including it says which
 * SLEEF functions and registers it has. */
#include <math.h>
#include <string.h>
#include <Random123/philox.h>
#include "op_macros.h"

/* The macro argument after a lookup: SECOND(LOOKUP_key, otherwise) gives what
 * LOOKUP_key hides behind its comma, or `otherwise` when there is no such. */
#define SECOND(...) SECOND_OF(__VA_ARGS__, 0, 0)
#define SECOND_OF(a, b, ...) b

/* The ops.def column `vector` to SLEEF's accuracy class. */
#define ACCURACY_hypot_u05 0, u05

/* Arguments at which SLEEF 3.5 gives infinity though the value is finite;
 * libm computes those. */
#define LIMIT(f32, f64) (sizeof(T) == 4 ? (f32) : (f64))
#define LIBM_log1p(x) 0, ((x) > (T)LIMIT(1e38, 1e300))
#define LIBM_sinh(x) 0, (M(fabs)(x) > (T)LIMIT(88, 709))
#define LIBM_cosh(x) 0, (M(fabs)(x) > (T)LIMIT(88, 709))
#define LIBM_asinh(x) 0, (M(fabs)(x) > (T)LIMIT(1e18, 1e153))
#define LIBM_acosh(x) 0, ((x) > (T)LIMIT(1e18, 1e153))

/* The same words as functions: nested macros hide from the compiler that the
 * loop has no branch. */
#undef LARGER
#undef SMALLER
#define LARGER(x, y) TYPED(larger)(x, y)
#define SMALLER(x, y) TYPED(smaller)(x, y)

#define T float
#define M(function) function##f
#define TYPED(name) name##_f32
#ifdef USE_SLEEF
#define LANES LANES_f32
#define LOAD LOAD_f32
#define STORE STORE_f32
#define SLEEF SLEEF_f32
#endif
#include "vector_loops.h"
#include "vector_folds.h"
#undef T
#undef M
#undef TYPED
#undef LANES
#undef LOAD
#undef STORE
#undef SLEEF

#define T double
#define M(function) function
#define TYPED(name) name##_f64
#ifdef USE_SLEEF
#define LANES LANES_f64
#define LOAD LOAD_f64
#define STORE STORE_f64
#define SLEEF SLEEF_f64
#endif
#include "vector_loops.h"
#include "vector_folds.h"

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

#define PLAIN_COPY(name, type)                             \
    static void name(void *to, const void *from, size_t n) \
    {                                                      \
        memmove(to, from, n * sizeof(type));               \
    }
PLAIN_COPY(f32_to_f32, float)
PLAIN_COPY(f64_to_f64, double)
PLAIN_COPY(bool_to_bool, uint8_t)

static void philox(uint32_t (*to)[4], uint64_t first, size_t n, uint64_t call,
                   uint64_t seed)
{
    philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
    uint32_t call_low = (uint32_t)call, call_high = (uint32_t)(call >> 32);
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

const gpu_cpu_vector TABLE = {
    .name = TABLE_NAME,
    .map =
        {
            {
#define OP(name, arity, expression, vector, help, example, result) \
    [GPU_OP_##name] = loop_##name##_f32,
#define TEST OP
#define REDUCTION(name, primitive, help, example, result)
#include "ops.def"
            },
            {
#define OP(name, arity, expression, vector, help, example, result) \
    [GPU_OP_##name] = loop_##name##_f64,
#define TEST OP
#define REDUCTION(name, primitive, help, example, result)
#include "ops.def"
            },
        },
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
    .sum_rows = {sum_rows_f32, sum_rows_f64},
    .smallest_rows = {smallest_rows_f32, smallest_rows_f64},
    .largest_rows = {largest_rows_f32, largest_rows_f64},
    .dot = {dot_f32, dot_f64},
    .philox = philox,
    .normal = normal,
};
