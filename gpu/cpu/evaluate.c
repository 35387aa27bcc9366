/* Operations on single numbers. */
#include <float.h>
#include <math.h>
#include "program.h"
#include "vector.h"

/* --- log(exp(x) + exp(y)) ---------------------------------------------------
 * Where it is near 0, what is left of two numbers that cancel needs more bits
 * than a number has, up to all of them again. So it is worked out in pairs of
 * long doubles, of which the second is what the first has no room for. Source:
 * Dekker, A floating-point technique for extending the available precision,
 * 1971. */

typedef long double wide;

typedef struct pair {
    wide high, low; /* low is at most half a unit in high's last place */
} pair;

static pair sum(wide a, wide b)
{
    wide s = a + b, part = s - a;
    return (pair){s, (a - (s - part)) + (b - part)};
}

static pair add(pair a, pair b)
{
    pair s = sum(a.high, b.high);
    return sum(s.high, s.low + a.low + b.low);
}

/* The upper half of a's bits. */
static wide upper(wide a)
{
    static const wide split = ((long long)1 << (LDBL_MANT_DIG + 1) / 2) + 1;
    wide t = split * a;
    return t - (t - a);
}

static pair product(wide a, wide b)
{
    wide p = a * b, ah = upper(a), bh = upper(b), al = a - ah, bl = b - bh;
    return (pair){p, ((ah * bh - p) + ah * bl + al * bh) + al * bl};
}

static pair times(pair a, pair b)
{
    pair p = product(a.high, b.high);
    return sum(p.high, p.low + a.high * b.low + a.low * b.high);
}

static pair over(pair a, int n)
{
    wide q = a.high / n;
    pair back = product(q, n);
    return sum(q, (a.high - back.high - back.low + a.low) / n);
}

/* x - k log(2), log(2) being cut into parts of 40 bits, of which k times one
 * is exact. */
static pair reduce(double x, int k)
{
    static const double parts[] = {0x1.62e42fefa4p-1, -0x1.8432a1b0e2p-43,
                                   -0x1.8cff81a12ap-85, -0x1.7e1979b31ap-129};
    pair r = {x, 0};
    for (int i = 0; i < 4; i++)
        r = add(r, (pair){-(wide)k * parts[i], 0});
    return r;
}

/* exp(r) - 1 for |r| <= 0.35: by Taylor for r / 2^8, then eight times by
 * (1 + e)^2 - 1. */
static pair exp_less_1(pair r)
{
    enum { HALVINGS = 8, TERMS = 14 };
    pair x = {ldexpl(r.high, -HALVINGS), ldexpl(r.low, -HALVINGS)};
    pair e = over(x, TERMS);
    for (int n = TERMS - 1; n >= 1; n--)
        e = over(times(x, add((pair){1, 0}, e)), n);
    for (int i = 0; i < HALVINGS; i++)
        e = times(e, add((pair){2, 0}, e));
    return e;
}

/* exp(x) - less, for less of 0 or 1. */
static pair exp_less(double x, int less)
{
    int k = (int)rint(x / 0.6931471805599453);
    pair e = exp_less_1(reduce(x, k));
    if (less == 1 && k == 0)
        return e;
    e = add((pair){1, 0}, e);
    e = (pair){ldexpl(e.high, k), ldexpl(e.low, k)};
    return less == 1 ? add(e, (pair){-1, 0}) : e;
}

/* First with the bits of one long double, which mostly do. */
double gpu_cpu_logaddexp(double x, double y)
{
    double high = x > y ? x : y, low = x > y ? y : x;
    wide more = log1pl(expl((wide)low - high)), near = high + more;
    if (LDBL_MANT_DIG > 60 && fabsl(near) > 0x1p-8 * more)
        return (double)near;
    pair s = add(exp_less(high, 1), exp_less(low, 0));
    return (double)(log1pl(s.high) + s.low / (1 + s.high));
}

/* --- any operation ----------------------------------------------------------
 * By the loops that matrices take. */

double gpu_op_evaluate(gpu_op op, double x, double y, double z)
{
    gpu_cpu_loop *loop = gpu_cpu_vectors->map[GPU_F64][op];
    double r = 0;
    if (loop)
        loop(&r, &x, &y, &z, 1);
    return r;
}
