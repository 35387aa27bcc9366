/* Eigenvalues beyond symmetric matrices', and what stands beside them: Schur
 * and Hessenberg forms, pairs of symmetric matrices, LDL, Sylvester's equation.
 * The CPU does all of it, for matrices of a GPU on copies; but for batches of
 * systems, which a device may have a rung for. */
#include "complex_numbers.h"
#include "core.h"
#include "op_list.h"

/* What a call works on: matrices on the CPU, each lying row by row as the
 * transpose of the one that is meant. */
enum { A, B, V, VALUES, IMAGINARY, SLOTS };
typedef struct work {
    const char *name;
    gpu_device *home;
    gpu_dtype type;
    gpu_matrix m[SLOTS]; /* storage NULL: not in use */
    gpu_factoring f;
} work;

static gpu_view *view_of_slot(work *w, int slot)
{
    gpu_view *views[SLOTS] = {&w->f.a, &w->f.b, &w->f.v, &w->f.values,
                              &w->f.imaginary};
    return views[slot];
}

static void set_view(work *w, int slot)
{
    gpu_matrix turned;
    gpu_view_transposed(&w->m[slot], &turned);
    *view_of_slot(w, slot) =
        gpu_target_of(w->m[slot].ndim == 1 ? &w->m[slot] : &turned);
    gpu_release(&turned);
}

/* A copy of m, to be worked on. */
static gpu_status copy_to(work *w, int slot, const gpu_matrix *m)
{
    gpu_matrix turned;
    if (w->home != gpu_cpu())
        gpu_note_fallback();
    gpu_view_transposed(m, &turned);
    gpu_status status = gpu_clone(&turned, w->type, gpu_cpu(), &w->m[slot]);
    gpu_release(&turned);
    if (status == GPU_OK)
        set_view(w, slot);
    return status;
}

/* Room for n x n elements, or for a vector of n. */
static gpu_status make(work *w, int slot, int ndim, int64_t n)
{
    TRY(gpu_create(&w->m[slot], gpu_cpu(), w->type, ndim, n,
                   ndim == 2 ? n : 1));
    set_view(w, slot);
    return GPU_OK;
}

/* For a vector of n numbers of the type of their parts. */
static gpu_status make_reals(work *w, int slot, int64_t n)
{
    TRY(gpu_create(&w->m[slot], gpu_cpu(), gpu_dtype_of_parts(w->type), 1, n,
                   1));
    set_view(w, slot);
    return GPU_OK;
}

static gpu_status begin(work *w, const char *name, gpu_factor_kind kind,
                        const gpu_matrix *const *in, int count)
{
    *w = (work){.name = name, .f = {.kind = kind}, .type = GPU_F32};
    TRY(gpu_check_complex(name, in, count, &w->home));
    for (int i = 0; i < count; i++) {
        w->type = gpu_dtype_wider(w->type, in[i]->dtype);
        if (in[i]->ndim != 2 ||
            (kind != GPU_FACTOR_SYLVESTER && in[i]->rows != in[i]->cols))
            return gpu_fail(GPU_SHAPE, "%s: needs a square matrix, not %s",
                            name, gpu_shape_text(in[i]));
    }
    return GPU_OK;
}

/* Unless there is nothing to do; cubes: flops of n^3 with the rows of a. there:
 * the device that all of it lies on. */
static gpu_status run_on(work *w, gpu_device *there, int result, double cubes)
{
    double n = (double)w->f.a.rows;
    if (gpu_dtype_is_complex(w->type))
        cubes *= 4;
    w->f.flops = cubes * n * n * n;
    if (gpu_size(&w->m[A]) == 0 || gpu_size(&w->m[result]) == 0)
        return GPU_OK;
    gpu_operation op = {.name = w->name,
                        .kernel = w->f.rung ? w->f.rung->name : "lapack",
                        .device = there,
                        .result = &w->m[result],
                        .k = w->f.a.rows,
                        .flops = w->f.flops,
                        .bytes = (double)gpu_bytes(&w->m[result])};
    return RUN_OPERATION(&op, factor, &w->f);
}

