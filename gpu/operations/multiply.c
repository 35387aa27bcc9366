/* dot and matmul: shapes, types and overlaps, and which kernel runs. */
#include "complex_numbers.h"
#include "core.h"
#include "op_list.h"
#include "product_tiles.h"
#include "tiles.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- the ladder ----------------------------------------------------------- */

static int usable(const gpu_device *d, const gpu_kernel *k)
{
    return k->capability <= d->backend->capability(d->handle);
}

int gpu_kernel_count(gpu_device *d)
{
    const gpu_kernel *const *list;
    return d->backend->kernels(&list);
}

void gpu_kernel_describe(gpu_device *d, int i, gpu_kernel_info *out)
{
    const gpu_kernel *const *list;
    d->backend->kernels(&list);
    *out = (gpu_kernel_info){
        list[i]->operation, list[i]->name,      list[i]->idea,  list[i]->needs,
        list[i]->precision, usable(d, list[i]), list[i]->dtypes};
}

static int is_auto(const char *kernel)
{
    return !kernel || strcmp(kernel, "auto") == 0;
}

static gpu_status unknown_kernel(gpu_device *d, const char *operation,
                                 const char *name, const char *first)
{
    char known[256];
    const gpu_kernel *const *list;
    int n = d->backend->kernels(&list), found = 0;
    snprintf(known, sizeof known, "%s", first);
    for (int i = 0; i < n; i++) {
        size_t used = strlen(known);
        if (strcmp(list[i]->operation, operation) != 0)
            continue;
        found++;
        snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "",
                 list[i]->name);
    }
    if (!known[0])
        return gpu_fail(GPU_ARGUMENT, "%s: has no kernels on %s", operation,
                        d->name);
    if (!found)
        return gpu_fail(GPU_ARGUMENT,
                        "%s: no kernel is called '%s' on %s, where there is no "
                        "choice; leave kernel out",
                        operation, name, d->name);
    return gpu_fail(GPU_ARGUMENT,
                    "%s: no kernel is called '%s' on %s; "
                    "there are %s",
                    operation, name, d->name, known);
}

/* NULL where there is none. */
static const gpu_kernel *kernel_called(gpu_device *d, const char *operation,
                                       const char *name)
{
    const gpu_kernel *const *list;
    int n = d->backend->kernels(&list);
    for (int i = 0; i < n; i++) {
        if (strcmp(list[i]->operation, operation) == 0 &&
            strcmp(list[i]->name, name) == 0)
            return list[i];
    }
    return NULL;
}

static gpu_status check_kernel(const gpu_device *d, const gpu_kernel *k,
                               gpu_dtype dtype)
{
    if (!usable(d, k))
        return gpu_fail(GPU_UNSUPPORTED, "%s: kernel %s needs %s; %s is %s",
                        k->operation, k->name, k->needs, d->name,
                        gpu_device_description(d));
    if (!(k->dtypes & 1u << dtype))
        return gpu_fail(GPU_UNSUPPORTED, "%s: kernel %s cannot do %s",
                        k->operation, k->name, gpu_dtype_name(dtype));
    return GPU_OK;
}

gpu_status gpu_find_rung(gpu_device *d, const char *operation, const char *name,
                         gpu_dtype dtype, const gpu_kernel **out)
{
    *out = kernel_called(d, operation, name);
    if (!*out)
        return unknown_kernel(d, operation, name, "auto");
    return check_kernel(d, *out, dtype);
}

gpu_status gpu_kernel_bound(gpu_device *d, const char *operation,
                            const char *kernel, gpu_dtype dtype, int64_t k,
                            double *gamma)
{
    const gpu_kernel *found = kernel_called(d, operation, kernel);
    if (!found)
        return unknown_kernel(d, operation, kernel, "");
    if (!found->bound)
        return gpu_fail(GPU_UNSUPPORTED, "%s: of kernel %s no bound is known",
                        operation, kernel);
    *gamma = found->bound(dtype, k);
    return GPU_OK;
}

/* --- operands ------------------------------------------------------------- */

/* Masks multiply as numbers. */
static gpu_dtype product_type(const gpu_matrix *a, const gpu_matrix *b)
{
    return gpu_dtype_wider(a->dtype, b->dtype);
}

