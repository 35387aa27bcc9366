/* Every operation of ops.def on the CPU against libm in long double, over
 * ordinary numbers, random bit patterns, the ends of functions' ranges and
 * every special value, in both types and by every table of loops. */
#include "cpu_testing.h"
#include "every_table.h"
#include "op_list.h"
#include "op_macros.h"

enum { COUNT = 9000 };

typedef struct operation {
    gpu_op op;
    const char *name;
    int arity;
    int is_rounded; /* as the processor does it, not by a function of SLEEF's */
} operation;

#define IS_NONE(vector) !strcmp(#vector, "NONE")
static const operation operations[] = {
#define OP(name, arity, expression, vector, help, example, result) \
    {GPU_OP_##name, #name, arity, IS_NONE(vector)},
#define TEST OP
#define REDUCTION(...)
#include "ops.def"
};

static const double special[] = {
    0.0,
    -0.0,
    (double)INFINITY,
    -(double)INFINITY,
    (double)NAN,
    1,
    -1,
    0.5,
    -0.5,
    2,
    -2,
    3,
    -3,
    1e-45,
    -1e-45,
    1e-40,
    1e38,
    -1e38,
    3e38,
    89,
    -89,
    88.9,
    700,
    710,
    -745,
    5e-324,
    1e300,
    -1e300,
    1e308,
    16777216,
    0.9999999,
    1.0000001,
    2.5,
    -1.5,
    1e10,
    709.782712893384, /* where f64's exp ends, its sinh, gamma, erfc, lgamma */
    710.4758600739439,
    171.6243769563027,
    26.54325845425098,
    2.55e305,
    1.797e308,
    88.72284, /* and f32's */
    89.41599,
    35.0401,
    10.05,
    4.085e36,
    -2.457024738220797, /* roots of lgamma */
    -2.747682646727413,
    -3.955294284858598,
};
enum { SPECIAL = sizeof special / sizeof *special };

static double any_value(gpu_dtype t, int kind)
{
    uint64_t bits = next_bits();
    uint32_t low = (uint32_t)bits;
    double wide;
    float narrow;
    memcpy(&wide, &bits, sizeof wide);
    memcpy(&narrow, &low, sizeof narrow);
    if (kind == 0)
        return t == GPU_F64 ? wide : (double)narrow;
    double u = next_uniform() * 2 - 1;
    double value = kind == 1 ? u : kind == 2 ? u * 20 : u * 700;
    return t == GPU_F64 ? value : (double)(float)value;
}

/* All pairs of special values come first, then numbers near them, then a
 * mixture. */
static double operand(gpu_dtype t, int64_t i, int k)
{
    int64_t s = k == 0 ? i % SPECIAL : k == 1 ? i / SPECIAL : i % 7;
    double near = special[i % SPECIAL] * (1 + 0x1p-20 * (next_uniform() - 0.5));
    if (i < SPECIAL * SPECIAL)
        return special[s % SPECIAL];
    return i < 2 * SPECIAL * SPECIAL && (i + k) % 2
               ? near
               : any_value(t, (int)(i % 4));
}

/* --- what is exact -------------------------------------------------------- */

/* The maths function for T, whichever that is. */
#define M(function)                  \
    _Generic((T)0, float             \
             : function##f, double   \
             : function, long double \
             : function##l)
#define RETURN_AS(type, expression)                 \
    do {                                            \
        typedef type T;                             \
        T x = (T)in[0], y = (T)in[1], z = (T)in[2]; \
        (void)x, (void)y, (void)z;                  \
        return (T)(expression);                     \
    } while (0)
#define OP(name, arity, expression, vector, help, example, result) \
    case GPU_OP_##name:                                            \
        if (size == sizeof(float))                                 \
            RETURN_AS(float, expression);                          \
        if (size == sizeof(double))                                \
            RETURN_AS(double, expression);                         \
        RETURN_AS(long double, expression);
#define TEST OP
#define REDUCTION(...)

/* The expression of ops.def, over numbers of so many bytes each. */
static long double value_of(gpu_op op, size_t size, const double in[3])
{
    switch (op) {
#include "ops.def"
    default:
        return 0;
    }
}

static long double exactly(const operation *o, gpu_dtype t, double x, double y,
                           double z)
{
    size_t size = o->is_rounded ? gpu_dtype_size(t) : sizeof(long double);
    return value_of(o->op, size, (const double[]){x, y, z});
}

/* --- accuracy ------------------------------------------------------------- */

static double bound(const operation *o)
{
    if (o->op == GPU_OP_gamma || o->op == GPU_OP_lgamma ||
        o->op == GPU_OP_erfc || o->op == GPU_OP_logaddexp)
        return 2;
    return o->is_rounded ? 0 : 1;
}

/* What is less than this the reference itself does not know: of logaddexp near
 * its roots (near_the_roots_of_logaddexp). */
static double unknown(const operation *o, gpu_dtype t, double x, double y)
{
    double larger = x > y ? x : y;
    return o->op == GPU_OP_logaddexp && t == GPU_F64 && larger < 0 ? 0.5 : 0;
}

/* The largest number stands for all above it, up to one unit more. */
static double distance(gpu_dtype t, double result, long double exact)
{
    long double most = t == GPU_F64 ? 0x1p1024L : 0x1p128L;
    long double unit = t == GPU_F64 ? 0x1p971L : 0x1p104L;
    if (isinf(result) && isfinite(exact) && fabsl(exact) > most - 2 * unit)
        return (result < 0) == (exact < 0) ? 1 : (double)INFINITY;
    return ulps(t, result, exact);
}

static void check_operation(const operation *o, gpu_dtype t)
{
    block x[3], r = make(t, COUNT, 1, DENSE);
    for (int k = 0; k < 3; k++) {
        x[k] = make(t, COUNT, 1, DENSE);
        for (int64_t i = 0; i < COUNT; i++)
            set(&x[k].v, i, 0, operand(t, i, k));
    }
    gpu_view in[3] = {x[0].v, x[1].v, x[2].v};
    gpu_program p = program_of(o->op, o->arity, t);
    assert_int_equal(cpu->map(device, &p, in, &r.v), GPU_OK);
    for (int64_t i = 0; i < COUNT; i++) {
        double a = get(in, i, 0), b = get(in + 1, i, 0), c = get(in + 2, i, 0);
        double result = get(&r.v, i, 0);
        long double exact = exactly(o, t, a, b, c);
        double off = distance(t, result, exact);
        if (fabs(result - (double)exact) < 1e-15 &&
            fabs(result) < unknown(o, t, a, b))
            continue;
        if (!(off <= bound(o)))
            fail_msg("%s %s %s(%.17g, %.17g, %.17g) = %.17g, not %.20Lg (%g)",
                     gpu_cpu_vectors->name, t == GPU_F64 ? "f64" : "f32",
                     o->name, a, b, c, result, exact, off);
    }
    for (int k = 0; k < 3; k++)
        drop(&x[k]);
    drop(&r);
}

static void check_all(void)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        for (gpu_dtype t = GPU_F32; t <= GPU_F64; t++)
            check_operation(&operations[i], t);
}

static void every_operation(void **state)
{
    (void)state;
    by_every_table(check_all);
}

/* --- functions of our own ---------------------------------------------------
 * f32's of one argument are tried with every STRIDEth of all bit patterns, or
 * with every one where LUMAT_TEST_STRIDE is 1: which is how their bound was
 * shown, in minutes. Those that should have its values are computed in f64. */

enum { STRIDE = 4999 };

static uint64_t stride_of_floats(void)
{
    const char *wish = getenv("LUMAT_TEST_STRIDE");
    return wish && atoi(wish) > 0 ? (uint64_t)atoi(wish) : STRIDE;
}

static void check_floats(const operation *o, const float *x, size_t n)
{
    enum { MOST = 512 };
    float r[MOST];
    double wide[MOST], exact[MOST];
    for (size_t i = 0; i < n; i++)
        wide[i] = (double)x[i];
    gpu_cpu_vectors->map[GPU_F32][o->op](r, x, x, x, n);
    gpu_cpu_vector_base.map[GPU_F64][o->op](exact, wide, wide, wide, n);
    for (size_t i = 0; i < n; i++) {
        double off = distance(GPU_F32, (double)r[i], exact[i]);
        if (!(off <= 1 + 1e-6)) /* the reference is rounded, too */
            fail_msg("%s f32 %s(%.9g) = %.9g, not %.17g (%g)",
                     gpu_cpu_vectors->name, o->name, (double)x[i], (double)r[i],
                     exact[i], off);
    }
}

static void check_all_floats(void)
{
    enum { AT_ONCE = 512 };
    static const operation own[] = {
        {GPU_OP_exp, "exp", 1, 0},     {GPU_OP_log, "log", 1, 0},
        {GPU_OP_tanh, "tanh", 1, 0},   {GPU_OP_sin, "sin", 1, 0},
        {GPU_OP_cos, "cos", 1, 0},     {GPU_OP_tan, "tan", 1, 0},
        {GPU_OP_exp2, "exp2", 1, 0},   {GPU_OP_expm1, "expm1", 1, 0},
        {GPU_OP_log2, "log2", 1, 0},   {GPU_OP_log10, "log10", 1, 0},
        {GPU_OP_log1p, "log1p", 1, 0}, {GPU_OP_cbrt, "cbrt", 1, 0},
        {GPU_OP_sinh, "sinh", 1, 0},   {GPU_OP_cosh, "cosh", 1, 0},
        {GPU_OP_asin, "asin", 1, 0},   {GPU_OP_acos, "acos", 1, 0},
        {GPU_OP_atan, "atan", 1, 0},   {GPU_OP_asinh, "asinh", 1, 0},
        {GPU_OP_acosh, "acosh", 1, 0}, {GPU_OP_atanh, "atanh", 1, 0}};
    enum { OWN = sizeof own / sizeof *own };
    /* where tanh becomes 1, and what lies beside multiples of pi / 4 */
    static const float hard[] = {
        0x1.154232p+3f, -0x1.154232p+3f, 0x1.154246p+3f, 0x1.2d97c8p+6f,
        0x1.993144p+9f, 0x1.e2dc7ap-1f,  0x1.2e5f3ep+1f, 0x1.fffffep+14f};
    float x[AT_ONCE];
    size_t n = 0;
    for (int k = 0; k < OWN; k++)
        check_floats(&own[k], hard, sizeof hard / sizeof *hard);
    for (uint64_t next = 0, end = (uint64_t)1 << 32; next < end;) {
        uint32_t bits = (uint32_t)next;
        memcpy(&x[n++], &bits, sizeof bits);
        next += stride_of_floats();
        for (int k = 0; k < OWN && (n == AT_ONCE || next >= end); k++)
            check_floats(&own[k], x, n);
        n = n == AT_ONCE ? 0 : n;
    }
}

static void floats_of_our_own(void **state)
{
    (void)state;
    by_every_table(check_all_floats);
}

/* Powers of numbers from `low` to `high` up to e^most and down to e^-most: near
 * 1 they want the logarithm with all the bits of a large y. */
static void check_powers(gpu_dtype t, double low, double high, double most)
{
    enum { POWERS = 4000 };
    for (int i = 0; i < POWERS; i++) {
        double x = low * pow(high / low, next_uniform());
        x = t == GPU_F64 ? x : (double)(float)x;
        double y = most * (2 * next_uniform() - 1) / log(x), r;
        if (!(x > 0) || !(fabs(y) < 1e30))
            continue;
        float fx = (float)x, fy = (float)y, fr;
        y = t == GPU_F64 ? y : (double)fy;
        if (t == GPU_F64)
            gpu_cpu_vectors->map[t][GPU_OP_pow](&r, &x, &y, &x, 1);
        else
            gpu_cpu_vectors->map[t][GPU_OP_pow](&fr, &fx, &fy, &fx, 1);
        r = t == GPU_F64 ? r : (double)fr;
        double off = distance(t, r, powl((long double)x, (long double)y));
        if (!(off <= 1))
            fail_msg("%s %s pow(%.17g, %.17g) = %.17g (%g)",
                     gpu_cpu_vectors->name, t == GPU_F64 ? "f64" : "f32", x, y,
                     r, off);
    }
}

static void check_all_powers(void)
{
    for (gpu_dtype t = GPU_F32; t <= GPU_F64; t++) {
        double most = t == GPU_F64 ? 708 : 88,
               far = t == GPU_F64 ? 1e300 : 1e37;
        check_powers(t, 0.5, 2, most);
        check_powers(t, 0.96, 1.05, most);
        check_powers(t, 0.9999, 1.0001, most);
        check_powers(t, 1 / far, far, most);
        check_powers(t, 0.9, 1.1, 3);
    }
}

static void powers(void **state)
{
    (void)state;
    by_every_table(check_all_powers);
}

/* Angles in all directions: any slope, those near 1/2, 1 and 2, where one way
 * of working it out ends, and sides as far apart as they come. */
static void check_angles(gpu_dtype t, double sides, double slopes, double near)
{
    enum { ANGLES = 20000 };
    for (int i = 0; i < ANGLES; i++) {
        double x = exp(sides * (2 * next_uniform() - 1)), r;
        double y = x * near * exp(slopes * (2 * next_uniform() - 1));
        x = next_below(2) ? x : -x;
        y = next_below(2) ? y : -y;
        float fx = (float)x, fy = (float)y, fr;
        x = t == GPU_F64 ? x : (double)fx;
        y = t == GPU_F64 ? y : (double)fy;
        if (t == GPU_F64)
            gpu_cpu_vectors->map[t][GPU_OP_atan2](&r, &y, &x, &x, 1);
        else
            gpu_cpu_vectors->map[t][GPU_OP_atan2](&fr, &fy, &fx, &fx, 1);
        r = t == GPU_F64 ? r : (double)fr;
        double off = distance(t, r, atan2l((long double)y, (long double)x));
        if (!(off <= 1))
            fail_msg("%s %s atan2(%.17g, %.17g) = %.17g (%g)",
                     gpu_cpu_vectors->name, t == GPU_F64 ? "f64" : "f32", y, x,
                     r, off);
    }
}

static void check_all_angles(void)
{
    for (gpu_dtype t = GPU_F32; t <= GPU_F64; t++) {
        check_angles(t, 2, 2, 1);
        check_angles(t, t == GPU_F64 ? 300 : 36, 20, 1);
        check_angles(t, t == GPU_F64 ? 690 : 80, 1, 1);
        for (double near = 0.5; near <= 2; near *= 2) {
            check_angles(t, 1, 1e-2, near);
            check_angles(t, 1, 1e-6, near);
        }
    }
}

static void angles(void **state)
{
    (void)state;
    by_every_table(check_all_angles);
}

/* Exact values from a library of 2600 bits (mpmath). */
static void near_the_roots(void)
{
    static const double known[][3] = {
        {-0x1.62e42fefa39efp-1, -0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56},
        {-0x1.62e42ff597de2p-1, -0x1.62e42fefa39efp-1, -0x1.7d0fca531a805p-32},
        {-0x1.d5aeeff3b3c68p-2, -0x1.0000000000000p+0, 0x1.a703134a62f19p-57},
        {-0x1.d5aeeffb950cep-2, -0x1.0000000000000p+0, -0x1.3eca4bfd5fc4ap-32},
        {-0x1.59a862c142e63p+0, -0x1.3333333333333p-2, 0x1.1171125dc5175p-56},
        {-0x1.59a862c70f7cfp+0, -0x1.3333333333333p-2, -0x1.80c7431a688fbp-32},
        {-0x1.5ed30aa8f029ep-4, -0x1.4000000000000p+1, 0x1.ac788db6d7e11p-61},
        {-0x1.5ed30aaed2f16p-4, -0x1.4000000000000p+1, -0x1.59c6198501bfcp-34},
        {-0x1.7cd9d1eb76620p-15, -0x1.4000000000000p+3, 0x1.19435abbe50e3p-69},
        {-0x1.7cd9d1f1da200p-15, -0x1.4000000000000p+3, -0x1.98eabe2ee616ap-45},
        {-0x1.c1a7243e63129p-36, -0x1.863d70a3d70a4p+4, -0x1.4c33f1a62a811p-90},
        {-0x1.c1a72445ee513p-36, -0x1.863d70a3d70a4p+4, -0x1.e2cfa94bfef11p-66},
        {-0x1.b67340b5c15bcp-82, -0x1.c266666666666p+5, 0x1.6278cf026d774p-141},
        {-0x1.b67340bd1c7cep-82, -0x1.c266666666666p+5,
         -0x1.d6c847f4ec398p-112},
        {-0x1.0a4830caf87b7p-451, -0x1.3891eb851eb85p+8,
         -0x1.eafec68483acdp-505},
        {-0x1.0a4830cf7027ap-451, -0x1.3891eb851eb85p+8,
         -0x1.1deb0deafec68p-481},
        {-0x1.14f2b0fb9307fp-1010, -0x1.5e00000000000p+9,
         0x0.00000000000acp-1022},
        {-0x1.14f2b10038838p-1010, -0x1.5e00000000000p+9,
         -0x0.00004a57b8f54p-1022},
        {-0x1.270cf5c688614p+2, -0x1.47ae147ae147bp-7, 0x1.587f1d51e461ap-60},
        {-0x1.270cf5cb7b9cep+2, -0x1.47ae147ae147bp-7, -0x1.937e6268fc3cbp-35},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        double x = known[i][0], y = known[i][1], r, s, z = 0;
        gpu_cpu_vectors->map[GPU_F64][GPU_OP_logaddexp](&r, &x, &y, &z, 1);
        gpu_cpu_vectors->map[GPU_F64][GPU_OP_logaddexp](&s, &y, &x, &z, 1);
        assert_true(r == s);
        if (!(ulps(GPU_F64, r, known[i][2]) <= 1.5))
            fail_msg("logaddexp(%.17g, %.17g) = %.17g, not %.17g", x, y, r,
                     known[i][2]);
    }
}

static void near_the_roots_of_logaddexp(void **state)
{
    (void)state;
    by_every_table(near_the_roots);
}

/* A result must not depend on where the element stands, on the number of
 * elements, nor on its neighbours. */
static void check_places(const operation *o, gpu_dtype t)
{
    enum { MANY = 400 };
    block x[3], r = make(t, MANY, 1, DENSE), one = make(t, 1, 1, DENSE);
    gpu_program p = program_of(o->op, o->arity, t);
    for (int k = 0; k < 3; k++) {
        x[k] = make(t, MANY, 1, DENSE);
        for (int64_t i = 0; i < MANY; i++)
            set(&x[k].v, i, 0, any_value(t, (int)(next_bits() % 4)));
    }
    gpu_view in[3] = {x[0].v, x[1].v, x[2].v};
    assert_int_equal(cpu->map(device, &p, in, &r.v), GPU_OK);
    for (int64_t i = 0; i < MANY; i++) {
        gpu_view at[3];
        for (int k = 0; k < 3; k++)
            at[k] = (gpu_view){
                (char *)x[k].v.data + (size_t)i * size_of(t), t, 1, 1, 1, 1};
        assert_int_equal(cpu->map(device, &p, at, &one.v), GPU_OK);
        if (!same(get(&one.v, 0, 0), get(&r.v, i, 0)))
            fail_msg("%s %s(%.17g) depends on the place", gpu_cpu_vectors->name,
                     o->name, get(in, i, 0));
    }
    for (int k = 0; k < 3; k++)
        drop(&x[k]);
    drop(&r);
    drop(&one);
}

static void check_all_places(void)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        for (gpu_dtype t = GPU_F32; t <= GPU_F64; t++)
            check_places(&operations[i], t);
}

