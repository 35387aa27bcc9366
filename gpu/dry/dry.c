/* The dry device: entries that write nothing and say how long the real ones
 * would take, and the state in which it stands in for every device. A handle
 * stays that of the real device, so that what is asked of it (its name, its
 * memory, the kernel that suits a product) is answered by the real backend. */
#include "dry.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DEVICES = 32 };

static dry_device *devices[MOST_DEVICES];
static int device_count;
static gpu_dry_run run;
static gpu_counters before;

static dry_device *of(void *handle)
{
    for (int i = 0; i < device_count; i++)
        if (devices[i]->device && devices[i]->handle == handle)
            return devices[i];
    return NULL; /* never: only these have such entries */
}

/* --- what the real device answers ----------------------------------------- */

static const char *describe(void *handle)
{
    return of(handle)->real->describe(handle);
}

static int capability(void *handle)
{
    return of(handle)->real->capability(handle);
}

static int is_lost(void *handle)
{
    return of(handle)->real->is_lost(handle);
}

static gpu_status memory(void *handle, size_t *free_bytes, size_t *total)
{
    return of(handle)->real->memory(handle, free_bytes, total);
}

static size_t unused(void *handle)
{
    return of(handle)->real->unused(handle);
}

static gpu_status peak(void *handle, gpu_peak *out)
{
    return of(handle)->real->peak(handle, out);
}

/* --- memory and time -------------------------------------------------------
 */

/* Storage is dry from gpu_create on; no one else may ask. */
static gpu_status alloc(void *handle, size_t bytes, void **data)
{
    (void)handle;
    (void)bytes;
    (void)data;
    return GPU_MEMORY;
}

/* Of real storage that goes meanwhile, and of what was kept about it. */
static void free_real(void *handle, void *data, size_t bytes)
{
    of(handle)->real->free(handle, data, bytes);
}

static gpu_status upload(void *handle, void *to, const void *from, size_t n)
{
    dry_device *d = of(handle);
    (void)to;
    (void)from;
    d->clock += dry_bus_seconds(d, (double)n);
    return gpu_poll();
}

static gpu_status download(void *handle, void *to, const void *from, size_t n)
{
    return upload(handle, to, from, n);
}

static void trim(void *handle)
{
    (void)handle;
}

static gpu_status sync_nothing(void *handle)
{
    (void)handle;
    return GPU_OK;
}

static gpu_status timer_start(void *handle)
{
    dry_device *d = of(handle);
    d->started = d->clock;
    return GPU_OK;
}

static gpu_status timer_stop(void *handle, double *seconds)
{
    dry_device *d = of(handle);
    *seconds = d->clock - d->started;
    return GPU_OK;
}

/* --- entries ---------------------------------------------------------------
 */

static gpu_status map(void *handle, const gpu_program *p, const gpu_view *in,
                      const gpu_view *out)
{
    dry_device *d = of(handle);
    d->clock += dry_map_seconds(d, p, in, out);
    return gpu_poll();
}

/* As if memory set the pace, which of functions it does not. */
static gpu_status complex_map(void *handle, const gpu_complex_call *c)
{
    dry_device *d = of(handle);
    double bytes = dry_bytes(&c->out);
    for (int i = 0; i < c->count; i++)
        bytes += dry_bytes(&c->in[i]);
    d->clock += dry_moved_seconds(d, bytes);
    return gpu_poll();
}

static gpu_status complex_pairs(void *handle, const gpu_complex_pairs *p)
{
    dry_device *d = of(handle);
    d->clock += dry_moved_seconds(d, dry_bytes(&p->in) + dry_bytes(&p->out));
    return gpu_poll();
}

static gpu_status transform(void *handle, const gpu_fft_call *c)
{
    dry_device *d = of(handle);
    d->clock += dry_fft_seconds(d, c);
    return gpu_poll();
}

static gpu_status convolve(void *handle, const gpu_convolution *c)
{
    dry_device *d = of(handle);
    d->clock += dry_convolution_seconds(d, c);
    return gpu_poll();
}

