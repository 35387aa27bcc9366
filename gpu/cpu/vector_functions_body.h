/* Elementwise functions of our own for one type T, register by register; part
 * of vector_loops.h. They stand where they are faster than SLEEF's by a half
 * or more, which needs a processor that multiplies and adds at once.
 *
 * Errors are at most 1 unit in the last place: of f32 every argument was tried
 * (test_cpu_ops.c), but pow's, which is rounded from f64; for f64 the bounds
 * stand beside each. What a function does not take it marks as outside, and
 * SLEEF does: a lane depends on none of its neighbours. Polynomials are least
 * squares fits at Chebyshev's points, weighted by what the error counts.
 *
 * T, TYPED, LANES and ADD_PRODUCT are those of vector_loops.h; of registers the
 * including file has MIN and MAX, which give y where x is NaN or y is, ROOT,
 * SCALED (x 2^k, rounded once; with registers of 64 bytes for any k), INVERSE
 * (1 / x, all but half of its bits), LOOK_UP in a table of 16 f64, LOOK_UP_32
 * of 32 f32 and, between f32 and f64, WIDE_LOW, WIDE_HIGH and NARROWED. */

#define V TYPED(lanes)
#define N TYPED(mask)
#define BOTH(f32, f64) ((T)LIMIT(f32, f64))
#define FMA(x, y, z) ADD_PRODUCT(z, x, y)
/* A number in every lane. */
#define ALL(number) ((V){0} + (T)(number))

/* x + ROUNDER is rounded to an integer, whose bits are the sum's last ones. */
#define ROUNDER BOTH(0x1.8p23f, 0x1.8p52)
#define FRACTION_BITS LIMIT(23, 52)
#define EXPONENT_BIAS LIMIT(127, 1023)

#define LN2_HIGH BOTH(0x1.62e4p-1f, 0x1.62e42fefa38p-1)
#define LN2_LOW BOTH(0x1.7f7d1cp-20f, 0x1.ef35793c7673p-45)
#define LN2 BOTH(0x1.62e43p-1f, 0x1.62e42fefa39efp-1)
#define LN2_REST BOTH(-0x1.05c61p-29f, 0x1.abc9e3b39803fp-56)
#define HALF_PI BOTH(0x1.921fb6p+0f, 0x1.921fb54442d18p+0)
#define HALF_PI_REST BOTH(-0x1.777a5cp-25f, 0x1.1a62633145c07p-54)
#define LOG2_E BOTH(0x1.715476p+0f, 0x1.71547652b82fep+0)

static inline V TYPED(polynomial)(V x, const T *c, int degree)
{
    V sum = ALL(c[degree]);
#pragma GCC unroll 16
    for (int i = degree - 1; i >= 0; i--)
        sum = FMA(sum, x, ALL(c[i]));
    return sum;
}

/* 2^k for an integer k that is an exponent. */
static inline V TYPED(two_to)(V k)
{
    return (V)((TYPED(unsigned_mask))(k + (ROUNDER + EXPONENT_BIAS))
               << FRACTION_BITS);
}

/* x 2^k, rounded once, for k from twice the least exponent to twice the
 * largest. */
static inline V TYPED(scaled)(V x, V k)
{
    V half = k * (T)0.5 + ROUNDER - ROUNDER;
    return x * TYPED(two_to)(half) * TYPED(two_to)(k - half);
}

/* What of x is left when a multiple k of log(2) is taken away; `rest` is what
 * `left` has no room for. */
static inline void TYPED(take_log2)(V x, V *k, V *left, V *rest)
{
    *k = FMA(x, ALL(LOG2_E), ALL(ROUNDER)) - ROUNDER;
    V high = FMA(*k, ALL(-LN2_HIGH), x); /* exact */
    *left = FMA(*k, ALL(-LN2_LOW), high);
    *rest = FMA(*k, ALL(-LN2_LOW), high - *left);
}

/* (exp(r) - 1 - r - r^2 / 2) / r^3 for |r| <= log(2) / 2. */
static inline V TYPED(exp_end)(V r)
{
    static const T c[] = {
        BOTH(0x1.555556p-3f, 0x1.5555555555559p-3),
        BOTH(0x1.5554f0p-5f, 0x1.5555555555557p-5),
        BOTH(0x1.110fe2p-7f, 0x1.111111110f64ap-7),
        BOTH(0x1.6d437ap-10f, 0x1.6c16c16c15779p-10),
        BOTH(0x1.a28f34p-13f, 0x1.a01a01b00a43cp-13),
        BOTH(0, 0x1.a01a01ab169fap-16),
        BOTH(0, 0x1.71ddf7fa53fc6p-19),
        BOTH(0, 0x1.27e4d13b25784p-22),
        BOTH(0, 0x1.af5f55fc30160p-26),
        BOTH(0, 0x1.1f83f407b07d3p-29),
    };
    return TYPED(polynomial)(r, c, LIMIT(4, 9));
}

/* (exp(r) - 1 - r) / r^2, of which r^2 times it has an error of 2^-31 r and
 * 2^-61 r. */
static inline V TYPED(exp_tail)(V r)
{
    return FMA(TYPED(exp_end)(r), r, ALL(0.5));
}

/* f64: 1/2 unit of the last sum, 1/4 of the one before, 1/10 of its parts. */
static inline V TYPED(own_exp)(V x, N *outside)
{
    *outside = (N){0};
    V k, r, rest;
    x = MAX(ALL(BOTH(-104, -746)), MIN(ALL(BOTH(89, 710)), x));
    TYPED(take_log2)(x, &k, &r, &rest);
    V tail = FMA(TYPED(exp_tail)(r), r * r, rest);
    return SCALED((V)(r + tail + 1), k);
}

/* The same for 2^x: its k is x rounded. */
static inline V TYPED(own_exp2)(V x, N *outside)
{
    *outside = (N){0};
    x = MAX(ALL(BOTH(-151, -1076)), MIN(ALL(BOTH(129, 1025)), x));
    V k = x + ROUNDER - ROUNDER, left = x - k;
    V r = left * LN2, rest = FMA(left, ALL(LN2), -r);
    rest = FMA(left, ALL(LN2_REST), rest);
    V tail = FMA(TYPED(exp_tail)(r), r * r, rest);
    return SCALED((V)(r + tail + 1), k);
}

/* What sums have lost: x + y is `sum`, and |x| >= |y|. */
static inline V TYPED(lost)(V x, V y, V sum)
{
    return x - sum + y;
}

/* 1 + x in two parts. */
static inline void TYPED(add_one)(V x, V *sum, V *rest)
{
    V one = ALL(1);
    N is_small = x < 1;
    *sum = x + 1;
    *rest = TYPED(lost)(TYPED(choose)(is_small, one, x),
                        TYPED(choose)(is_small, x, one), *sum);
}

/* 2^k (1 - 2^-k + exp(r) - 1): of 1 - 2^-k, r and r^2 / 2 the sum is worked out
 * in two parts, so that 1/2 unit comes of its last rounding, 1/8 of the rest.
 */
static inline V TYPED(own_expm1)(V x, N *outside)
{
    *outside = (N){0};
    V k, r, rest, one = ALL(1);
    N sign = (N)x & (N)(-(V){0});
    x = MAX(ALL(BOTH(-18, -38)), MIN(ALL(BOTH(89, 710)), x));
    TYPED(take_log2)(x, &k, &r, &rest);
    V least = TYPED(two_to)(-MIN(ALL(BOTH(60, 500)), k)), high = one - least;
    V back = high - 1, low = one - (high - back) - (least + back);
    V square = r * r, half = square * (T)0.5, sum = high + r, all = sum + half;
    low += TYPED(lost)(high, r, sum) + TYPED(lost)(sum, half, all) + rest;
    low = FMA(FMA(r, r, -square), ALL(0.5), low);
    V value = all + FMA(TYPED(exp_end)(r), square * r, low);
    return (V)((N)SCALED(value, k) | sign);
}

