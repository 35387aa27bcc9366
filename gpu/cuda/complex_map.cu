/* Operations on complex elements: see complex_numbers.h.
 *
 * Elements are f64 pairs on the way, whatever their type: what limits
 * arithmetic is memory all the same. A thread takes EACH elements a block
 * apart, whose loads are all on their way before the first is used. Each
 * operation is a kernel, so that what it needs of registers is no other's
 * matter. No product is rounded together with a sum: z conj(z) is real.
 *
 * Functions that C99 has are the toolkit's (thrust::complex, after FreeBSD's),
 * with C99's special values and branch cuts. */
#include <math.h>
#include <thrust/complex.h>
#include "cuda_device.h"

extern "C" {
#include "complex_numbers.h"
#include "op_list.h"
}

enum { THREADS = 256, EACH = 4 };

typedef thrust::complex<double> number;

/* --- arithmetic ----------------------------------------------------------- */

#define BOTH static __host__ __device__ __forceinline__

/* Is the size of z, |re| + |im|, so that no square leaves the range? */
BOTH bool is_tame(number z)
{
    double size = fabs(z.real()) + fabs(z.imag());
    return size > 0x1p-480 && size < 0x1p480;
}

/* 1 with x's sign for an infinity, else 0 with it. */
BOTH double unit_of(double x)
{
    return copysign(isinf(x) ? 1.0 : 0.0, x);
}

/* The larger part comes to be in 1 .. 2, if there is such a power of two. */
BOTH int scale(number *z)
{
    double size = fmax(fabs(z->real()), fabs(z->imag()));
    int e = size > 0 && isfinite(size) ? ilogb(size) : 0;
    *z = number(scalbn(z->real(), -e), scalbn(z->imag(), -e));
    return e;
}

/* Of zeros, infinities and what squares leave the range of. Source: C11, annex
 * G.5.1. */
static __host__ __device__ __noinline__ number divide_any(number x, number y)
{
    number p = x, q = y;
    int e = scale(&p);
    e -= scale(&q);
    double size = q.real() * q.real() + q.imag() * q.imag();
    double re = (p.real() * q.real() + p.imag() * q.imag()) / size;
    double im = (p.imag() * q.real() - p.real() * q.imag()) / size;
    double a = x.real(), b = x.imag(), c = y.real(), d = y.imag();
    if (size != 0 && (!isnan(re) || !isnan(im)))
        return number(scalbn(re, e), scalbn(im, e));
    if (size == 0 && (!isnan(a) || !isnan(b))) {
        double over = copysign((double)INFINITY, c);
        return number(over * a, over * b);
    }
    if ((isinf(a) || isinf(b)) && isfinite(c) && isfinite(d)) {
        a = unit_of(a);
        b = unit_of(b);
        return number(INFINITY * (a * c + b * d), INFINITY * (b * c - a * d));
    }
    if ((isinf(c) || isinf(d)) && isfinite(a) && isfinite(b)) {
        c = unit_of(c);
        d = unit_of(d);
        return number(0 * (a * c + b * d), 0 * (b * c - a * d));
    }
    return number(re, im);
}

BOTH number divide(number x, number y)
{
    if (!is_tame(x) || !is_tame(y))
        return divide_any(x, y);
    double a = x.real(), b = x.imag(), c = y.real(), d = y.imag();
    double size = c * c + d * d;
    return number((a * c + b * d) / size, (b * c - a * d) / size);
}

BOTH number multiply(number x, number y)
{
    return number(x.real() * y.real() - x.imag() * y.imag(),
                  x.real() * y.imag() + x.imag() * y.real());
}

BOTH number scaled(number x, double by)
{
    return number(x.real() * by, x.imag() * by);
}

BOTH double size_of(number z)
{
    return is_tame(z) ? sqrt(z.real() * z.real() + z.imag() * z.imag())
                      : hypot(z.real(), z.imag());
}

BOTH bool is_true(number z)
{
    return z.real() != 0 || z.imag() != 0;
}

/* Operands, of which a real one has no imaginary part at all. */
typedef struct operands {
    number x, y, z;
    int x_is_real, y_is_real;
} operands;

BOTH number add(const operands &in)
{
    double im = in.x_is_real   ? in.y.imag()
                : in.y_is_real ? in.x.imag()
                               : in.x.imag() + in.y.imag();
    return number(in.x.real() + in.y.real(), im);
}

