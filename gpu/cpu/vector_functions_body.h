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
 * including file has MIN and MAX, which give y where x is NaN or y is, SCALED
 * (x 2^k, rounded once), INVERSE (1 / x, all but half of its bits), LOOK_UP in
 * a table of 16 and, between f32 and f64, WIDE_LOW, WIDE_HIGH and NARROWED. */

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

/* (exp(r) - 1 - r) / r^2 for |r| <= log(2) / 2, of which r^2 times it has an
 * error of 2^-31 r and 2^-61 r. */
static inline V TYPED(exp_tail)(V r)
{
    static const T c[] = {
        BOTH(0x1p-1f, 0x1p-1),
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
    return TYPED(polynomial)(r, c, LIMIT(5, 10));
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

/* (e^2u - 1) / (e^2u + 1), each in two parts, where e^2u is 2^k (1 + p); above
 * 2^25 or 2^54 it is 1. The quotient is mended by what it leaves over: 1/2 unit
 * of the last sum, 1/3 of the parts. */
static inline V TYPED(own_tanh)(V x, N *outside)
{
    *outside = (N){0};
    N sign = (N)x & (N)(-(V){0});
    V size = (V)((N)x ^ sign), u = MIN(ALL(BOTH(9, 19)), size), k, r, rest;
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

/* log(m) for m = 1 + f from sqrt(1/2) to sqrt(2), and k log(2). */
#ifdef F32
static inline V TYPED(own_log)(V x, N *outside)
{
    *outside = ~((x >= BOTH(FLT_MIN, DBL_MIN)) & (x < INFINITY));
    enum { ROOT_OF_HALF = 0x3f3504f3 };
    static const T c[] = {-0.5f,           0x1.555564p-2f,  -0x1.00023cp-2f,
                          0x1.999860p-3f,  -0x1.546790p-3f, 0x1.236438p-3f,
                          -0x1.0e6824p-3f, 0x1.025bf4p-3f,  -0x1.2d3668p-4f};
    /* without a sign, as lanes outside may overflow */
    TYPED(unsigned_mask) own = (TYPED(unsigned_mask))x;
    N n = (N)(own - (uint32_t)ROOT_OF_HALF);
    V f = (V)(own - (TYPED(unsigned_mask))(n & ~0x7fffff)) - 1;
    V k = __builtin_convertvector(n >> 23, V);
    V high = k * LN2_HIGH + f, low = k * LN2_HIGH - high + f;
    V tail = FMA(TYPED(polynomial)(f, c, 8), f * f, low);
    return high + FMA(k, ALL(LN2_LOW), tail);
}

static inline V TYPED(own_pow)(V x, V y, N *outside)
{
    *outside = ~((x > 0) & (x < INFINITY) & (y > -INFINITY) & (y < INFINITY));
    return NARROWED(pow_of_f32(WIDE_LOW(x), WIDE_LOW(y)),
                    pow_of_f32(WIDE_HIGH(x), WIDE_HIGH(y)));
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
static const double interval_log2[INTERVALS] = {
    -0x1.e726aa1e754d2p-2, -0x1.a78e146f7bef4p-2,
    -0x1.699f5248cd4b8p-2, -0x1.32639636b2836p-2,
    -0x1.f205339208f27p-3, -0x1.84c2bd02f03b3p-3,
    -0x1.1dcd197552b7bp-3, -0x1.7beee96b8a281p-4,
    -0x1.6bad3758efd87p-5, 0,
    0x1.64ce26c067157p-4,  0x1.633a8bf437ce1p-3,
    0x1.01d9bbcfa61d4p-2,  0x1.48365e695d797p-2,
    0x1.921800924dd3bp-2,  0x1.d7e6c0abc3579p-2};

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

/* 1/2 unit of the last sum, 1/30 of its parts. */
static inline V TYPED(own_log)(V x, N *outside)
{
    *outside = ~((x >= BOTH(FLT_MIN, DBL_MIN)) & (x < INFINITY));
    static const T c[] = {-0.5,
                          0x1.55555555554d1p-2,
                          -0x1.ffffffffffe74p-3,
                          0x1.9999999bfddf6p-3,
                          -0x1.555555583f843p-3,
                          0x1.24922ded11ab6p-3,
                          -0x1.ffffc5b2620e7p-4,
                          0x1.c80f59a56773bp-4,
                          -0x1.9a877bce79b41p-4};
    V k, m;
    N place;
    into_interval(x, &k, &m, &place);
    V r = FMA(m, LOOK_UP(interval_factor, place), ALL(-1));
    V whole = FMA(k, ALL(LN2_HIGH), LOOK_UP(interval_log, place)); /* exact */
    V high = whole + r, low = whole - high + r;
    low += FMA(k, ALL(LN2_LOW), LOOK_UP(interval_log_low, place));
    return high + FMA(TYPED(polynomial)(r, c, 8), r * r, low);
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

/* x^y for x and y that were f32, x above 0: with an error of 2^-28. */
static inline V pow_of_f32(V x, V y)
{
    static const T log2_r[] = {0x1.71547652c0639p+0, -0x1.71547652c16a7p-1,
                               0x1.ec70952e3fe66p-2, -0x1.71546f6884c8fp-2,
                               0x1.27cbebf011063p-2, -0x1.ed021672450aep-3};
    static const T exp2_r[] = {1,
                               0x1.62e430c686a7ep-1,
                               0x1.ebfbdcf8b454fp-3,
                               0x1.c6aed61e0cd72p-5,
                               0x1.3b2cc34812d43p-7,
                               0x1.5f44db62d132fp-10,
                               0x1.4258d6b5eb46ep-13};
    V k, m;
    N place;
    into_interval(x, &k, &m, &place);
    V r = FMA(m, LOOK_UP(interval_factor, place), ALL(-1));
    V log2 = k + LOOK_UP(interval_log2, place);
    V t = y * FMA(TYPED(polynomial)(r, log2_r, 5), r, log2);
    t = MAX(ALL(-1000), MIN(ALL(1000), t));
    V rounded = t + ROUNDER - ROUNDER;
    return TYPED(polynomial)(t - rounded, exp2_r, 6) * TYPED(two_to)(rounded);
}
#endif

#undef V
#undef N
#undef BOTH
#undef FMA
#undef ALL
#undef ROUNDER
#undef FRACTION_BITS
#undef EXPONENT_BIAS
#undef LN2_HIGH
#undef LN2_LOW
#undef LOG2_E