/* exp(u) for u >= 0 is 2^(k - 1) ((1 + b) + (1 - b)) exp(r), where b is 2^-2k:
 * so cosh(u) and sinh(u) are 2^(k - 1) times (1 + b) cosh(r) + (1 - b) sinh(r),
 * and the same with sinh and cosh of r changed over. */
typedef struct TYPED(hyperbola) {
    V k, more, more_low, less, less_low; /* 1 + b, 1 - b */
    V r, sine, cosine; /* sinh(r) - r, cosh(r) - 1, by Taylor's series */
} TYPED(hyperbola);

static inline TYPED(hyperbola) TYPED(find_hyperbola)(V u)
{
    static const T s[] = {BOTH(0x1.555556p-3f, 0x1.5555555555555p-3),
                          BOTH(0x1.111112p-7f, 0x1.1111111111111p-7),
                          BOTH(0x1.a01a02p-13f, 0x1.a01a01a01a01ap-13),
                          BOTH(0, 0x1.71de3a556c734p-19),
                          BOTH(0, 0x1.ae64567f544e4p-26),
                          BOTH(0, 0x1.6124613a86d09p-33),
                          BOTH(0, 0x1.ae7f3e733b81fp-41)};
    static const T c[] = {BOTH(0x1p-1f, 0x1p-1),
                          BOTH(0x1.555556p-5f, 0x1.5555555555555p-5),
                          BOTH(0x1.6c16c2p-10f, 0x1.6c16c16c16c17p-10),
                          BOTH(0x1.a01a02p-16f, 0x1.a01a01a01a01ap-16),
                          BOTH(0, 0x1.27e4fb7789f5cp-22),
                          BOTH(0, 0x1.1eed8eff8d898p-29),
                          BOTH(0, 0x1.93974a8c07c9dp-37)};
    TYPED(hyperbola) to;
    V rest;
    TYPED(take_log2)(MIN(ALL(BOTH(90, 712)), u), &to.k, &to.r, &rest);
    V one = ALL(1), twice = MIN(ALL(BOTH(60, 500)), to.k + to.k);
    V b = TYPED(two_to)(-twice), square = to.r * to.r;
    to.more = one + b;
    to.more_low = TYPED(lost)(one, b, to.more);
    to.less = one - b;
    to.less_low = TYPED(lost)(one, -b, to.less);
    to.sine =
        FMA(TYPED(polynomial)(square, s, LIMIT(2, 6)), square * to.r, rest);
    to.cosine = TYPED(polynomial)(square, c, LIMIT(3, 6)) * square;
    return to;
}

static inline V TYPED(own_sinh)(V x, N *outside)
{
    *outside = (N){0};
    N sign = (N)x & (N)(-(V){0});
    TYPED(hyperbola) at = TYPED(find_hyperbola)((V)((N)x ^ sign));
    V sum = FMA(at.more, at.r, at.less);
    V low = FMA(at.more, at.r, at.less - sum) + at.less_low;
    low = FMA(at.less, at.cosine, FMA(at.more, at.sine, low));
    return (V)((N)SCALED((V)(sum + low), at.k - 1) | sign);
}

static inline V TYPED(own_cosh)(V x, N *outside)
{
    *outside = (N){0};
    N sign = (N)x & (N)(-(V){0});
    TYPED(hyperbola) at = TYPED(find_hyperbola)((V)((N)x ^ sign));
    V sum = FMA(at.less, at.r, at.more);
    V low = FMA(at.less, at.r, at.more - sum) + at.more_low;
    low = FMA(at.more, at.cosine, FMA(at.less, at.sine, low));
    return SCALED((V)(sum + low), at.k - 1);
}

/* x is z 2^3q, z from 1 to 8: first about 1 / cbrt(z), whose error of 2^-17 a
 * step of Newton's squares for f64; then a last step, of which what is left of
 * z by the cube is worked out exactly. */
static inline V TYPED(own_cbrt)(V x, N *outside)
{
    static const T c[] = {BOTH(0x1.c74242p+0f, 0x1.c74242f935d30p+0),
                          BOTH(-0x1.8e7792p+0f, -0x1.8e779141c19d7p+0),
                          BOTH(0x1.3b07acp+0f, 0x1.3b07abbf9bab4p+0),
                          BOTH(-0x1.2d7e68p-1f, -0x1.2d7e6742e2472p-1),
                          BOTH(0x1.396aaap-3f, 0x1.396aaa305fb08p-3),
                          BOTH(-0x1.103ba4p-6f, -0x1.103ba49cebd4cp-6)};
    N sign = (N)x & (N)(-(V){0}), bits = (N)x ^ sign;
    V size = (V)bits, third = ALL(BOTH(0x1.555556p-2f, 0x1.5555555555555p-2));
    *outside = ~((size >= BOTH(FLT_MIN, DBL_MIN)) & (size < INFINITY));
    N exponent = (bits >> FRACTION_BITS) - EXPONENT_BIAS;
    V m = (V)(bits - (N)((TYPED(unsigned_mask))exponent << FRACTION_BITS));
    V e = __builtin_convertvector(exponent, V);
    V q = FMA(e, third, -third) + ROUNDER - ROUNDER, j = FMA(q, ALL(-3), e);
    V factor = TYPED(choose)(j == 1, ALL(0x1.965fea53d6e3dp-1), ALL(1));
    factor = TYPED(choose)(j == 2, ALL(0x1.428a2f98d728bp-1), factor);
    V z = m * TYPED(two_to)(j), y = TYPED(polynomial)(m, c, 5) * factor;
    if (sizeof(T) == sizeof(double))
        y = FMA(FMA(-z * y, y * y, ALL(1)) * y, third, y);
    V square = y * y, t = z * square, cube = t * t;
    V left = FMA(cube, t, -z) + FMA(t, t, -cube) * t;
    V root = FMA(-left * third, square, t);
    return (V)((N)(root * TYPED(two_to)(q)) | sign);
}

/* above / (below + below_low) as q + *low, q being near to it by all bits. */
static inline V TYPED(quotient)(V above, V below, V below_low, V *low)
{
    V inverse = INVERSE(below), near = above * inverse;
    V left = FMA(-near, below_low, FMA(-near, below, above));
    V q = FMA(left, inverse, near);
    *low = FMA(left, inverse, near - q);
    return q;
}

/* sqrt(x + rest) as root + *low. */
static inline V TYPED(root_of_sum)(V x, V rest, V *low)
{
    V root = ROOT(x), left = FMA(-root, root, x) + rest;
    *low = left * (T)0.5 * INVERSE(MAX(ALL(BOTH(1e-30f, 1e-300)), root));
    return root;
}

/* (atan(q) - q) / q^3 for q up to 1/2, where q^2 is u. */
static inline V TYPED(atan_tail)(V u)
{
    static const T c[] = {
        BOTH(-0x1.55555p-2f, -0x1.5555555555551p-2),
        BOTH(0x1.9996cep-3f, 0x1.9999999998f7cp-3),
        BOTH(-0x1.2448bcp-3f, -0x1.249249244c78dp-3),
        BOTH(0x1.c0047ep-4f, 0x1.c71c71a89bd71p-4),
        BOTH(-0x1.4694d8p-4f, -0x1.745d1352fe575p-4),
        BOTH(0x1.3c07c4p-5f, 0x1.3b135cbbff06dp-4),
        BOTH(0, -0x1.110c4454995b0p-4),
        BOTH(0, 0x1.e1801d1d1332fp-5),
        BOTH(0, -0x1.ac640878955d8p-5),
        BOTH(0, 0x1.77c6d6339e663p-5),
        BOTH(0, -0x1.2f9fc180026ebp-5),
        BOTH(0, 0x1.8250562ba84a0p-6),
        BOTH(0, -0x1.10997acb91a5cp-7),
    };
    return TYPED(polynomial)(u, c, LIMIT(5, 12));
}