BOTH number subtract(const operands &in)
{
    double im = in.y_is_real   ? in.x.imag()
                : in.x_is_real ? -in.y.imag()
                               : in.x.imag() - in.y.imag();
    return number(in.x.real() - in.y.real(), im);
}

BOTH number product(const operands &in)
{
    return in.y_is_real   ? scaled(in.x, in.y.real())
           : in.x_is_real ? scaled(in.y, in.x.real())
                          : multiply(in.x, in.y);
}

BOTH number quotient(const operands &in)
{
    double by = in.y.real();
    return in.y_is_real ? number(in.x.real() / by, in.x.imag() / by)
                        : divide(in.x, in.y);
}

BOTH bool is_nan(number z)
{
    return isnan(z.real()) || isnan(z.imag());
}

BOTH bool is_infinite(number z)
{
    return isinf(z.real()) || isinf(z.imag());
}

/* --- functions ------------------------------------------------------------ */

#define LN2 0x1.62e42fefa39efp-1
#define LN2_REST 0x1.abc9e3b39803fp-56

/* log of the size; near 1 of x^2 + y^2 - 1, whose products and sum are kept
 * with what they lose. */
BOTH double log_size(number z)
{
    double a = fabs(z.real()), b = fabs(z.imag());
    double x = a > b ? a : b, y = a > b ? b : a;
    double xx = x * x, yy = y * y, size = xx + yy; /* NaN where a part is */
    if (size > 0.5 && size < 2) {
        double lost = fma(x, x, -xx) + fma(y, y, -yy);
        double from = xx - 1, sum = from + yy, back = sum - from;
        lost += (from - (sum - back)) + (yy - back);
        return log1p(sum + lost) / 2;
    }
    if (is_tame(z))
        return log(size) / 2;
    if (is_infinite(z))
        return INFINITY; /* beside NaN, too */
    int e = scale(&z);
    return log(hypot(z.real(), z.imag())) + e * LN2;
}

BOTH number logarithm(number z)
{
    return number(log_size(z), atan2(z.imag(), z.real()));
}

/* The part that does not cancel is sqrt((|z| + |re z|) / 2), the other one
 * follows from their product. Source: Kahan, Branch cuts for complex elementary
 * functions, 1987. */
BOTH number square_root(number z)
{
    if (!is_tame(z))
        return thrust::sqrt(z);
    double more = sqrt((size_of(z) + fabs(z.real())) / 2);
    double less = fabs(z.imag()) / (2 * more);
    return z.real() < 0 ? number(less, copysign(more, z.imag()))
                        : number(more, copysign(less, z.imag()));
}

/* On the imaginary axis the real part is 0, beside NaN, too. */
BOTH number tanh_of(number z)
{
    if (z.real() == 0 && !isfinite(z.imag()))
        return number(z.real(), NAN);
    return thrust::tanh(z);
}

/* -i tanh(i z) */
BOTH number tan_of(number z)
{
    number t = tanh_of(number(-z.imag(), z.real()));
    return number(t.imag(), -t.real());
}

/* z to a whole power, by squaring. */
BOTH number whole_power(number z, int n)
{
    number p(1, 0);
    for (unsigned k = (unsigned)(n < 0 ? -n : n); k > 0; k >>= 1) {
        if (k & 1)
            p = multiply(p, z);
        z = multiply(z, z);
    }
    return n < 0 ? divide(number(1, 0), p) : p;
}

/* exp(w log z); in range where a power by squaring is. */
BOTH number power(number z, number w)
{
    const double most = 1024, few = 3;
    double x = w.real();
    if (w.imag() == 0 && x == rint(x) && fabs(x) <= most) {
        number p = whole_power(z, (int)x);
        double size = fabs(p.real()) + fabs(p.imag());
        if (fabs(x) <= few || (size >= 0x1p-1022 && size < INFINITY))
            return p;
    }
    if (!is_true(z) && x > 0)
        return number(0, 0);
    if (!is_true(z) && !is_true(w))
        return number(1, 0);
    return thrust::exp(multiply(w, logarithm(z)));
}

/* z / |z|; of 0 it is 0, of NaN NaN. */
BOTH number direction(number z)
{
    double x = z.real(), y = z.imag();
    if (is_nan(z))
        return number(NAN, NAN);
    if (!is_true(z))
        return number(0, 0);
    if (is_infinite(z))
        z = number(unit_of(x), unit_of(y));
    scale(&z);
    double size = hypot(z.real(), z.imag());
    return number(z.real() / size, z.imag() / size);
}

