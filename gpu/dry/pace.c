/* How long the real device would take: as long as a small piece of the same
 * work takes there, which is run once and scaled to the operands' sizes, but
 * never less than what the bytes take at the measured peak of its memory. */
#include "complex_numbers.h"
#include "dry.h"
#include "op_list.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ON_CPU = 1 << 14, ON_GPU = 1 << 20 }; /* elements of a probe */
enum { LEAST_RUNS = 3 };
static const double LONGEST = 0.004; /* seconds a probe may take */

static double larger(double a, double b)
{
    return a > b ? a : b;
}

double dry_bytes(const gpu_view *v)
{
    double rows = v->row_stride == 0 && v->rows > 0 ? 1 : (double)v->rows;
    double cols = v->col_stride == 0 && v->cols > 0 ? 1 : (double)v->cols;
    return rows * cols * (double)gpu_dtype_size(v->dtype);
}

static const gpu_peak *peak_of(dry_device *d)
{
    gpu_peak *p = &d->device->peak;
    if (p->bytes == 0 && d->real->peak(d->handle, p) != GPU_OK)
        *p = (gpu_peak){1e10, 5e9, 1e10};
    return p;
}

static double peak_flops(dry_device *d, gpu_dtype dtype)
{
    const gpu_peak *p = peak_of(d);
    return dtype == GPU_F64 ? p->f64_flops : p->f32_flops;
}

/* --- what was measured ------------------------------------------------------
 */

/* Source: Fowler, Noll and Vo's hash FNV-1a, 64 bits. */
static uint64_t mix(uint64_t key, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++)
        key = (key ^ p[i]) * 0x100000001b3u;
    return key;
}

static uint64_t key_of(const char *entry)
{
    return mix(0xcbf29ce484222325u, entry, strlen(entry));
}

/* The place of a key, which may be free. A full table begins anew. */
static dry_pace *place_of(dry_device *d, uint64_t key)
{
    key += key == 0;
    for (int i = 0; i < DRY_PACES; i++) {
        dry_pace *p = &d->pace[(key + (uint64_t)i) % DRY_PACES];
        if (p->key == 0)
            p->seconds = -1;
        if (p->key == 0 || p->key == key) {
            p->key = key;
            return p;
        }
    }
    memset(d->pace, 0, sizeof d->pace);
    return place_of(d, key);
}

/* A piece of work on scratch memory of the device. */
typedef struct probe {
    unsigned drawn; /* bits of inputs */
    dry_device *d;
    gpu_status (*run)(struct probe *p);
    gpu_status (*refresh)(struct probe *p); /* before each run; or NULL */
    void *memory[3];
    size_t bytes[3];
    const gpu_program *program;
    const gpu_kernel *kernel;
    gpu_gemm gemm;
    gpu_view in[GPU_MAX_INPUTS], out;
    gpu_random random;
    int has_places;
} probe;

static gpu_status take_memory(probe *p)
{
    for (int i = 0; i < 3; i++)
        if (p->bytes[i] > 0 && p->d->real->alloc(p->d->handle, p->bytes[i],
                                                 &p->memory[i]) != GPU_OK)
            return GPU_MEMORY;
    return GPU_OK;
}

static void give_memory(probe *p)
{
    for (int i = 0; i < 3; i++)
        if (p->memory[i])
            p->d->real->free(p->d->handle, p->memory[i], p->bytes[i]);
}

static gpu_status run_once(probe *p, double *seconds)
{
    void *handle = p->d->handle;
    if (p->refresh)
        TRY(p->refresh(p));
    TRY(p->d->real->sync(handle));
    TRY(p->d->real->timer_start(handle));
    gpu_status status = p->run(p);
    gpu_status stopped = p->d->real->timer_stop(handle, seconds);
    return status != GPU_OK ? status : stopped;
}

/* The best of a few runs; negative where it cannot be run. */
static double time_probe(probe *p)
{
    double best = -1, all = 0, seconds;
    for (int i = 0; i < LEAST_RUNS || (all < LONGEST && i < 100); i++) {
        if (run_once(p, &seconds) != GPU_OK)
            return -1;
        all += seconds;
        if (best < 0 || seconds < best)
            best = seconds;
    }
    return best;
}

/* Seconds of the work, from what is known or by running it; negative: it
 * cannot be run, which is tried once. An interrupt is told by the entry. */