/* atan(x) is that of q and a multiple of pi / 4 more: none up to 1/2, one with
 * q = (x - 1) / (x + 1) up to 2, two with -1 / x above. The quotient is mended
 * by what it leaves over: 1/2 unit of the last sum, 1/8 of the rest. */
static inline V TYPED(own_atan)(V x, N *outside)
{
    *outside = (N){0};
    N sign = (N)x & (N)(-(V){0});
    V zero = {0}, one = ALL(1);
    V size = MIN(ALL(BOTH(1e30f, 1e300)), (V)((N)x ^ sign)), more = size + 1;
    N is_large = size > 2, is_middle = (size > (T)0.5) & ~is_large;
    V above = TYPED(choose)(is_middle, size - 1, size);
    V below = TYPED(choose)(is_middle, more, one);
    above = TYPED(choose)(is_large, -one, above);
    below = TYPED(choose)(is_large, size, below);
    V below_low = TYPED(choose)(is_middle, TYPED(lost)(one, size, more), zero);
    V low, q = TYPED(quotient)(above, below, below_low, &low);
    V quarters = TYPED(choose)(is_middle, one, zero);
    quarters = TYPED(choose)(is_large, one + one, quarters);
    V whole = quarters * (HALF_PI / 2), sum = whole + q, square = q * q;
    low += FMA(quarters, ALL(HALF_PI_REST / 2), TYPED(lost)(whole, q, sum));
    low = FMA(TYPED(atan_tail)(square), square * q, low);
    V value = sum + low;
    value = TYPED(choose)(size < BOTH(0x1p-13f, 0x1p-27), size, value);
    return (V)((N)value | sign);
}

/* The same of y / x, and left of 0 what is missing to pi. Three quarters are
 * rounded, and mended. Zeros and what is so large or small that a quotient, or
 * what it leaves over, might be rounded more are outside. */
static inline V TYPED(own_atan2)(V y, V x, N *outside)
{
    const T least = BOTH(0x1p-50f, 0x1p-400), most = BOTH(0x1p50f, 0x1p400);
    N minus = (N)(-(V){0}), sign = (N)y & minus, turned = (N)x & minus;
    V zero = {0}, one = ALL(1), a = (V)((N)y ^ sign), b = (V)((N)x ^ turned);
    *outside = ~((a >= least) & (a <= most) & (b >= least) & (b <= most));
    N is_large = a > b + b, is_middle = (a + a > b) & ~is_large;
    V more = a + b, larger = MAX(a, b), smaller = MIN(a, b);
    V above = TYPED(choose)(is_middle, a - b, a);
    V below = TYPED(choose)(is_middle, more, b);
    above = TYPED(choose)(is_large, -b, above);
    below = TYPED(choose)(is_large, a, below);
    V below_low = TYPED(choose)(is_middle, larger - more + smaller, zero);
    V low, q = TYPED(quotient)((V)((N)above ^ turned), below, below_low, &low);
    V quarters = TYPED(choose)(is_middle, one, zero);
    quarters = TYPED(choose)(is_large, one + one, quarters);
    quarters = TYPED(choose)(turned != 0, 4 - quarters, quarters);
    V whole = quarters * (HALF_PI / 2), sum = whole + q, square = q * q;
    low += FMA(quarters, ALL(HALF_PI / 2), -whole);
    low += FMA(quarters, ALL(HALF_PI_REST / 2), whole - sum + q);
    low = FMA(TYPED(atan_tail)(square), square * q, low);
    return (V)((N)(sum + low) | sign);
}

/* asin(s) - s for s up to 1/2, where s^2 is u. */
static inline V TYPED(arc_tail)(V s, V u)
{
    static const T c[] = {BOTH(0x1.5555c8p-3f, 0x1.5555555555577p-3),
                          BOTH(0x1.330262p-4f, 0x1.333333332e297p-4),
                          BOTH(0x1.747050p-5f, 0x1.6db6db71fd665p-5),
                          BOTH(0x1.8cb902p-6f, 0x1.f1c71a9dc3309p-6),
                          BOTH(0x1.58f074p-5f, 0x1.6e8bddd8139b7p-6),
                          BOTH(0, 0x1.1c4a038f15acfp-6),
                          BOTH(0, 0x1.ca1db862ccb57p-7),
                          BOTH(0, 0x1.7594a9170c67cp-7),
                          BOTH(0, 0x1.60e7a0b47e214p-7),
                          BOTH(0, 0x1.eaf4e5ec8528ep-9),
                          BOTH(0, 0x1.6219c820618b9p-6),
                          BOTH(0, -0x1.55df130c743a1p-6),
                          BOTH(0, 0x1.0a9eee75696d1p-5)};
    return TYPED(polynomial)(u, c, LIMIT(4, 12)) * (u * s);
}

/* asin(|x|) in two parts; but above 1/2 that of sqrt((1 - |x|) / 2), of which
 * twice as much leads up to pi / 2. */
typedef struct TYPED(arc) {
    N sign, is_large;
    V high, low;
} TYPED(arc);

static inline TYPED(arc) TYPED(find_arc)(V x)
{
    TYPED(arc) to = {.sign = (N)x & (N)(-(V){0})};
    V size = (V)((N)x ^ to.sign), zero = {0}, half = ALL(0.5), low;
    to.is_large = size > half;
    V u = TYPED(choose)(to.is_large, FMA(size, -half, half), size * size);
    V root = TYPED(root_of_sum)(u, zero, &low);
    to.high = TYPED(choose)(to.is_large, root, size);
    to.low = TYPED(choose)(to.is_large, low, zero);
    to.low += TYPED(arc_tail)(to.high, u);
    return to;
}

/* So many quarters of a turn, and so many times the arc. */
static inline V TYPED(turned)(const TYPED(arc) * at, V quarters, V times)
{
    V whole = quarters * HALF_PI, more = times * at->high, sum = whole + more;
    V low = FMA(quarters, ALL(HALF_PI_REST), TYPED(lost)(whole, more, sum));
    return sum + FMA(times, at->low, low);
}

static inline V TYPED(own_asin)(V x, N *outside)
{
    TYPED(arc) at = TYPED(find_arc)(x);
    V zero = {0}, quarters = TYPED(choose)(at.is_large, ALL(1), zero);
    V times = TYPED(choose)(at.is_large, ALL(-2), ALL(1));
    *outside = (N){0};
    return (V)((N)TYPED(turned)(&at, quarters, times) | at.sign);
}

static inline V TYPED(own_acos)(V x, N *outside)
{
    TYPED(arc) at = TYPED(find_arc)(x);
    V zero = {0}, sign = (V)((N)ALL(1) | at.sign);
    V half_turn = TYPED(choose)(x < 0, ALL(2), zero);
    V quarters = TYPED(choose)(at.is_large, half_turn, ALL(1));
    V times = TYPED(choose)(at.is_large, sign + sign, -sign);
    *outside = (N){0};
    return TYPED(turned)(&at, quarters, times);
}

#if defined F32 && REGISTER == 64
/* Four intervals an octave from 1/8 to 16: in each a point whose tanh is an f32
 * all but 2^-12 of a unit, this tanh, and the coefficients of (tanh(point + t)
 * - tanh(point)) / t. The first interval begins at 0, and there both are x. */
