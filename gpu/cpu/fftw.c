/* Fourier transforms by FFTW (Frigo and Johnson, The design and implementation
 * of FFTW3, 2005), loaded when somebody first asks for them.
 *
 * A plan is made for one line, from one piece of aligned memory to another,
 * without measuring: so a line's bits depend on its elements and its length
 * alone, and lines are spread over our own threads. What does not lie so is
 * copied to where it does, a few lines at a time.
 *
 * A long line is a matrix whose columns and rows are transformed, with a factor
 * for each element in between (Cooley and Tukey, An algorithm for the machine
 * calculation of complex Fourier series, 1965): the parts fit a cache, run on
 * all cores, and can be stopped. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "cpu.h"

/* --- the library -----------------------------------------------------------
 * Its interface as of version 3, for f32 and for f64. */

typedef void *plan;
typedef struct dimension { /* fftw_iodim64 */
    ptrdiff_t n, in, out;
} dimension;
enum { FORWARD = -1, BACKWARD = 1 };
enum { LOSE_INPUT = 1 << 0, KEEP_INPUT = 1 << 4, ESTIMATE = 1 << 6 };

typedef plan plan_complex(int rank, const dimension *n, int loops,
                          const dimension *loop, void *in, void *out,
                          int direction, unsigned flags);
typedef plan plan_real(int rank, const dimension *n, int loops,
                       const dimension *loop, void *in, void *out,
                       unsigned flags);
typedef void execute(plan p, void *in, void *out);

typedef struct library {
    plan_complex *plan_guru64_dft;
    plan_real *plan_guru64_dft_r2c, *plan_guru64_dft_c2r;
    execute *execute_dft, *execute_dft_r2c, *execute_dft_c2r;
    void (*destroy_plan)(plan p);
    int is_loaded;
} library;

static library libraries[2]; /* by gpu_dtype */

static int find(void *file, gpu_dtype t, const char *name, void *slot)
{
    char symbol[48];
    snprintf(symbol, sizeof symbol, "fftw%s_%s", t == GPU_F64 ? "" : "f", name);
    void *found = dlsym(file, symbol);
    *(void **)slot = found;
    return found != NULL;
}

static gpu_status load(gpu_dtype t, const library **out)
{
    library *l = &libraries[t];
    const char *name = t == GPU_F64 ? "libfftw3.so.3" : "libfftw3f.so.3";
    *out = l;
    if (l->is_loaded)
        return GPU_OK;
    void *file = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!file)
        return gpu_cpu_host->fail(
            GPU_UNSUPPORTED,
            "fft: there is no FFTW here: install libfftw3-%s3 (%s)",
            t == GPU_F64 ? "double" : "single", dlerror());
#define FIND(function) find(file, t, #function, &l->function)
    l->is_loaded = FIND(plan_guru64_dft) && FIND(plan_guru64_dft_r2c) &&
                   FIND(plan_guru64_dft_c2r) && FIND(execute_dft) &&
                   FIND(execute_dft_r2c) && FIND(execute_dft_c2r) &&
                   FIND(destroy_plan);
    if (l->is_loaded)
        return GPU_OK;
    dlclose(file);
    return gpu_cpu_host->fail(GPU_UNSUPPORTED,
                              "fft: %s lacks functions of FFTW 3", name);
}

/* FFTW ends the process where it gets no memory: so what a line of n elements
 * may take of it, at most, is asked for before: for each plan, and each time a
 * LARGE one runs. */