static gpu_status reduce(void *handle, const gpu_program *p, const gpu_view *in,
                         int axis, const gpu_view *out)
{
    dry_device *d = of(handle);
    (void)axis;
    d->clock += dry_reduce_seconds(d, p, in, out);
    return gpu_poll();
}

static gpu_status gather(void *handle, const gpu_view *from,
                         const int64_t *rows, const int64_t *cols,
                         const gpu_view *to)
{
    dry_device *d = of(handle);
    (void)from;
    (void)rows;
    (void)cols;
    d->clock += dry_moved_seconds(d, 2 * dry_bytes(to));
    return gpu_poll();
}

static gpu_status scatter(void *handle, const gpu_view *from,
                          const int64_t *rows, const int64_t *cols,
                          const gpu_view *to)
{
    (void)to;
    return gather(handle, from, rows, cols, from);
}

static gpu_status pick(void *handle, const gpu_picking *p)
{
    dry_device *d = of(handle);
    d->clock +=
        dry_moved_seconds(d, 2 * dry_bytes(&p->small) + dry_bytes(&p->rows) +
                                 dry_bytes(&p->cols));
    return gpu_poll();
}

static gpu_status compress(void *handle, const gpu_view *from,
                           const gpu_view *mask, const gpu_view *to)
{
    dry_device *d = of(handle);
    d->clock +=
        dry_moved_seconds(d, dry_bytes(from) + dry_bytes(mask) + dry_bytes(to));
    return gpu_poll();
}

static gpu_status scan(void *handle, gpu_scan_kind kind, int axis,
                       const gpu_view *from, const gpu_view *to)
{
    dry_device *d = of(handle);
    (void)kind;
    (void)axis;
    (void)to;
    d->clock += dry_scan_seconds(d, from);
    return gpu_poll();
}

static gpu_status sort(void *handle, int axis, int descending,
                       const gpu_view *from, const gpu_view *to,
                       const gpu_view *order)
{
    dry_device *d = of(handle);
    (void)descending;
    (void)to;
    d->clock += dry_sort_seconds(d, axis, from, order != NULL);
    return gpu_poll();
}

/* Of one that sorts in its place as sorting. */
static gpu_status select_places(void *handle, int axis, int spreads_nan,
                                const gpu_view *from, const int64_t *places,
                                int64_t count, const gpu_view *to)
{
    dry_device *d = of(handle);
    (void)spreads_nan;
    (void)places;
    (void)count;
    d->clock += d->real->select
                    ? dry_moved_seconds(d, dry_bytes(from) + dry_bytes(to))
                    : dry_sort_seconds(d, axis ? axis : 1, from, 0);
    return gpu_poll();
}

static gpu_status first(void *handle, int axis, int descending,
                        const gpu_view *from, const gpu_view *to,
                        const gpu_view *order)
{
    dry_device *d = of(handle);
    (void)axis;
    (void)descending;
    if (!d->real->first)
        return GPU_UNSUPPORTED;
    double results = (to ? dry_bytes(to) : 0) + (order ? dry_bytes(order) : 0);
    d->clock += dry_moved_seconds(d, dry_bytes(from) + results);
    return gpu_poll();
}

/* As if memory set the pace: of what is far apart it does. */
static gpu_status search(void *handle, const gpu_view *sorted,
                         const gpu_view *values, int is_after,
                         const gpu_view *to)
{
    dry_device *d = of(handle);
    (void)is_after;
    d->clock += dry_moved_seconds(d, dry_bytes(sorted) + dry_bytes(values) +
                                         dry_bytes(to));
    return gpu_poll();
}

static gpu_status group(void *handle, const gpu_grouping *g)
{
    dry_device *d = of(handle);
    double bytes = dry_bytes(&g->codes) + dry_bytes(&g->counts);
    d->clock += dry_moved_seconds(d, bytes + 4 * dry_bytes(&g->order));
    return gpu_poll();
}

static gpu_status fold(void *handle, const gpu_folding *f)
{
    dry_device *d = of(handle);
    double bytes = dry_bytes(&f->from) + dry_bytes(&f->codes) +
                   dry_bytes(&f->places) + dry_bytes(&f->starts);
    d->clock += dry_moved_seconds(d, bytes + dry_bytes(&f->to));
    return gpu_poll();
}