static const T tanh_parts[8][32] = {
    {0,
     0x1.6006ap-3f,
     0x1.a01724p-3f,
     0x1.e01738p-3f,
     0x1.1ff652p-2f,
     0x1.600068p-2f,
     0x1.9fefaap-2f,
     0x1.e0167ep-2f,
     0x1.1ff3a2p-1f,
     0x1.5ffc7cp-1f,
     0x1.9fef8ap-1f,
     0x1.dff95ap-1f,
     0x1.20155cp+0f,
     0x1.5fef1ep+0f,
     0x1.a01248p+0f,
     0x1.dfe98p+0f,
     0x1.1ff226p+1f,
     0x1.5ff05ep+1f,
     0x1.9feb98p+1f,
     0x1.e01726p+1f,
     0x1.27bad6p+2f,
     0x1.646d5cp+2f,
     0x1.9fef28p+2f,
     0x1.e7f9c2p+2f,
     10},
    {0,
     0x1.5c9976p-3f,
     0x1.9a7552p-3f,
     0x1.d77c5ap-3f,
     0x1.189aa6p-2f,
     0x1.52c322p-2f,
     0x1.8a79f8p-2f,
     0x1.bfc09cp-2f,
     0x1.04ff48p-1f,
     0x1.31559cp-1f,
     0x1.577ff2p-1f,
     0x1.77d528p-1f,
     0x1.9e6b72p-1f,
     0x1.c27104p-1f,
     0x1.d9cc3cp-1f,
     0x1.e87494p-1f,
     0x1.f4bd6ep-1f,
     0x1.fbd406p-1f,
     0x1.fe75fcp-1f,
     0x1.ff6f4cp-1f,
     0x1.ffe698p-1f,
     0x1.fffc3p-1f,
     0x1.ffff68p-1f,
     0x1.fffffp-1f,
     1},
    {0,
     0x1.f12a74p-1f,
     0x1.eb6f2p-1f,
     0x1.e4dd2ap-1f,
     0x1.d98daap-1f,
     0x1.c7f704p-1f,
     0x1.b4048ap-1f,
     0x1.9e1bbap-1f,
     0x1.7af43cp-1f,
     0x1.49e972p-1f,
     0x1.198bf2p-1f,
     0x1.d83dd4p-2f,
     0x1.61204ep-2f,
     0x1.cedcf8p-3f,
     0x1.26374ep-3f,
     0x1.700d5ap-4f,
     0x1.645bfp-5f,
     0x1.09e80ep-6f,
     0x1.896c6cp-8f,
     0x1.213f2p-9f,
     0x1.96755p-12f,
     0x1.e8p-15f,
     0x1.30018ep-17f,
     0x1.fffeeap-21f,
     0x1.fd0114p-27f},
    {0,
     -0x1.527fcp-3f,
     -0x1.89f894p-3f,
     -0x1.be7f26p-3f,
     -0x1.03888ep-2f,
     -0x1.2dafep-2f,
     -0x1.4fef64p-2f,
     -0x1.6a24fcp-2f,
     -0x1.8259eep-2f,
     -0x1.897d7ap-2f,
     -0x1.79c73cp-2f,
     -0x1.5aa5e2p-2f,
     -0x1.1dd33ap-2f,
     -0x1.973662p-3f,
     -0x1.104374p-3f,
     -0x1.5f2088p-4f,
     -0x1.5c859ep-5f,
     -0x1.07bd62p-6f,
     -0x1.883da4p-8f,
     -0x1.20ed6p-9f,
     -0x1.9671bp-12f,
     -0x1.e8088ep-15f,
     -0x1.300022p-17f,
     -0x1.0009ecp-20f,
     -0x1.7750d6p-26f},
    {-0x1.55541cp-2f, -0x1.2ee538p-2f, -0x1.2025fap-2f, -0x1.100ab2p-2f,
     -0x1.e8facep-3f, -0x1.9834dep-3f, -0x1.425e7ep-3f, -0x1.d6f8ap-4f,
     -0x1.bd998p-5f,  0x1.d7a97cp-7f,  0x1.0716e6p-4f,  0x1.8422dep-4f,
     0x1.c6925p-4f,   0x1.97eed6p-4f,  0x1.33c278p-4f,  0x1.a89908p-5f,
     0x1.bc25a2p-6f,  0x1.59e5c6p-7f,  0x1.03e7e6p-8f,  0x1.805cdcp-10f,
     0x1.0ededp-12f,  0x1.4510fp-15f,  0x1.94e536p-18f, 0x1.556f1ap-21f,
     -0x1.49bc96p-25f},
    {-0x1.bf6c04p-13f, 0x1.a385eap-4f,   0x1.ec759ep-4f,   0x1.0e5cbcp-3f,
     0x1.3430dp-3f,    0x1.50f36cp-3f,   0x1.5cdc48p-3f,   0x1.583894p-3f,
     0x1.3a4a76p-3f,   0x1.e9c378p-4f,   0x1.47639ep-4f,   0x1.626d0ep-5f,
     0x1.a55e4ap-9f,   -0x1.5d9fc4p-6f,  -0x1.9d2516p-6f,  -0x1.55f75cp-6f,
     -0x1.941346p-7f,  -0x1.4e888cp-8f,  -0x1.00c71cp-9f,  -0x1.7eaa1p-11f,
     -0x1.0c306ep-13f, -0x1.4361f4p-16f, -0x1.951144p-19f, -0x1.523458p-22f,
     -0x1.9dd18p-25f},
    {0x1.17fa84p-3f,  0x1.b14604p-1f,  0x1.b28fdp-4f,   0x1.45ba2p-1f,
     -0x1.e9d204p-8f, -0x1.16dc2cp-6f, -0x1.ab693cp-5f, -0x1.08fceap-9f,
     -0x1.555a0ep-5f, -0x1.0b634ap-4f, -0x1.0f1ffcp-4f, -0x1.a682fep-5f,
     -0x1.064ae6p-5f, -0x1.37ea0cp-7f, 0x1.65d39p-10f,  0x1.2c443p-8f,
     0x1.04c636p-8f,  0x1.f67eap-10f,  0x1.947ff4p-11f, 0x1.32664ap-12f,
     0x1.b34c7cp-15f, 0x1.0ccfc6p-17f, 0x1.51fc2ep-20f, 0x1.1228d2p-23f,
     -0x1.666db6p-26f},
    {-0x1.6f77bcp-6f,  0x1.17a8fep+3f,   0x1.54f9e2p-1f,   0x1.5b1b5p+2f,
     -0x1.dffc94p-2f,  -0x1.5a7552p-2f,  -0x1.2987bep-2f,  0x1.687d46p-8f,
     -0x1.0c40ap-5f,   -0x1.5bb0dap-6f,  0x1.86d852p-10f,  0x1.3a6cfp-6f,
     0x1.2f13ap-6f,    0x1.6695ccp-7f,   0x1.0f4228p-8f,   0x1.544b44p-11f,
     -0x1.788d22p-11f, -0x1.1df3dep-11f, -0x1.fee4fcp-13f, -0x1.91272ep-14f,
     -0x1.79312p-16f,  -0x1.9744dp-19f,  -0x1.beafcep-22f, -0x1.e361f4p-25f,
     -0x1.4efb2ap-28f}};