/* ln 2 in two pieces, as an angle keeps its digits only so; of one that has
 * none the second would be no small turn. */
BOTH number exp_2(number z)
{
    double y = z.imag(), angle = y * LN2;
    if (y == 0)
        return number(exp2(z.real()), y);
    if (!isfinite(z.real()) || !isfinite(y))
        return thrust::exp(number(z.real(), angle)); /* special all the same */
    double rest = fma(y, LN2, -angle) + y * LN2_REST;
    rest = fabs(rest) < 0x1p-20 ? rest : 0;
    double size = exp2(z.real()), c = cos(angle), s = sin(angle);
    return number(size * (c - rest * s), size * (s + rest * c));
}

/* exp(x) cos(y) - 1 without cancelling: expm1(x) cos(y) - 2 sin(y / 2)^2. */
BOTH number exp_minus_1(number z)
{
    double x = z.real(), y = z.imag(), half = sin(y / 2);
    if (y == 0)
        return number(expm1(x), y);
    return number(expm1(x) * cos(y) - 2 * half * half, exp(x) * sin(y));
}

BOTH number log_over(number z, double by)
{
    number l = logarithm(z);
    return number(l.real() / by, l.imag() / by);
}

/* log |1 + z| = log1p(x (2 + x) + y^2) / 2. */
BOTH number log_1_plus(number z)
{
    double x = z.real(), y = z.imag();
    if (!(fabs(x) <= 0.5 && fabs(y) <= 0.5))
        return logarithm(number(1 + x, y));
    return number(log1p(x * (2 + x) + y * y) / 2, atan2(y, 1 + x));
}

/* All operations that complex numbers have, by their names in ops.def. */
#define OPERATIONS(F)                                     \
    F(add, add(in))                                       \
    F(sub, subtract(in))                                  \
    F(mul, product(in))                                   \
    F(div, quotient(in))                                  \
    F(reciprocal, divide(number(1, 0), z))                \
    F(square, multiply(z, z))                             \
    F(neg, number(-z.real(), -z.imag()))                  \
    F(conj, number(z.real(), -z.imag()))                  \
    F(where, is_true(z) ? w : in.z)                       \
    F(abs, number(size_of(z), 0))                         \
    F(real, number(z.real(), 0))                          \
    F(imag, number(z.imag(), 0))                          \
    F(angle, number(atan2(z.imag(), z.real()), 0))        \
    F(sign, direction(z))                                 \
    F(eq, number(z == w, 0))                              \
    F(ne, number(!(z == w), 0))                           \
    F(land, number(is_true(z) && is_true(w), 0))          \
    F(lor, number(is_true(z) || is_true(w), 0))           \
    F(lxor, number(is_true(z) != is_true(w), 0))          \
    F(lnot, number(!is_true(z), 0))                       \
    F(isnan, number(is_nan(z), 0))                        \
    F(isinf, number(is_infinite(z), 0))                   \
    F(isfinite, number(!is_nan(z) && !is_infinite(z), 0)) \
    F(pow, power(z, w))                                   \
    F(sqrt, square_root(z))                               \
    F(exp, thrust::exp(z))                                \
    F(exp2, exp_2(z))                                     \
    F(expm1, exp_minus_1(z))                              \
    F(log, logarithm(z))                                  \
    F(log2, log_over(z, LN2))                             \
    F(log10, log_over(z, 2.302585092994045684))           \
    F(log1p, log_1_plus(z))                               \
    F(sin, thrust::sin(z))                                \
    F(cos, thrust::cos(z))                                \
    F(tan, tan_of(z))                                     \
    F(asin, thrust::asin(z))                              \
    F(acos, thrust::acos(z))                              \
    F(atan, thrust::atan(z))                              \
    F(sinh, thrust::sinh(z))                              \
    F(cosh, thrust::cosh(z))                              \
    F(tanh, tanh_of(z))                                   \
    F(asinh, thrust::asinh(z))                            \
    F(acosh, thrust::acosh(z))                            \
    F(atanh, thrust::atanh(z))

/* The operation of that number; of others NaN. */
template <int OP> BOTH number apply(const operands &in)
{
    number z = in.x, w = in.y;
    (void)w;
    switch (OP) {
#define CASE(name, value) \
    case GPU_OP_##name:   \
        return value;
        OPERATIONS(CASE)
    }
    return number(NAN, NAN);
}