static double measured(probe *p, uint64_t key)
{
    enum { FAILED = -2 };
    dry_pace *place = place_of(p->d, key);
    if (place->seconds != -1)
        return place->seconds;
    double seconds = take_memory(p) == GPU_OK ? time_probe(p) : -1;
    give_memory(p);
    if (!gpu_is_interrupted())
        place->seconds = seconds < 0 ? FAILED : seconds;
    return seconds;
}

/* --- vectors ----------------------------------------------------------------
 */

static int64_t probe_length(const dry_device *d)
{
    return d->device->is_cpu ? ON_CPU : ON_GPU;
}

/* A vector of n elements of the type at memory[i], and how much that is. */
static gpu_view vector(probe *p, int i, gpu_dtype dtype, int64_t n)
{
    size_t bytes = (size_t)n * gpu_dtype_size(dtype);
    if (bytes > p->bytes[i])
        p->bytes[i] = bytes;
    return (gpu_view){NULL, dtype, n, 1, 1, 1};
}

/* Fills a view with one number. */
static gpu_status fill(probe *p, const gpu_view *v, double value)
{
    gpu_program f;
    gpu_program_start(&f, 0);
    gpu_program_constant(&f, value);
    f.compute = v->dtype == GPU_F64 ? GPU_F64 : GPU_F32;
    return p->d->real->map(p->d->handle, &f, NULL, v);
}

/* Random numbers that the program draws itself. */
static int is_drawn(const gpu_program *p, const gpu_view *input)
{
    return p->draw && !input->data;
}

/* All inputs of one type are one vector, of halves. */
static gpu_status start_program(probe *p)
{
    for (int i = 0; i < p->program->inputs; i++) {
        if (p->drawn >> i & 1)
            continue;
        p->in[i].data = p->memory[p->in[i].dtype == GPU_F64];
        TRY(fill(p, &p->in[i], 0.5));
    }
    p->out.data = p->memory[2];
    p->refresh = NULL;
    return GPU_OK;
}

static gpu_status run_map(probe *p)
{
    return p->d->real->map(p->d->handle, p->program, p->in, &p->out);
}

static gpu_status run_reduce(probe *p)
{
    return p->d->real->reduce(p->d->handle, p->program, p->in, 0, &p->out);
}

static uint64_t program_key(const char *entry, const gpu_program *p,
                            const gpu_view *in, const gpu_view *out,
                            unsigned drawn, int64_t n)
{
    uint64_t key = mix(key_of(entry), p, offsetof(gpu_program, code));
    for (int i = 0; i < p->length; i++)
        key = mix(key, &p->code[i], sizeof p->code[i]);
    for (int i = 0; i < p->inputs; i++)
        key = mix(key, &in[i].dtype, sizeof in[i].dtype);
    key = mix(key, &out->dtype, sizeof out->dtype);
    key = mix(key, &drawn, sizeof drawn);
    return mix(key, &n, sizeof n);
}

/* A program over vectors of n elements, f32 in the place of masks. */
static double program_seconds(dry_device *d, const gpu_program *program,
                              const gpu_view *in, const gpu_view *out,
                              int64_t n)
{
    int reduces = program->reduction != GPU_NO_REDUCTION;
    probe p = {.d = d,
               .run = reduces ? run_reduce : run_map,
               .refresh = start_program,
               .program = program};
    for (int i = 0; i < program->inputs; i++) {
        gpu_dtype dtype = in[i].dtype == GPU_F64 ? GPU_F64 : GPU_F32;
        p.in[i] = vector(&p, dtype == GPU_F64, dtype, n);
        p.drawn |= (unsigned)is_drawn(program, &in[i]) << i;
        if (p.drawn >> i & 1)
            p.in[i].data = NULL;
    }
    p.out = vector(&p, 2, out->dtype, reduces ? 1 : n);
    return measured(&p, program_key(reduces ? "reduce" : "map", program, p.in,
                                    &p.out, p.drawn, n));
}

/* What the device takes for an operation however small it is. */
static double least(dry_device *d)
{
    gpu_program p;
    gpu_view v = {NULL, GPU_F32, 1, 1, 1, 1};
    gpu_program_start(&p, 1);
    gpu_program_add(&p, GPU_OP_neg, 0, 0, 0);
    return larger(0, program_seconds(d, &p, &v, &v, 1));
}