static inline V TYPED(own_tanh)(V x, N *outside)
{
    *outside = (N){0};
    N sign = (N)x & (N)(-(V){0}), place;
    V u = MIN(ALL(9.02f), (V)((N)x ^ sign));
    N is_first = u < 0x1.4p-3f;
    place = ~is_first & ((N)u - 0x3e000000) >> 21;
    V t = u - LOOK_UP_32(tanh_parts[0], place);
    V q = LOOK_UP_32(tanh_parts[7], place);
#pragma GCC unroll 8
    for (int i = 6; i >= 2; i--)
        q = FMA(q, t, LOOK_UP_32(tanh_parts[i], place));
    V point = LOOK_UP_32(tanh_parts[1], place);
    return (V)((N)FMA(t, q, TYPED(choose)(is_first, u, point)) | sign);
}
#else
/* (e^2u - 1) / (e^2u + 1), each in two parts, where e^2u is 2^k (1 + p); above
 * 2^25 or 2^54 it is 1. The quotient is mended by what it leaves over: 1/2 unit
 * of the last sum, 1/3 of the parts. */
static inline V TYPED(own_tanh)(V x, N *outside)
{
    *outside = (N){0};
    N sign = (N)x & (N)(-(V){0});
    V size = (V)((N)x ^ sign), u = MIN(ALL(BOTH(8.6643f, 19)), size), k, r,
      rest;
    TYPED(take_log2)(u + u, &k, &r, &rest);
    V tail = FMA(TYPED(exp_tail)(r), r * r, rest), p = r + tail;
    V scale = TYPED(two_to)(k), high = scale * p, low = scale * (r - p + tail);
    V above = scale - 1 + high, more = scale + 1, below = more + high;
    V below_low = more - below + high + low;
    V above_low = below - 2 - above + below_low;
    V inverse = INVERSE(below), quotient = above * inverse;
    V left =
        FMA(-quotient, below, above) + FMA(-quotient, below_low, above_low);
    V value = FMA(left, inverse, quotient);
    N is_one = (N)(size > BOTH(8.664339f, 18.7149738751185));
    return (V)((N)TYPED(choose)(is_one, ALL(1), value) | sign);
}
#endif

static inline T TYPED(exact_mod)(T x, T y)
{
    return MODULO(x, y);
}

/* What is left of x by the nearest multiple of y has no more bits than y, so
 * that it is exact; and so is what y added to it gives, unless fmod's is
 * rounded, too. A zero has x's sign. */
static inline V TYPED(own_mod)(V x, V y, N *outside)
{
    const T most = BOTH(0x1p22f, 0x1p51);
    V quotient = x / y, zero = {0};
    *outside = ~((quotient > -most) & (quotient < most) & (y > -INFINITY) &
                 (y < INFINITY));
    V rest = FMA(-(quotient + ROUNDER - ROUNDER), y, x);
    N is_other = ((N)rest ^ (N)y) < 0;
    V value = TYPED(choose)(is_other, rest + y, rest);
    N sign = (N)x & (N)-zero;
    return TYPED(choose)(rest == 0, (V)sign, value);
}

#ifdef F32
/* (log(1 + f) - f) / f^2 by powers of f. */
static const T log_parts[] = {
    -0.5f,           0x1.555564p-2f,  -0x1.00023cp-2f,
    0x1.999860p-3f,  -0x1.546790p-3f, 0x1.236438p-3f,
    -0x1.0e6824p-3f, 0x1.025bf4p-3f,  -0x1.2d3668p-4f};

/* x = 2^k (1 + f) with 1 + f from sqrt(1/2) to sqrt(2). */
static inline void split_power(V x, V *k, V *f, N *outside)
{
    *outside = ~((x >= FLT_MIN) & (x < INFINITY));
    enum { ROOT_OF_HALF = 0x3f3504f3 };
    /* without a sign, as lanes outside may overflow */
    TYPED(unsigned_mask) own = (TYPED(unsigned_mask))x;
    N n = (N)(own - (uint32_t)ROOT_OF_HALF);
    *f = (V)(own - (TYPED(unsigned_mask))(n & ~0x7fffff)) - 1;
    *k = __builtin_convertvector(n >> 23, V);
}

/* The same; *tail is log(1 + f) - f. */
static inline void take_power(V x, V *k, V *f, V *tail, N *outside)
{
    split_power(x, k, f, outside);
    *tail = TYPED(polynomial)(*f, log_parts, 8) * (*f * *f);
}

static inline V TYPED(own_log)(V x, N *outside)
{
    V k, f, tail;
    take_power(x, &k, &f, &tail, outside);
    V high = k * LN2_HIGH + f, low = k * LN2_HIGH - high + f;
    return high + FMA(k, ALL(LN2_LOW), low + tail);
}

/* log(x + rest), rest being less than x's last bit. */
static inline V TYPED(log_of_sum)(V x, V rest, N *outside)
{
    V k, f, tail;
    take_power(x, &k, &f, &tail, outside);
    V whole = k * LN2_HIGH, high = whole + f;
    V low = TYPED(lost)(whole, f, high) + FMA(k, ALL(LN2_LOW), rest / x);
    return high + (low + tail);
}

/* Intervals of 1/32 from 0.695 on, below 1 of 1/64, 1 being inside of one: the
 * numbers by which what is in each becomes 1 + r with |r| < 1/42, exactly; and
 * minus their logarithms to base 2, in two parts, of which the first has 15
 * bits behind the point. */
#define FIRST_PART 0x3f320000
static const T part_factor[32] = {
    0x1.7p+0f,  0x1.68p+0f, 0x1.6p+0f,  0x1.58p+0f, 0x1.5p+0f,  0x1.48p+0f,
    0x1.4p+0f,  0x1.38p+0f, 0x1.38p+0f, 0x1.3p+0f,  0x1.28p+0f, 0x1.28p+0f,
    0x1.2p+0f,  0x1.18p+0f, 0x1.18p+0f, 0x1.1p+0f,  0x1.1p+0f,  0x1.08p+0f,
    0x1.08p+0f, 1,          0x1.fp-1f,  0x1.ep-1f,  0x1.d8p-1f, 0x1.c8p-1f,
    0x1.b8p-1f, 0x1.bp-1f,  0x1.a8p-1f, 0x1.98p-1f, 0x1.9p-1f,  0x1.88p-1f,
    0x1.8p-1f,  0x1.78p-1f};
static const T part_log2[32] = {
    -0x1.0c1p-1f, -0x1.f7a8p-2f, -0x1.d678p-2f, -0x1.b48p-2f, -0x1.91b8p-2f,
    -0x1.6e2p-2f, -0x1.49a8p-2f, -0x1.244p-2f,  -0x1.244p-2f, -0x1.fbcp-3f,
    -0x1.acfp-3f, -0x1.acfp-3f,  -0x1.5cp-3f,   -0x1.08cp-3f, -0x1.08cp-3f,
    -0x1.664p-4f, -0x1.664p-4f,  -0x1.6bcp-5f,  -0x1.6bcp-5f, 0,
    0x1.774p-5f,  0x1.7d6p-4f,   0x1.e0cp-4f,   0x1.564p-3f,  0x1.bfcp-3f,
    0x1.f6p-3f,   0x1.16ap-2f,   0x1.4f7p-2f,   0x1.6cbp-2f,  0x1.8a88p-2f,
    0x1.a9p-2f,   0x1.c818p-2f};
static const T part_log2_low[32] = {
    -0x1.40358ep-19f, -0x1.5a32c2p-20f, 0x1.60fe68p-17f,  0x1.408c78p-18f,
    -0x1.d448f8p-17f, -0x1.0e6ce8p-17f, 0x1.ed0cbap-20f,  -0x1.eac382p-20f,
    -0x1.eac382p-20f, -0x1.6b9026p-19f, -0x1.78b6d4p-17f, -0x1.78b6d4p-17f,
    -0x1.a39fbep-19f, -0x1.62336ap-17f, -0x1.62336ap-17f, 0x1.20a6dep-21f,
    0x1.20a6dep-21f,  0x1.2c8a72p-17f,  0x1.2c8a72p-17f,  0,
    -0x1.acd89ap-19f, 0x1.25b3eep-22f,  -0x1.ca2e1ap-17f, -0x1.1eb002p-18f,
    0x1.9eap-17f,     -0x1.3ab7cep-18f, -0x1.fd64ep-17f,  -0x1.134c4ep-20f,
    0x1.ed0cbap-19f,  0x1.80abfcp-18f,  -0x1.a39fbep-20f, 0x1.dc2d46p-18f};