/* m itself when its type is right, so that views are never copied. */
static gpu_status as_type(const gpu_matrix *m, gpu_dtype type, gpu_matrix *out)
{
    if (m->dtype != type)
        return gpu_clone(m, type, NULL, out);
    gpu_retain(m);
    *out = *m;
    return GPU_OK;
}

static gpu_status as_type_both(const gpu_matrix *a, const gpu_matrix *b,
                               gpu_dtype type, gpu_matrix out[2])
{
    out[1].storage = NULL;
    TRY(as_type(a, type, &out[0]));
    gpu_status status = as_type(b, type, &out[1]);
    if (status != GPU_OK)
        gpu_release(&out[0]);
    return status;
}

static void release_both(gpu_matrix both[2])
{
    gpu_release(&both[0]);
    gpu_release(&both[1]);
}

/* --- dot ------------------------------------------------------------------ */

static gpu_status call_dot(gpu_device *d, const gpu_kernel *k,
                           const gpu_view *x, const gpu_view *y, double *out)
{
    gpu_status status = k->dot(d->handle, x, y, out);
    if (*out != *out)
        *out = NAN; /* without a sign */
    return status;
}

static gpu_status run_dot(gpu_device *d, const gpu_matrix both[2],
                          const char *kernel, double *out)
{
    gpu_view x = gpu_view_of(&both[0]), y = gpu_view_of(&both[1]);
    const gpu_kernel *k = d->backend->choose_dot(d->handle, &x, &y);
    if (!is_auto(kernel))
        TRY(gpu_find_rung(d, "dot", kernel, x.dtype, &k));
    gpu_matrix number = {.dtype = x.dtype, .rows = 1, .cols = 1};
    gpu_operation op = {.name = "dot",
                        .kernel = k->name,
                        .device = d,
                        .result = &number,
                        .extent = &both[0],
                        .k = x.rows,
                        .flops = 2.0 * (double)x.rows,
                        .bytes = 2.0 * (double)gpu_bytes(&both[0])};
    gpu_begin_operation(&op);
    gpu_status status = call_dot(d, k, &x, &y, out);
    status = gpu_stop_operation(&op, status);
    if (status == GPU_OK && gpu_must_check())
        status = gpu_check_dot(both, k, *out, &op.checked);
    return gpu_report_operation(&op, status);
}

static gpu_status settle_both(const gpu_matrix *a, const gpu_matrix *b)
{
    TRY(gpu_settle(a));
    return gpu_settle(b);
}

/* Of vectors of which one did not fit the device of the other. */
static gpu_status dot_in_tiles(const gpu_matrix *const in[2], double *out)
{
    gpu_program p;
    gpu_program_start(&p, 2);
    gpu_program_add(&p, GPU_OP_mul, 0, 1, 0);
    p.reduction = GPU_REDUCE_sum;
    return gpu_reduce_all("dot", &p, in, out);
}

gpu_status gpu_dot(const gpu_matrix *x, const gpu_matrix *y, const char *kernel,
                   double *out)
{
    gpu_device *d;
    const gpu_matrix *in[] = {x, y};
    TRY(gpu_check_meeting("dot", in, 2, NULL, &d));
    TRY(settle_both(x, y));
    if (x->ndim != 1 || y->ndim != 1)
        return gpu_fail(GPU_SHAPE, "dot: needs two vectors, not %s and %s",
                        gpu_shape_text(x), gpu_shape_text(y));
    if (x->rows != y->rows)
        return gpu_fail(GPU_SHAPE, "dot: lengths differ (%lld and %lld)",
                        (long long)x->rows, (long long)y->rows);
    *out = 0;
    if (gpu_meeting_place(in, 2, NULL))
        return is_auto(kernel) ? dot_in_tiles(in, out)
                               : gpu_check_operands("dot", in, 2, &d);
    gpu_matrix both[2];
    TRY(as_type_both(x, y, product_type(x, y), both));
    gpu_status status = GPU_OK;
    if (x->rows > 0 || !is_auto(kernel))
        status = run_dot(d, both, kernel, out);
    release_both(both);
    return status;
}

/* --- matmul --------------------------------------------------------------- */