static gpu_status run(work *w, int result, double cubes)
{
    return run_on(w, gpu_cpu(), result, cubes);
}

/* One as a result, where the operands are. */
static gpu_status take(work *w, int slot, gpu_matrix *out)
{
    gpu_matrix there;
    const gpu_matrix *m = &w->m[slot];
    out->storage = NULL;
    if (!m->storage)
        return GPU_OK;
    if (w->home == gpu_cpu()) {
        there = *m;
        gpu_retain(&there);
    } else {
        TRY(gpu_clone(m, m->dtype, w->home, &there));
    }
    if (m->ndim == 1) {
        *out = there;
        return GPU_OK;
    }
    gpu_view_transposed(&there, out);
    gpu_release(&there);
    return GPU_OK;
}

static gpu_status end(work *w, gpu_status status, gpu_matrix *const *out,
                      const int *slots, int count)
{
    for (int i = 0; i < count; i++)
        out[i]->storage = NULL;
    for (int i = 0; i < count && status == GPU_OK; i++)
        status = take(w, slots[i], out[i]);
    for (int i = 0; i < count && status != GPU_OK; i++) {
        gpu_release(out[i]);
        out[i]->storage = NULL;
    }
    for (int i = 0; i < SLOTS; i++)
        gpu_release(&w->m[i]);
    return status;
}

/* --- forms ---------------------------------------------------------------- */

gpu_status gpu_hessenberg(const gpu_matrix *a, gpu_matrix *h, gpu_matrix *q)
{
    work w;
    gpu_matrix *const out[] = {h, q};
    static const int slots[] = {A, B};
    gpu_status status = begin(&w, "hess", GPU_FACTOR_HESSENBERG, &a, 1);
    if (status == GPU_OK)
        status = copy_to(&w, A, a);
    if (status == GPU_OK)
        status = make(&w, B, 2, a->rows);
    if (status == GPU_OK)
        status = make(&w, VALUES, 1, a->rows);
    if (status == GPU_OK)
        status = run(&w, A, 14 / 3.0);
    return end(&w, status, out, slots, 2);
}

/* a, and room for its eigenvalues, which of a real one come in parts. */
static gpu_status begin_eig(work *w, const char *name, gpu_factor_kind kind,
                            const gpu_matrix *a)
{
    TRY(begin(w, name, kind, &a, 1));
    TRY(copy_to(w, A, a));
    TRY(make(w, VALUES, 1, a->rows));
    return gpu_is_complex(a) ? GPU_OK : make(w, IMAGINARY, 1, a->rows);
}

gpu_status gpu_schur(const gpu_matrix *a, gpu_matrix *t, gpu_matrix *q,
                     int64_t *trouble)
{
    work w;
    gpu_matrix *const out[] = {t, q};
    static const int slots[] = {A, B};
    gpu_status status = begin_eig(&w, "schur", GPU_FACTOR_SCHUR, a);
    if (status == GPU_OK)
        status = make(&w, B, 2, a->rows);
    if (status == GPU_OK)
        status = run(&w, A, 25);
    *trouble = w.f.trouble;
    return end(&w, status, out, slots, 2);
}

gpu_status gpu_eig(const gpu_matrix *a, int wants, gpu_eigen *out,
                   int64_t *trouble)
{
    work w;
    gpu_matrix *const parts[] = {&out->real, &out->imaginary, &out->right,
                                 &out->left};
    static const int slots[] = {VALUES, IMAGINARY, B, V};
    gpu_status status = begin_eig(&w, "eig", GPU_FACTOR_EIG, a);
    if (status == GPU_OK && wants & GPU_EIGEN_RIGHT)
        status = make(&w, B, 2, a->rows);
    if (status == GPU_OK && wants & GPU_EIGEN_LEFT)
        status = make(&w, V, 2, a->rows);
    if (status == GPU_OK)
        status = run(&w, VALUES, wants ? 25 : 10);
    *trouble = w.f.trouble;
    return end(&w, status, parts, slots, 4);
}

