/* For one type T: a loop for every operation of ops.def. An operation with a
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

#ifdef USE_SLEEF
#define NEEDS_LIBM(name, value) SECOND(LIBM_##name(value), 0)

#define REGISTER_1(name, function, to, from)       \
    do {                                           \
        T keep[LANES];                             \
        int outside = 0;                           \
        memcpy(keep, from, sizeof keep);           \
        STORE(to, function(LOAD(keep)));           \
        for (int l = 0; l < LANES; l++)            \
            outside |= NEEDS_LIBM(name, keep[l]);  \
        for (int l = 0; outside && l < LANES; l++) \
            if (NEEDS_LIBM(name, keep[l]))         \
                (to)[l] = M(name)(keep[l]);        \
    } while (0)

#define SLEEF_LOOP_1(name, function)                   \
    HEADER(name)                                       \
    {                                                  \
        ARRAYS_1 T *r = rv;                            \
        size_t i = 0;                                  \
        for (; i + LANES <= n; i += LANES)             \
            REGISTER_1(name, function, r + i, xs + i); \
        if (i == n)                                    \
            return;                                    \
        T x[LANES] = {0};                              \
        memcpy(x, xs + i, (n - i) * sizeof(T));        \
        REGISTER_1(name, function, x, x);              \
        memcpy(r + i, x, (n - i) * sizeof(T));         \
    }

#define SLEEF_LOOP_2(name, function)                            \
    HEADER(name)                                                \
    {                                                           \
        ARRAYS_2 T *r = rv;                                     \
        size_t i = 0;                                           \
        for (; i + LANES <= n; i += LANES)                      \
            STORE(r + i, function(LOAD(xs + i), LOAD(ys + i))); \
        if (i == n)                                             \
            return;                                             \
        T x[LANES] = {0}, y[LANES] = {0};                       \
        memcpy(x, xs + i, (n - i) * sizeof(T));                 \
        memcpy(y, ys + i, (n - i) * sizeof(T));                 \
        STORE(x, function(LOAD(x), LOAD(y)));                   \
        memcpy(r + i, x, (n - i) * sizeof(T));                  \
    }

/* SLEEF's functions carry the operations' own names. */
#define SLEEF_LOOP(name, arity, expression, vector) \
    SLEEF_LOOP_##arity(name, SLEEF_NAME(name, SECOND(ACCURACY_##vector, u10)))
#define SLEEF_NAME(name, accuracy) SLEEF(name, accuracy)
#define LOOP_FOR_NONE 0, EXPRESSION_LOOP
#define OP(name, arity, expression, vector, help, example, result) \
    SECOND(LOOP_FOR_##vector, SLEEF_LOOP)(name, arity, expression, vector)
#else
#define OP(name, arity, expression, vector, help, example, result) \
    EXPRESSION_LOOP(name, arity, expression, vector)
#endif
#define TEST OP
#define REDUCTION(name, primitive, help, example, result)
#include "ops.def"

#undef HEADER
#undef ARRAYS_1
#undef ARRAYS_2
#undef ARRAYS_3
#undef OPERANDS_1
#undef OPERANDS_2
#undef OPERANDS_3
#undef EXPRESSION_LOOP
#undef NEEDS_LIBM
#undef REGISTER_1
#undef SLEEF_LOOP_1
#undef SLEEF_LOOP_2
#undef SLEEF_LOOP
#undef SLEEF_NAME
#undef LOOP_FOR_NONE