static gpu_status scale(gpu_matrix *c, double beta)
{
    if (beta == 0)
        return gpu_fill(c, 0);
    gpu_program p;
    gpu_program_start(&p, 1);
    int factor = gpu_program_constant(&p, beta);
    gpu_program_add(&p, GPU_OP_mul, 0, factor, 0);
    const gpu_matrix *in[] = {c};
    return gpu_map("matmul", &p, in, c);
}

static const char *precision_of(const gpu_kernel *k, gpu_dtype type)
{
    int is_own = strcmp(k->precision, "f32") == 0;
    return is_own ? gpu_dtype_name(type) : k->precision;
}

static gpu_status check_precision_name(const char *name)
{
    static const char *const known[] = {"f32", "f64", "tf32", "bf16"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i], name) == 0)
            return GPU_OK;
    return gpu_fail(GPU_ARGUMENT,
                    "matmul: no precision is called '%s'; there are f32, f64, "
                    "tf32, bf16",
                    name);
}

/* The first rung of that precision: the list has ours before a vendor's. */
static gpu_status find_precise(gpu_device *d, const char *precision,
                               gpu_dtype type, const gpu_kernel **out)
{
    const gpu_kernel *const *list;
    int n = d->backend->kernels(&list);
    for (int i = 0; i < n; i++) {
        *out = list[i];
        if (strcmp(list[i]->operation, "matmul") == 0 && usable(d, list[i]) &&
            list[i]->dtypes & 1u << type &&
            strcmp(precision_of(list[i], type), precision) == 0)
            return GPU_OK;
    }
    return gpu_fail(GPU_UNSUPPORTED,
                    "matmul: no kernel on %s multiplies %s in precision \"%s\"",
                    d->name, gpu_dtype_name(type), precision);
}

/* The rung asked for by name or precision; NULL: whichever auto takes. */
static gpu_status find_asked(gpu_device *d, const gpu_product *how,
                             gpu_dtype type, const gpu_kernel **out)
{
    const char *precision = how->precision ? how->precision : "";
    *out = NULL;
    if (how->precision)
        TRY(check_precision_name(precision));
    int is_own = strcmp(precision, gpu_dtype_name(type)) == 0;
    if (is_auto(how->kernel) && (!how->precision || is_own))
        return GPU_OK;
    if (is_auto(how->kernel))
        return find_precise(d, precision, type, out);
    TRY(gpu_find_rung(d, "matmul", how->kernel, type, out));
    const char *given = precision_of(*out, type);
    if (!how->precision || strcmp(precision, given) == 0)
        return GPU_OK;
    return gpu_fail(GPU_UNSUPPORTED,
                    "matmul: kernel %s gives precision \"%s\", not \"%s\"",
                    how->kernel, given, precision);
}

/* Nothing is kept about a copy that goes when the product is done. */
static gpu_storage *lasting_storage(const gpu_matrix *m)
{
    return m->storage->references > 1 ? m->storage : NULL;
}

/* p's operation, whose result is c. */
static gpu_operation product_of(gpu_device *d, const gpu_gemm *p,
                                const gpu_matrix *c)
{
    double size = (double)gpu_dtype_size(p->a.dtype), m = (double)p->a.rows;
    double n = (double)p->b.cols, inner = (double)p->a.cols;
    return (gpu_operation){.name = "matmul",
                           .device = d,
                           .result = c,
                           .writes_all = 1,
                           .k = p->a.cols,
                           .flops = 2 * m * n * inner,
                           .bytes = size * (m * inner + inner * n + m * n)};
}

/* Which of a, b and c lie on d. */
static gpu_gemm_place find_there(const gpu_device *d, const gpu_matrix both[2],
                                 const gpu_matrix *c)
{
    return (gpu_gemm_place){both[0].storage->device == d,
                            both[1].storage->device == d,
                            c->storage->device == d};
}

/* What is tiled op's team does together, where all of it can. */
static gpu_status multiply_tiles(gpu_operation *op, const gpu_gemm *p,
                                 gpu_gemm_place there, int is_chosen,
                                 const gpu_kernel **k)
{
    gpu_team alone = {1, {op->device}}, *team = op->team ? op->team : &alone;
    for (int i = 1; i < team->count; i++)
        TRY(check_kernel(team->devices[i], *k, p->c.dtype));
    return gpu_multiply_tiles(team, p, there, is_chosen, k);
}

