/* The words that expressions in ops.def may use, for C and CUDA alike. Before
 * including ops.def a backend defines T (float or double) and M(f) (the maths
 * function f for T). */
#ifndef GPU_OP_MACROS_H
#define GPU_OP_MACROS_H

#define ISNAN(x) ((x) != (x))
#define ISFINITE(x) ((x) - (x) == 0)
#define ISINF(x) (!ISNAN(x) && !ISFINITE(x))
/* A NaN counts as positive: which sign it has is nobody's promise, and another
 * one where f32 is worked out in f64, or on another device. So no operation's
 * result depends on it. */
#define COPYSIGN(x, y) M(copysign)(x, ISNAN(y) ? (T)1 : (y))
#define SIGNBIT(x) (COPYSIGN((T)1, x) < 0)
#define SIGN(x) (ISNAN(x) ? (x) : (T)(((x) > 0) - ((x) < 0)))
#define LARGER(x, y) ((x) > (y) || ISNAN(x) ? (x) : (y))
#define SMALLER(x, y) ((x) < (y) || ISNAN(x) ? (x) : (y))

/* Of a real number: its imaginary part, and its angle, which -0 has, too. */
#define NOTHING(x) ((void)(x), (T)0)
#define ANGLE(x) \
    (ISNAN(x) ? (x) : SIGNBIT(x) ? (T)3.14159265358979323846 : (T)0)

/* The remainder with the sign of the divisor, as Lua's own % has it. */
#define OP_MODULO(r, y) ((r) != 0 && ((r) < 0) != ((y) < 0) ? (r) + (y) : (r))
#ifndef __CUDACC__
#define MODULO(x, y) OP_MODULO(M(fmod)(x, y), y)
#else
#define MODULO(x, y) modulo(x, y)

template <class T> __device__ __noinline__ T any_modulo(T x, T y)
{
    T r = fmod(x, y);
    return OP_MODULO(r, y);
}

/* What is left of x by the nearest multiple of y, whole times it, has no more
 * bits than y has, so that it is exact, and so is what y added to it gives,
 * unless fmod's is rounded, too: the CPU's vectors do the same. whole: within a
 * quarter of x / y, and below a half where that is. */
template <class T> __device__ __forceinline__ T near_modulo(T x, T y, T whole)
{
    T rest = fma(-rint(whole), y, x);
    if (rest == 0)
        return copysign(rest, x);
    return (rest < 0) != (y < 0) ? rest + y : rest;
}

__device__ __forceinline__ float modulo(float x, float y)
{
    float size = fabsf(y), quotient = __fdividef(x, y); /* to two units */
    if (fabsf(x) < 0.5f * size)
        quotient = 0;
    if (size >= 0x1p-126f && size < 0x1p126f && fabsf(quotient) < 0x1p20f)
        return near_modulo(x, y, quotient);
    return any_modulo(x, y);
}

__device__ __forceinline__ double modulo(double x, double y)
{
    double quotient = x / y;
    if (fabs(quotient) < 0x1p50 && y - y == 0)
        return near_modulo(x, y, quotient);
    return any_modulo(x, y);
}
#endif

/* Equal operands go apart, so that two equal infinities do not give NaN. */
#define LOGADDEXP(x, y)                           \
    ((x) == (y) ? (x) + (T)0.69314718055994530942 \
                : LARGER(x, y) + M(log1p)(M(exp)(-M(fabs)((x) - (y)))))

#endif
