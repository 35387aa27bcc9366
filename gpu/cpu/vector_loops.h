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

/* Where vector is OWN, vector_body.h has the loop. */
#define OWN_LOOP(name, arity, expression, vector)
#define LOOP_FOR_OWN 0, OWN_LOOP
#define LOOP_FOR_NONE 0, EXPRESSION_LOOP

#ifdef USE_SLEEF
/* A register, and a mask for each of its lanes. */
typedef T TYPED(lanes) __attribute__((vector_size(LANES * sizeof(T))));
typedef WORD TYPED(mask) __attribute__((vector_size(LANES * sizeof(T))));

static inline TYPED(lanes)
    TYPED(choose)(TYPED(mask) which, TYPED(lanes) x, TYPED(lanes) y)
{
    return (TYPED(lanes))((which & (TYPED(mask))x) | (~which & (TYPED(mask))y));
}

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
#define SLEEF_NAME(name, accuracy) SLEEF(name, accuracy)
#define OP(name, arity, expression, vector, help, example, result) \
    SECOND(LOOP_FOR_##vector, SLEEF_LOOP)(name, arity, expression, vector)
#else
#define OP(name, arity, expression, vector, help, example, result) \
    SECOND(LOOP_FOR_##vector, EXPRESSION_LOOP)                     \
    (name, arity, expression, vector)
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
#undef IS_ITSELF
#undef NEEDS_LIBM
#undef NEEDS_LIBM_2
#undef BY_LIBM
#undef BY_LIBM_OF
#undef REGISTER_1
#undef REGISTER_2
#undef MENDED_REGISTER_1
#undef MENDED_REGISTER_2
#undef PLAIN_LOOP
#undef MENDED_LOOP
#undef SLEEF_LOOP_1
#undef SLEEF_LOOP_2
#undef SLEEF_LOOP
#undef SLEEF_NAME
#undef LOOP_FOR_NONE
#undef LOOP_FOR_OWN
#undef OWN_LOOP
