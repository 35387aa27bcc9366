/* Operations on complex numbers, element by element: see complex_numbers.h.
 *
 * Operands are taken apart into blocks of real and of imaginary parts, in f64
 * whatever their type, so that arithmetic is loops over numbers side by side,
 * which the compiler makes vectors of; functions are libm's, one element at a
 * time. A real operand has no block of imaginary parts. */
#include <complex.h>
#include <float.h>
#include <math.h>
#include "complex_numbers.h"
#include "cpu.h"
#include "op_list.h"
#include "vector.h"

#include <stdlib.h>
#include <string.h>

enum {
    BLOCK = 256
}; /* elements: all blocks together stay in the first cache
    */

typedef struct block {
    double re[BLOCK], im[BLOCK];
    int is_real; /* then im is zeros */
} block;

typedef double complex number;

/* Not by arithmetic, which makes NaN of an infinity times i. */
static number pair(double re, double im)
{
    union {
        double part[2];
        number z;
    } both = {{re, im}};
    return both.z;
}

/* --- into blocks, and out of them ----------------------------------------- */

#define SPREAD(type)                                       \
    do {                                                   \
        const type *from = data;                           \
        if (step == 1)                                     \
            for (int64_t i = 0; i < n; i++) {              \
                b->re[i] = (double)from[2 * i];            \
                b->im[i] = (double)from[2 * i + 1];        \
            }                                              \
        else                                               \
            for (int64_t i = 0; i < n; i++) {              \
                b->re[i] = (double)from[2 * step * i];     \
                b->im[i] = (double)from[2 * step * i + 1]; \
            }                                              \
    } while (0)

#define SPREAD_REAL(type)                      \
    do {                                       \
        const type *from = data;               \
        for (int64_t i = 0; i < n; i++)        \
            b->re[i] = (double)from[step * i]; \
    } while (0)

/* n elements from (row, col) on. */
VECTORS static void load(const gpu_view *v, int is_conjugated, int64_t row,
                         int64_t col, int64_t n, block *b)
{
    size_t size = gpu_cpu_size(v->dtype);
    const void *data =
        (const char *)v->data +
        (row * v->row_stride + col * v->col_stride) * (int64_t)size;
    int64_t step = v->col_stride;
    b->is_real = v->dtype < GPU_C64;
    if (v->dtype == GPU_C128)
        SPREAD(double);
    else if (v->dtype == GPU_C64)
        SPREAD(float);
    else if (v->dtype == GPU_F64)
        SPREAD_REAL(double);
    else if (v->dtype == GPU_F32)
        SPREAD_REAL(float);
    else
        SPREAD_REAL(uint8_t);
    if (b->is_real)
        memset(b->im, 0, (size_t)n * sizeof *b->im);
    else if (is_conjugated)
        for (int64_t i = 0; i < n; i++)
            b->im[i] = -b->im[i];
}

#define JOIN(type)                                     \
    do {                                               \
        type *to = data;                               \
        if (step == 1)                                 \
            for (int64_t i = 0; i < n; i++) {          \
                to[2 * i] = (type)b->re[i];            \
                to[2 * i + 1] = (type)b->im[i];        \
            }                                          \
        else                                           \
            for (int64_t i = 0; i < n; i++) {          \
                to[2 * step * i] = (type)b->re[i];     \
                to[2 * step * i + 1] = (type)b->im[i]; \
            }                                          \
    } while (0)

#define JOIN_REAL(type, value)            \
    do {                                  \
        type *to = data;                  \
        for (int64_t i = 0; i < n; i++)   \
            to[step * i] = (type)(value); \
    } while (0)

VECTORS static void store(const gpu_view *v, int is_conjugated, int64_t row,
                          int64_t col, int64_t n, block *b)
{
    size_t size = gpu_cpu_size(v->dtype);
    void *data = (char *)v->data +
                 (row * v->row_stride + col * v->col_stride) * (int64_t)size;
    int64_t step = v->col_stride;
    if (is_conjugated)
        for (int64_t i = 0; i < n; i++)
            b->im[i] = -b->im[i];
    if (v->dtype == GPU_C128)
        JOIN(double);
    else if (v->dtype == GPU_C64)
        JOIN(float);
    else if (v->dtype == GPU_F64)
        JOIN_REAL(double, b->re[i]);
    else if (v->dtype == GPU_F32)
        JOIN_REAL(float, b->re[i]);
    else
        JOIN_REAL(uint8_t, b->re[i] != 0 || b->im[i] != 0);
}