static gpu_status windows(void *handle, const gpu_windows *w)
{
    dry_device *d = of(handle);
    d->clock += dry_moved_seconds(d, dry_bytes(&w->from) + dry_bytes(&w->to));
    return gpu_poll();
}

static gpu_status fill_random(void *handle, const gpu_random *r,
                              const gpu_view *to)
{
    dry_device *d = of(handle);
    d->clock += dry_random_seconds(d, r, to);
    return gpu_poll();
}

static gpu_status variates(void *handle, const gpu_variates *v,
                           const gpu_view *to)
{
    dry_device *d = of(handle);
    const gpu_random uniform = {.kind = GPU_NORMAL, .high = 1};
    (void)v;
    d->clock += 4 * dry_random_seconds(d, &uniform, to);
    return gpu_poll();
}

static gpu_status survey(void *handle, const gpu_view *v, double scale,
                         gpu_survey *out)
{
    (void)handle;
    (void)v;
    (void)scale;
    (void)out;
    return gpu_fail_unread();
}

/* What draws them has asked for a survey before. */
static gpu_status bins(void *handle, const gpu_view *v, const gpu_bins *how,
                       int64_t *counts)
{
    (void)handle;
    (void)v;
    memset(counts, 0, (size_t)how->edges.count * sizeof *counts);
    return gpu_poll();
}

static gpu_status blocks(void *handle, gpu_block_kind kind, const gpu_view *v,
                         const gpu_view *to)
{
    dry_device *d = of(handle);
    (void)kind;
    d->clock += dry_moved_seconds(d, dry_bytes(v) + dry_bytes(to));
    return gpu_poll();
}

static const gpu_kernel *choose_sparse(void *handle, const gpu_sparse_call *p)
{
    return of(handle)->real->choose_sparse(of(handle)->handle, p);
}

static gpu_status sparse_product(void *handle, const gpu_sparse_call *p)
{
    dry_device *d = of(handle);
    d->clock += dry_sparse_seconds(d, &p->s, &p->d, &p->c);
    return gpu_poll();
}

static double csr_bytes(const gpu_csr *s)
{
    size_t entry = gpu_dtype_size(s->dtype) + sizeof *s->columns;
    return (double)entry * (double)s->count +
           (double)sizeof *s->starts * (double)(s->rows + 1);
}

/* Of what was given no more is known than how much it is. */
static gpu_status sparse_build(void *handle, const gpu_triplet_lists *t,
                               int32_t *starts, int32_t *columns, void *values,
                               int64_t *count)
{
    dry_device *d = of(handle);
    size_t entry = gpu_dtype_size(t->dtype) + 2 * sizeof *t->row;
    (void)starts, (void)columns, (void)values;
    d->clock += dry_moved_seconds(d, 4 * (double)entry * (double)t->count);
    *count = t->count;
    return gpu_poll();
}

static gpu_status sparse_transpose(void *handle, const gpu_csr *s,
                                   int32_t *starts, int32_t *columns,
                                   void *values)
{
    dry_device *d = of(handle);
    (void)starts, (void)columns, (void)values;
    d->clock += dry_moved_seconds(d, 4 * csr_bytes(s));
    return gpu_poll();
}

static gpu_status sparse_from_dense(void *handle, const gpu_view *m,
                                    int32_t *starts, int32_t *columns,
                                    void *values, int64_t *count)
{
    dry_device *d = of(handle);
    (void)starts, (void)columns, (void)values, (void)count;
    d->clock += dry_moved_seconds(d, 2 * dry_bytes(m));
    return gpu_poll();
}

static gpu_status sparse_keep(void *handle, const gpu_csr *s,
                              const gpu_sparse_choice *choice, int32_t *starts,
                              int32_t *columns, void *values, int64_t *count)
{
    dry_device *d = of(handle);
    (void)choice, (void)starts, (void)columns, (void)values;
    d->clock += dry_moved_seconds(d, 3 * csr_bytes(s));
    *count = s->count;
    return gpu_poll();
}

