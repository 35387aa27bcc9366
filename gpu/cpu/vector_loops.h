/* The loops for one type T, which vector_body.h has for each: those of every
 * operation of ops.def, folds, and products. An operation with a
 * SLEEF function uses it register by register, its last elements in a padded
 * register, so that a result does not depend on its place; the others are
 * left to the compiler. */
static inline T TYPED(larger)(T x, T y)
{
    T larger = x > y ? x : y;
    return ISNAN(x) ? x : larger;
}

static inline T TYPED(smaller)(T x, T y)
{
    T smaller = x < y ? x : y;
    return ISNAN(x) ? x : smaller;
}

#define HEADER(name)                                                         \
    static void TYPED(loop_##name)(void *rv, const void *xv, const void *yv, \
                                   const void *zv, size_t n)

#define ARRAYS_1      \
    const T *xs = xv; \
    (void)yv, (void)zv;
#define ARRAYS_2                \
    const T *xs = xv, *ys = yv; \
    (void)zv;
#define ARRAYS_3 const T *xs = xv, *ys = yv, *zs = zv;
#define OPERANDS_1 const T x = xs[i];
#define OPERANDS_2 const T x = xs[i], y = ys[i];
#define OPERANDS_3 const T x = xs[i], y = ys[i], z = zs[i];

/* The simd promise is that of gpu_cpu_loop: r[i] depends on no other place. */
#define EXPRESSION_LOOP(name, arity, expression, vector)   \
    HEADER(name)                                           \
    {                                                      \
        ARRAYS_##arity T *r = rv;                          \
        _Pragma("omp simd") for (size_t i = 0; i < n; i++) \
        {                                                  \
            OPERANDS_##arity r[i] = (T)(expression);       \
        }                                                  \
    }

/* Where vector is OWN, vector_body.h has the loop. */
#define OWN_LOOP(name, arity, expression, vector)
#define LOOP_FOR_OWN 0, OWN_LOOP
/* NONE is the compiler's, but where vector_functions_body.h has the same to the
 * last bit. */