/* --- arithmetic ----------------------------------------------------------- */

VECTORS static void add_blocks(block *restrict r, const block *restrict x,
                               const block *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        r->re[i] = x->re[i] + y->re[i];
    if (x->is_real || y->is_real)
        memcpy(r->im, x->is_real ? y->im : x->im, (size_t)n * sizeof *r->im);
    else
        for (int64_t i = 0; i < n; i++)
            r->im[i] = x->im[i] + y->im[i];
}

VECTORS static void subtract(block *restrict r, const block *restrict x,
                             const block *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        r->re[i] = x->re[i] - y->re[i];
    for (int64_t i = 0; i < n; i++)
        r->im[i] = y->is_real   ? x->im[i]
                   : x->is_real ? -y->im[i]
                                : x->im[i] - y->im[i];
}

/* What is real comes second. */
VECTORS static void scale(block *restrict r, const block *restrict x,
                          const block *restrict factor, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        r->re[i] = x->re[i] * factor->re[i];
        r->im[i] = x->im[i] * factor->re[i];
    }
}

VECTORS static void multiply(block *restrict r, const block *restrict x,
                             const block *restrict y, int64_t n)
{
    if (y->is_real) {
        scale(r, x, y, n);
        return;
    }
    if (x->is_real) {
        scale(r, y, x, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        r->re[i] = x->re[i] * y->re[i] - x->im[i] * y->im[i];
        r->im[i] = x->re[i] * y->im[i] + x->im[i] * y->re[i];
    }
}

/* Are the sizes of all n numbers, |re| + |im|, between these? */
VECTORS static int are_between(const block *x, double low, double high,
                               int64_t n)
{
    int odd = 0;
    for (int64_t i = 0; i < n; i++) {
        double size = fabs(x->re[i]) + fabs(x->im[i]);
        odd |= !(size > low) | !(size < high);
    }
    return !odd;
}

static const double LEAST = 0x1p-480, MOST = 0x1p480;

VECTORS static void divide_plainly(block *restrict r, const block *restrict x,
                                   const block *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double c = y->re[i], d = y->im[i], size = c * c + d * d;
        r->re[i] = (x->re[i] * c + x->im[i] * d) / size;
        r->im[i] = (x->im[i] * c - x->re[i] * d) / size;
    }
}

/* As the definition says where no square leaves the range, which is almost
 * always; else by the compiler's division, which scales. */