/* All but the report. Which kernel it was is known when it is done. */
static gpu_status run_kernel(gpu_operation *op, gpu_gemm *p,
                             gpu_gemm_place there, int is_chosen,
                             const gpu_kernel **k)
{
    int is_tiled = !there.a || !there.b || !there.c;
    gpu_begin_operation(op);
    gpu_status status = is_tiled ? multiply_tiles(op, p, there, is_chosen, k)
                                 : gpu_run_product(op->device, p, is_chosen, k);
    op->kernel = (*k)->name;
    return gpu_stop_operation(op, status);
}

static gpu_status run_checked(gpu_operation *op, const gpu_matrix both[2],
                              const gpu_product *how, gpu_gemm *p,
                              int is_chosen, const gpu_kernel *k)
{
    gpu_check check = {
        .device = gpu_matrix_device(op->result), .a = &both[0], .b = &both[1]};
    TRY(gpu_check_start(&check, how, op->result));
    gpu_status status = run_kernel(
        op, p, find_there(op->device, both, op->result), is_chosen, &k);
    if (status == GPU_OK)
        status = gpu_check_product(&check, k, op->result, &op->checked);
    gpu_check_end(&check);
    return gpu_report_operation(op, status);
}

/* asked: NULL where auto chooses. */
static gpu_status run_matmul(gpu_device *d, const gpu_matrix both[2],
                             const gpu_product *how, const gpu_kernel *asked,
                             gpu_matrix *c)
{
    if (gpu_through(d))
        d = gpu_through(d);
    gpu_gemm_place there = find_there(d, both, c);
    gpu_gemm p = {.a = gpu_view_of(&both[0]),
                  .b = gpu_view_of(&both[1]),
                  .c = gpu_target_of(c),
                  .a_storage = there.a ? lasting_storage(&both[0]) : NULL,
                  .b_storage = there.b ? lasting_storage(&both[1]) : NULL,
                  .alpha = how->alpha,
                  .beta = how->beta,
                  .tile = how->tile,
                  .is_update = how->is_update};
    const gpu_kernel *k =
        asked ? asked : d->backend->choose_matmul(d->handle, &p);
    gpu_operation op = product_of(d, &p, c);
    gpu_team team = gpu_team_of(d, there.a || there.b || there.c);
    op.team = &team;
    if (gpu_must_check())
        return run_checked(&op, both, how, &p, !asked, k);
    return gpu_report_operation(&op, run_kernel(&op, &p, there, !asked, &k));
}

/* --- a product that waits --------------------------------------------------
 */

/* m's view where it is an operand of a program over out. */
static gpu_view stretched(const gpu_matrix *m, const gpu_matrix *out)
{
    gpu_view v = gpu_view_of(m);
    v.row_stride = m->rows == out->rows ? v.row_stride : 0;
    v.col_stride = m->cols == out->cols ? v.col_stride : 0;
    v.rows = out->rows;
    v.cols = out->cols;
    return v;
}

/* Are all of them there? */
static int lie_on(const gpu_device *d, const gpu_composition *c, int product,
                  const gpu_matrix *out)
{
    for (int i = 0; i < c->p.inputs; i++)
        if (i != product && c->inputs[i]->storage->device != d)
            return 0;
    return out->storage->device == d;
}

static gpu_gemm gemm_of(const gpu_waiting_product *w,
                        const gpu_matrix factors[2], const gpu_matrix *out)
{
    return (gpu_gemm){.a = gpu_view_of(&factors[0]),
                      .b = gpu_view_of(&factors[1]),
                      .c = gpu_target_of(out),
                      .a_storage = lasting_storage(&factors[0]),
                      .b_storage = lasting_storage(&factors[1]),
                      .alpha = w->alpha,
                      .tile = w->tile};
}