/* The same with what issues it, which goes on beside a GPU. */
static double latency(dry_device *d)
{
    return larger(least(d), d->overhead);
}

/* By the memory's pace, or the work on each element if that takes longer:
 * `whole` seconds are those of n elements. */
static double streamed(dry_device *d, double bytes, double elements,
                       double whole, int64_t n)
{
    double work = larger(0, whole - least(d)) / (double)n;
    return latency(d) + larger(bytes / peak_of(d)->bytes, elements * work);
}

static double elements_of(const gpu_view *v)
{
    return (double)v->rows * (double)v->cols;
}

double dry_map_seconds(dry_device *d, const gpu_program *p, const gpu_view *in,
                       const gpu_view *out)
{
    double bytes = dry_bytes(out);
    if (!d->predicts)
        return 0;
    for (int i = 0; i < p->inputs; i++)
        bytes += is_drawn(p, &in[i]) ? 0 : dry_bytes(&in[i]);
    int64_t n = probe_length(d);
    return streamed(d, bytes, elements_of(out),
                    program_seconds(d, p, in, out, n), n);
}

double dry_reduce_seconds(dry_device *d, const gpu_program *p,
                          const gpu_view *in, const gpu_view *out)
{
    double bytes = 0;
    if (!d->predicts)
        return 0;
    for (int i = 0; i < p->inputs; i++)
        bytes += is_drawn(p, &in[i]) ? 0 : dry_bytes(&in[i]);
    int64_t n = probe_length(d);
    return streamed(d, bytes, elements_of(&in[0]),
                    program_seconds(d, p, in, out, n), n);
}

double dry_moved_seconds(dry_device *d, double bytes)
{
    return d->predicts ? streamed(d, bytes, 0, 0, 1) : 0;
}

/* --- the bus, sums, sorting, random numbers ---------------------------------
 */

static gpu_status run_upload(probe *p)
{
    static const char zeros[1 << 20];
    return p->d->real->upload(p->d->handle, p->memory[0], zeros, sizeof zeros);
}

double dry_bus_seconds(dry_device *d, double bytes)
{
    if (!d->predicts || d->device->is_cpu)
        return 0;
    probe p = {.d = d, .run = run_upload, .bytes = {1 << 20}};
    double whole = measured(&p, key_of("upload"));
    return latency(d) + bytes * larger(0, whole) / (1 << 20);
}

static gpu_status start_vector(probe *p)
{
    p->in[0].data = p->memory[0];
    p->out.data = p->memory[1];
    p->refresh = NULL;
    return fill(p, &p->in[0], 0.5);
}

/* In another order than sorted. */
static gpu_status start_shuffled(probe *p)
{
    gpu_random r = {.kind = GPU_UNIFORM, .seed = 1, .high = 1};
    p->in[0].data = p->memory[0];
    p->out.data = p->memory[1];
    p->refresh = NULL;
    return p->d->real->random(p->d->handle, &r, &p->in[0]);
}

static gpu_status run_scan(probe *p)
{
    return p->d->real->scan(p->d->handle, GPU_SCAN_SUM, 1, &p->in[0], &p->out);
}

static gpu_status run_sort(probe *p)
{
    return p->d->real->sort(p->d->handle, 1, 0, &p->in[0],
                            p->has_places ? NULL : &p->out,
                            p->has_places ? &p->out : NULL);
}

double dry_scan_seconds(dry_device *d, const gpu_view *v)
{
    if (!d->predicts)
        return 0;
    int64_t n = probe_length(d);
    probe p = {.d = d, .run = run_scan, .refresh = start_vector};
    p.in[0] = vector(&p, 0, v->dtype, n);
    p.out = vector(&p, 1, v->dtype, n);
    uint64_t key = mix(key_of("scan"), &v->dtype, sizeof v->dtype);
    return streamed(d, 2 * dry_bytes(v), elements_of(v), measured(&p, key), n);
}

/* Each element takes as many steps as the length has digits. */
double dry_sort_seconds(dry_device *d, int axis, const gpu_view *v,
                        int has_places)
{
    if (!d->predicts)
        return 0;
    int64_t n = probe_length(d);
    double length = larger(2, axis == 2 ? (double)v->cols : (double)v->rows);
    double steps = larger(1, log2(length) / log2((double)n));
    probe p = {.d = d,
               .run = run_sort,
               .refresh = start_shuffled,
               .has_places = has_places};
    p.in[0] = vector(&p, 0, v->dtype, n);
    p.out = vector(&p, 1, has_places ? GPU_F64 : v->dtype, n);
    uint64_t key = mix(key_of(has_places ? "argsort" : "sort"), &v->dtype,
                       sizeof v->dtype);
    return streamed(d, 2 * dry_bytes(v), elements_of(v) * steps,
                    measured(&p, key), n);
}