gpu_status gpu_eig_pair(const gpu_matrix *a, const gpu_matrix *b, int wants,
                        gpu_eigen *out, int64_t *trouble)
{
    work w;
    const gpu_matrix *in[] = {a, b};
    gpu_matrix *const parts[] = {&out->real, &out->imaginary, &out->right,
                                 &out->left};
    static const int slots[] = {VALUES, IMAGINARY, V, A};
    int wants_left = (wants & GPU_EIGEN_LEFT) != 0;
    gpu_status status = begin(&w, "eig", GPU_FACTOR_EIG_PAIR, in, 2);
    w.f.wants_vectors = wants_left;
    if (status == GPU_OK && a->rows != b->rows)
        status = gpu_fail(GPU_SHAPE, "eig: A is %s, B %s", gpu_shape_text(a),
                          gpu_shape_text(b));
    if (status == GPU_OK)
        status = copy_to(&w, A, a);
    if (status == GPU_OK)
        status = copy_to(&w, B, b);
    if (status == GPU_OK)
        status = make(&w, VALUES, 1, 2 * a->rows);
    if (status == GPU_OK && !gpu_dtype_is_complex(w.type))
        status = make(&w, IMAGINARY, 1, a->rows);
    if (status == GPU_OK && wants & GPU_EIGEN_RIGHT)
        status = make(&w, V, 2, a->rows);
    if (status == GPU_OK)
        status = run(&w, VALUES, wants ? 60 : 30);
    *trouble = w.f.trouble;
    out->left.storage = NULL;
    return end(&w, status, parts, slots, 3 + wants_left);
}

/* --- symmetric ------------------------------------------------------------ */

gpu_status gpu_eigh_pair(const gpu_matrix *a, const gpu_matrix *b,
                         gpu_matrix *values, gpu_matrix *v, int64_t *trouble,
                         int64_t *minor)
{
    work w;
    const gpu_matrix *in[] = {a, b};
    gpu_matrix *const out[] = {values, v};
    static const int slots[] = {VALUES, A};
    gpu_status status = begin(&w, "eigh", GPU_FACTOR_EIGH_PAIR, in, 2);
    if (status == GPU_OK && a->rows != b->rows)
        status = gpu_fail(GPU_SHAPE, "eigh: A is %s, B %s", gpu_shape_text(a),
                          gpu_shape_text(b));
    if (status == GPU_OK)
        status = copy_to(&w, A, a);
    if (status == GPU_OK)
        status = copy_to(&w, B, b);
    if (status == GPU_OK)
        status = make_reals(&w, VALUES, a->rows);
    w.f.wants_vectors = v != NULL;
    if (status == GPU_OK)
        status = run(&w, VALUES, v ? 14 : 3);
    int is_of_b = w.f.trouble > a->rows;
    *minor = is_of_b ? w.f.trouble - a->rows : 0;
    *trouble = is_of_b ? 0 : w.f.trouble;
    return end(&w, status, out, slots, v ? 2 : 1);
}

gpu_status gpu_ldl(const gpu_matrix *a, gpu_matrix *packed, gpu_matrix *below,
                   int64_t *places)
{
    work w;
    gpu_matrix *const out[] = {packed, below};
    static const int slots[] = {A, VALUES};
    for (int64_t i = 0; i < a->rows; i++)
        places[i] = i;
    gpu_status status = begin(&w, "ldl", GPU_FACTOR_LDL, &a, 1);
    w.f.places = places;
    if (status == GPU_OK)
        status = copy_to(&w, A, a);
    if (status == GPU_OK)
        status = make(&w, VALUES, 1, a->rows);
    if (status == GPU_OK)
        status = run(&w, A, 1 / 3.0);
    return end(&w, status, out, slots, 2);
}

/* --- bands ---------------------------------------------------------------- */

/* The most of row - col, or of col - row, among the elements other than 0. */
static gpu_status farthest(const gpu_matrix *a, gpu_op from, gpu_op to,
                           int64_t *out)
{
    double most;
    gpu_program p;
    gpu_program_start(&p, 1);
    int zero = gpu_program_constant(&p, 0);
    int off = gpu_program_add(&p, from, 0, 0, 0);
    off = gpu_program_add(&p, GPU_OP_sub, off, gpu_program_add(&p, to, 0, 0, 0),
                          0);
    int counts = gpu_program_add(&p, GPU_OP_ne, 0, zero, 0);
    gpu_program_add(&p, GPU_OP_where, counts, off, zero);
    p.reduction = GPU_REDUCE_max;
    TRY(gpu_reduce_all("solve", &p, &a, &most));
    *out = (int64_t)most;
    return GPU_OK;
}