enum { LARGE = 1 << 14 };
static gpu_status check_room(int64_t n)
{
    enum { LEAST = 1 << 24, ELEMENT = 16, TIMES = 8 };
    size_t bytes = LEAST + (size_t)n * ELEMENT * TIMES;
    void *room = mmap(NULL, bytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return gpu_cpu_stop(GPU_MEMORY);
    munmap(room, bytes);
    return GPU_OK;
}

/* --- plans -----------------------------------------------------------------
 * The last ones are kept: making one takes many times as long as using it. */

enum { ALIGNMENT = 64, MOST_PLANS = 64, MOST_LENGTH = 1 << 25 };

typedef struct kept_plan {
    plan plan;
    gpu_dtype type; /* f32 or f64 */
    gpu_fft_kind kind;
    int is_inverse;
    int64_t n;
    uint64_t used;
} kept_plan;

static struct {
    kept_plan list[MOST_PLANS];
    int count;
    int64_t length; /* of all lines: their tables are about as long at most */
    uint64_t uses;
} plans;

static void drop_oldest(void)
{
    int oldest = 0;
    for (int i = 1; i < plans.count; i++)
        if (plans.list[i].used < plans.list[oldest].used)
            oldest = i;
    kept_plan *old = &plans.list[oldest];
    libraries[old->type].destroy_plan(old->plan);
    plans.length -= old->n;
    *old = plans.list[--plans.count];
}

static plan make_plan(const library *l, const kept_plan *p)
{
    static _Alignas(ALIGNMENT) char memory[2 * ALIGNMENT]; /* not touched */
    void *in = memory, *out = memory + ALIGNMENT;
    dimension n = {(ptrdiff_t)p->n, 1, 1};
    if (p->kind == GPU_FFT_HALF)
        return l->plan_guru64_dft_r2c(1, &n, 0, NULL, in, out,
                                      ESTIMATE | KEEP_INPUT);
    if (p->kind == GPU_FFT_FROM_HALF)
        return l->plan_guru64_dft_c2r(1, &n, 0, NULL, in, out,
                                      ESTIMATE | LOSE_INPUT);
    return l->plan_guru64_dft(1, &n, 0, NULL, in, out,
                              p->is_inverse ? BACKWARD : FORWARD,
                              ESTIMATE | KEEP_INPUT);
}

/* The plan for what `wanted` says. */
static gpu_status take_plan(const library *l, kept_plan wanted, plan *out)
{
    plans.uses++;
    for (int i = 0; i < plans.count; i++) {
        kept_plan *p = &plans.list[i];
        if (p->n == wanted.n && p->type == wanted.type &&
            p->kind == wanted.kind && p->is_inverse == wanted.is_inverse) {
            p->used = plans.uses;
            *out = p->plan;
            return GPU_OK;
        }
    }
    while (plans.count == MOST_PLANS ||
           (plans.count > 0 && plans.length + wanted.n > MOST_LENGTH))
        drop_oldest();
    gpu_status status = check_room(wanted.n);
    if (status != GPU_OK)
        return status;
    wanted.plan = make_plan(l, &wanted);
    if (!wanted.plan)
        return gpu_cpu_host->fail(GPU_UNSUPPORTED,
                                  "fft: FFTW has no plan for %lld elements",
                                  (long long)wanted.n);
    wanted.used = plans.uses;
    plans.list[plans.count++] = wanted;
    plans.length += wanted.n;
    *out = wanted.plan;
    return GPU_OK;
}

/* --- factors of long lines -------------------------------------------------
 * exp(-2 pi i e / n), or with +, for 0 <= e < n, as the product of one of a
 * fine and one of a coarse table, in f64. */

typedef struct factors {
    double *fine, *coarse; /* pairs */
    int shift;             /* a coarse step is 2^shift */
    size_t bytes;          /* of both, from fine on */
} factors;

static void fill_factors(double *to, int64_t count, int64_t step, int64_t n,
                         int is_inverse)
{
    const long double turn = 2 * 3.14159265358979323846264338327950288L;
    for (int64_t i = 0; i < count; i++) {
        long double angle = turn * (long double)(i * step) / (long double)n;
        to[2 * i] = (double)cosl(angle);
        to[2 * i + 1] = (double)(is_inverse ? sinl(angle) : -sinl(angle));
    }
}

static gpu_status make_factors(int64_t n, int is_inverse, factors *f)
{
    void *room;
    f->shift = 0;
    while ((int64_t)1 << 2 * f->shift < n)
        f->shift++;
    int64_t fine = (int64_t)1 << f->shift, coarse = (n >> f->shift) + 1;
    f->bytes = (size_t)(fine + coarse) * 2 * sizeof *f->fine;
    if (gpu_cpu_alloc(NULL, f->bytes, &room) != GPU_OK)
        return gpu_cpu_stop(GPU_MEMORY);
    f->fine = room;
    f->coarse = f->fine + 2 * fine;
    fill_factors(f->fine, fine, 1, n, is_inverse);
    fill_factors(f->coarse, coarse, fine, n, is_inverse);
    return GPU_OK;
}

/* --- lines -----------------------------------------------------------------
 */

/* Transforms of the rows of a view, which become those of another. */
typedef struct lines {
    const library *library;
    plan plan;
    gpu_fft_kind kind;
    int is_inverse;
    double scale;
    gpu_view in, out;
    int is_read_there, is_written_there; /* by FFTW itself */
    int64_t block;                       /* so many at once */
    int64_t in_step, out_step; /* elements from line to line of copies */
    const factors *factors;    /* for element j of line i number i j; NULL */
} lines;

typedef struct pair_f64 {
    double part[2];
} pair_f64;

static char *element(const gpu_view *v, int64_t line)
{
    return (char *)v->data +
           line * v->row_stride * (int64_t)gpu_cpu_size(v->dtype);
}

/* Of pairs of f64, which programs know nothing of: by tiles, of which one side
 * is read, and the other written, by whole lines. */
static void move_pairs(const gpu_view *from, const gpu_view *to)
{
    enum { TILE = 16 };
    const pair_f64 *source = from->data;
    pair_f64 *target = to->data;
    for (int64_t first = 0; first < from->cols; first += TILE) {
        int64_t last = gpu_cpu_smaller(first + TILE, from->cols);
        for (int64_t i = 0; i < from->rows; i++)
            for (int64_t j = first; j < last; j++)
                target[i * to->row_stride + j * to->col_stride] =
                    source[i * from->row_stride + j * from->col_stride];
    }
}

/* A pair of f32 is moved as an f64. */
static void move_lines(gpu_view from, gpu_view to)
{
    size_t size = gpu_cpu_size(from.dtype);
    from.dtype = to.dtype = size == sizeof(float) ? GPU_F32 : GPU_F64;
    if (size == sizeof(pair_f64))
        move_pairs(&from, &to);
    else
        gpu_cpu_convert(&from, &to);
}

/* Some of v's lines, and a copy of them, `step` apart. */
static void read_lines(const gpu_view *v, int64_t first, int64_t count,
                       int64_t step, char *copy)
{
    gpu_view to = {copy, v->dtype, count, v->cols, step, 1};
    move_lines(gpu_cpu_part(v, first, 0, count, v->cols), to);
}

static void write_lines(const gpu_view *v, int64_t first, int64_t count,
                        int64_t step, char *copy)
{
    gpu_view from = {copy, v->dtype, count, v->cols, step, 1};
    move_lines(from, gpu_cpu_part(v, first, 0, count, v->cols));
}

static void scale_f32(float *x, int64_t n, float by)
{
    for (int64_t i = 0; i < n; i++)
        x[i] *= by;
}

static void scale_f64(double *x, int64_t n, double by)
{
    for (int64_t i = 0; i < n; i++)
        x[i] *= by;
}

enum { NEAR = 32 }; /* factors that a line's pieces share */

/* That of e < n. */
static void find_factor(const factors *f, int64_t e, double to[2])
{
    const double *a = f->fine + 2 * (e & (((int64_t)1 << f->shift) - 1));
    const double *b = f->coarse + 2 * (e >> f->shift);
    to[0] = a[0] * b[0] - a[1] * b[1];
    to[1] = a[0] * b[1] + a[1] * b[0];
}

/* What of a line is the same in both types. */
#define LINE_FUNCTIONS(type, name)                                     \
    static void conjugate_##name(type *x, int64_t n)                   \
    {                                                                  \
        for (int64_t i = 0; i < n; i++)                                \
            x[2 * i + 1] = -x[2 * i + 1];                              \
    }                                                                  \
    static void mirror_##name(type *x, int64_t n)                      \
    {                                                                  \
        for (int64_t i = n / 2 + 1; i < n; i++) {                      \
            x[2 * i] = x[2 * (n - i)];                                 \
            x[2 * i + 1] = -x[2 * (n - i) + 1];                        \
        }                                                              \
    }                                                                  \
    static void drop_imaginary_##name(type *x, int64_t n)              \
    {                                                                  \
        x[1] = 0;                                                      \
        if (n % 2 == 0)                                                \
            x[n + 1] = 0;                                              \
    }                                                                  \
    static void multiply_##name(type *x, int64_t n, const factors *f,  \
                                int64_t line)                          \
    {                                                                  \
        double near[NEAR][2];                                          \
        for (int64_t i = 0; i < NEAR && i < n; i++)                    \
            find_factor(f, i *line, near[i]);                          \
        for (int64_t first = 0; first < n; first += NEAR) {            \
            double far[2];                                             \
            type *at = x + 2 * first;                                  \
            find_factor(f, first *line, far);                          \
            for (int64_t i = 0; i < NEAR && first + i < n; i++) {      \
                double re = near[i][0] * far[0] - near[i][1] * far[1]; \
                double im = near[i][0] * far[1] + near[i][1] * far[0]; \
                double x_re = (double)at[2 * i];                       \
                double x_im = (double)at[2 * i + 1];                   \
                at[2 * i] = (type)(x_re * re - x_im * im);             \
                at[2 * i + 1] = (type)(x_re * im + x_im * re);         \
            }                                                          \
        }                                                              \
    }