static void divide(block *restrict r, const block *restrict x,
                   const block *restrict y, int64_t n)
{
    if (y->is_real) {
        for (int64_t i = 0; i < n; i++) {
            r->re[i] = x->re[i] / y->re[i];
            r->im[i] = x->im[i] / y->re[i];
        }
        return;
    }
    if (are_between(x, LEAST, MOST, n) && are_between(y, LEAST, MOST, n)) {
        divide_plainly(r, x, y, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        number q = pair(x->re[i], x->im[i]) / pair(y->re[i], y->im[i]);
        r->re[i] = creal(q);
        r->im[i] = cimag(q);
    }
}

/* |x|, as sqrt(re^2 + im^2) where no square leaves the range. */
VECTORS static void take_sizes(block *restrict r, const block *restrict x,
                               int64_t n)
{
    memset(r->im, 0, (size_t)n * sizeof *r->im);
    if (are_between(x, LEAST, MOST, n))
        for (int64_t i = 0; i < n; i++)
            r->re[i] = sqrt(x->re[i] * x->re[i] + x->im[i] * x->im[i]);
    else
        for (int64_t i = 0; i < n; i++)
            r->re[i] = hypot(x->re[i], x->im[i]);
}

/* --- functions ------------------------------------------------------------ */

/* z to a whole power, by squaring. */
static number whole_power(number z, long n)
{
    double re = 1, im = 0, x = creal(z), y = cimag(z), t;
    for (unsigned long k = (unsigned long)labs(n); k > 0; k >>= 1) {
        if (k & 1) {
            t = re * x - im * y;
            im = re * y + im * x;
            re = t;
        }
        t = x * x - y * y;
        y = 2 * x * y;
        x = t;
    }
    return n < 0 ? 1 / pair(re, im) : pair(re, im);
}

/* exp(w log z), with the digits that the logarithm of a large number needs. */
static number power(number z, number w)
{
    const double most = 1024;
    double x = creal(w);
    if (cimag(w) == 0 && x == rint(x) && fabs(x) <= most) {
        number p = whole_power(z, (long)x);
        double size = fabs(creal(p)) + fabs(cimag(p));
        if (fabs(x) <= 3 || (size > DBL_MIN && size <= DBL_MAX))
            return p;
    }
    if (z == 0 && x > 0)
        return 0;
    if (z == 0 && w == 0)
        return 1;
    return (number)cpowl(z, w);
}

/* z / |z|; of 0 it is 0, of NaN NaN. */
static number direction(number z)
{
    double x = creal(z), y = cimag(z), size;
    if (z == 0 || x != x || y != y)
        return z == 0 ? 0 : pair(NAN, NAN);
    if (isinf(x) || isinf(y)) {
        x = isinf(x) ? copysign(1, x) : copysign(0, x);
        y = isinf(y) ? copysign(1, y) : copysign(0, y);
    } else {
        int e = ilogb(fmax(fabs(x), fabs(y)));
        x = scalbn(x, -e);
        y = scalbn(y, -e);
    }
    size = hypot(x, y);
    return pair(x / size, y / size);
}

static number exp_2(number z)
{
    const long double ln2 = 0.693147180559945309417232121458176568L;
    long double size = exp2l(creal(z)), angle = cimag(z) * ln2;
    if (cimag(z) == 0)
        return pair((double)size, cimag(z));
    if (!isfinite(creal(z)) || !isfinite(cimag(z)))
        return cexp(pair(creal(z), (double)angle)); /* special all the same */
    return pair((double)(size * cosl(angle)), (double)(size * sinl(angle)));
}

/* exp(x) cos(y) - 1 without cancelling: expm1(x) cos(y) - 2 sin(y / 2)^2. */
static number exp_minus_1(number z)
{
    double x = creal(z), y = cimag(z), half = sin(y / 2);
    if (y == 0)
        return pair(expm1(x), y);
    return pair(expm1(x) * cos(y) - 2 * half * half, exp(x) * sin(y));
}

static number log_2(number z)
{
    long double complex l = clogl(z);
    const long double ln2 = 0.693147180559945309417232121458176568L;
    return pair((double)(creall(l) / ln2), (double)(cimagl(l) / ln2));
}

static number log_10(number z)
{
    long double complex l = clogl(z);
    const long double ln10 = 2.302585092994045684017991454684364208L;
    return pair((double)(creall(l) / ln10), (double)(cimagl(l) / ln10));
}

/* log |1 + z| = log1p(x (2 + x) + y^2) / 2. */
static number log_1_plus(number z)
{
    long double x = creal(z), y = cimag(z);
    if (fabsl(x) > 0.5L || fabsl(y) > 0.5L)
        return clog(pair(1 + creal(z), cimag(z)));
    return pair((double)(log1pl(x * (2 + x) + y * y) / 2),
                (double)atan2l(y, 1 + x));
}

#define FUNCTION(op, expression)                 \
    case GPU_OP_##op:                            \
        for (int64_t i = 0; i < n; i++) {        \
            number z = pair(x->re[i], x->im[i]); \
            number w = expression;               \
            r->re[i] = creal(w);                 \
            r->im[i] = cimag(w);                 \
        }                                        \
        return;

static void function(gpu_op op, block *r, const block *x, const block *y,
                     int64_t n)
{
    switch (op) {
        FUNCTION(sign, direction(z))
        FUNCTION(pow, power(z, pair(y->re[i], y->im[i])))
        FUNCTION(sqrt, csqrt(z))
        FUNCTION(exp, cexp(z))
        FUNCTION(exp2, exp_2(z))
        FUNCTION(expm1, exp_minus_1(z))
        FUNCTION(log, clog(z))
        FUNCTION(log2, log_2(z))
        FUNCTION(log10, log_10(z))
        FUNCTION(log1p, log_1_plus(z))
        FUNCTION(sin, csin(z))
        FUNCTION(cos, ccos(z))
        FUNCTION(tan, ctan(z))
        FUNCTION(asin, casin(z))
        FUNCTION(acos, cacos(z))
        FUNCTION(atan, catan(z))
        FUNCTION(sinh, csinh(z))
        FUNCTION(cosh, ccosh(z))
        FUNCTION(tanh, ctanh(z))
        FUNCTION(asinh, casinh(z))
        FUNCTION(acosh, cacosh(z))
        FUNCTION(atanh, catanh(z))
        FUNCTION(angle, carg(z))
    default:
        for (int64_t i = 0; i < n; i++)
            r->re[i] = r->im[i] = NAN;
    }
}

/* --- functions of many at a time --------------------------------------------
 * Where nothing in a block is special, by the loops of real functions. */

static void take_real(gpu_op op, double *to, const double *x, int64_t n)
{
    gpu_cpu_vectors->map[GPU_F64][op](to, x, NULL, NULL, (size_t)n);
}

/* e^x (cos y + i sin y). */
static void exponentials(block *restrict r, const block *restrict x, int64_t n)
{
    double size[BLOCK];
    take_real(GPU_OP_exp, size, x->re, n);
    take_real(GPU_OP_cos, r->re, x->im, n);
    take_real(GPU_OP_sin, r->im, x->im, n);
    for (int64_t i = 0; i < n; i++) {
        r->re[i] *= size[i];
        r->im[i] *= size[i];
    }
}

/* The part that does not cancel is sqrt((|z| + |re z|) / 2), the other one
 * follows from their product. Source: Kahan, Branch cuts for complex elementary
 * functions, 1987. */
VECTORS static void square_roots(block *restrict r, const block *restrict x,
                                 int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double re = x->re[i], im = x->im[i];
        double size = sqrt(re * re + im * im);
        double large = sqrt((size + fabs(re)) / 2);
        double small = fabs(im) / (2 * large);
        r->re[i] = re < 0 ? small : large;
        r->im[i] = copysign(re < 0 ? large : small, im);
    }
}