#define LOOP_FOR_NONE 0, COMPILED_LOOP
#define COMPILED_LOOP(name, arity, expression, vector) \
    SECOND(EXACT_LOOP_OF_##name, EXPRESSION_LOOP)      \
    (name, arity, expression, vector)

#ifdef USE_SLEEF
/* A register, and a mask for each of its lanes. */
typedef T TYPED(lanes) __attribute__((vector_size(LANES * sizeof(T))));
typedef WORD TYPED(mask) __attribute__((vector_size(LANES * sizeof(T))));
typedef UNSIGNED TYPED(unsigned_mask)
    __attribute__((vector_size(LANES * sizeof(T))));

static inline TYPED(lanes)
    TYPED(choose)(TYPED(mask) which, TYPED(lanes) x, TYPED(lanes) y)
{
    return (TYPED(lanes))((which & (TYPED(mask))x) | (~which & (TYPED(mask))y));
}

#ifdef FUSED
#include "vector_functions_body.h"
#endif

#define IS_ITSELF(name, x) SECOND(ITSELF_##name(x), (TYPED(mask)){0})
#define NEEDS_LIBM(name, x) SECOND(LIBM_##name(x), (TYPED(mask)){0})
#define NEEDS_LIBM_2(name, x, y, r) SECOND(LIBM_2_##name(x, y, r), 0)
#define BY_LIBM(name) BY_LIBM_OF(SECOND(LIBM_OF_##name, name))
#define BY_LIBM_OF(function) (T) WIDER(function)

#define REGISTER_1(name, function, to, from) STORE(to, function(LOAD(from)))

#define MENDED_REGISTER_1(name, function, to, from)               \
    do {                                                          \
        TYPED(lanes) x = LOAD(from), done = function(x);          \
        TYPED(mask) itself = IS_ITSELF(name, x);                  \
        TYPED(mask) outside = NEEDS_LIBM(name, x);                \
        done = TYPED(choose)(itself, x, done);                    \
        for (int l = 0; ANY(outside) && l < LANES; l++)           \
            done[l] = outside[l] ? BY_LIBM(name)(x[l]) : done[l]; \
        STORE(to, done);                                          \
    } while (0)

#define REGISTER_2(name, function, to, from_x, from_y) \
    STORE(to, function(LOAD(from_x), LOAD(from_y)))

#define MENDED_REGISTER_2(name, function, to, from_x, from_y)     \
    do {                                                          \
        TYPED(lanes) x = LOAD(from_x), y = LOAD(from_y);          \
        TYPED(lanes) done = function(x, y);                       \
        TYPED(mask) outside = NEEDS_LIBM_2(name, x, y, done);     \
        for (int l = 0; ANY(outside) && l < LANES; l++)           \
            done[l] = outside[l] ? M(name)(x[l], y[l]) : done[l]; \
        STORE(to, done);                                          \
    } while (0)

/* By a function of ours; what is outside it by SLEEF's, as PLAIN or MENDED. */
#define OWN_REGISTER_1(OTHERS, name, function, to, from)                \
    do {                                                                \
        TYPED(mask) outside_own;                                        \
        TYPED(lanes) own = TYPED(own_##name)(LOAD(from), &outside_own); \
        if (ANY(outside_own)) {                                         \
            T other[LANES];                                             \
            OTHERS##_1(name, function, other, from);                    \
            own = TYPED(choose)(outside_own, LOAD(other), own);         \
        }                                                               \
        STORE(to, own);                                                 \
    } while (0)

#define OWN_REGISTER_2(OTHERS, name, function, to, from_x, from_y)         \
    do {                                                                   \
        TYPED(mask) outside_own;                                           \
        TYPED(lanes)                                                       \
        own = TYPED(own_##name)(LOAD(from_x), LOAD(from_y), &outside_own); \
        if (ANY(outside_own)) {                                            \
            T other[LANES];                                                \
            OTHERS##_2(name, function, other, from_x, from_y);             \
            own = TYPED(choose)(outside_own, LOAD(other), own);            \
        }                                                                  \
        STORE(to, own);                                                    \
    } while (0)

/* By a function of ours; what is outside it one by one. */
#define EXACT_REGISTER_2(name, function, to, from_x, from_y)                  \
    do {                                                                      \
        TYPED(mask) outside_own;                                              \
        TYPED(lanes) x = LOAD(from_x), y = LOAD(from_y);                      \
        TYPED(lanes) done = TYPED(own_##name)(x, y, &outside_own);            \
        for (int l = 0; ANY(outside_own) && l < LANES; l++)                   \
            done[l] = outside_own[l] ? TYPED(function)(x[l], y[l]) : done[l]; \
        STORE(to, done);                                                      \
    } while (0)

#define OWN_PLAIN_1(...) OWN_REGISTER_1(REGISTER, __VA_ARGS__)
#define OWN_MENDED_1(...) OWN_REGISTER_1(MENDED_REGISTER, __VA_ARGS__)
#define OWN_PLAIN_2(...) OWN_REGISTER_2(REGISTER, __VA_ARGS__)
#define OWN_MENDED_2(...) OWN_REGISTER_2(MENDED_REGISTER, __VA_ARGS__)

#define SLEEF_LOOP_1(REGISTER, name, function)           \
    HEADER(name)                                         \
    {                                                    \
        ARRAYS_1 T *r = rv;                              \
        size_t i = 0;                                    \
        for (; i + LANES <= n; i += LANES)               \
            REGISTER##_1(name, function, r + i, xs + i); \
        if (i == n)                                      \
            return;                                      \
        T last[LANES] = {0};                             \
        memcpy(last, xs + i, (n - i) * sizeof(T));       \
        REGISTER##_1(name, function, last, last);        \
        memcpy(r + i, last, (n - i) * sizeof(T));        \
    }

#define SLEEF_LOOP_2(REGISTER, name, function)                   \
    HEADER(name)                                                 \
    {                                                            \
        ARRAYS_2 T *r = rv;                                      \
        size_t i = 0;                                            \
        for (; i + LANES <= n; i += LANES)                       \
            REGISTER##_2(name, function, r + i, xs + i, ys + i); \
        if (i == n)                                              \
            return;                                              \
        T last_x[LANES] = {0}, last_y[LANES] = {0};              \
        memcpy(last_x, xs + i, (n - i) * sizeof(T));             \
        memcpy(last_y, ys + i, (n - i) * sizeof(T));             \
        REGISTER##_2(name, function, last_x, last_x, last_y);    \
        memcpy(r + i, last_x, (n - i) * sizeof(T));              \
    }

#define SLEEF_LOOP(name, arity, expression, vector) \
    SECOND(LOOP_OF_##name, PLAIN_LOOP)              \
    (arity, name,                                   \
     SLEEF_NAME(SECOND(SLEEF_OF_##name, name),      \
                SECOND(ACCURACY_##vector, u10)))
#define PLAIN_LOOP(arity, name, function) \
    SLEEF_LOOP_##arity(REGISTER, name, function)
#define MENDED_LOOP(arity, name, function) \
    SLEEF_LOOP_##arity(MENDED_REGISTER, name, function)
#define OWN_PLAIN_LOOP(arity, name, function) \
    SLEEF_LOOP_##arity(OWN_PLAIN, name, function)
#define OWN_MENDED_LOOP(arity, name, function) \
    SLEEF_LOOP_##arity(OWN_MENDED, name, function)
#define SLEEF_NAME(name, accuracy) SLEEF(name, accuracy)
#define EXACT_LOOP(name, arity, expression, vector) \
    SLEEF_LOOP_##arity(EXACT_REGISTER, name, exact_##name)
#define OP(name, arity, expression, vector, help, example, result) \
    SECOND(LOOP_FOR_##vector, SLEEF_LOOP)(name, arity, expression, vector)
#else
#define OP(name, arity, expression, vector, help, example, result) \
    SECOND(LOOP_FOR_##vector, EXPRESSION_LOOP)                     \
    (name, arity, expression, vector)
#endif
#define TEST OP
#define REDUCTION(...)
#include "ops.def"

/* Tests once more, whose results are bytes of 0 and 1; r is none of x, y, z. */
#ifdef BYTES_OF
/* Of two registers the expression is a register of masks. */
#define COMPARED(name, arity, expression)                           \
    TRUTH_HEADER(name)                                              \
    {                                                               \
        enum { AT_ONCE = 32, COUNT = AT_ONCE / LANES };             \
        const T *xs = xv, *ys = yv;                                 \
        uint8_t *r = rv;                                            \
        size_t i = 0;                                               \
        (void)zv;                                                   \
        for (; i + AT_ONCE <= n; i += AT_ONCE) {                    \
            TYPED(mask) masks[COUNT];                               \
            _Pragma("GCC unroll 8") for (int k = 0; k < COUNT; k++) \
            {                                                       \
                TYPED(lanes) x = LOAD(xs + i + k * LANES);          \
                TYPED(lanes) y = LOAD(ys + i + k * LANES);          \
                masks[k] = (TYPED(mask))(expression);               \
            }                                                       \
            BYTES_OF(r + i, masks);                                 \
        }                                                           \
        for (; i < n; i++) {                                        \
            const T x = xs[i], y = ys[i];                           \
            r[i] = (expression) ? 1 : 0;                            \
        }                                                           \
    }

/* Of signbit: as whole numbers the bits of what is negative are up to those of
 * -infinity, above which are those of NaN. */
#define SIGN_TRUTH(name, arity, expression)                          \
    TRUTH_HEADER(name)                                               \
    {                                                                \
        enum { AT_ONCE = 32, COUNT = AT_ONCE / LANES };              \
        const T *xs = xv;                                            \
        uint8_t *r = rv;                                             \
        const BITS one = 1; /* behind the bits of -infinity: */      \
        const BITS behind = 1 - (one << (sizeof(T) == 8 ? 52 : 23)); \
        size_t i = 0;                                                \
        (void)yv, (void)zv;                                          \
        for (; i + AT_ONCE <= n; i += AT_ONCE) {                     \
            TYPED(mask) masks[COUNT];                                \
            _Pragma("GCC unroll 8") for (int k = 0; k < COUNT; k++)  \
            {                                                        \
                TYPED(lanes) x = LOAD(xs + i + k * LANES);           \
                masks[k] = (TYPED(mask))x < behind;                  \
            }                                                        \
            BYTES_OF(r + i, masks);                                  \
        }                                                            \
        for (; i < n; i++) {                                         \
            const T x = xs[i];                                       \
            r[i] = (expression) ? 1 : 0;                             \
        }                                                            \
    }
#endif
#define TRUTH_HEADER(name)                                                    \
    static void TYPED(truth_##name)(void *rv, const void *xv, const void *yv, \
                                    const void *zv, size_t n)
#define OP(...)
#define TEST(name, arity, expression, ...) \
    SECOND(TRUTH_OF_##name, EXPRESSION_TRUTH)(name, arity, expression)
#define EXPRESSION_TRUTH(name, arity, expression)          \
    TRUTH_HEADER(name)                                     \
    {                                                      \
        ARRAYS_##arity uint8_t *r = rv;                    \
        _Pragma("omp simd") for (size_t i = 0; i < n; i++) \
        {                                                  \
            OPERANDS_##arity r[i] = (expression) ? 1 : 0;  \
        }                                                  \
    }
#define REDUCTION(...)
#include "ops.def"

#undef COMPARED
#undef SIGN_TRUTH
#undef TRUTH_HEADER
#undef EXPRESSION_TRUTH
#undef HEADER
#undef ARRAYS_1
#undef ARRAYS_2
#undef ARRAYS_3
#undef OPERANDS_1
#undef OPERANDS_2
#undef OPERANDS_3
#undef EXPRESSION_LOOP
#undef IS_ITSELF
#undef NEEDS_LIBM
#undef NEEDS_LIBM_2
#undef BY_LIBM
#undef BY_LIBM_OF
#undef REGISTER_1
#undef REGISTER_2
#undef MENDED_REGISTER_1
#undef MENDED_REGISTER_2
#undef OWN_REGISTER_1
#undef OWN_REGISTER_2
#undef OWN_PLAIN_1
#undef OWN_MENDED_1
#undef OWN_PLAIN_2
#undef OWN_MENDED_2
#undef PLAIN_LOOP
#undef MENDED_LOOP
#undef OWN_PLAIN_LOOP
#undef OWN_MENDED_LOOP
#undef SLEEF_LOOP_1
#undef SLEEF_LOOP_2
#undef SLEEF_LOOP
#undef SLEEF_NAME
#undef LOOP_FOR_NONE
#undef COMPILED_LOOP
#undef EXACT_REGISTER_2
#undef EXACT_LOOP
#undef LOOP_FOR_OWN
#undef OWN_LOOP

/* As wide as an element, for marks. */
typedef BITS TYPED(bits);

/* --- registers --------------------------------------------------------------
 * Of REGISTER bytes, whatever functions there are for them. */

typedef T TYPED(wide)
    __attribute__((vector_size(REGISTER), aligned(sizeof(T)), may_alias));
#define WIDE TYPED(wide)
#define WIDTH ((int64_t)(REGISTER / sizeof(T)))

/* The value in every lane; taking nothing away changes no value. */
#define EVERY_LANE(value) ((value) - (WIDE){0})

static inline WIDE TYPED(load_wide)(const T *from)
{
    return *(const WIDE *)from;
}

typedef BITS TYPED(wide_bits)
    __attribute__((vector_size(REGISTER), aligned(sizeof(T)), may_alias));
#define WIDE_BITS TYPED(wide_bits)

static inline WIDE_BITS TYPED(choose_place)(WIDE_BITS which, WIDE_BITS x,
                                            WIDE_BITS y)
{
    return (which & x) | (~which & y);
}

/* The marked lanes as bits. */
static inline unsigned TYPED(bits_of)(WIDE_BITS marks)
{
#ifdef ANY
    return (unsigned)ANY(marks);
#else
    unsigned bits = 0;
    for (int64_t l = 0; l < WIDTH; l++)
        bits |= (unsigned)(marks[l] != 0) << l;
    return bits;
#endif
}

/* Lane l becomes lane l ^ half. */
#if defined(__clang__)
#define EXCHANGED(x, half)                   \
    ({                                       \
        __typeof__(x) from = (x), to = from; \
        for (int l = 0; l < WIDTH; l++)      \
            to[l] = from[l ^ (half)];        \
        to;                                  \
    })
#else
#define EXCHANGED(x, half) __builtin_shuffle(x, lane ^ (BITS)(half))
#endif

/* The one of two that is better, or else the old one. */
#ifdef FUSED
#define BEST(IS_BETTER, next, old) \
    ((WIDE)(0 IS_BETTER 1 ? MIN(next, old) : MAX(next, old)))
#else
#define BEST(IS_BETTER, next, old)                                      \
    ((WIDE)TYPED(choose_place)((next)IS_BETTER(old), (WIDE_BITS)(next), \
                               (WIDE_BITS)(old)))
#endif

/* Where x or y is NaN. */
#ifdef UNORDERED
#define IS_UNORDERED(x, y) ((WIDE_BITS)UNORDERED(x, y))
#else
#define IS_UNORDERED(x, y) (((x) != (x)) | ((y) != (y)))
#endif

/* --- folds ------------------------------------------------------------------
 * Of n elements without gaps. Fewer than 32 are taken
 * in order; else 32 lanes each take every 32nd element, then join in pairs.
 * So the order of the additions is a function of n alone, and the error of a
 * block's sum grows like n / 32. */

enum { TYPED(FOLD_LANES) = 32 };
#define FOLD_LANES TYPED(FOLD_LANES)

static double TYPED(join_sum)(double *lane)
{
    for (int width = FOLD_LANES / 2; width > 0; width /= 2)
        for (int l = 0; l < width; l++)
            lane[l] += lane[l + width];
    return lane[0];
}

static double TYPED(sum)(const void *xv, size_t n)
{
    const T *x = xv;
    if (n < FOLD_LANES) {
        double sum = (double)x[0];
        for (size_t i = 1; i < n; i++)
            sum += (double)x[i];
        return sum;
    }
    double lane[FOLD_LANES] = {0};
    size_t i = 0;
    for (; i + FOLD_LANES <= n; i += FOLD_LANES)
        for (int l = 0; l < FOLD_LANES; l++)
            lane[l] += (double)x[i + l];
    for (int l = 0; i < n; i++, l++)
        lane[l] += (double)x[i];
    return TYPED(join_sum)(lane);
}

/* Lanes are said to be registers, which the compiler does not see in so
 * many. */
typedef double TYPED(doubles) __attribute__((vector_size(REGISTER), may_alias));
typedef T TYPED(narrow)
    __attribute__((vector_size(REGISTER / sizeof(double) * sizeof(T)),
                   aligned(sizeof(T)), may_alias));
#define DOUBLES(from) \
    __builtin_convertvector(*(const TYPED(narrow) *)(from), TYPED(doubles))

/* Of f32 a product has no more digits than an f64, and may be added at once. */
static inline TYPED(doubles)
    TYPED(add_wide_product)(TYPED(doubles) sum, TYPED(doubles) x,
                            TYPED(doubles) y)
{
    if (sizeof(T) == sizeof(float))
        return (TYPED(doubles))ADD_PRODUCT_f64(sum, x, y);
    return sum + x * y;
}

static double TYPED(dot)(const void *xv, const void *yv, size_t n)
{
    enum { EACH = REGISTER / sizeof(double), PARTS = FOLD_LANES / EACH };
    const T *x = xv, *y = yv;
    if (n < FOLD_LANES) {
        double sum = (double)x[0] * (double)y[0];
        for (size_t i = 1; i < n; i++)
            sum += (double)x[i] * (double)y[i];
        return sum;
    }
    TYPED(doubles) part[PARTS];
    double lane[FOLD_LANES];
    size_t i = 0;
    memset(part, 0, sizeof part);
    if (x == y)
        for (; i + FOLD_LANES <= n; i += FOLD_LANES)
            for (int h = 0; h < PARTS; h++) {
                TYPED(doubles) value = DOUBLES(x + i + h * EACH);
                part[h] = TYPED(add_wide_product)(part[h], value, value);
            }
    for (; i + FOLD_LANES <= n; i += FOLD_LANES)
        for (int h = 0; h < PARTS; h++)
            part[h] = TYPED(add_wide_product)(
                part[h], DOUBLES(x + i + h * EACH), DOUBLES(y + i + h * EACH));
    memcpy(lane, part, sizeof lane);
    for (int l = 0; i < n; i++, l++)
        lane[l] += (double)x[i] * (double)y[i];
    return TYPED(join_sum)(lane);
}

/* Sixteen lanes, as there are two sums. */
static void TYPED(moments)(const void *xv, size_t n, double origin, double *sum,
                           double *squares)
{
    enum {
        HALF = FOLD_LANES / 2,
        EACH = REGISTER / sizeof(double),
        PARTS = HALF / EACH
    };
    const T *x = xv;
    TYPED(doubles) first[PARTS], second[PARTS];
    double lane[HALF], square[HALF];
    size_t i = 0;
    memset(first, 0, sizeof first);
    memset(second, 0, sizeof second);
    for (; i + HALF <= n; i += HALF)
        for (int h = 0; h < PARTS; h++) {
            TYPED(doubles) apart = DOUBLES(x + i + h * EACH) - origin;
            first[h] += apart;
            second[h] += apart * apart;
        }
    memcpy(lane, first, sizeof lane);
    memcpy(square, second, sizeof square);
    for (int l = 0; i < n; i++, l++) {
        double apart = (double)x[i] - origin;
        lane[l] += apart;
        square[l] += apart * apart;
    }
    for (int width = HALF / 2; width > 0; width /= 2)
        for (int l = 0; l < width; l++) {
            lane[l] += lane[l + width];
            square[l] += square[l + width];
        }
    *sum = lane[0];
    *squares = square[0];
}

static double TYPED(prod)(const void *xv, size_t n)
{
    const T *x = xv;
    if (n < FOLD_LANES) {
        double product = (double)x[0];
        for (size_t i = 1; i < n; i++)
            product *= (double)x[i];
        return product;
    }
    double lane[FOLD_LANES];
    size_t i = 0;
    for (int l = 0; l < FOLD_LANES; l++)
        lane[l] = 1;
    for (; i + FOLD_LANES <= n; i += FOLD_LANES)
        for (int l = 0; l < FOLD_LANES; l++)
            lane[l] *= (double)x[i + l];
    for (int l = 0; i < n; i++, l++)
        lane[l] *= (double)x[i];
    for (int width = FOLD_LANES / 2; width > 0; width /= 2)
        for (int l = 0; l < width; l++)
            lane[l] *= lane[l + width];
    return lane[0];
}

/* The lanes ignore NaN, which a mark is kept of unless it is to be left out:
 * then they begin with NONE. The last register overlaps what is before. */
#define EXTREME(name, CHOOSE, IS_BETTER, SKIPS, NONE)                          \
    static double TYPED(name)(const void *xv, size_t n)                        \
    {                                                                          \
        enum { PARTS = FOLD_LANES * sizeof(T) / REGISTER };                    \
        const T *x = xv;                                                       \
        if (n < FOLD_LANES) {                                                  \
            T few = SKIPS ? (T)(NONE) : x[0];                                  \
            for (size_t i = 0; i < n; i++)                                     \
                few = SKIPS ? (x[i] IS_BETTER few ? x[i] : few)                \
                            : CHOOSE(x[i], few);                               \
            return (double)few;                                                \
        }                                                                      \
        WIDE best[PARTS];                                                      \
        WIDE_BITS unordered = {0}, lane = {0};                                 \
        for (int h = 0; h < PARTS; h++) {                                      \
            best[h] = TYPED(load_wide)(x + h * WIDTH);                         \
            if (SKIPS)                                                         \
                best[h] = BEST(IS_BETTER, best[h], (WIDE){0} + (T)(NONE));     \
            else if (h % 2)                                                    \
                unordered |= IS_UNORDERED(best[h - 1], best[h]);               \
        }                                                                      \
        size_t i = FOLD_LANES;                                                 \
        for (; i + FOLD_LANES <= n; i += FOLD_LANES) {                         \
            WIDE next[PARTS];                                                  \
            for (int h = 0; h < PARTS; h++) {                                  \
                next[h] = TYPED(load_wide)(x + i + h * WIDTH);                 \
                if (!SKIPS && h % 2)                                           \
                    unordered |= IS_UNORDERED(next[h - 1], next[h]);           \
                best[h] = BEST(IS_BETTER, next[h], best[h]);                   \
            }                                                                  \
        }                                                                      \
        for (; i < n; i += (size_t)WIDTH) {                                    \
            size_t last = n - (size_t)WIDTH;                                   \
            WIDE next = TYPED(load_wide)(x + (i < last ? i : last));           \
            if (!SKIPS)                                                        \
                unordered |= IS_UNORDERED(next, next);                         \
            best[0] = BEST(IS_BETTER, next, best[0]);                          \
        }                                                                      \
        if (!SKIPS && TYPED(bits_of)(unordered))                               \
            return (double)NAN;                                                \
        _Pragma("GCC unroll 4") for (int half = PARTS / 2; half > 0;           \
                                     half /= 2) for (int h = 0; h < half; h++) \
            best[h] = BEST(IS_BETTER, best[h + half], best[h]);                \
        for (int l = 0; l < WIDTH; l++)                                        \
            lane[l] = l;                                                       \
        for (int half = WIDTH / 2; half > 0; half /= 2)                        \
            best[0] = BEST(IS_BETTER, EXCHANGED(best[0], half), best[0]);      \
        return (double)best[0][0];                                             \
    }
EXTREME(smallest, SMALLER, <, 0, 0)
EXTREME(largest, LARGER, >, 0, 0)
EXTREME(smallest_number, SMALLER, <, 1, INFINITY)
EXTREME(largest_number, LARGER, >, 1, -INFINITY)

/* The first place of `value`, or of NaN when it is that; n when there is none.
 * 32 elements are looked through as a whole; the last ones overlap those
 * before. */
static size_t TYPED(find)(const void *xv, double value, size_t n)
{
    enum { PARTS = FOLD_LANES * sizeof(T) / REGISTER };
    const T *x = xv, wanted = (T)value;
    int is_nan = wanted != wanted;
    if (n < FOLD_LANES) {
        size_t i = 0;
        while (i < n && !(is_nan ? x[i] != x[i] : x[i] == wanted))
            i++;
        return i;
    }
    for (size_t i = 0; i < n; i += FOLD_LANES) {
        size_t from = i < n - FOLD_LANES ? i : n - FOLD_LANES;
        WIDE_BITS found[PARTS], any = {0};
        for (int h = 0; h < PARTS; h++) {
            WIDE e = TYPED(load_wide)(x + from + h * WIDTH);
            found[h] = is_nan ? e != e : e == EVERY_LANE(wanted);
            any |= found[h];
        }
        for (size_t h = 0; TYPED(bits_of)(any); h++)
            if (TYPED(bits_of)(found[h]))
                return from + h * (size_t)WIDTH +
                       (size_t)__builtin_ctz(TYPED(bits_of)(found[h]));
    }
    return n;
}

/* Each lane keeps its best and where it stood first; among equal lanes, which
 * are few, the first place is looked for. The last register overlaps what is
 * before, to no effect. */
#define EXTREME_PLACE(name, IS_BETTER)                                      \
    static size_t TYPED(name)(const void *xv, size_t n, double *extreme)    \
    {                                                                       \
        enum { STEP = 2 * REGISTER / sizeof(T) };                           \
        const T *x = xv;                                                    \
        size_t place = 0, i = STEP;                                         \
        if (n < STEP / 2) {                                                 \
            for (i = 1; i < n && x[place] == x[place]; i++)                 \
                if (!(x[place] IS_BETTER x[i] || x[i] == x[place]))         \
                    place = i;                                              \
            *extreme = (double)x[place];                                    \
            return place;                                                   \
        }                                                                   \
        size_t beside = n < STEP ? n - STEP / 2 : STEP / 2;                 \
        WIDE best[2] = {TYPED(load_wide)(x), TYPED(load_wide)(x + beside)}; \
        WIDE_BITS lane = {0}, unordered = IS_UNORDERED(best[0], best[1]);   \
        for (int l = 0; l < WIDTH; l++)                                     \
            lane[l] = l;                                                    \
        WIDE_BITS now[2] = {lane, lane + (BITS)beside},                     \
                  at[2] = {lane, now[1]};                                   \
        for (; i + STEP <= n; i += STEP) {                                  \
            WIDE next[2] = {TYPED(load_wide)(x + i),                        \
                            TYPED(load_wide)(x + i + WIDTH)};               \
            unordered |= IS_UNORDERED(next[0], next[1]);                    \
            for (int h = 0; h < 2; h++) {                                   \
                WIDE_BITS better = next[h] IS_BETTER best[h];               \
                now[h] += (BITS)STEP;                                       \
                at[h] = TYPED(choose_place)(better, now[h], at[h]);         \
                best[h] = BEST(IS_BETTER, next[h], best[h]);                \
            }                                                               \
        }                                                                   \
        for (; i < n; i += (size_t)WIDTH) {                                 \
            size_t last = n - (size_t)WIDTH, from = i < last ? i : last;    \
            WIDE next = TYPED(load_wide)(x + from);                         \
            WIDE_BITS better = next IS_BETTER best[0];                      \
            unordered |= IS_UNORDERED(next, next);                          \
            at[0] = TYPED(choose_place)(better, lane + (BITS)from, at[0]);  \
            best[0] = BEST(IS_BETTER, next, best[0]);                       \
        }                                                                   \
        if (TYPED(bits_of)(unordered)) {                                    \
            *extreme = (double)NAN;                                         \
            return TYPED(find)(x, *extreme, n);                             \
        }                                                                   \
        WIDE_BITS second =                                                  \
            (best[1] IS_BETTER best[0]) |                                   \
            ((best[1] == best[0]) & (WIDE_BITS)(at[1] < at[0]));            \
        at[0] = TYPED(choose_place)(second, at[1], at[0]);                  \
        best[0] = BEST(IS_BETTER, best[1], best[0]);                        \
        WIDE top = best[0];                                                 \
        for (int half = WIDTH / 2; half > 0; half /= 2)                     \
            top = BEST(IS_BETTER, EXCHANGED(top, half), top);               \
        unsigned marks = TYPED(bits_of)(top == best[0]);                    \
        place = n;                                                          \
        for (; marks; marks &= marks - 1) {                                 \
            size_t one = (size_t)at[0][__builtin_ctz(marks)];               \
            place = one < place ? one : place;                              \
        }                                                                   \
        *extreme = (double)top[0];                                          \
        return place;                                                       \
    }
EXTREME_PLACE(smallest_place, <)
EXTREME_PLACE(largest_place, >)

/* Folds `rows` rows of x, one after the other, into r element by element. Four
 * at a time: r is read and written once for them. */
static void TYPED(sum_rows)(double *r, const void *xv, int64_t step,
                            size_t rows, size_t cols)
{
    const T *x = xv;
    size_t i = 0;
    for (; i + 4 <= rows; i += 4, x += 4 * step) {
        const T *x1 = x + step, *x2 = x1 + step, *x3 = x2 + step;
        for (size_t j = 0; j < cols; j++)
            r[j] = (((r[j] + (double)x[j]) + (double)x1[j]) + (double)x2[j]) +
                   (double)x3[j];
    }
    for (; i < rows; i++, x += step)
        for (size_t j = 0; j < cols; j++)
            r[j] += (double)x[j];
}

static void TYPED(squares_rows)(double *r, const void *xv, int64_t step,
                                size_t rows, size_t cols)
{
    const T *x = xv;
    size_t i = 0;
    for (; i + 4 <= rows; i += 4, x += 4 * step) {
        const T *x1 = x + step, *x2 = x1 + step, *x3 = x2 + step;
        for (size_t j = 0; j < cols; j++) {
            double a = (double)x[j], b = (double)x1[j];
            double c = (double)x2[j], d = (double)x3[j];
            r[j] = (((r[j] + a * a) + b * b) + c * c) + d * d;
        }
    }
    for (; i < rows; i++, x += step)
        for (size_t j = 0; j < cols; j++)
            r[j] += (double)x[j] * (double)x[j];
}

static void TYPED(moments_rows)(const double *origin, double *sum,
                                double *squares, const void *xv, int64_t step,
                                size_t rows, size_t cols)
{
    const T *x = xv;
    size_t i = 0;
    for (; i + 4 <= rows; i += 4, x += 4 * step) {
        const T *x1 = x + step, *x2 = x1 + step, *x3 = x2 + step;
        for (size_t j = 0; j < cols; j++) {
            double o = origin[j];
            double a = (double)x[j] - o, b = (double)x1[j] - o;
            double c = (double)x2[j] - o, d = (double)x3[j] - o;
            sum[j] = (((sum[j] + a) + b) + c) + d;
            squares[j] = (((squares[j] + a * a) + b * b) + c * c) + d * d;
        }
    }
    for (; i < rows; i++, x += step)
        for (size_t j = 0; j < cols; j++) {
            double a = (double)x[j] - origin[j];
            sum[j] += a;
            squares[j] += a * a;
        }
}

#define SCAN_ROW(so_far_with)                          \
    _Pragma("omp simd") for (size_t i = 0; i < n; i++) \
    {                                                  \
        double a = so_far[i], b = (double)x[i];        \
        r[i] = (T)(so_far[i] = so_far_with);           \
    }

static void TYPED(scan_row)(double *so_far, void *rv, const void *xv, size_t n,
                            gpu_scan_kind kind)
{
    const T *x = xv;
    T *r = rv;
    switch (kind) {
    case GPU_SCAN_SUM:
        SCAN_ROW(a + b)
        break;
    case GPU_SCAN_PROD:
        SCAN_ROW(a * b)
        break;
    case GPU_SCAN_MAX:
        SCAN_ROW(((b > a) | (b != b)) ? b : a)
        break;
    case GPU_SCAN_MIN:
        SCAN_ROW(((b < a) | (b != b)) ? b : a)
        break;
    }
}
#undef SCAN_ROW

/* One of the two, or NaN, unless it is left out; what is NaN stays, as nothing
 * is better than it. Of four rows NaN is asked for in pairs. */
#define EXTREME_ROWS(name, IS_BETTER, SKIPS)                             \
    static void TYPED(name)(void *rv, const void *xv, int64_t step,      \
                            size_t rows, size_t cols)                    \
    {                                                                    \
        const T *x = xv;                                                 \
        T *r = rv;                                                       \
        size_t i = 0;                                                    \
        for (; i + 4 <= rows; i += 4, x += 4 * step) {                   \
            const T *x1 = x + step, *x2 = x1 + step, *x3 = x2 + step;    \
            for (size_t j = 0; j < cols; j++) {                          \
                T best = x[j] IS_BETTER r[j] ? x[j] : r[j];              \
                best = x1[j] IS_BETTER best ? x1[j] : best;              \
                best = x2[j] IS_BETTER best ? x2[j] : best;              \
                best = x3[j] IS_BETTER best ? x3[j] : best;              \
                r[j] = !(SKIPS) && (__builtin_isunordered(x[j], x1[j]) | \
                                    __builtin_isunordered(x2[j], x3[j])) \
                           ? (T)NAN                                      \
                           : best;                                       \
            }                                                            \
        }                                                                \
        for (; i < rows; i++, x += step)                                 \
            for (size_t j = 0; j < cols; j++) {                          \
                T best = x[j] IS_BETTER r[j] ? x[j] : r[j];              \
                r[j] = !(SKIPS) && (x[j] != x[j]) ? x[j] : best;         \
            }                                                            \
    }
EXTREME_ROWS(smallest_rows, <, 0)
EXTREME_ROWS(largest_rows, >, 0)
EXTREME_ROWS(smallest_number_rows, <, 1)
EXTREME_ROWS(largest_number_rows, >, 1)

/* The same with the row of each extreme, counted from `row`; of several equal
 * ones the first. */
#define PLACE_ROWS(name, IS_BETTER)                                           \
    static void TYPED(name)(void *rv, void *placev, const void *xv,           \
                            int64_t step, size_t row, size_t rows,            \
                            size_t cols)                                      \
    {                                                                         \
        const T *x = xv;                                                      \
        T *r = rv;                                                            \
        TYPED(bits) *place = placev;                                          \
        for (size_t i = 0; i < rows; i++, x += step) {                        \
            TYPED(bits) here = (TYPED(bits))(row + i);                        \
            for (size_t j = 0; j < cols; j++) {                               \
                T value = x[j], old = r[j];                                   \
                TYPED(bits)                                                   \
                better = (TYPED(bits)) - ((value IS_BETTER old) |             \
                                          ((value != value) & (old == old))); \
                r[j] = better ? value : old;                                  \
                place[j] = better ? here : place[j];                          \
            }                                                                 \
        }                                                                     \
    }
PLACE_ROWS(smallest_places, <)
PLACE_ROWS(largest_places, >)

#undef EXTREME
#undef EXTREME_ROWS
#undef PLACE_ROWS
#undef FOLD_LANES

/* --- turning ----------------------------------------------------------------
 * SIDE rows of SIDE elements become columns in registers: neighbours, then
 * pairs, then halves change places. */

#if REGISTER == 32 && !defined F32
#define SIDE 4 /* of eight there would be more than there are registers */
#else
#define SIDE 8
#endif

typedef T TYPED(line) __attribute__((vector_size(SIDE * sizeof(T)),
                                     aligned(sizeof(T)), may_alias));
typedef BITS TYPED(places) __attribute__((vector_size(SIDE * sizeof(T))));

/* The even ones of a's and b's parts of so many elements go to a, the odd ones
 * to b. */
#if SIDE == 8
#define EXCHANGE_1(a, b) \
    EXCHANGE(a, b, (0, 8, 2, 10, 4, 12, 6, 14), (1, 9, 3, 11, 5, 13, 7, 15))
#define EXCHANGE_2(a, b) \
    EXCHANGE(a, b, (0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15))
#define EXCHANGE_4(a, b) \
    EXCHANGE(a, b, (0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15))
#else
#define EXCHANGE_1(a, b) EXCHANGE(a, b, (0, 4, 2, 6), (1, 5, 3, 7))
#define EXCHANGE_2(a, b) EXCHANGE(a, b, (0, 1, 4, 5), (2, 3, 6, 7))
#endif
#define EXCHANGE(a, b, even, odd)              \
    do {                                       \
        TYPED(line) first = a, second = b;     \
        a = SHUFFLED(first, second, ONE even); \
        b = SHUFFLED(first, second, ONE odd);  \
    } while (0)
#define ONE(...) __VA_ARGS__

static inline __attribute__((always_inline)) void
TYPED(turn_square)(T *to, int64_t to_step, const T *from, int64_t from_step)
{
    TYPED(line) r[SIDE];
#pragma GCC unroll 8
    for (int i = 0; i < SIDE; i++)
        r[i] = *(const TYPED(line) *)(from + i * from_step);
#pragma GCC unroll 4
    for (int i = 0; i < SIDE / 2; i++)
        EXCHANGE_1(r[2 * i], r[2 * i + 1]);
#pragma GCC unroll 4
    for (int i = 0; i < SIDE / 2; i++)
        EXCHANGE_2(r[i + i / 2 * 2], r[i + i / 2 * 2 + 2]);
#if SIDE == 8
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        EXCHANGE_4(r[i], r[i + 4]);
#endif
#pragma GCC unroll 8
    for (int i = 0; i < SIDE; i++)
        *(TYPED(line) *)(to + i * to_step) = r[i];
}

/* What is left of less than SIDE rows or columns goes with some of those
 * before, once more. */
static void TYPED(turn)(void *tov, int64_t to_step, const void *fromv,
                        int64_t from_step, int64_t rows, int64_t cols)
{
    T *to = tov;
    const T *from = fromv;
    if (rows < SIDE || cols < SIDE) {
        for (int64_t j = 0; j < cols; j++)
            for (int64_t i = 0; i < rows; i++)
                to[j * to_step + i] = from[i * from_step + j];
        return;
    }
    for (int64_t next = 0; next < cols; next += SIDE) {
        int64_t j = next < cols - SIDE ? next : cols - SIDE;
        for (int64_t row = 0; row < rows; row += SIDE) {
            int64_t i = row < rows - SIDE ? row : rows - SIDE;
            TYPED(turn_square)
            (to + j * to_step + i, to_step, from + i * from_step + j,
             from_step);
        }
    }
}

#undef SIDE
#undef EXCHANGE_1
#undef EXCHANGE_2
#undef EXCHANGE_4
#undef EXCHANGE
#undef ONE

/* --- products ---------------------------------------------------------------
 * Products of matrices, a tile of the result at a time, whose
 * sums stay in registers; of a matrix and a vector; and the rows of an
 * elimination. REGISTER is the bytes of a register, and
 * ADD_PRODUCT adds x y to a sum, rounding once where the processor can. */

/* alpha sum + beta c goes to c; the first n lanes of it. */
static inline void TYPED(put)(T *c, WIDE sum, T alpha, T beta)
{
    WIDE value = sum * EVERY_LANE(alpha);
    if (beta != 0)
        value += *(WIDE *)c * EVERY_LANE(beta);
    *(WIDE *)c = value;
}

static inline void TYPED(put_some)(T *c, WIDE sum, int64_t n, T alpha, T beta)
{
    for (int64_t j = 0; j < n && j < WIDTH; j++) {
        T value = sum[j] * alpha;
        c[j] = beta == 0 ? value : value + c[j] * beta;
    }
}

/* --- a tile ---------------------------------------------------------------
 * `registers` across, which is known where this is expanded. Rows that the
 * tile lacks repeat its last one, and are not written. */

static inline __attribute__((always_inline)) void
TYPED(multiply)(const gpu_cpu_product *t, int registers)
{
    WIDE sum[TILE_ROWS][2], b[2];
    const T *row[TILE_ROWS], *from = t->b;
    T *c = t->c, alpha = (T)t->alpha, beta = (T)t->beta;
    int64_t rows = t->rows, cols = t->cols, step = t->a_col;
    int64_t down = t->b_row;
#pragma GCC unroll 16
    for (int i = 0; i < TILE_ROWS; i++) {
        int64_t at = i < rows ? i : rows - 1;
        row[i] = (const T *)t->a + at * t->a_row;
        __builtin_prefetch(c + at * t->c_row, 1);
        __builtin_prefetch(c + at * t->c_row + cols - 1, 1);
        sum[i][0] = sum[i][1] = (WIDE){0};
    }
    for (int64_t l = 0, p = 0; l < t->k; l++, p += step, from += down) {
#pragma GCC unroll 2
        for (int r = 0; r < registers; r++)
            b[r] = TYPED(load_wide)(from + r * WIDTH);
#pragma GCC unroll 16
        for (int i = 0; i < TILE_ROWS; i++) {
            WIDE x = EVERY_LANE(row[i][p]);
#pragma GCC unroll 2
            for (int r = 0; r < registers; r++)
                sum[i][r] = ADD_PRODUCT(sum[i][r], x, b[r]);
        }
    }
    int is_whole = cols == registers * WIDTH;
#pragma GCC unroll 16
    for (int i = 0; i < TILE_ROWS; i++, c += t->c_row) {
        if (i == rows)
            return;
#pragma GCC unroll 2
        for (int r = 0; r < registers; r++) {
            if (is_whole)
                TYPED(put)(c + r * WIDTH, sum[i][r], alpha, beta);
            else
                TYPED(put_some)
            (c + r * WIDTH, sum[i][r], cols - r * WIDTH, alpha, beta);
        }
    }
}

static void TYPED(wide_tile)(const gpu_cpu_product *t)
{
    TYPED(multiply)(t, 2);
}

static void TYPED(narrow_tile)(const gpu_cpu_product *t)
{
    TYPED(multiply)(t, 1);
}

static void TYPED(tile)(const gpu_cpu_product *t)
{
    (t->cols > WIDTH ? TYPED(wide_tile) : TYPED(narrow_tile))(t);
}

/* --- by a vector ---------------------------------------------------------- */

static inline void TYPED(put_one)(const gpu_cpu_product *t, int64_t i, T sum)
{
    T *c = (T *)t->c + i * t->c_row, value = sum * (T)t->alpha;
    *c = t->beta == 0 ? value : value + *c * (T)t->beta;
}

static inline T TYPED(join)(WIDE x)
{
    for (int64_t half = WIDTH / 2; half > 0; half /= 2)
        for (int64_t l = 0; l < half; l++)
            x[l] += x[l + half];
    return x[0];
}

/* Four rows at a time, each in two registers and a remainder. */
static void TYPED(rows_by_vector)(const gpu_cpu_product *t)
{
    enum { ROWS = 4 };
    const T *x = t->b;
    int64_t whole = t->k / (2 * WIDTH) * (2 * WIDTH);
    for (int64_t first = 0; first < t->rows; first += ROWS) {
        WIDE sum[ROWS][2];
        const T *row[ROWS];
        int64_t rows = t->rows - first < ROWS ? t->rows - first : ROWS;
#pragma GCC unroll 4
        for (int i = 0; i < ROWS; i++) {
            int64_t at = first + (i < rows ? i : rows - 1);
            row[i] = (const T *)t->a + at * t->a_row;
            sum[i][0] = sum[i][1] = (WIDE){0};
        }
        for (int64_t p = 0; p < whole; p += 2 * WIDTH) {
            WIDE x0 = TYPED(load_wide)(x + p);
            WIDE x1 = TYPED(load_wide)(x + p + WIDTH);
#pragma GCC unroll 4
            for (int i = 0; i < ROWS; i++) {
                WIDE a0 = TYPED(load_wide)(row[i] + p);
                WIDE a1 = TYPED(load_wide)(row[i] + p + WIDTH);
                sum[i][0] = ADD_PRODUCT(sum[i][0], a0, x0);
                sum[i][1] = ADD_PRODUCT(sum[i][1], a1, x1);
            }
        }
        for (int i = 0; i < rows; i++) {
            T rest = 0;
            for (int64_t p = whole; p < t->k; p++)
                rest += row[i][p] * x[p];
            TYPED(put_one)
            (t, first + i, TYPED(join)(sum[i][0] + sum[i][1]) + rest);
        }
    }
}

/* sum[i] += a[i] x[0] + a[i + step] x[1] + ..., count being known where this
 * is expanded. */
static inline __attribute__((always_inline)) void
TYPED(add_columns)(T *sum, int64_t n, const T *a, int64_t step, const T *x,
                   int count)
{
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) {
        WIDE s = TYPED(load_wide)(sum + i);
#pragma GCC unroll 8
        for (int c = 0; c < count; c++)
            s = ADD_PRODUCT(s, TYPED(load_wide)(a + c * step + i),
                            EVERY_LANE(x[c]));
        *(WIDE *)(sum + i) = s;
    }
    for (; i < n; i++)
        for (int c = 0; c < count; c++)
            sum[i] += a[c * step + i] * x[c];
}

/* A stretch of the result's sums stays in the cache while the columns are
 * added to it. */
static void TYPED(columns_by_vector)(const gpu_cpu_product *t)
{
    enum { STRETCH = 4096 / sizeof(T), AT_ONCE = 8 };
    T sum[STRETCH];
    const T *x = t->b;
    for (int64_t first = 0; first < t->rows; first += STRETCH) {
        const T *a = (const T *)t->a + first;
        int64_t n = t->rows - first < STRETCH ? t->rows - first : STRETCH;
        int64_t p = 0;
        memset(sum, 0, (size_t)n * sizeof(T));
        for (; p + AT_ONCE <= t->k; p += AT_ONCE)
            TYPED(add_columns)
        (sum, n, a + p * t->a_col, t->a_col, x + p, AT_ONCE);
        for (; p < t->k; p++)
            TYPED(add_columns)(sum, n, a + p * t->a_col, t->a_col, x + p, 1);
        for (int64_t i = 0; i < n; i++)
            TYPED(put_one)(t, first + i, sum[i]);
    }
}

/* --- the largest ---------------------------------------------------------- */

static inline T TYPED(largest_size)(const T *x, size_t n)
{
    enum { LANES_AT_ONCE = REGISTER / sizeof(T) };
    T lane[LANES_AT_ONCE] = {0}, best = 0;
    size_t i = 0;
    for (; i + LANES_AT_ONCE <= n; i += LANES_AT_ONCE)
        for (size_t l = 0; l < LANES_AT_ONCE; l++) {
            T size = M(fabs)(x[i + l]);
            lane[l] = size > lane[l] ? size : lane[l];
        }
    for (size_t l = 0; l < LANES_AT_ONCE; l++)
        best = lane[l] > best ? lane[l] : best;
    for (; i < n; i++)
        best = M(fabs)(x[i]) > best ? M(fabs)(x[i]) : best;
    return best;
}

static size_t TYPED(farthest)(const void *xv, size_t n)
{
    enum { LANES_AT_ONCE = REGISTER / sizeof(T) };
    const T *x = xv;
    T best = TYPED(largest_size)(x, n);
    size_t i = 0;
    if (ISNAN(x[0]))
        return 0;
    for (; i + LANES_AT_ONCE <= n; i += LANES_AT_ONCE) {
        int is_here = 0;
        for (size_t l = 0; l < LANES_AT_ONCE; l++)
            is_here |= M(fabs)(x[i + l]) == best;
        if (is_here)
            break;
    }
    while (i < n && M(fabs)(x[i]) != best)
        i++;
    return i < n ? i : 0;
}

/* --- elimination ---------------------------------------------------------- */

static void TYPED(subtract_row)(void *xv, const void *yv, double factor,
                                size_t count)
{
    T *x = xv;
    const T *y = yv, minus = (T)-factor;
    int64_t i = 0, n = (int64_t)count;
    for (; i + WIDTH <= n; i += WIDTH)
        *(WIDE *)(x + i) =
            ADD_PRODUCT(TYPED(load_wide)(x + i), TYPED(load_wide)(y + i),
                        EVERY_LANE(minus));
    for (; i < n; i++)
        x[i] += y[i] * minus;
}

static void TYPED(divide_row)(void *xv, double by, size_t n)
{
    T *x = xv;
    for (size_t i = 0; i < n; i++)
        x[i] /= (T)by;
}

/* STRIP rows at a time go through a strip in which they are columns; each loses
 * its products in order, while it stays in registers. */
static void TYPED(solve_rows)(void *xv, int64_t x_row, int64_t rows,
                              const void *uv, int64_t u_row, int64_t n)
{
    enum { STRIP = 16 };
    T strip[GPU_CPU_CORNER][STRIP] = {{0}};
    const T *u = uv;
    for (int64_t first = 0; first < rows; first += STRIP) {
        T *x = (T *)xv + first * x_row;
        int64_t count = rows - first < STRIP ? rows - first : STRIP;
        TYPED(turn)(strip, STRIP, x, x_row, count, n);
        for (int64_t j = 1; j < n; j++) {
            T line[STRIP];
            memcpy(line, strip[j], sizeof line);
            for (int64_t k = 0; k < j; k++)
                for (int64_t i = 0; i < STRIP; i++)
                    line[i] -= u[k * u_row + j] * strip[k][i];
            memcpy(strip[j], line, sizeof line);
        }
        TYPED(turn)(x, x_row, strip, STRIP, n, count);
    }
}

#undef WIDE
#undef WIDTH
#undef EVERY_LANE