/* x = 2^k (1 + r) / factor, factor being that of the place. */
static inline void take_part(V x, V *k, V *r, N *place)
{
    /* without a sign, as lanes outside may overflow */
    TYPED(unsigned_mask) own = (TYPED(unsigned_mask))x;
    N n = (N)(own - (uint32_t)FIRST_PART);
    V m = (V)(own - (TYPED(unsigned_mask))(n & ~0x7fffff));
    *place = n >> 18;
    *k = __builtin_convertvector(n >> 23, V);
    *r = FMA(m, LOOK_UP_32(part_factor, *place), ALL(-1));
}

static inline V TYPED(own_pow)(V x, V y, N *outside)
{
    V k, r;
    N place;
    *outside =
        ~((x >= FLT_MIN) & (x < INFINITY) & (y > -INFINITY) & (y < INFINITY));
    take_part(x, &k, &r, &place);
    V whole = k + LOOK_UP_32(part_log2, place);
    V low = LOOK_UP_32(part_log2_low, place);
    return NARROWED(
        pow_of_f32(WIDE_LOW(whole), WIDE_LOW(r), WIDE_LOW(low), WIDE_LOW(y)),
        pow_of_f32(WIDE_HIGH(whole), WIDE_HIGH(r), WIDE_HIGH(low),
                   WIDE_HIGH(y)));
}

/* A logarithm to another base, in which that of 2 is two + two_low, of which k
 * times the first is exact, and that of e unit + unit_low. Of f - f^2 / 2 both
 * are known in two parts: 1/2 unit of the last sum, 1/3 of the rest. */
static inline V log_by_power(V x, T two, T two_low, T unit, T unit_low,
                             N *outside)
{
    V k, f;
    split_power(x, &k, &f, outside);
    V whole = k * two, part = f * unit, sum = whole + part;
    V low = TYPED(lost)(whole, part, sum) + FMA(f, ALL(unit), -part);
    V square = f * f, square_low = FMA(f, f, -square);
    V rest = FMA(TYPED(polynomial)(f, log_parts + 1, 7) * f, square,
                 square_low * (T)-0.5);
    low = FMA(f, ALL(unit_low), FMA(k, ALL(two_low), low));
    return sum + FMA(square * (T)-0.5, ALL(unit), FMA(rest, ALL(unit), low));
}

static inline V TYPED(own_log2)(V x, N *outside)
{
    return log_by_power(x, 1, 0, 0x1.715476p+0f, 0x1.4ae0c0p-26f, outside);
}

static inline V TYPED(own_log10)(V x, N *outside)
{
    return log_by_power(x, 0x1.344p-2f, 0x1.3509f8p-18f, 0x1.bcb7b2p-2f,
                        -0x1.5b235ep-27f, outside);
}

/* What of x is left when a multiple k of pi / 2 is taken away, as `left` less
 * `rest`, and sin and cos of it. k's bits are the last ones of `turns`. The
 * first product with a part of pi / 2 is exact, the second is split, of the
 * third its rounding is lost: |x| < 2^15. A zero keeps its sign. */
static inline void take_turns(V x, N *turns, V *left, V *rest)
{
    V rounded = FMA(x, ALL(0x1.45f306p-1f), ALL(ROUNDER)), k;
    *turns = (N)rounded;
    k = rounded - ROUNDER;
    V high = FMA(k, ALL(-0x1.921fb4p+0f), x), second = k * 0x1.4442d2p-24f;
    V more = FMA(k, ALL(0x1.4442d2p-24f), -second);
    *left = high - second;
    *rest = (*left - high) + second + FMA(k, ALL(-0x1.ee59dap-50f), more);
}

typedef struct circle {
    V sine, sine_low, cosine, cosine_low;
} circle;

/* sin and cos of r - rest, each in two parts. */
static inline circle sine_and_cosine(V r, V rest)
{
    static const T s[] = {0x1.555546p-3f, -0x1.11077cp-7f, 0x1.9955aep-13f};
    static const T c[] = {0x1.55554ap-5f, -0x1.6c0c2ap-10f, 0x1.99e904p-16f};
    circle to;
    V one = ALL(1), square = r * r, half = square * 0.5f, high = one - half;
    V tail = FMA(TYPED(polynomial)(square, s, 2) * square, r, rest * high);
    to.sine = r - tail;
    to.sine_low = r - to.sine - tail;
    tail = FMA(FMA(r, r, -square), ALL(-0.5f), r * rest);
    tail = FMA(TYPED(polynomial)(square, c, 2), square * square, tail);
    tail += one - high - half;
    to.cosine = high + tail;
    to.cosine_low = high - to.cosine + tail;
    return to;
}

/* sin(x) for 0 quarters, cos(x) for one. */
static inline V sine_ahead(V x, int quarters, N *outside)
{
    N turns;
    V r, rest;
    *outside = ~((x > -0x1p15f) & (x < 0x1p15f));
    take_turns(x, &turns, &r, &rest);
    turns += quarters;
    circle at = sine_and_cosine(r, rest);
    V value = TYPED(choose)((turns & 1) != 0, at.cosine, at.sine);
    return (V)((N)value ^ (turns & 2) << 30);
}

static inline V TYPED(own_sin)(V x, N *outside)
{
    return sine_ahead(x, 0, outside);
}

static inline V TYPED(own_cos)(V x, N *outside)
{
    return sine_ahead(x, 1, outside);
}

/* A quotient of two parts each, mended by what it leaves over. */
static inline V TYPED(own_tan)(V x, N *outside)
{
    N turns;
    V r, rest;
    *outside = ~((x > -0x1p15f) & (x < 0x1p15f));
    take_turns(x, &turns, &r, &rest);
    circle at = sine_and_cosine(r, rest);
    N is_odd = (turns & 1) != 0;
    V above = TYPED(choose)(is_odd, at.cosine, at.sine);
    V above_low = TYPED(choose)(is_odd, at.cosine_low, at.sine_low);
    V below = TYPED(choose)(is_odd, -at.sine, at.cosine);
    V below_low = TYPED(choose)(is_odd, -at.sine_low, at.cosine_low);
    V inverse = INVERSE(below), quotient = above * inverse;
    V left =
        FMA(-quotient, below, above) + FMA(-quotient, below_low, above_low);
    N is_itself = (x > -0x1p-13f) & (x < 0x1p-13f);
    return TYPED(choose)(is_itself, x, FMA(left, inverse, quotient));
}
#else
/* Intervals of 1/16 and below 1 of 1/32, that about 1 having no end there: the
 * numbers by which what is in each becomes 1 + r with |r| <= 1/32, and minus
 * their logarithms, in two parts. */
enum { INTERVALS = 16 };
#define FIRST_INTERVAL 0x3fe6840000000000
static const double interval_factor[INTERVALS] = {
    0x1.64p+0, 0x1.55p+0, 0x1.47p+0, 0x1.3bp+0, 0x1.2fp+0, 0x1.24p+0,
    0x1.1ap+0, 0x1.11p+0, 0x1.08p+0, 0x1p+0,    0x1.e2p-1, 0x1.c6p-1,
    0x1.aep-1, 0x1.9ap-1, 0x1.86p-1, 0x1.74p-1};