static gpu_status run_alone(const gpu_waiting_product *w,
                            const gpu_matrix factors[2], gpu_matrix *out)
{
    gpu_device *d = factors[0].storage->device;
    gpu_gemm p = gemm_of(w, factors, out);
    gpu_operation op = product_of(d, &p, out);
    gpu_gemm_place there = find_there(d, factors, out);
    gpu_product how = {.alpha = w->alpha};
    const gpu_kernel *k = w->kernel;
    if (gpu_must_check())
        return run_checked(&op, factors, &how, &p, w->is_chosen, k);
    return gpu_report_operation(&op,
                                run_kernel(&op, &p, there, w->is_chosen, &k));
}

/* The product and then the map, into out, where one of both is in tiles. */
static gpu_status run_apart(const gpu_waiting_product *w,
                            const gpu_matrix factors[2],
                            const gpu_composition *c, int product,
                            gpu_matrix *out)
{
    const gpu_matrix *in[GPU_MAX_INPUTS];
    TRY(run_alone(w, factors, out));
    for (int i = 0; i < c->p.inputs; i++)
        in[i] = i == product ? out : c->inputs[i];
    return gpu_run_map(c->name, &c->p, in, out);
}

/* A gpu_waiting_product's run. */
static gpu_status run_waiting(const gpu_waiting_product *w,
                              const gpu_matrix factors[2],
                              const gpu_composition *c, int product,
                              gpu_matrix *out)
{
    gpu_device *d = factors[0].storage->device;
    const gpu_kernel *k = w->kernel;
    gpu_view in[GPU_MAX_INPUTS];
    gpu_epilogue then = {.in = in, .product = product};
    if (!c)
        return run_alone(w, factors, out);
    if (!lie_on(d, c, product, out))
        return run_apart(w, factors, c, product, out);
    gpu_gemm p = gemm_of(w, factors, out);
    gpu_operation op = product_of(d, &p, out);
    op.name = c->name;
    op.flops += (double)gpu_size(out) * gpu_program_operations(&c->p);
    for (int i = 0; i < c->p.inputs; i++) {
        in[i] = i == product ? p.c : stretched(c->inputs[i], out);
        op.bytes += i == product ? 0 : (double)gpu_bytes(c->inputs[i]);
    }
    then.program = &c->p;
    p.epilogue = &then;
    return gpu_report_operation(
        &op,
        run_kernel(&op, &p, find_there(d, factors, out), w->is_chosen, &k));
}

/* Whether the product of two matrices, of their own type, is to wait; then c,
 * which is created, does. */
static gpu_status let_wait(gpu_device *d, const gpu_matrix factors[2],
                           const gpu_product *how, const gpu_kernel *asked,
                           gpu_matrix *c, int *waits)
{
    const gpu_matrix *a = &factors[0], *b = &factors[1];
    int64_t elements = a->rows * b->cols;
    gpu_waiting_product w = {run_waiting, asked, !asked, how->tile, how->alpha};
    *waits = 0;
    /* what is asked for by name may be missing, which is told at once */
    if (asked && !asked->has_epilogue)
        return GPU_OK;
    if (a->dtype != b->dtype || a->dtype == GPU_BOOL || how->alpha == 0 ||
        a->cols == 0 || elements == 0)
        return GPU_OK;
    if (!asked) {
        gpu_gemm p = {.a = gpu_view_of(a),
                      .b = gpu_view_of(b),
                      .a_storage = a->storage,
                      .b_storage = b->storage,
                      .alpha = how->alpha,
                      .tile = how->tile};
        p.c = (gpu_view){p.a.data, a->dtype, a->rows, b->cols, b->cols, 1};
        w.kernel = d->backend->choose_matmul(d->handle, &p);
    }
    if (!gpu_may_record_product(d, w.kernel, a->dtype, elements,
                                2.0 * (double)elements * (double)a->cols))
        return GPU_OK;
    *waits = 1;
    TRY(gpu_create_pending(c, d, a->dtype, 2, a->rows, b->cols));
    gpu_status status = gpu_record_product(&w, factors, c);
    if (status != GPU_OK)
        gpu_release(c);
    return status;
}

/* Vectors become a row on the left, a column on the right. */
static gpu_matrix as_factor(const gpu_matrix *m, int left)
{
    gpu_matrix f = *m;
    if (m->ndim == 2)
        return f;
    f.ndim = 2;
    if (left) {
        f.cols = m->rows;
        f.col_stride = m->row_stride;
        f.rows = 1;
        f.row_stride = f.cols * f.col_stride;
    }
    return f;
}