/* How many operands it has. */
__host__ __device__ static constexpr int arity_of(int op)
{
    constexpr int arities[] = {
#define OP(name, arity, ...) arity,
#define TEST OP
#define REDUCTION(...)
#include "ops.def"
    };
    return arities[op];
}

/* --- elements ------------------------------------------------------------- */

/* An operand; a number has no data. */
typedef struct complex_source {
    gpu_view view;
    number value;
    int is_real, is_conjugated;
} complex_source;

typedef struct complex_job {
    int count, is_conjugated; /* the latter of out */
    complex_source in[3];
    gpu_view out;
    int64_t elements;
} complex_job;

/* The elements that a thread has. */
typedef struct handful {
    number z[EACH];
} handful;

__device__ __forceinline__ number as_number(float2 z)
{
    return number((double)z.x, (double)z.y);
}

__device__ __forceinline__ number as_number(double2 z)
{
    return number(z.x, z.y);
}

template <class T> __device__ __forceinline__ number as_number(T x)
{
    return number(widened(x), 0);
}

/* Those from `first` on, a block apart. */
template <class T>
__device__ __forceinline__ void load_numbers(const gpu_view &v, int64_t first,
                                             int64_t elements, handful *to)
{
    T found[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (first + k * THREADS < elements)
            found[k] = ((const T *)v.data)[place_of(v, first + k * THREADS)];
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (first + k * THREADS < elements)
            to->z[k] = as_number(found[k]);
}

__device__ __forceinline__ void load_source(const complex_source &s,
                                            int64_t first, int64_t elements,
                                            handful *to)
{
    if (s.view.data == NULL) {
        for (int k = 0; k < EACH; k++)
            to->z[k] = s.value;
        return;
    }
    switch (s.view.dtype) {
    case GPU_C128:
        load_numbers<double2>(s.view, first, elements, to);
        break;
    case GPU_C64:
        load_numbers<float2>(s.view, first, elements, to);
        break;
    case GPU_F64:
        load_numbers<double>(s.view, first, elements, to);
        break;
    case GPU_F32:
        load_numbers<float>(s.view, first, elements, to);
        break;
    default:
        load_numbers<uint8_t>(s.view, first, elements, to);
    }
    if (s.is_conjugated)
        for (int k = 0; k < EACH; k++)
            to->z[k] = number(to->z[k].real(), -to->z[k].imag());
}

__device__ __forceinline__ void store_number(const gpu_view &v, int64_t at,
                                             number z)
{
    switch (v.dtype) {
    case GPU_C128:
        ((double2 *)v.data)[at] = make_double2(z.real(), z.imag());
        break;
    case GPU_C64:
        ((float2 *)v.data)[at] = make_float2((float)z.real(), (float)z.imag());
        break;
    case GPU_F64:
        ((double *)v.data)[at] = z.real();
        break;
    case GPU_F32:
        ((float *)v.data)[at] = (float)z.real();
        break;
    default:
        ((uint8_t *)v.data)[at] = is_true(z);
    }
}

/* --- the kernels ---------------------------------------------------------- */

template <int OP>
__global__ void __launch_bounds__(THREADS) map_complex(const complex_job job)
{
    int64_t first = blockIdx.x * (int64_t)(THREADS * EACH) + threadIdx.x;
    handful x, y, z;
    load_source(job.in[0], first, job.elements, &x);
    if (arity_of(OP) > 1)
        load_source(job.in[1], first, job.elements, &y);
    if (arity_of(OP) > 2)
        load_source(job.in[2], first, job.elements, &z);
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        int64_t e = first + k * THREADS;
        if (e >= job.elements)
            return;
        operands in = {x.z[k], y.z[k], z.z[k], job.in[0].is_real,
                       job.in[1].is_real};
        number r = apply<OP>(in);
        if (job.is_conjugated)
            r = number(r.real(), -r.imag());
        store_number(job.out, place_of(job.out, e), r);
    }
}

/* GPU_UNSUPPORTED: complex numbers have no such operation. */
static gpu_status launch(cuda_device *d, gpu_op op, const complex_job &job)
{
    unsigned blocks = (unsigned)ceil_div(job.elements, THREADS * EACH);
    switch (op) {
#define LAUNCH(name, ...)                                                   \
    case GPU_OP_##name:                                                     \
        map_complex<GPU_OP_##name><<<blocks, THREADS, 0, d->stream>>>(job); \
        break;
        OPERATIONS(LAUNCH)
    default:
        return FAIL(GPU_UNSUPPORTED, "complex: operation %d is not on a GPU",
                    (int)op);
    }
    LAUNCHED(d);
    return GPU_OK;
}