static const double interval_log[INTERVALS] = {
    -0x1.51aad872ep-2,  -0x1.2596010df7p-2,
    -0x1.f550a564b8p-3, -0x1.a8becfc882p-3,
    -0x1.59338d9982p-3, -0x1.0d77e7cd08p-3,
    -0x1.8c345d6318p-4, -0x1.075983599p-4,
    -0x1.f829b0e78p-6,  0,
    0x1.eea31c0068p-5,  0x1.ec739830ap-4,
    0x1.6574ebe8c2p-3,  0x1.c6ffbc6fp-3,
    0x1.16b5ccbadp-2,   0x1.4718dc271cp-2};
static const double interval_log_low[INTERVALS] = {
    0x1.f4bd8db0a7cc1p-44,  -0x1.8e7bc224ea3e3p-44,
    0x1.323e3a09202fep-45,  -0x1.e3185cf21b9cfp-44,
    -0x1.0ba68b7555d4ap-48, -0x1.cb2cd2ee2f482p-44,
    -0x1.b20f5acb42a66p-44, 0x1.b8ecfe4b59987p-44,
    -0x1.980267c7e09e4p-45, 0,
    0x1.c3dd83606d891p-44,  0x1.11fcba80cdd1p-44,
    -0x1.98c1d34f0f462p-44, 0x1.ee138d3a69d43p-44,
    -0x1.23299042d74bfp-44, 0x1.06c18fb4c14c5p-44};

/* x = 2^k m, m being in the interval place & 15. */
static inline void into_interval(V x, V *k, V *m, N *place)
{
    /* without a sign, as lanes outside may overflow */
    TYPED(unsigned_mask) own = (TYPED(unsigned_mask))x;
    TYPED(unsigned_mask)
    n = own - (uint64_t)FIRST_INTERVAL + ((uint64_t)1024 << 52);
    N shifted = (N)(n >> 52);
    *k = (V)(shifted | (N)ALL(0x1p52)) - (0x1p52 + 1024);
    *place = (N)(n >> 48);
    *m = (V)(own - (n & ~(uint64_t)0xfffffffffffff) + ((uint64_t)1024 << 52));
}

/* (log(1 + r) - r) / r^2 for |r| <= 1/32. */
static inline V log_tail(V r)
{
    static const T c[] = {-0.5,
                          0x1.55555555554d1p-2,
                          -0x1.ffffffffffe74p-3,
                          0x1.9999999bfddf6p-3,
                          -0x1.555555583f843p-3,
                          0x1.24922ded11ab6p-3,
                          -0x1.ffffc5b2620e7p-4,
                          0x1.c80f59a56773bp-4,
                          -0x1.9a877bce79b41p-4};
    return TYPED(polynomial)(r, c, 8);
}

/* log(x), or log(x + rest), rest being less than x's last bit: 1/2 unit of the
 * last sum, 1/30 of its parts. */
static inline V log_by_interval(V x, V rest, int has_rest, N *outside)
{
    *outside = ~((x >= DBL_MIN) & (x < INFINITY));
    V k, m;
    N place;
    into_interval(x, &k, &m, &place);
    V factor = LOOK_UP(interval_factor, place), r = FMA(m, factor, ALL(-1));
    V whole = FMA(k, ALL(LN2_HIGH), LOOK_UP(interval_log, place)); /* exact */
    V high = whole + r, low = TYPED(lost)(whole, r, high);
    low += FMA(k, ALL(LN2_LOW), LOOK_UP(interval_log_low, place));
    if (has_rest) {
        V more = rest * TYPED(two_to)(-MIN(ALL(1022), k)) * factor;
        low += FMA(-more, r, more);
    }
    return high + FMA(log_tail(r), r * r, low);
}

static inline V TYPED(own_log)(V x, N *outside)
{
    return log_by_interval(x, x, 0, outside);
}

static inline V TYPED(log_of_sum)(V x, V rest, N *outside)
{
    return log_by_interval(x, rest, 1, outside);
}

static const double interval_log2[INTERVALS] = {
    -0x1.e726aa1e75p-2, -0x1.a78e146f7cp-2,
    -0x1.699f5248cdp-2, -0x1.32639636b3p-2,
    -0x1.f205339208p-3, -0x1.84c2bd02fp-3,
    -0x1.1dcd197552p-3, -0x1.7beee96b8cp-4,
    -0x1.6bad3758fp-5,  0,
    0x1.64ce26c068p-4,  0x1.633a8bf438p-3,
    0x1.01d9bbcfa6p-2,  0x1.48365e695dp-2,
    0x1.921800924ep-2,  0x1.d7e6c0abc3p-2};
static const double interval_log2_low[INTERVALS] = {
    -0x1.3483146784bd2p-44, 0x1.0bad7dfa568f7p-46,
    -0x1.2e1a3152150d3p-44, 0x1.f29947070fc4bp-44,
    -0x1.e4e8eea54ce63p-44, -0x1.d97ee9124773bp-46,
    -0x1.6f6bd48a860fp-44,  0x1.d7ec3be51cdcbp-44,
    0x1.3c6764fc87b4ap-48,  0,
    -0x1.d5297837adb4bp-45, -0x1.8f7aac147fdc1p-46,
    0x1.d45da26510033p-46,  0x1.e5aa8a607f6efp-44,
    -0x1.62404772a151dp-45, 0x1.5e30f52d6ae75p-44};
static const double interval_log10[INTERVALS] = {
    -0x1.254b4d35e8p-3, -0x1.fe02d36a38p-4,
    -0x1.b36fcb5f8cp-4, -0x1.70eddb7d8p-4,
    -0x1.2bd68e462p-4,  -0x1.d41d5164f8p-5,
    -0x1.58238eeb38p-5, -0x1.c97c3735ep-6,
    -0x1.b5e908eb2p-7,  0,
    0x1.ada2e8e3ep-6,   0x1.abbcebd85p-5,
    0x1.367ba3aaap-4,   0x1.8b350364c8p-4,
    0x1.e42b4c16ccp-4,  0x1.1c1ce9955cp-3};
static const double interval_log10_low[INTERVALS] = {
    0x1.61f143538008cp-46,  -0x1.56d63de758ea6p-44,
    0x1.766a8abaa9efp-48,   0x1.5f89d049ffd9dp-44,
    -0x1.37167d7ea5dffp-44, -0x1.659d00c475908p-44,
    0x1.612c205756103p-44,  -0x1.f028fb72dfe8ap-44,
    0x1.90dfe0d1601cap-44,  0,
    0x1.51bd19e6e701ap-44,  -0x1.b0197d2cb982ep-48,
    0x1.882886d8893a8p-44,  -0x1.da8c4bd8546e7p-44,
    -0x1.50d780639590cp-44, 0x1.8b891b6d05a73p-48};

/* A logarithm to another base, of whose tables these are: unit is that of e,
 * two, in two parts, that of 2. 1/2 unit of the last sum, 1/16 of the rest. */
static inline V TYPED(log_to_base)(V x, const double *intervals,
                                   const double *intervals_low, T unit,
                                   T unit_low, T two, T two_low, N *outside)
{
    *outside = ~((x >= DBL_MIN) & (x < INFINITY));
    V k, m;
    N place;
    into_interval(x, &k, &m, &place);
    V r = FMA(m, LOOK_UP(interval_factor, place), ALL(-1));
    V whole = FMA(k, ALL(two), LOOK_UP(intervals, place)); /* exact */
    V sum = FMA(r, ALL(unit), whole), low = FMA(r, ALL(unit), whole - sum);
    low = FMA(r, ALL(unit_low), low);
    low += FMA(k, ALL(two_low), LOOK_UP(intervals_low, place));
    return sum + FMA(log_tail(r) * (r * r), ALL(unit), low);
}