static gpu_status sparse_diagonals(void *handle, const gpu_diagonals *from,
                                   int32_t *starts, int32_t *columns,
                                   void *values, int64_t *count)
{
    dry_device *d = of(handle);
    int64_t side = from->rows < from->cols ? from->rows : from->cols;
    (void)starts, (void)columns, (void)values;
    d->clock += dry_moved_seconds(d, 3 * dry_bytes(&from->values));
    *count = side * from->count;
    return gpu_poll();
}

static gpu_status sparse_list(void *handle, const gpu_csr *s, double *rows,
                              double *cols)
{
    dry_device *d = of(handle);
    (void)rows, (void)cols;
    d->clock += dry_moved_seconds(d, 2 * csr_bytes(s));
    return gpu_poll();
}

static gpu_status sparse_to_dense(void *handle, const gpu_csr *s, void *to)
{
    dry_device *d = of(handle);
    double dense = (double)s->rows * (double)s->cols;
    (void)to;
    d->clock += dry_moved_seconds(
        d, csr_bytes(s) + dense * (double)gpu_dtype_size(s->dtype));
    return gpu_poll();
}

/* As many as there can be; of a product, where rows are alike. */
static double count_combined(gpu_sparse_op op, const gpu_csr *a,
                             const gpu_csr *b)
{
    double most = (double)a->rows * (double)b->cols;
    double x = (double)a->count, y = (double)b->count;
    double n = x + y;
    if (op == GPU_SPARSE_MUL)
        n = x < y ? x : y;
    if (op == GPU_SPARSE_PRODUCT)
        n = b->rows > 0 ? x * y / (double)b->rows : 0;
    most = most < INT32_MAX ? most : INT32_MAX;
    return n < most ? n : most;
}

static gpu_status sparse_combine(void *handle, gpu_sparse_op op,
                                 const gpu_csr *a, const gpu_csr *b,
                                 gpu_csr_result *out)
{
    dry_device *d = of(handle);
    double n = count_combined(op, a, b);
    double each = 4 + (double)gpu_dtype_size(a->dtype);
    d->clock +=
        dry_moved_seconds(d, 2 * (csr_bytes(a) + csr_bytes(b)) + n * each);
    out->count = (int64_t)n;
    gpu_status status = out->make_room(out, out->count);
    return status == GPU_OK ? gpu_poll() : status;
}

static gpu_status sparse_sample(void *handle, const gpu_csr *s,
                                const gpu_view *m, void *out)
{
    dry_device *d = of(handle);
    (void)m, (void)out;
    d->clock += dry_moved_seconds(d, 2 * csr_bytes(s));
    return gpu_poll();
}

static gpu_status sparse_reduce(void *handle, const gpu_sparse_folding *how,
                                const gpu_csr *s, double *out)
{
    dry_device *d = of(handle);
    (void)how, (void)out;
    d->clock += dry_moved_seconds(d, csr_bytes(s));
    return gpu_poll();
}

static gpu_status sparse_lookup(void *handle, const gpu_csr *s,
                                const gpu_csr *places, void *out)
{
    dry_device *d = of(handle);
    (void)out;
    d->clock += dry_moved_seconds(d, csr_bytes(s) + csr_bytes(places));
    return gpu_poll();
}

static gpu_status sparse_along(void *handle, const gpu_csr *s,
                               const gpu_sparse_path *path, void *out)
{
    dry_device *d = of(handle);
    (void)out;
    d->clock += dry_moved_seconds(d, csr_bytes(s) * (double)path->count /
                                         (double)(s->rows > 0 ? s->rows : 1));
    return gpu_poll();
}

/* As many as there can be. */
static double count_arranged(const gpu_sparse_arranging *how)
{
    double n = 0;
    for (int64_t k = 0; k < how->count; k++)
        n += (double)how->parts[k].count;
    if (how->kind == GPU_SPARSE_KRON)
        n = (double)how->parts[0].count * (double)how->parts[1].count;
    double most = (double)how->rows * (double)how->cols;
    most = most < INT32_MAX ? most : INT32_MAX;
    return n < most ? n : most;
}