static gpu_status check_inner(const gpu_matrix *fa, const gpu_matrix *fb)
{
    if (fa->cols == fb->rows)
        return GPU_OK;
    return gpu_fail(GPU_SHAPE,
                    "matmul: inner dimensions differ (%lld and "
                    "%lld)",
                    (long long)fa->cols, (long long)fb->rows);
}

gpu_status gpu_product_shape(const gpu_matrix *a, const gpu_matrix *b,
                             gpu_matrix *out)
{
    gpu_matrix left = as_factor(a, 1), right = as_factor(b, 0);
    int ndim = a->ndim == 1 || b->ndim == 1 ? 1 : 2;
    TRY(check_inner(&left, &right));
    *out = (gpu_matrix){.dtype = product_type(a, b),
                        .ndim = ndim,
                        .rows = ndim == 2 ? left.rows : left.rows * right.cols,
                        .cols = ndim == 2 ? right.cols : 1};
    return GPU_OK;
}

/* c as the m x n matrix the kernels see, and checked. */
static gpu_status as_result(const gpu_matrix *c, int ndim, int64_t m, int64_t n,
                            int left_vector, gpu_matrix *out)
{
    int64_t rows = ndim == 2 ? m : m * n, cols = ndim == 2 ? n : 1;
    if (c->ndim != ndim || c->rows != rows || c->cols != cols) {
        gpu_matrix result = {.ndim = ndim, .rows = rows, .cols = cols};
        return gpu_fail(GPU_SHAPE, "matmul: the result is %s, out is %s",
                        gpu_shape_text(&result), gpu_shape_text(c));
    }
    *out = as_factor(c, left_vector);
    return GPU_OK;
}

static gpu_status copy_apart(gpu_device *d, gpu_dtype type, double beta,
                             const gpu_matrix *c, gpu_matrix *apart)
{
    if (beta != 0)
        return gpu_clone(c, type, NULL, apart);
    return gpu_create_anywhere(apart, d, type, 2, c->rows, c->cols);
}

/* Through memory of its own, where c is an operand or of another type. */
static gpu_status multiply_apart(gpu_device *d, const gpu_matrix both[2],
                                 const gpu_product *how,
                                 const gpu_kernel *asked, gpu_matrix *c)
{
    gpu_matrix apart;
    TRY(copy_apart(d, both[0].dtype, how->beta, c, &apart));
    gpu_status status = run_matmul(d, both, how, asked, &apart);
    if (status == GPU_OK)
        status = gpu_copy(&apart, c);
    gpu_release(&apart);
    return status;
}

static gpu_status multiply_into(gpu_device *d, const gpu_matrix both[2],
                                const gpu_product *how, const gpu_kernel *asked,
                                gpu_matrix *c)
{
    int overlaps =
        gpu_shares_storage(c, &both[0]) || gpu_shares_storage(c, &both[1]);
    if (!overlaps && c->dtype == both[0].dtype)
        return run_matmul(d, both, how, asked, c);
    return multiply_apart(d, both, how, asked, c);
}

/* Where nothing is added to beta c, no kernel runs and nothing is read. */
static gpu_status multiply(gpu_device *d, const gpu_matrix factors[2],
                           const gpu_product *how, const gpu_kernel *asked,
                           gpu_matrix *c)
{
    gpu_matrix both[2];
    if (gpu_size(c) == 0)
        return GPU_OK;
    if (factors[0].cols == 0 || how->alpha == 0)
        return scale(c, how->beta);
    gpu_dtype type = product_type(&factors[0], &factors[1]);
    TRY(as_type_both(&factors[0], &factors[1], type, both));
    gpu_status status = multiply_into(d, both, how, asked, c);
    release_both(both);
    return status;
}

/* Tells a dry run of a product that is written as a * b. */
static void tell_product(const gpu_matrix *a, const gpu_matrix *b,
                         const gpu_product *how, const gpu_matrix *c)
{
    int is_plain = !how->kernel && !how->precision && how->alpha == 1;
    if (is_plain && gpu_dry->watch->product)
        gpu_dry->watch->product(a, b, c, gpu_dry->watch->data);
}