/* mask, made here: where elements of a are others than b's. */
static gpu_status differ(const gpu_matrix *a, const gpu_operand *b,
                         gpu_matrix *mask)
{
    gpu_operand in[2] = {{.matrix = a}, *b};
    mask->storage = NULL;
    return gpu_complex_map("solve", GPU_OP_ne, in, mask);
}

static gpu_status is_hermitian(const gpu_matrix *a, int *out)
{
    gpu_matrix turned, mask;
    gpu_program p;
    double any;
    gpu_view_transposed(a, &turned);
    turned.is_conjugated = !turned.is_conjugated;
    gpu_status status = differ(a, &(gpu_operand){.matrix = &turned}, &mask);
    gpu_release(&turned);
    TRY(status);
    gpu_program_start(&p, 1);
    p.reduction = GPU_REDUCE_any;
    const gpu_matrix *in = &mask;
    status = gpu_reduce_all("solve", &p, &in, &any);
    *out = any == 0;
    gpu_release(&mask);
    return status;
}

/* The same of a complex a. */
static gpu_status look_at_complex(const gpu_matrix *a, gpu_structure *out)
{
    gpu_matrix mask;
    TRY(differ(a, &(gpu_operand){.value = {0, 0}}, &mask));
    gpu_status status = farthest(&mask, GPU_OP_ROW, GPU_OP_COL, &out->below);
    if (status == GPU_OK)
        status = farthest(&mask, GPU_OP_COL, GPU_OP_ROW, &out->above);
    gpu_release(&mask);
    if (status != GPU_OK || out->below != out->above)
        return status;
    return is_hermitian(a, &out->is_symmetric);
}

/* On the device where it is. */
static gpu_status look_there(const gpu_matrix *a, gpu_structure *out)
{
    gpu_survey s;
    if (gpu_is_complex(a))
        return look_at_complex(a, out);
    TRY(farthest(a, GPU_OP_ROW, GPU_OP_COL, &out->below));
    TRY(farthest(a, GPU_OP_COL, GPU_OP_ROW, &out->above));
    if (out->below != out->above)
        return GPU_OK;
    TRY(gpu_take_survey(a, &s));
    out->is_symmetric = s.odd_at < 0 && s.asymmetry == 0;
    return GPU_OK;
}

/* On the CPU, of a matrix without gaps; turned: which lies row by row. */
static gpu_status look_here(const gpu_matrix *a, int is_turned,
                            gpu_structure *out)
{
    gpu_matrix m = *a;
    gpu_factoring f = {.kind = GPU_FACTOR_LOOK};
    if (is_turned)
        gpu_view_transposed(a, &m);
    f.a = gpu_view_of(&m);
    if (is_turned)
        gpu_release(&m);
    gpu_operation op = {.name = "solve",
                        .kernel = "look",
                        .device = gpu_cpu(),
                        .result = a,
                        .bytes = (double)gpu_bytes(a)};
    TRY(RUN_OPERATION(&op, factor, &f));
    *out = (gpu_structure){.below = is_turned ? f.above : f.below,
                           .above = is_turned ? f.below : f.above,
                           .is_symmetric = f.is_symmetric,
                           .is_positive = f.is_symmetric && f.is_positive};
    return GPU_OK;
}

gpu_status gpu_find_structure(const gpu_matrix *a, gpu_structure *out)
{
    gpu_device *d;
    *out = (gpu_structure){.below = 0};
    TRY(gpu_check_complex("solve", &a, 1, &d));
    if (gpu_size(a) == 0)
        return GPU_OK;
    int by_columns = a->row_stride == 1 && a->col_stride == a->rows;
    int by_rows = a->col_stride == 1 && a->row_stride == a->cols;
    gpu_quiet before = gpu_begin_quiet();
    gpu_status status = d == gpu_cpu() && (by_rows || by_columns)
                            ? look_here(a, !by_columns, out)
                            : look_there(a, out);
    return gpu_end_quiet(before, status);
}