static gpu_status sparse_arrange(void *handle, const gpu_sparse_arranging *how,
                                 gpu_csr_result *out)
{
    dry_device *d = of(handle);
    double n = count_arranged(how), bytes = 0;
    for (int64_t k = 0; k < how->count; k++)
        bytes += csr_bytes(&how->parts[k]);
    bytes += n * (4 + (double)gpu_dtype_size(how->parts[0].dtype));
    d->clock += dry_moved_seconds(d, bytes);
    out->count = (int64_t)n;
    gpu_status status = out->make_room(out, out->count);
    return status == GPU_OK ? gpu_poll() : status;
}

static gpu_status sparse_incomplete(void *handle, const gpu_incomplete *halves,
                                    gpu_sparse_breakdown *told)
{
    dry_device *d = of(handle);
    (void)told;
    d->clock += dry_moved_seconds(
        d, 2 * (csr_bytes(&halves->lower) + csr_bytes(&halves->upper)));
    return gpu_poll();
}

static gpu_status solve(void *handle, const gpu_view *a, const gpu_view *b,
                        gpu_inverse_size *inverse)
{
    dry_device *d = of(handle);
    (void)inverse; /* its norms stay 0: a is not poor */
    d->clock += dry_system_seconds(d, a->dtype, a->rows, b->cols);
    return gpu_poll();
}

static gpu_status determinant(void *handle, const gpu_view *a, double *out)
{
    dry_device *d = of(handle);
    *out = 1;
    d->clock += dry_system_seconds(d, a->dtype, a->rows, 0);
    return gpu_poll();
}

static gpu_status inverse_norm(void *handle, const gpu_view *a,
                               gpu_inverse_size *inverse)
{
    dry_device *d = of(handle);
    inverse->norm_1 = inverse->norm_2 = 1;
    d->clock += dry_system_seconds(d, a->dtype, a->rows, 0);
    return gpu_poll();
}

static const gpu_kernel *choose_factor(void *handle, const gpu_factoring *f)
{
    return of(handle)->real->choose_factor(handle, f);
}

/* Nothing is wrong with what has no elements. */
static gpu_status factor(void *handle, gpu_factoring *f)
{
    dry_device *d = of(handle);
    int64_t m = f->a.rows, n = f->a.cols;
    for (int64_t i = 0; f->places && i < (m > n ? m : n); i++)
        if (i < (f->kind == GPU_FACTOR_LU ? m : n))
            f->places[i] = i;
    f->trouble = 0;
    d->clock += dry_factor_seconds(d, f);
    return gpu_poll();
}

/* --- the ladder ------------------------------------------------------------
 */

static gpu_status multiply(void *handle, const gpu_gemm *p)
{
    dry_device *d = of(handle);
    d->clock += dry_product_seconds(d, d->product, p);
    return gpu_poll();
}

static gpu_status dot(void *handle, const gpu_view *x, const gpu_view *y,
                      double *out)
{
    dry_device *d = of(handle);
    *out = 1;
    d->clock += dry_moved_seconds(d, dry_bytes(x) + dry_bytes(y));
    return gpu_poll();
}

/* A backend's list of kernels knows of no device, so there is one function for
 * each backend. */
enum { BACKENDS = 4 };
static dry_ladder ladders[BACKENDS];

#define LADDER(i)                                          \
    static int kernels_##i(const gpu_kernel *const **list) \
    {                                                      \
        *list = ladders[i].list;                           \
        return ladders[i].count;                           \
    }
LADDER(0)
LADDER(1)
LADDER(2)
LADDER(3)
static int (*const kernels[BACKENDS])(const gpu_kernel *const **list) = {
    kernels_0, kernels_1, kernels_2, kernels_3};