static int take_vector(gpu_op op, block *r, const block *x, int64_t n)
{
    enum { FEW = 8 };
    const double most = 700;
    if (n < FEW)
        return 0;
    if (op == GPU_OP_exp && are_between(x, 0, most, n)) {
        exponentials(r, x, n);
        return 1;
    }
    if (op == GPU_OP_sqrt && are_between(x, LEAST, MOST, n)) {
        square_roots(r, x, n);
        return 1;
    }
    return 0;
}

/* --- questions ------------------------------------------------------------ */

#define TRUTH(op, expression)                        \
    case GPU_OP_##op:                                \
        for (int64_t i = 0; i < n; i++) {            \
            double a = x->re[i], b = x->im[i];       \
            double c = y->re[i], d = y->im[i];       \
            (void)a, (void)b, (void)c, (void)d;      \
            r->re[i] = (expression);                 \
        }                                            \
        memset(r->im, 0, (size_t)n * sizeof *r->im); \
        return 1;

static int question(gpu_op op, block *r, const block *x, const block *y,
                    int64_t n)
{
    switch (op) {
        TRUTH(eq, a == c && b == d)
        TRUTH(ne, a != c || b != d)
        TRUTH(land, (a != 0 || b != 0) && (c != 0 || d != 0))
        TRUTH(lor, a != 0 || b != 0 || c != 0 || d != 0)
        TRUTH(lxor, (a != 0 || b != 0) != (c != 0 || d != 0))
        TRUTH(lnot, a == 0 && b == 0)
        TRUTH(isnan, a != a || b != b)
        TRUTH(isinf, isinf(a) || isinf(b))
        TRUTH(isfinite, isfinite(a) && isfinite(b))
        TRUTH(real, a)
        TRUTH(imag, b)
    default:
        return 0;
    }
}

static void choose(block *r, const block *x, const block *y, const block *z,
                   int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int is_true = x->re[i] != 0 || x->im[i] != 0;
        r->re[i] = is_true ? y->re[i] : z->re[i];
        r->im[i] = is_true ? y->im[i] : z->im[i];
    }
}