static void place_does_not_matter(void **state)
{
    (void)state;
    by_every_table(check_all_places);
}

/* A number gives what a matrix of one element does. */
static void numbers_are_elements(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        for (int k = 0; k < 200; k++) {
            const operation *o = &operations[i];
            double v[3], r;
            for (int j = 0; j < 3; j++)
                v[j] = operand(GPU_F64, (int64_t)(next_bits() % COUNT), j);
            gpu_cpu_vectors->map[GPU_F64][o->op](&r, v, v + 1, v + 2, 1);
            assert_true(same(gpu_op_evaluate(o->op, v[0], v[1], v[2]), r));
        }
}

static void plain_numbers(void **state)
{
    (void)state;
    assert_true(gpu_op_evaluate(GPU_OP_mod, -7, 3, 0) == 2);
    assert_true(gpu_op_evaluate(GPU_OP_idiv, -7, 2, 0) == -4);
    assert_true(gpu_op_evaluate(GPU_OP_clip, 9, 0, 1) == 1);
    assert_true(gpu_op_evaluate(GPU_OP_where, 0, 1, 2) == 2);
    assert_true(gpu_op_evaluate(GPU_OP_round, 2.5, 0, 0) == 2);
    assert_true(isnan(gpu_op_evaluate(GPU_OP_maximum, NAN, 1, 0)));
    assert_true(isnan(gpu_op_evaluate(GPU_OP_minimum, 1, NAN, 0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_numbers),
        cmocka_unit_test(every_operation),
        cmocka_unit_test(floats_of_our_own),
        cmocka_unit_test(powers),
        cmocka_unit_test(angles),
        cmocka_unit_test(near_the_roots_of_logaddexp),
        cmocka_unit_test(place_does_not_matter),
        cmocka_unit_test(numbers_are_elements),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_cpu, NULL);
}