static void build_ladder(dry_ladder *l, const gpu_backend *real)
{
    int n = real->kernels(&l->real_list);
    l->real = real;
    l->count = n < DRY_MOST_KERNELS ? n : DRY_MOST_KERNELS;
    for (int i = 0; i < l->count; i++) {
        gpu_kernel *k = &l->kernel[i];
        *k = *l->real_list[i];
        k->matmul = k->matmul ? multiply : NULL;
        k->dot = k->dot ? dot : NULL;
        l->list[i] = k;
    }
}

/* Which of the ladders is the backend's; -1: there are too many. */
static int find_ladder(const gpu_backend *real)
{
    for (int i = 0; i < BACKENDS; i++) {
        if (!ladders[i].real)
            build_ladder(&ladders[i], real);
        if (ladders[i].real == real)
            return i;
    }
    return -1;
}

/* The dry rung of a real one. */
static const gpu_kernel *rung(const dry_device *d, const gpu_kernel *real)
{
    const dry_ladder *l = d->ladder;
    for (int i = 0; i < l->count; i++)
        if (l->real_list[i] == real)
            return &l->kernel[i];
    return &l->kernel[0];
}

static const gpu_kernel *choose_matmul(void *handle, const gpu_gemm *p)
{
    dry_device *d = of(handle);
    return rung(d, d->real->choose_matmul(handle, p));
}

static const gpu_kernel *choose_dot(void *handle, const gpu_view *x,
                                    const gpu_view *y)
{
    dry_device *d = of(handle);
    return rung(d, d->real->choose_dot(handle, x, y));
}

/* Asked before each product, which it leaves in one piece: so the kernel that
 * comes is known. */
static void note_kernel(void *handle, const gpu_kernel *k, const gpu_gemm *p,
                        int64_t *rows, int64_t *cols)
{
    dry_device *d = of(handle);
    (void)p;
    (void)rows;
    (void)cols;
    d->product = d->ladder->real_list[k - d->ladder->kernel];
}

/* --- the state --------------------------------------------------------------
 */

static const gpu_backend entries = {
    .abi = GPU_BACKEND_ABI,
    .describe = describe,
    .capability = capability,
    .is_lost = is_lost,
    .alloc = alloc,
    .free = free_real,
    .upload = upload,
    .download = download,
    .memory = memory,
    .trim = trim,
    .unused = unused,
    .sync = sync_nothing,
    .timer_start = timer_start,
    .timer_stop = timer_stop,
    .peak = peak,
    .map = map,
    .reduce = reduce,
    .gather = gather,
    .scatter = scatter,
    .pick = pick,
    .compress = compress,
    .expand = compress,
    .scan = scan,
    .sort = sort,
    .select = select_places,
    .first = first,
    .search = search,
    .group = group,
    .fold = fold,
    .windows = windows,
    .random = fill_random,
    .variates = variates,
    .survey = survey,
    .bins = bins,
    .blocks = blocks,
    .choose_matmul = choose_matmul,
    .choose_dot = choose_dot,
    .panel = note_kernel,
    .choose_sparse = choose_sparse,
    .sparse_product = sparse_product,
    .sparse_turned_product = sparse_product,
    .sparse_build = sparse_build,
    .sparse_transpose = sparse_transpose,
    .sparse_from_dense = sparse_from_dense,
    .sparse_keep = sparse_keep,
    .sparse_diagonals = sparse_diagonals,
    .sparse_list = sparse_list,
    .sparse_to_dense = sparse_to_dense,
    .sparse_combine = sparse_combine,
    .sparse_sample = sparse_sample,
    .sparse_reduce = sparse_reduce,
    .sparse_lookup = sparse_lookup,
    .sparse_along = sparse_along,
    .sparse_arrange = sparse_arrange,
    .sparse_incomplete = sparse_incomplete,
    .solve = solve,
    .determinant = determinant,
    .inverse_norm = inverse_norm,
    .choose_factor = choose_factor,
    .factor = factor,
    .complex_map = complex_map,
    .complex_pairs = complex_pairs,
    .fft = transform,
    .convolve = convolve,
};

#define OMIT_MISSING(entry)    \
    do {                       \
        if (!real->entry)      \
            dry->entry = NULL; \
    } while (0)