LINE_FUNCTIONS(float, f32)
LINE_FUNCTIONS(double, f64)
#define BY_TYPE(l, function, x, ...)                    \
    do {                                                \
        if (is_f64(l))                                  \
            function##_f64((double *)(x), __VA_ARGS__); \
        else                                            \
            function##_f32((float *)(x), __VA_ARGS__);  \
    } while (0)

static int is_f64(const lines *l)
{
    return l->in.dtype == GPU_F64 || l->in.dtype == GPU_C128;
}

/* A line where FFTW reads it, which is lost where it comes from half, to where
 * it is written. */
static void transform_line(const lines *l, int64_t line, char *in, char *out)
{
    int64_t n = l->kind == GPU_FFT_FROM_HALF ? l->out.cols : l->in.cols;
    if (l->kind == GPU_FFT_FROM_HALF) {
        BY_TYPE(l, drop_imaginary, in, n);
        l->library->execute_dft_c2r(l->plan, in, out);
        BY_TYPE(l, scale, out, n, l->scale);
        return;
    }
    if (l->kind == GPU_FFT_COMPLEX)
        l->library->execute_dft(l->plan, in, out);
    else
        l->library->execute_dft_r2c(l->plan, in, out);
    int64_t made = l->kind == GPU_FFT_COMPLEX ? n : n / 2 + 1;
    if (l->kind != GPU_FFT_COMPLEX && l->is_inverse)
        BY_TYPE(l, conjugate, out, made);
    if (l->scale != 1)
        BY_TYPE(l, scale, out, 2 * made, l->scale);
    if (l->factors)
        BY_TYPE(l, multiply, out, n, l->factors, line);
    if (l->kind == GPU_FFT_REAL)
        BY_TYPE(l, mirror, out, n);
}

