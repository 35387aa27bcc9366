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
#define MODULO(x, y) OP_MODULO(M(fmod)(x, y), y)
#define OP_MODULO(r, y) ((r) != 0 && ((r) < 0) != ((y) < 0) ? (r) + (y) : (r))

/* Equal operands go apart, so that two equal infinities do not give NaN. */
#define LOGADDEXP(x, y)                           \
    ((x) == (y) ? (x) + (T)0.69314718055994530942 \
                : LARGER(x, y) + M(log1p)(M(exp)(-M(fabs)((x) - (y)))))

#endif