static gpu_status run_random(probe *p)
{
    p->out.data = p->memory[0];
    return p->d->real->random(p->d->handle, &p->random, &p->out);
}

double dry_random_seconds(dry_device *d, const gpu_random *r,
                          const gpu_view *to)
{
    if (!d->predicts)
        return 0;
    int64_t n = probe_length(d);
    probe p = {.d = d, .run = run_random, .random = *r};
    p.out = vector(&p, 0, to->dtype, n);
    uint64_t key = mix(key_of("random"), &to->dtype, sizeof to->dtype);
    key = mix(key, &r->kind, sizeof r->kind);
    return streamed(d, dry_bytes(to), elements_of(to), measured(&p, key), n);
}

/* --- products ----------------------------------------------------------------
 */

static gpu_view dense(gpu_dtype dtype, int64_t rows, int64_t cols)
{
    return (gpu_view){NULL, dtype, rows, cols, cols, 1};
}

static gpu_status start_product(probe *p)
{
    p->gemm.a.data = p->memory[0];
    p->gemm.b.data = p->memory[1];
    p->gemm.c.data = p->memory[2];
    p->refresh = NULL;
    TRY(fill(p, &p->gemm.a, 0.5));
    return fill(p, &p->gemm.b, 0.5);
}

static gpu_status run_product(probe *p)
{
    return p->kernel->matmul(p->d->handle, &p->gemm);
}

/* Sizes no larger than a probe may have, the shape kept where possible. */
static void clip(const dry_device *d, int64_t size[3])
{
    double most = d->device->is_cpu ? 2e8 : 5e10, room = 1 << 24;
    for (;;) {
        double m = (double)size[0], n = (double)size[1], k = (double)size[2];
        int widest = m >= n && m >= k ? 0 : n >= k ? 1 : 2;
        if (2 * m * n * k <= most && m * k + k * n + m * n <= room)
            return;
        size[widest] = (size[widest] + 1) / 2;
    }
}

/* As measured; if that would take long, by the flops of a smaller one. */
double dry_product_seconds(dry_device *d, const gpu_kernel *real,
                           const gpu_gemm *g)
{
    double m = (double)g->c.rows, n = (double)g->c.cols, k = (double)g->a.cols;
    double flops = 2 * m * n * k;
    double bytes = dry_bytes(&g->a) + dry_bytes(&g->b) + dry_bytes(&g->c);
    int64_t size[3] = {g->c.rows, g->c.cols, g->a.cols};
    gpu_dtype t = g->a.dtype;
    size_t each = gpu_dtype_size(t);
    if (!d->predicts)
        return 0;
    clip(d, size);
    probe p = {.d = d,
               .run = run_product,
               .refresh = start_product,
               .kernel = real,
               .gemm = {.alpha = 1, .tile = g->tile}};
    p.gemm.a = dense(t, size[0], size[2]);
    p.gemm.b = dense(t, size[2], size[1]);
    p.gemm.c = dense(t, size[0], size[1]);
    p.bytes[0] = (size_t)(size[0] * size[2]) * each;
    p.bytes[1] = (size_t)(size[2] * size[1]) * each;
    p.bytes[2] = (size_t)(size[0] * size[1]) * each;
    uint64_t key = mix(key_of(real->name), size, sizeof size);
    key = mix(mix(key, &t, sizeof t), &g->tile, sizeof g->tile);
    double seconds = measured(&p, key);
    double bound = bytes / peak_of(d)->bytes;
    double small = 2.0 * (double)size[0] * (double)size[1] * (double)size[2];
    if (seconds < 0)
        return larger(flops / peak_flops(d, t), bound);
    double start = least(d) < seconds ? least(d) : seconds;
    seconds = start + (seconds - start) * (flops / small);
    return larger(larger(seconds, bound), latency(d));
}