static size_t copy_bytes(int is_there, const gpu_view *v, int64_t step,
                         int64_t block)
{
    return is_there ? 0 : (size_t)(step * block) * gpu_cpu_size(v->dtype);
}

static void transform_block(const lines *l, int64_t first, int64_t count,
                            char *in_copy, char *out_copy)
{
    size_t in_line = (size_t)l->in_step * gpu_cpu_size(l->in.dtype);
    size_t out_line = (size_t)l->out_step * gpu_cpu_size(l->out.dtype);
    if (!l->is_read_there)
        read_lines(&l->in, first, count, l->in_step, in_copy);
    for (int64_t i = 0; i < count; i++) {
        char *in = l->is_read_there ? element(&l->in, first + i)
                                    : in_copy + (size_t)i * in_line;
        char *out = l->is_written_there ? element(&l->out, first + i)
                                        : out_copy + (size_t)i * out_line;
        transform_line(l, first + i, in, out);
    }
    if (!l->is_written_there)
        write_lines(&l->out, first, count, l->out_step, out_copy);
}

static gpu_status transform_range(void *context, int64_t first, int64_t last)
{
    enum { ALIGNED_FROM = 4096 }; /* bytes */
    const lines *l = context;
    void *room;
    size_t in = copy_bytes(l->is_read_there, &l->in, l->in_step, l->block);
    size_t out =
        copy_bytes(l->is_written_there, &l->out, l->out_step, l->block);
    size_t bytes = in + out < ALIGNED_FROM ? ALIGNED_FROM : in + out;
    if (gpu_cpu_alloc(NULL, bytes, &room) != GPU_OK)
        return GPU_MEMORY;
    gpu_status status = GPU_OK;
    for (int64_t i = first; i < last && status == GPU_OK; i += l->block) {
        int64_t count = gpu_cpu_smaller(l->block, last - i);
        transform_block(l, i, count, room, (char *)room + in);
        if (gpu_cpu_interrupted())
            status = GPU_INTERRUPTED;
    }
    gpu_cpu_free(NULL, room, bytes);
    return status;
}