/* What the real backend lacks, the CPU does for it here as well. */
static void omit_missing(gpu_backend *dry, const gpu_backend *real)
{
    OMIT_MISSING(is_lost);
    OMIT_MISSING(unused);
    OMIT_MISSING(survey);
    OMIT_MISSING(bins);
    OMIT_MISSING(blocks);
    OMIT_MISSING(choose_sparse);
    OMIT_MISSING(sparse_product);
    OMIT_MISSING(sparse_turned_product);
    OMIT_MISSING(sparse_build);
    OMIT_MISSING(sparse_transpose);
    OMIT_MISSING(sparse_from_dense);
    OMIT_MISSING(sparse_to_dense);
    OMIT_MISSING(sparse_combine);
    OMIT_MISSING(sparse_sample);
    OMIT_MISSING(sparse_reduce);
    OMIT_MISSING(sparse_lookup);
    OMIT_MISSING(sparse_along);
    OMIT_MISSING(sparse_arrange);
    OMIT_MISSING(solve);
    OMIT_MISSING(determinant);
    OMIT_MISSING(inverse_norm);
    OMIT_MISSING(choose_factor);
    OMIT_MISSING(factor);
    OMIT_MISSING(complex_map);
    OMIT_MISSING(complex_pairs);
    OMIT_MISSING(fft);
    OMIT_MISSING(convolve);
}

/* What is known of a device outlives a shutdown. */
static dry_device *find_device(const gpu_device *device)
{
    for (int i = 0; i < device_count; i++)
        if (devices[i]->handle == device->handle &&
            devices[i]->real == device->backend)
            return devices[i];
    return NULL;
}

/* NULL where memory, or places for devices, have run out. */
static dry_device *make_device(const gpu_device *device)
{
    int place = find_ladder(device->backend);
    dry_device *d =
        place < 0 || device_count == MOST_DEVICES ? NULL : calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->handle = device->handle;
    d->real = device->backend;
    d->ladder = &ladders[place];
    d->backend = entries;
    d->backend.name = d->real->name;
    d->backend.kernels = kernels[place];
    d->backend.draws = d->real->draws;
    d->backend.pick_checks = d->real->pick_checks;
    omit_missing(&d->backend, d->real);
    devices[device_count++] = d;
    return d;
}

static int adopt(gpu_device *device)
{
    dry_device *d = find_device(device);
    if (!d)
        d = make_device(device);
    if (!d)
        return 0;
    d->device = device;
    d->clock = 0;
    d->predicts = run.watch->predicts;
    d->overhead = run.watch->overhead;
    device->own = device->backend;
    device->backend = &d->backend;
    return 1;
}

static void give_back(void)
{
    gpu_device *const *open;
    int n = gpu_device_count_opened(&open);
    for (int i = 0; i < n; i++) {
        if (open[i]->own)
            open[i]->backend = open[i]->own;
        open[i]->own = NULL;
    }
    for (int i = 0; i < device_count; i++)
        devices[i]->device = NULL;
}

gpu_status gpu_begin_dry(const gpu_dry_watch *watch)
{
    gpu_device *const *open;
    int n = gpu_device_count_opened(&open), all = 1;
    if (gpu_dry)
        return gpu_fail(GPU_ARGUMENT, "a dry run goes on already");
    run = (gpu_dry_run){
        .adopt = adopt, .watch = watch, .before = run.made, .made = run.made};
    for (int i = 0; i < n; i++)
        all &= adopt(open[i]);
    if (!all) {
        give_back();
        return gpu_fail(GPU_MEMORY, "out of memory: for a dry run");
    }
    before = gpu_counted;
    gpu_dry = &run;
    gpu_begin_dry_trace();
    return GPU_OK;
}

void gpu_end_dry(gpu_dry_report *report)
{
    if (!gpu_dry)
        return;
    gpu_drop_waiting();
    if (report)
        *report = (gpu_dry_report){gpu_counted.allocated - before.allocated,
                                   run.peak};
    gpu_end_dry_trace();
    gpu_dry = NULL;
    gpu_counted = before;
    give_back();
}

int gpu_is_dry(void)
{
    return gpu_dry != NULL;
}