/* r = op(x, y, z) for n elements; operands past the arity are any. */
static void run(gpu_op op, block *r, const block *x, const block *y,
                const block *z, int64_t n)
{
    static const block one = {.re = {[0 ... BLOCK - 1] = 1}, .is_real = 1};
    static const block zero = {.is_real = 1};
    switch (op) {
    case GPU_OP_add:
        add_blocks(r, x, y, n);
        return;
    case GPU_OP_sub:
        subtract(r, x, y, n);
        return;
    case GPU_OP_mul:
        multiply(r, x, y, n);
        return;
    case GPU_OP_square:
        multiply(r, x, x, n);
        return;
    case GPU_OP_div:
        divide(r, x, y, n);
        return;
    case GPU_OP_reciprocal:
        divide(r, &one, x, n);
        return;
    case GPU_OP_neg:
        for (int64_t i = 0; i < n; i++) {
            r->re[i] = -x->re[i];
            r->im[i] = -x->im[i];
        }
        return;
    case GPU_OP_conj:
        for (int64_t i = 0; i < n; i++) {
            r->re[i] = x->re[i];
            r->im[i] = -x->im[i];
        }
        return;
    case GPU_OP_where:
        choose(r, x, y, z, n);
        return;
    case GPU_OP_abs:
        take_sizes(r, x, n);
        return;
    }
    if (take_vector(op, r, x, n))
        return;
    if (!question(op, r, x, y ? y : &zero, n))
        function(op, r, x, y ? y : &zero, n);
}

/* --- numbers -------------------------------------------------------------- */

gpu_complex gpu_complex_evaluate(gpu_op op, const gpu_operand in[3])
{
    block b[3], r;
    for (int i = 0; i < 3; i++) {
        b[i].re[0] = in[i].value.re;
        b[i].im[0] = in[i].value.im;
        b[i].is_real = !in[i].is_complex;
    }
    run(op, &r, &b[0], &b[1], &b[2], 1);
    return (gpu_complex){r.re[0], r.im[0]};
}

/* --- the entry ------------------------------------------------------------ */

static int64_t length(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

static int is_flat(const gpu_view *v)
{
    return v->rows == 1 || v->row_stride == v->cols * v->col_stride;
}

/* Rows along memory, and one row where all views allow it. */
static void arrange(gpu_complex_call *c)
{
    const gpu_view *out = &c->out;
    gpu_view *views[] = {&c->out, &c->in[0], &c->in[1], &c->in[2]};
    int is_column = out->cols == 1 && out->rows > 1;
    if (is_column ||
        (out->rows > 1 && length(out->row_stride) < length(out->col_stride)))
        for (int i = 0; i <= c->count; i++)
            *views[i] = gpu_cpu_turned(*views[i]);
    for (int i = 0; i <= c->count; i++)
        if (!is_flat(views[i]))
            return;
    for (int i = 0; i <= c->count; i++) {
        views[i]->cols *= views[i]->rows;
        views[i]->rows = 1;
    }
}

static gpu_status run_blocks(void *context, int64_t first, int64_t last)
{
    enum { BETWEEN_POLLS = 64 };
    const gpu_complex_call *c = context;
    int64_t across = gpu_cpu_pieces(c->out.cols, BLOCK);
    block in[3], r;
    for (int64_t k = first; k < last; k++) {
        int64_t row = k / across, col = k % across * BLOCK;
        int64_t n = gpu_cpu_smaller(c->out.cols - col, BLOCK);
        if ((k - first) % BETWEEN_POLLS == 0 && gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        for (int i = 0; i < c->count; i++)
            load(&c->in[i], c->is_conjugated[i], row, col, n, &in[i]);
        run(c->op, &r, &in[0], c->count > 1 ? &in[1] : NULL,
            c->count > 2 ? &in[2] : NULL, n);
        store(&c->out, c->is_out_conjugated, row, col, n, &r);
    }
    return GPU_OK;
}

gpu_status gpu_cpu_complex_map(void *device, const gpu_complex_call *call)
{
    gpu_complex_call c = *call;
    (void)device;
    arrange(&c);
    int64_t blocks = c.out.rows * gpu_cpu_pieces(c.out.cols, BLOCK);
    return gpu_cpu_parallel(blocks, 4 * c.out.rows * c.out.cols, run_blocks,
                            &c);
}