/* --- the entry ------------------------------------------------------------ */

static complex_source source_of(const gpu_complex_call *c, int i)
{
    complex_source s = {c->in[i], number(0, 0), c->in[i].dtype < GPU_C64,
                        c->is_conjugated[i]};
    const double *value = (const double *)c->in[i].data;
    if (c->is_number[i]) {
        s.value = number(value[0], s.is_real ? 0 : value[1]);
        s.view.data = NULL;
    }
    return s;
}

/* Elements in the order in which they lie. */
static void arrange(complex_job *job)
{
    gpu_view *views[] = {&job->out, &job->in[0].view, &job->in[1].view,
                         &job->in[2].view};
    bool is_down = job->out.rows > 1 && stride_size(job->out.row_stride) <
                                            stride_size(job->out.col_stride);
    for (int i = 0; i <= job->count; i++) {
        if (is_down)
            swap_axes(views[i]);
        flatten(views[i]);
    }
}

gpu_status gpu_cuda_complex_map(void *device, const gpu_complex_call *call)
{
    ENTER(d, device);
    complex_job job = {};
    job.count = call->count;
    job.is_conjugated = call->is_out_conjugated;
    job.out = call->out;
    job.elements = call->out.rows * call->out.cols;
    if (job.elements == 0)
        return GPU_OK;
    for (int i = 0; i < call->count; i++)
        job.in[i] = source_of(call, i);
    arrange(&job);
    return launch(d, call->op, job);
}

/* --- rows for products ------------------------------------------------------
 * Limited by bytes: 24 an element of c64. */

__device__ __forceinline__ float2 turn(float2 z, float by)
{
    return make_float2(-by * z.y, by * z.x);
}

__device__ __forceinline__ double2 turn(double2 z, float by)
{
    return make_double2(-by * z.y, by * z.x);
}

__device__ __forceinline__ float4 turn(float4 z, float by)
{
    return make_float4(-by * z.y, by * z.x, -by * z.w, by * z.z);
}

__device__ __forceinline__ void conjugate(float2 *z)
{
    z->y = -z->y;
}

__device__ __forceinline__ void conjugate(double2 *z)
{
    z->y = -z->y;
}

__device__ __forceinline__ void conjugate(float4 *z)
{
    z->y = -z->y;
    z->w = -z->w;
}

/* V: one element, or two. Rows of n of them; by: 1 or -1. */
template <class V>
__global__ void __launch_bounds__(THREADS)
    pair_rows(const V *in, int64_t ld, int64_t rows, int64_t n, V *out,
              int64_t ld_out, int is_conjugated, float by)
{
    int64_t j = blockIdx.x * (int64_t)THREADS + threadIdx.x;
    if (j >= n)
        return;
#pragma unroll 4
    for (int64_t i = blockIdx.y; i < rows; i += gridDim.y) {
        V z = in[i * ld + j];
        if (is_conjugated)
            conjugate(&z);
        out[2 * i * ld_out + j] = z;
        out[(2 * i + 1) * ld_out + j] = turn(z, by);
    }
}

/* per: elements of a V. */
template <class V>
static gpu_status launch_pairs(cuda_device *d, const gpu_complex_pairs *p,
                               int per)
{
    int64_t rows = p->in.rows, n = p->in.cols / per;
    dim3 grid((unsigned)ceil_div(n, THREADS),
              (unsigned)smaller(ceil_div(rows, 4), 65535));
    pair_rows<V><<<grid, THREADS, 0, d->stream>>>(
        (const V *)p->in.data, p->in.row_stride / per, rows, n,
        (V *)p->out.data, p->out.row_stride / per, p->is_conjugated,
        p->is_negative ? -1.0f : 1.0f);
    LAUNCHED(d);
    return GPU_OK;
}

gpu_status gpu_cuda_complex_pairs(void *device, const gpu_complex_pairs *p)
{
    ENTER(d, device);
    if (p->in.rows == 0 || p->in.cols == 0)
        return GPU_OK;
    if (p->in.dtype == GPU_C128)
        return launch_pairs<double2>(d, p, 1);
    bool is_even = p->in.cols % 2 == 0 && p->in.row_stride % 2 == 0 &&
                   p->out.row_stride % 2 == 0 && is_aligned(p->in.data) &&
                   is_aligned(p->out.data);
    return is_even ? launch_pairs<float4>(d, p, 2)
                   : launch_pairs<float2>(d, p, 1);
}
