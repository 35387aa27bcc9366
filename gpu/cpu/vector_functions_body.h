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
 * (x 2^k, rounded once; with registers of 64 bytes for any k), INVERSE (1 / x,
 * all but half of its bits), LOOK_UP in a table of 16 f64, LOOK_UP_32 of 32 f32
 * and, between f32 and f64, WIDE_LOW, WIDE_HIGH and NARROWED. */

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

static inline V TYPED(own_pow)(V x, V y, N *outside)
{
    *outside =
        ~((x >= FLT_MIN) & (x < INFINITY) & (y > -INFINITY) & (y < INFINITY));
    TYPED(unsigned_mask) own = (TYPED(unsigned_mask))x;
    N n = (N)(own - (uint32_t)FIRST_PART), place = n >> 18;
    V m = (V)(own - (TYPED(unsigned_mask))(n & ~0x7fffff));
    V k = __builtin_convertvector(n >> 23, V);
    V r = FMA(m, LOOK_UP_32(part_factor, place), ALL(-1));
    V whole = k + LOOK_UP_32(part_log2, place);
    V low = LOOK_UP_32(part_log2_low, place);
    return NARROWED(
        pow_of_f32(WIDE_LOW(whole), WIDE_LOW(r), WIDE_LOW(low), WIDE_LOW(y)),
        pow_of_f32(WIDE_HIGH(whole), WIDE_HIGH(r), WIDE_HIGH(low),
                   WIDE_HIGH(y)));
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