/* Does each line lie as a plan has it? */
static int suits_plan(const gpu_view *v)
{
    size_t line = (size_t)v->row_stride * gpu_cpu_size(v->dtype);
    return (v->col_stride == 1 || v->cols == 1) &&
           (uintptr_t)v->data % ALIGNMENT == 0 &&
           (v->rows == 1 || line % ALIGNMENT == 0);
}

/* Elements from line to line of a copy, which are not a power of two apart, as
 * their places in a cache would be the same. */
static int64_t step_of(int64_t length)
{
    enum { ELEMENTS = 16 }; /* a multiple of the alignment in any type */
    return (length + ELEMENTS - 1) / ELEMENTS * ELEMENTS + ELEMENTS;
}

/* The rest of l is known. */
static gpu_status run_lines(lines *l)
{
    enum { TOGETHER = 256, COPIED = 1 << 22 }; /* bytes; elements */
    const gpu_view *in = &l->in, *out = &l->out;
    int is_half = l->kind == GPU_FFT_REAL || l->kind == GPU_FFT_HALF;
    int64_t n = l->kind == GPU_FFT_FROM_HALF ? out->cols : in->cols;
    kept_plan wanted = {.type = is_f64(l) ? GPU_F64 : GPU_F32,
                        .kind = is_half ? GPU_FFT_HALF : l->kind,
                        .is_inverse = !is_half && l->is_inverse,
                        .n = n};
    gpu_status status = load(wanted.type, &l->library);
    if (status == GPU_OK && n >= LARGE)
        status = check_room(n);
    if (status == GPU_OK)
        status = take_plan(l->library, wanted, &l->plan);
    if (status != GPU_OK)
        return status;
    l->is_read_there =
        suits_plan(in) && in->data != out->data && l->kind != GPU_FFT_FROM_HALF;
    l->is_written_there = suits_plan(out);
    l->in_step = step_of(in->cols);
    l->out_step = step_of(out->cols);
    int64_t block = in->col_stride == 1 && out->col_stride == 1
                        ? 1
                        : TOGETHER / (int64_t)gpu_cpu_size(out->dtype);
    while (block > 1 && block * n > COPIED)
        block /= 2;
    l->block = block;
    return gpu_cpu_parallel(in->rows, in->rows * n * 4, transform_range, l);
}

/* --- long lines ----------------------------------------------------------- */

/* From here on a complex line is cut, if it can be: FFTW alone takes less time
 * of one core, but nothing stops it. */
enum { LONG = 1 << 24 };
static int64_t long_from = LONG;

void gpu_cpu_set_long_lines(int64_t from)
{
    long_from = from > 0 ? from : LONG;
}

/* The divisor of n next to its root from below that is no less than a
 * sixteenth of the root; 0: there is none. */
static int64_t find_cut(int64_t n)
{
    int64_t root = (int64_t)sqrt((double)n);
    for (int64_t d = root; d > 1 && d >= root / 16; d--)
        if (n % d == 0)
            return d;
    return 0;
}

/* x[cols i + j] are the rows of a matrix. Its columns are transformed, and
 * times exp(-+2 pi i k j / n) laid into `middle`, whose rows then give the
 * elements k + rows l of the result. */