gpu_status gpu_solve_band(const gpu_matrix *a, int64_t below, int64_t above,
                          const gpu_matrix *b, gpu_matrix *x, int64_t *zero)
{
    work w;
    const gpu_matrix *in[] = {a};
    static const int slots[] = {B};
    gpu_status status = begin(&w, "solve", GPU_FACTOR_BAND, in, 1);
    if (status == GPU_OK && (a->rows != b->rows || b->ndim != 2))
        status =
            gpu_fail(GPU_SHAPE,
                     "solve: %s has %lld rows, the right side "
                     "%s",
                     gpu_shape_text(a), (long long)a->rows, gpu_shape_text(b));
    w.type = gpu_dtype_wider(w.type, b->dtype);
    if (status == GPU_OK)
        status = copy_to(&w, A, a);
    if (status == GPU_OK)
        status = copy_to(&w, B, b);
    w.f.below = (int)below;
    w.f.above = (int)above;
    if (status == GPU_OK)
        status = run(&w, B, 0);
    *zero = w.f.trouble;
    return end(&w, status, &x, slots, 1);
}

/* --- batches -------------------------------------------------------------- */

/* m on the device of the work, whose rows stay rows: to the backend they are
 * columns. A copy, unless m is only read and lies so. */
static gpu_status take_rows(work *w, int slot, const gpu_matrix *m,
                            gpu_device *there, int is_read)
{
    gpu_matrix turned;
    if (w->home != there)
        gpu_note_fallback();
    if (is_read && w->home == there && m->dtype == w->type &&
        !m->is_conjugated && gpu_is_contiguous(m)) {
        w->m[slot] = *m;
        gpu_retain(m);
    } else {
        TRY(gpu_clone(m, w->type, there, &w->m[slot]));
    }
    gpu_view_transposed(&w->m[slot], &turned);
    *view_of_slot(w, slot) =
        is_read ? gpu_view_of(&turned) : gpu_target_of(&turned);
    gpu_release(&turned);
    return GPU_OK;
}

static gpu_status check_batch(const gpu_matrix *a, const gpu_matrix *b,
                              int64_t count)
{
    if (a->ndim == 2 && b->ndim == 2 && count > 0 && a->rows == b->rows &&
        a->rows == a->cols * count)
        return GPU_OK;
    return gpu_fail(GPU_SHAPE,
                    "solve: of %lld systems below each other A has %lld times "
                    "as many rows as columns, and B as many rows; A is %s, B "
                    "%s",
                    (long long)count, (long long)count, gpu_shape_text(a),
                    gpu_shape_text(b));
}

/* All of them in one call: by the device's own rung, which only reads a, or on
 * the CPU. */
static gpu_status solve_at_once(work *w, gpu_device *there, const gpu_matrix *a,
                                const gpu_matrix *b, int64_t count,
                                gpu_matrix *x)
{
    TRY(take_rows(w, A, a, there, there == w->home && w->f.rung));
    TRY(take_rows(w, B, b, there, 0));
    TRY(run_on(w, there, B, 2 / 3.0 * (double)count));
    if (w->home != there)
        return gpu_clone(&w->m[B], w->type, w->home, x);
    *x = w->m[B];
    gpu_retain(x);
    return GPU_OK;
}

/* One of them, of which b becomes x. */
static gpu_status solve_one(work *w, const gpu_matrix *a, gpu_matrix *b)
{
    gpu_matrix x;
    gpu_status status = gpu_solve(a, b, &x, NULL);
    if (status == GPU_OK) {
        status = gpu_copy(&x, b);
        gpu_release(&x);
    }
    w->f.trouble = status == GPU_SINGULAR;
    return w->f.trouble ? GPU_OK : status;
}

