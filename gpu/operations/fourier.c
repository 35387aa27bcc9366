/* Discrete Fourier transforms and convolutions: shapes, types, lengths, and
 * where they are worked out. See fourier.h. */
#include "fourier.h"
#include "complex_numbers.h"
#include "core.h"
#include "op_list.h"

#include <math.h>

/* --- operands ------------------------------------------------------------- */

static gpu_dtype part_type(const gpu_matrix *m)
{
    return gpu_dtype_of_parts(m->dtype) == GPU_F64 ? GPU_F64 : GPU_F32;
}

/* The first rows and cols of m, as far as it has so many. */
static gpu_status cut(const gpu_matrix *m, int64_t rows, int64_t cols,
                      gpu_matrix *out)
{
    gpu_slice down = {0, 1, m->rows < rows ? m->rows : rows};
    gpu_slice across = {0, 1, m->cols < cols ? m->cols : cols};
    return gpu_view_block(m, down, across, out);
}

/* Puts what there is of m before zeros. */
static gpu_status pad(const gpu_matrix *m, gpu_dtype type, int64_t rows,
                      int64_t cols, gpu_device *d, gpu_matrix *out)
{
    gpu_matrix there;
    TRY(gpu_create(out, d, type, m->ndim, rows, cols));
    gpu_status status = gpu_complex_fill(out, (gpu_complex){0, 0});
    if (status == GPU_OK && gpu_size(m) > 0) {
        status = cut(out, m->rows, m->cols, &there);
        if (status == GPU_OK) {
            status = gpu_copy(m, &there);
            gpu_release(&there);
        }
    }
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

/* Can transforms read it where it lies? A GPU's read real elements in pairs. */
static int is_plain(const gpu_matrix *m, gpu_dtype type, const gpu_device *d)
{
    int is_aligned = gpu_is_complex(m) || d->is_cpu || m->offset % 2 == 0;
    return m->dtype == type && !m->is_conjugated && is_aligned &&
           gpu_matrix_device(m) == d && (m->row_stride > 0 || m->rows == 1) &&
           (m->col_stride > 0 || m->cols == 1);
}

/* m on d, of so many rows and columns, with a reference. */
static gpu_status fit(const gpu_matrix *m, gpu_dtype type, int64_t rows,
                      int64_t cols, gpu_device *d, gpu_matrix *out)
{
    gpu_matrix part;
    TRY(cut(m, rows, cols, &part));
    gpu_status status = GPU_OK;
    if (part.rows < rows || part.cols < cols) {
        status = pad(&part, type, rows, cols, d, out);
    } else if (is_plain(&part, type, d)) {
        *out = part;
        return GPU_OK;
    } else {
        status = gpu_clone(&part, type, d, out);
    }
    gpu_release(&part);
    return status;
}

/* --- transforms ----------------------------------------------------------- */

/* What becomes of m: sizes of what is transformed, and of the result. */
typedef struct sizes {
    int64_t in[2], out[2]; /* rows, cols */
    double elements;       /* of a transform: n, or both together */
    int64_t n;             /* along the last axis */
} sizes;

static gpu_status fail_length(const gpu_transform *t, const gpu_matrix *m,
                              int64_t size)
{
    if (t->spectrum == GPU_SPECTRUM_FROM_HALF && size == 1)
        return gpu_fail(GPU_SHAPE,
                        "%s: half a spectrum of one element is that of 1 "
                        "number or of none: write %s(A, 1)",
                        t->name, t->name);
    return gpu_fail(GPU_SHAPE, "%s: there is nothing to transform in %s",
                    t->name, gpu_shape_text(m));
}

static gpu_status find_sizes(const gpu_matrix *m, const gpu_transform *t,
                             sizes *s)
{
    int64_t own[] = {m->rows, m->cols};
    int is_half = t->spectrum == GPU_SPECTRUM_HALF;
    int is_back = t->spectrum == GPU_SPECTRUM_FROM_HALF;
    s->elements = 1;
    for (int i = 0; i < 2; i++) {
        s->in[i] = s->out[i] = own[i];
        if (t->axis != 0 && t->axis != i + 1)
            continue;
        int64_t n = t->length[i] > 0 ? t->length[i]
                    : is_back        ? 2 * (own[i] - 1)
                                     : own[i];
        if (n < 1)
            return fail_length(t, m, own[i]);
        s->n = n;
        s->elements *= (double)n;
        s->in[i] = is_back ? n / 2 + 1 : n;
        s->out[i] = is_half ? n / 2 + 1 : n;
    }
    return GPU_OK;
}

static double scale_of(const gpu_transform *t, double elements)
{
    if (t->norm == GPU_FFT_ORTHO)
        return 1 / sqrt(elements);
    return t->is_inverse == (t->norm == GPU_FFT_BACKWARD) ? 1 / elements : 1;
}

static gpu_fft_kind kind_of(const gpu_transform *t, int is_complex)
{
    if (t->spectrum == GPU_SPECTRUM_HALF)
        return GPU_FFT_HALF;
    if (t->spectrum == GPU_SPECTRUM_FROM_HALF)
        return GPU_FFT_FROM_HALF;
    return is_complex ? GPU_FFT_COMPLEX : GPU_FFT_REAL;
}

/* Of both axes of what lies column by column a GPU's result does, too, which
 * saves a pass. On the CPU the order of rows and columns, and so the bits, do
 * not depend on that. */
static gpu_status create_out(const gpu_transform *t, const gpu_matrix *source,
                             gpu_dtype type, const sizes *s, gpu_matrix *out)
{
    gpu_matrix turned;
    gpu_device *d = gpu_matrix_device(source);
    int is_down = t->axis == 0 && !d->is_cpu && source->row_stride == 1 &&
                  source->cols > 1 && source->col_stride >= source->rows;
    if (!is_down)
        return gpu_create(out, d, type, source->ndim, s->out[0], s->out[1]);
    TRY(gpu_create(&turned, d, type, 2, s->out[1], s->out[0]));
    gpu_view_transposed(&turned, out);
    gpu_release(&turned);
    return GPU_OK;
}

/* Of m, which is on `there` in the end, as out is. */
static gpu_status transform_on(gpu_device *there, const gpu_matrix *m,
                               const gpu_transform *t, const sizes *s,
                               gpu_matrix *out)
{
    gpu_matrix source;
    gpu_dtype part = part_type(m), whole = gpu_dtype_made_complex(part);
    int is_back = t->spectrum == GPU_SPECTRUM_FROM_HALF;
    int is_complex = is_back || gpu_is_complex(m);
    TRY(fit(m, is_complex ? whole : part, s->in[0], s->in[1], there, &source));
    gpu_status status = create_out(t, &source, is_back ? part : whole, s, out);
    if (status == GPU_OK) {
        gpu_fft_call c = {.kind = kind_of(t, is_complex),
                          .axis = t->axis,
                          .is_inverse = t->is_inverse,
                          .scale = scale_of(t, s->elements),
                          .in = gpu_view_of(&source),
                          .out = gpu_target_of(out)};
        double each = c.kind == GPU_FFT_COMPLEX ? 5 : 2.5;
        double size = (double)(is_back ? gpu_size(out) : gpu_size(&source));
        gpu_operation op = {.name = t->name,
                            .kernel = there->is_cpu ? "fftw" : "cufft",
                            .device = there,
                            .result = out,
                            .writes_all = 1,
                            .k = s->n,
                            .flops = each * size * log2(s->elements),
                            .bytes =
                                (double)(gpu_bytes(&source) + gpu_bytes(out))};
        status = RUN_OPERATION(&op, fft, &c);
        if (status != GPU_OK)
            gpu_release(out);
    }
    gpu_release(&source);
    return status;
}

/* By the CPU, for a device that cannot. */
static gpu_status transform_on_cpu(gpu_device *d, const gpu_matrix *m,
                                   const gpu_transform *t, const sizes *s,
                                   gpu_matrix *out)
{
    gpu_matrix here;
    gpu_note_fallback();
    TRY(transform_on(gpu_cpu(), m, t, s, &here));
    gpu_note_fallback();
    gpu_status status = gpu_clone(&here, here.dtype, d, out);
    gpu_release(&here);
    return status;
}

gpu_status gpu_fft(const gpu_matrix *m, const gpu_transform *t, gpu_matrix *out)
{
    gpu_device *d;
    sizes s;
    out->storage = NULL;
    TRY(gpu_check_complex(t->name, &m, 1, &d));
    if (m->ndim == 1 && t->axis != 1)
        return gpu_fail(GPU_SHAPE, "%s: needs a matrix, not %s", t->name,
                        gpu_shape_text(m));
    if (t->spectrum == GPU_SPECTRUM_HALF && gpu_is_complex(m))
        return gpu_fail(GPU_TYPE,
                        "%s: takes real numbers, and the %s is %s: write "
                        "fft(A), or take real(A) of it",
                        t->name, m->ndim == 1 ? "vector" : "matrix",
                        gpu_dtype_name(m->dtype));
    TRY(find_sizes(m, t, &s));
    if (s.out[0] == 0 || s.out[1] == 0) {
        gpu_dtype part = part_type(m);
        int is_back = t->spectrum == GPU_SPECTRUM_FROM_HALF;
        return gpu_create(out, d, is_back ? part : gpu_dtype_made_complex(part),
                          m->ndim, s.out[0], s.out[1]);
    }
    if (!d->backend->fft)
        return transform_on_cpu(d, m, t, &s, out);
    gpu_status status = transform_on(d, m, t, &s, out);
    gpu_device *there = d;
    return gpu_is_left_to_cpu(status, &there)
               ? transform_on_cpu(d, m, t, &s, out)
               : status;
}

/* --- convolutions --------------------------------------------------------- */

/* Of real x and y, both plain and of out's type, where they are. */
static gpu_status convolve_there(const gpu_matrix *x, const gpu_matrix *y,
                                 const int64_t from[2], gpu_matrix *out)
{
    gpu_convolution c = {.x = gpu_view_of(x),
                         .y = gpu_view_of(y),
                         .out = gpu_target_of(out),
                         .row = from[0],
                         .col = from[1]};
    gpu_operation op = {
        .name = "conv",
        .kernel = "direct",
        .device = gpu_matrix_device(out),
        .result = out,
        .writes_all = 1,
        .k = gpu_size(y),
        .flops = 2 * (double)gpu_size(out) * (double)gpu_size(y),
        .bytes = (double)(gpu_bytes(x) + gpu_bytes(y) + gpu_bytes(out))};
    return RUN_OPERATION(&op, convolve, &c);
}

/* out, the parts of a complex matrix or a real one, of those of x and y. */
static gpu_status convolve_parts(const gpu_matrix x[2], const gpu_matrix y[2],
                                 const int64_t from[2], gpu_matrix out[2])
{
    if (!out[1].storage)
        return convolve_there(&x[0], &y[0], from, &out[0]);
    for (int part = 0; part < 2; part++) {
        /* x's part 0 with y's part p, x's part 1 with y's other one */
        const gpu_matrix *with[] = {&y[part], &y[1 - part]};
        gpu_matrix sums[2] = {{.storage = NULL}, {.storage = NULL}};
        const gpu_matrix *in[2];
        int count = 0;
        gpu_status status = GPU_OK;
        for (int i = 0; i < 2 && status == GPU_OK; i++) {
            if (!x[i].storage || !with[i]->storage)
                continue;
            status =
                gpu_create(&sums[count], gpu_matrix_device(&out[0]),
                           out[0].dtype, out[0].ndim, out[0].rows, out[0].cols);
            if (status == GPU_OK)
                status = convolve_there(&x[i], with[i], from, &sums[count]);
            in[count] = &sums[count];
            count++;
        }
        gpu_program p;
        gpu_program_start(&p, count);
        if (count == 2)
            gpu_program_add(&p, part == 0 ? GPU_OP_sub : GPU_OP_add, 0, 1, 0);
        if (status == GPU_OK)
            status = gpu_map("conv", &p, in, &out[part]);
        gpu_release(&sums[0]);
        gpu_release(&sums[1]);
        TRY(status);
    }
    return GPU_OK;
}

static gpu_status convolve_on(gpu_device *there, const gpu_matrix *x,
                              const gpu_matrix *y, const int64_t size[2],
                              const int64_t from[2], gpu_matrix *out)
{
    gpu_matrix a, b, x_parts[2], y_parts[2], parts[2];
    gpu_dtype type =
        part_type(x) == GPU_F64 || part_type(y) == GPU_F64 ? GPU_F64 : GPU_F32;
    gpu_dtype whole = gpu_dtype_made_complex(type);
    int is_complex = gpu_is_complex(x) || gpu_is_complex(y);
    TRY(gpu_create(out, there, is_complex ? whole : type, x->ndim, size[0],
                   size[1]));
    if (gpu_size(out) == 0)
        return GPU_OK;
    gpu_status status =
        fit(x, gpu_is_complex(x) ? whole : type, x->rows, x->cols, there, &a);
    if (status == GPU_OK) {
        status = fit(y, gpu_is_complex(y) ? whole : type, y->rows, y->cols,
                     there, &b);
        if (status == GPU_OK) {
            gpu_parts_of(&a, x_parts);
            gpu_parts_of(&b, y_parts);
            gpu_parts_of(out, parts);
            status = convolve_parts(x_parts, y_parts, from, parts);
            gpu_release(&b);
        }
        gpu_release(&a);
    }
    if (status != GPU_OK)
        gpu_release(out);
    return status;
}

gpu_status gpu_convolve(const gpu_matrix *x, const gpu_matrix *y,
                        gpu_overlap overlap, gpu_matrix *out)
{
    gpu_device *d;
    gpu_matrix here;
    const gpu_matrix *in[] = {x, y};
    int64_t m[] = {x->rows, x->cols}, n[] = {y->rows, y->cols};
    int64_t size[2], from[2];
    out->storage = NULL;
    TRY(gpu_check_complex("conv", in, 2, &d));
    if (x->ndim != y->ndim)
        return gpu_fail(GPU_SHAPE,
                        "conv: takes two vectors, or two matrices, not %s and "
                        "%s",
                        gpu_shape_text(x), gpu_shape_text(y));
    if (gpu_size(x) == 0 || gpu_size(y) == 0)
        return gpu_fail(GPU_SHAPE, "conv: %s is empty",
                        gpu_size(x) == 0 ? "x" : "y");
    for (int i = 0; i < 2; i++) {
        size[i] = overlap == GPU_OVERLAP_FULL   ? m[i] + n[i] - 1
                  : overlap == GPU_OVERLAP_SAME ? m[i]
                  : m[i] >= n[i]                ? m[i] - n[i] + 1
                                                : 0;
        from[i] = overlap == GPU_OVERLAP_FULL   ? 0
                  : overlap == GPU_OVERLAP_SAME ? n[i] / 2
                                                : n[i] - 1;
    }
    if (d->backend->convolve)
        return convolve_on(d, x, y, size, from, out);
    gpu_note_fallback();
    TRY(convolve_on(gpu_cpu(), x, y, size, from, &here));
    gpu_status status = gpu_clone(&here, here.dtype, d, out);
    gpu_release(&here);
    return status;
}