static gpu_status transform_long(const lines *whole, int64_t rows,
                                 const factors *f, void *middle)
{
    int64_t n = whole->in.cols, cols = n / rows;
    int64_t in = whole->in.col_stride, out = whole->out.col_stride;
    lines down = *whole, across = *whole;
    gpu_dtype type = whole->in.dtype;
    down.in = (gpu_view){whole->in.data, type, cols, rows, in, cols * in};
    down.out = (gpu_view){middle, type, cols, rows, 1, cols};
    down.factors = f;
    down.scale = 1;
    across.in = (gpu_view){middle, type, rows, cols, cols, 1};
    across.out = (gpu_view){whole->out.data, type, rows, cols, out, rows * out};
    gpu_status status = run_lines(&down);
    return status == GPU_OK ? run_lines(&across) : status;
}

static gpu_status run_long_lines(const lines *l, int64_t rows)
{
    factors f;
    void *middle;
    int64_t n = l->in.cols;
    size_t bytes = (size_t)n * gpu_cpu_size(l->in.dtype);
    gpu_status status = make_factors(n, l->is_inverse, &f);
    if (status != GPU_OK)
        return status;
    if (gpu_cpu_alloc(NULL, bytes, &middle) != GPU_OK) {
        gpu_cpu_free(NULL, f.fine, f.bytes);
        return gpu_cpu_stop(GPU_MEMORY);
    }
    for (int64_t i = 0; i < l->in.rows && status == GPU_OK; i++) {
        lines one = *l;
        one.in = gpu_cpu_part(&l->in, i, 0, 1, n);
        one.out = gpu_cpu_part(&l->out, i, 0, 1, n);
        status = transform_long(&one, rows, &f, middle);
    }
    gpu_cpu_free(NULL, middle, bytes);
    gpu_cpu_free(NULL, f.fine, f.bytes);
    return status;
}

/* --- the entry ------------------------------------------------------------ */

/* Along axis 1 or 2. */
static gpu_status transform(gpu_fft_call c)
{
    lines l = {.kind = c.kind,
               .is_inverse = c.is_inverse,
               .scale = c.scale,
               .in = c.axis == 1 ? gpu_cpu_turned(c.in) : c.in,
               .out = c.axis == 1 ? gpu_cpu_turned(c.out) : c.out};
    int64_t n = l.in.cols;
    int64_t rows =
        c.kind == GPU_FFT_COMPLEX && n >= long_from ? find_cut(n) : 0;
    return rows > 0 ? run_long_lines(&l, rows) : run_lines(&l);
}

/* The columns of a whole spectrum that were not made. */
static gpu_status mirror_rows(void *context, int64_t first, int64_t last)
{
    const gpu_view *v = context;
    int64_t half = v->cols / 2 + 1, step = 2 * v->col_stride;
    for (int64_t i = first; i < last; i++) {
        int64_t to = 2 * i * v->row_stride;
        int64_t from = 2 * ((v->rows - i) % v->rows) * v->row_stride;
        for (int64_t j = half; j < v->cols; j++) {
            int64_t at = to + j * step, other = from + (v->cols - j) * step;
            if (v->dtype == GPU_C128) {
                ((double *)v->data)[at] = ((double *)v->data)[other];
                ((double *)v->data)[at + 1] = -((double *)v->data)[other + 1];
            } else {
                ((float *)v->data)[at] = ((float *)v->data)[other];
                ((float *)v->data)[at + 1] = -((float *)v->data)[other + 1];
            }
        }
    }
    return GPU_OK;
}

/* Rows, then columns: of real numbers those of half a spectrum. */
static gpu_status transform_both(gpu_fft_call c)
{
    gpu_fft_call across = c, down = c;
    gpu_view out = c.out;
    across.axis = 2;
    across.scale = 1;
    if (c.kind == GPU_FFT_REAL) {
        across.kind = GPU_FFT_HALF;
        across.out.cols = c.out.cols / 2 + 1;
        down.kind = GPU_FFT_COMPLEX;
    }
    down.in = down.out = across.out;
    down.axis = 1;
    gpu_status status = transform(across);
    if (status == GPU_OK)
        status = transform(down);
    if (status == GPU_OK && c.kind == GPU_FFT_REAL)
        status =
            gpu_cpu_parallel(out.rows, out.rows * out.cols, mirror_rows, &out);
    return status;
}

gpu_status gpu_cpu_fft(void *device, const gpu_fft_call *c)
{
    (void)device;
    return c->axis == 0 ? transform_both(*c) : transform(*c);
}