double dry_sparse_seconds(dry_device *d, const gpu_csr *s, const gpu_view *b,
                          const gpu_view *c)
{
    if (!d->predicts)
        return 0;
    size_t entry = gpu_dtype_size(s->dtype) + sizeof *s->columns;
    double flops = 2 * (double)s->count * (double)b->cols;
    double bytes = (double)entry * (double)s->count +
                   (double)sizeof *s->starts * (double)(s->rows + 1) +
                   dry_bytes(b) + dry_bytes(c);
    return latency(d) +
           larger(bytes / peak_of(d)->bytes, flops / peak_flops(d, s->dtype));
}

/* --- systems
 * ------------------------------------------------------------------ */

/* A regular matrix, which a solve overwrites: halves, with n on the diagonal.
 */
static gpu_status start_system(probe *p)
{
    gpu_view *a = &p->in[0], diagonal;
    a->data = p->memory[0];
    p->out.data = p->memory[1];
    diagonal = (gpu_view){a->data, a->dtype, a->rows, 1, a->cols + 1, 1};
    TRY(fill(p, a, 0.5));
    TRY(fill(p, &diagonal, (double)a->rows));
    return fill(p, &p->out, 1);
}

static gpu_status run_solve(probe *p)
{
    return p->d->real->solve(p->d->handle, &p->in[0], &p->out, NULL);
}

static double system_flops(double n, double columns)
{
    return n * n * (2.0 / 3 * n + 2 * columns);
}

double dry_system_seconds(dry_device *d, gpu_dtype dtype, int64_t n,
                          int64_t columns)
{
    int64_t most = d->device->is_cpu ? 512 : 2048;
    int64_t side = n < most ? n : most;
    double flops = system_flops((double)n, (double)columns);
    if (!d->predicts || n == 0)
        return 0;
    probe p = {.d = d, .run = run_solve, .refresh = start_system};
    p.in[0] = p.out = dense(dtype, side, side);
    p.bytes[0] = p.bytes[1] = (size_t)(side * side) * gpu_dtype_size(dtype);
    uint64_t key =
        mix(mix(key_of("solve"), &side, sizeof side), &dtype, sizeof dtype);
    double seconds = d->real->solve ? measured(&p, key) : -1;
    if (seconds < 0)
        return flops / peak_flops(d, dtype);
    return larger(latency(d),
                  seconds * flops / system_flops((double)side, (double)side));
}

/* At the pace of a system of that size, of complex elements of one of their
 * parts' type. */
double dry_factor_seconds(dry_device *d, const gpu_factoring *f)
{
    int64_t n = f->a.rows < f->a.cols ? f->a.rows : f->a.cols;
    gpu_dtype type = gpu_dtype_of_parts(f->a.dtype);
    double seconds = dry_system_seconds(d, type, n, 0);
    return n > 0 ? seconds * f->flops / system_flops((double)n, 0) : 0;
}

/* Butterflies reach a fraction of what products do; where they would take less
 * than the bytes, which go and come twice, those count. */
double dry_fft_seconds(dry_device *d, const gpu_fft_call *c)
{
    enum { OF_PEAK = 8, PASSES = 2 };
    int is_wide = c->in.dtype == GPU_F64 || c->in.dtype == GPU_C128;
    const gpu_view *v = c->kind == GPU_FFT_FROM_HALF ? &c->out : &c->in;
    double rows = c->axis == 2 ? 1 : (double)v->rows;
    double cols = c->axis == 1 ? 1 : (double)v->cols;
    double each = c->kind == GPU_FFT_COMPLEX ? 5 : 2.5;
    double flops = each * (double)v->rows * (double)v->cols * log2(rows * cols);
    if (!d->predicts)
        return 0;
    double bytes = PASSES * (dry_bytes(&c->in) + dry_bytes(&c->out));
    return larger(dry_moved_seconds(d, bytes),
                  OF_PEAK * flops / peak_flops(d, is_wide ? GPU_F64 : GPU_F32));
}

/* Sums are in f64. */
double dry_convolution_seconds(dry_device *d, const gpu_convolution *c)
{
    enum { OF_PEAK = 8 };
    double flops = 2 * (double)c->out.rows * (double)c->out.cols *
                   (double)c->y.rows * (double)c->y.cols;
    if (!d->predicts)
        return 0;
    return larger(dry_moved_seconds(d, dry_bytes(&c->x) + dry_bytes(&c->out)),
                  OF_PEAK * flops / peak_flops(d, GPU_F64));
}