/* One after the other, each large enough to keep a device busy. */
static gpu_status solve_in_turn(work *w, const gpu_matrix *a,
                                const gpu_matrix *b, int64_t count,
                                gpu_matrix *x)
{
    int64_t n = a->cols;
    const gpu_slice left = {0, 1, n}, right = {0, 1, b->cols};
    gpu_matrix wide;
    TRY(gpu_clone(a, w->type, w->home, &wide));
    gpu_status status = gpu_clone(b, w->type, w->home, x);
    for (int64_t s = 0; s < count && status == GPU_OK && !w->f.trouble; s++) {
        gpu_matrix one = {.storage = NULL}, sides = {.storage = NULL};
        gpu_slice rows = {s * n, 1, n};
        status = gpu_view_block(&wide, rows, left, &one);
        if (status == GPU_OK)
            status = gpu_view_block(x, rows, right, &sides);
        if (status == GPU_OK)
            status = solve_one(w, &one, &sides);
        if (w->f.trouble)
            w->f.trouble = s + 1;
        gpu_release(&one);
        gpu_release(&sides);
    }
    gpu_release(&wide);
    return status;
}

/* Finds the rung for squares of n, or where to do without one: on the device
 * one by one, as they are large enough for it, or on the CPU. */
static void choose_batch(work *w, int64_t n, int *is_in_turn)
{
    const gpu_backend *b = w->home->backend;
    gpu_factoring lu = {.kind = GPU_FACTOR_LU,
                        .a = {.dtype = w->type, .rows = n, .cols = n}};
    *is_in_turn = 0;
    if (!b->factor || !b->choose_factor)
        return;
    w->f.rung = b->choose_factor(w->home->handle, &w->f);
    *is_in_turn =
        !w->f.rung && b->solve && b->choose_factor(w->home->handle, &lu);
}

gpu_status gpu_solve_batch(const gpu_matrix *a, const gpu_matrix *b,
                           int64_t count, gpu_matrix *x, int64_t *singular)
{
    work w = {.name = "solve", .f = {.kind = GPU_FACTOR_BATCH}};
    const gpu_matrix *in[] = {a, b};
    x->storage = NULL;
    *singular = 0;
    TRY(gpu_check_complex("solve", in, 2, &w.home));
    TRY(check_batch(a, b, count));
    w.type = gpu_dtype_wider(GPU_F32, gpu_dtype_wider(a->dtype, b->dtype));
    w.f.a = (gpu_view){.dtype = w.type, .rows = a->cols, .cols = a->rows};
    int is_in_turn;
    choose_batch(&w, a->cols, &is_in_turn);
    gpu_device *there = w.f.rung ? w.home : gpu_cpu();
    gpu_status status = is_in_turn ? solve_in_turn(&w, a, b, count, x)
                                   : solve_at_once(&w, there, a, b, count, x);
    *singular = w.f.trouble;
    status = end(&w, status, NULL, NULL, 0);
    if (status == GPU_OK)
        return GPU_OK;
    gpu_release(x);
    x->storage = NULL;
    return status;
}

/* --- equations ------------------------------------------------------------ */

gpu_status gpu_sylvester(const gpu_matrix *t, const gpu_matrix *s,
                         const gpu_matrix *c, gpu_matrix *x, int64_t *trouble)
{
    work w;
    const gpu_matrix *in[] = {t, s, c};
    static const int slots[] = {B};
    gpu_status status = begin(&w, "sylvester", GPU_FACTOR_SYLVESTER, in, 3);
    if (status == GPU_OK && (t->rows != t->cols || s->rows != s->cols ||
                             t->rows != c->rows || s->rows != c->cols))
        status =
            gpu_fail(GPU_SHAPE, "sylvester: A is %s, B %s, C %s",
                     gpu_shape_text(t), gpu_shape_text(s), gpu_shape_text(c));
    if (status == GPU_OK)
        status = copy_to(&w, A, t);
    if (status == GPU_OK)
        status = copy_to(&w, V, s);
    if (status == GPU_OK)
        status = copy_to(&w, B, c);
    if (status == GPU_OK)
        status = run(&w, B, 2);
    *trouble = w.f.trouble;
    return end(&w, status, &x, slots, 1);
}