/* What computes a product of operands that may lie on several devices, one of
 * them d: that of what did not fit it goes there, even if all lie on the CPU,
 * which would take a hundred times as long. */
static gpu_device *multiplier(gpu_device *d, const gpu_matrix *a,
                              const gpu_matrix *b)
{
    gpu_device *home = gpu_home_of(gpu_home_of(a)->is_cpu ? b : a);
    if (!d->is_cpu || gpu_through(d) || gpu_device_is_lost(home))
        return d;
    return home;
}

gpu_status gpu_matmul(const gpu_matrix *a, const gpu_matrix *b,
                      const gpu_product *how, gpu_matrix *c)
{
    if (gpu_is_complex(a) || gpu_is_complex(b) ||
        (c->storage && gpu_is_complex(c)))
        return gpu_matmul_complex(a, b, how, c);
    gpu_device *d, *own = NULL;
    const gpu_kernel *asked;
    const gpu_matrix *in[] = {a, b, c};
    int created = !c->storage;
    TRY(gpu_check_meeting("matmul", in, created || how->beta == 0 ? 2 : 3,
                          created ? NULL : c, &d));
    TRY(settle_both(a, b));
    if (!created)
        TRY(gpu_check_target("matmul", c, &own));
    d = multiplier(d, a, b);
    gpu_matrix factors[] = {as_factor(a, 1), as_factor(b, 0)}, result, shape;
    TRY(gpu_product_shape(a, b, &shape));
    TRY(find_asked(gpu_through(d) ? gpu_through(d) : d, how, product_type(a, b),
                   &asked));
    int64_t m = factors[0].rows, n = factors[1].cols;
    TRY(gpu_settle_products());
    int waits = created && a->ndim == 2 && b->ndim == 2 &&
                a->storage->device == d && b->storage->device == d;
    if (waits)
        TRY(let_wait(d, factors, how, asked, c, &waits));
    if (waits)
        return GPU_OK;
    if (created)
        TRY(gpu_create_anywhere(c, d, shape.dtype, shape.ndim, shape.rows,
                                shape.cols));
    gpu_status status = as_result(c, shape.ndim, m, n, a->ndim == 1, &result);
    if (status == GPU_OK)
        status = multiply(d, factors, how, asked, &result);
    if (status == GPU_OK && gpu_dry && created)
        tell_product(a, b, how, c);
    if (status != GPU_OK && created)
        gpu_release(c);
    return status;
}

/* --- what auto takes ------------------------------------------------------ */

static gpu_view view_as(const gpu_matrix *m, gpu_dtype type)
{
    gpu_view v = gpu_view_of(m);
    v.dtype = type;
    return v;
}

static void choose(gpu_device *d, const gpu_matrix *a, const gpu_matrix *b,
                   const char **name)
{
    gpu_dtype type = product_type(a, b);
    gpu_view x = view_as(a, type), y = view_as(b, type);
    if (a->ndim == 1 && b->ndim == 1) {
        *name = d->backend->choose_dot(d->handle, &x, &y)->name;
        return;
    }
    gpu_matrix fa = as_factor(a, 1), fb = as_factor(b, 0);
    gpu_gemm p = {.a = view_as(&fa, type),
                  .b = view_as(&fb, type),
                  .a_storage = a->storage,
                  .b_storage = b->storage,
                  .alpha = 1};
    p.c = (gpu_view){p.a.data, type, p.a.rows, p.b.cols, p.b.cols, 1};
    *name = d->backend->choose_matmul(d->handle, &p)->name;
}

gpu_status gpu_kernel_choice(const gpu_matrix *a, const gpu_matrix *b,
                             const char **name)
{
    gpu_device *d;
    const gpu_matrix *in[] = {a, b};
    TRY(gpu_check_operands("matmul", in, 2, &d));
    gpu_matrix fa = as_factor(a, 1), fb = as_factor(b, 0);
    TRY(check_inner(&fa, &fb));
    TRY(gpu_settle_products()); /* which keep what the choice depends on */
    choose(d, a, b, name);
    return GPU_OK;
}