static inline V TYPED(own_log2)(V x, N *outside)
{
    return TYPED(log_to_base)(x, interval_log2, interval_log2_low,
                              0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56, 1, 0,
                              outside);
}

static inline V TYPED(own_log10)(V x, N *outside)
{
    return TYPED(log_to_base)(x, interval_log10, interval_log10_low,
                              0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57,
                              0x1.34413509f8p-2, -0x1.80433b83b532ap-44,
                              outside);
}

/* log(x) in two parts, with an error of 2^-64 of it. */
static inline void log_in_parts(V x, V *log, V *log_low)
{
    static const T third = 0x1.5555555555555p-2;
    static const T c[] = {-0x1.ffffffffffe74p-3, 0x1.999999999abb9p-3,
                          -0x1.555555583f843p-3, 0x1.2492491b4b4dfp-3,
                          -0x1.ffffc5b2620e7p-4, 0x1.c71c9c0deac2ap-4,
                          -0x1.9a877bce79b41p-4, 0x1.74b06e28e23b8p-4};
    V k, m;
    N place;
    into_interval(x, &k, &m, &place);
    V factor = LOOK_UP(interval_factor, place);
    V product = m * factor, product_low = FMA(m, factor, -product);
    V r = product - 1, square = r * r, half = square * 0.5;        /* exact */
    V whole = FMA(k, ALL(LN2_HIGH), LOOK_UP(interval_log, place)); /* exact */
    V low = FMA(k, ALL(LN2_LOW), LOOK_UP(interval_log_low, place));
    V sum = whole + r, rest = whole - sum + r;
    low += FMA(product_low, square - r, product_low);
    V square_low = FMA(r, r, -square), cube = square * r;
    V cube_low = FMA(square_low, r, FMA(square, r, -cube));
    low = FMA(square_low, ALL(-0.5), low);
    low = FMA(square * square, TYPED(polynomial)(r, c, 7), low);
    low = FMA(cube, ALL(third), FMA(cube_low, ALL(third), low));
    V sum_2 = sum - half, rest_2 = sum - sum_2 - half;
    low += rest + rest_2;
    *log = sum_2 + low;
    *log_low = sum_2 - *log + low;
}

/* For normal x above 0 and a power from 2^-1020 to 2^1021; the rest is outside.
 * 1/2 unit of the last sum, 1/4 of the one before, 1/8 of the logarithm. */
static inline V TYPED(own_pow)(V x, V y, N *outside)
{
    V log, log_low, k, r;
    log_in_parts(x, &log, &log_low);
    V whole = y * log, part = FMA(y, log_low, FMA(y, log, -whole));
    *outside =
        ~((x >= DBL_MIN) & (x < INFINITY) & (whole > -707) & (whole < 708));
    k = FMA(whole, ALL(LOG2_E), ALL(ROUNDER)) - ROUNDER;
    V high = FMA(k, ALL(-LN2_HIGH), whole), low = FMA(k, ALL(-LN2_LOW), part);
    r = high + low;
    low += high - r;
    V tail = FMA(TYPED(exp_tail)(r), r * r, low);
    return SCALED((V)(r + tail + 1), k);
}

/* x^y for f32's x and y, where log2(x) is whole + log2(1 + r) + low: with an
 * error of 2^-26. */
static inline V pow_of_f32(V whole, V r, V low, V y)
{
    static const T log2_r[] = {0x1.71547652b8009p+0, -0x1.715475971ab9cp-1,
                               0x1.ec709cacddff2p-2, -0x1.717ef2a6c5733p-2,
                               0x1.2799f90c13556p-2};
    static const T exp2_r[] = {1,
                               0x1.62e430c686a7ep-1,
                               0x1.ebfbdcf8b454fp-3,
                               0x1.c6aed61e0cd72p-5,
                               0x1.3b2cc34812d43p-7,
                               0x1.5f44db62d132fp-10,
                               0x1.4258d6b5eb46ep-13};
    V t = y * (FMA(TYPED(polynomial)(r, log2_r, 4), r, low) + whole);
#if REGISTER == 64
    V k = t + ROUNDER - ROUNDER;
    return SCALED((V)(TYPED(polynomial)(t - k, exp2_r, 6)), k);
#else
    t = MAX(ALL(-1000), MIN(ALL(1000), t));
    V sum = t + ROUNDER;
    V power = TYPED(polynomial)(t - (sum - ROUNDER), exp2_r, 6);
    return (V)((TYPED(unsigned_mask))power +
               ((TYPED(unsigned_mask))sum << FRACTION_BITS));
#endif
}
#endif

/* --- logarithms of 1 and more ------------------------------------------------
 * What is added is known in two parts. */

static inline V TYPED(log_of_one_and)(V x, V rest, N *outside)
{
    V sum, lost;
    TYPED(add_one)(x, &sum, &lost);
    return TYPED(log_of_sum)(sum, lost + rest, outside);
}

static inline V TYPED(own_log1p)(V x, N *outside)
{
    V value = TYPED(log_of_one_and)(x, (V){0}, outside);
    return TYPED(choose)(x == 0, x, value);
}

/* log(1 + 2u / (1 - u)) / 2 for u = |x|. */
static inline V TYPED(own_atanh)(V x, N *outside)
{
    N sign = (N)x & (N)(-(V){0});
    V u = (V)((N)x ^ sign), one = ALL(1), below = one - u, rest;
    V q = TYPED(quotient)(u + u, below, TYPED(lost)(one, -u, below), &rest);
    V value = TYPED(log_of_one_and)(q, rest, outside) * (T)0.5;
    value = TYPED(choose)(u < BOTH(0x1p-13f, 0x1p-27), u, value);
    *outside |= ~(u < one);
    return (V)((N)value | sign);
}

/* log(u + sqrt(1 + u^2)) for u = |x|; below a limit u - u^3 / 6. */
static inline V TYPED(own_asinh)(V x, N *outside)
{
    N sign = (N)x & (N)(-(V){0});
    V u = (V)((N)x ^ sign), square = u * u, sum, rest, low;
    TYPED(add_one)(square, &sum, &rest);
    V root = TYPED(root_of_sum)(sum, rest + FMA(u, u, -square), &low);
    V whole = root + u;
    low += TYPED(lost)(root, u, whole);
    V value = TYPED(log_of_sum)(whole, low, outside);
    V small = FMA(square * u, ALL(BOTH(-1 / 6.0f, -1 / 6.0)), u);
    value = TYPED(choose)(u < BOTH(0x1p-10f, 0x1p-20), small, value);
    *outside |= ~(u < BOTH(1e18f, 1e153));
    return (V)((N)value | sign);
}

/* log(1 + t + sqrt(t (x + 1))) for t = x - 1. */
static inline V TYPED(own_acosh)(V x, N *outside)
{
    V one = ALL(1), t = x - one, more = x + one, product = t * more, low;
    V t_low = TYPED(lost)(x, -one, t), more_low = TYPED(lost)(x, one, more);
    V rest = FMA(t, more, -product);
    rest = FMA(t, more_low, FMA(t_low, more, rest));
    V root = TYPED(root_of_sum)(product, rest, &low), sum = root + t;
    low += TYPED(lost)(root, t, sum) + t_low;
    V value = TYPED(log_of_one_and)(sum, low, outside);
    *outside |= ~((x >= one) & (x < BOTH(1e18f, 1e153)));
    return value;
}

#undef V
#undef N
#undef BOTH
#undef FMA
#undef ALL
#undef ROUNDER
#undef FRACTION_BITS
#undef EXPONENT_BIAS
#undef LN2
#undef LN2_REST
#undef HALF_PI
#undef HALF_PI_REST
#undef LN2_HIGH
#undef LN2_LOW
#undef LOG2_E
