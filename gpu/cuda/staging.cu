/* The way between the host's memory and the device's. Limited by the bus.
 *
 * The bus is fast only from and to pinned memory, which no user's matrix lies
 * in; the driver's own staging is one thread's. So larger copies go through a
 * ring of pinned buffers a direction: while the bus empties one, all cores fill
 * the next. A view with gaps, or of another type, is packed and converted on
 * that way. The buffers are made when they are first needed and stay; where the
 * system gives none the driver copies, and what must be packed is packed in
 * ordinary memory.
 *
 * Lanes are streams, marks are events. What the lane out is given is first
 * noted as an errand, as its ring is often full: nobody who fetches waits for
 * what is fetched to be worked out. Errands are issued, in their order, and
 * what they brought is copied to its place, whenever the host waits for the bus
 * in the other direction; when somebody is to follow a mark that is among them;
 * and when deliver is called. */
#include <stdlib.h>
#include <string.h>
#include "cuda_device.h"

/* A part is long enough for the bus to forget what beginning it costs, about
 * 10 us; of a copy that is not much longer several parts are made, so that both
 * ends work at once. Below STAGED the driver's way is shorter. */
enum {
    PART = 8 << 20,
    LEAST_PART = 256 << 10,
    PARTS = 4, /* of a copy, where they are not short; buffers a direction */
    STAGED = 1 << 20
};
enum { LASTING = 64 << 20 }; /* bytes whose progress is told */

typedef struct buffer {
    void *data; /* PART bytes; NULL: not made yet */
    int is_pinned;
    cudaEvent_t done;    /* the bus is done with it; NULL: it never was used */
    gpu_view packed, to; /* what lies in it, and where that goes */
    gpu_lane lane;       /* by which it was fetched */
} buffer;

/* Something that the lane out was given and that is not issued yet. */
typedef struct errand {
    enum { COPY, FOLLOW, MARK } is;
    int mark;
    gpu_view from, to;  /* of a copy, */
    int64_t rows, cols; /* whose parts have so many, */
    int64_t row, col;   /* and the next of which begins here */
} errand;

enum { ERRANDS = 64 };

struct cuda_staging {
    buffer in[PARTS], out[PARTS];
    int next_in, first_out,
        waiting;            /* of out, from first_out on, are fetched */
    int is_refused;         /* there is no pinned memory */
    errand errand[ERRANDS]; /* a ring */
    int first_errand, errands;
    cudaStream_t
        stream[GPU_LANES];       /* NULL: not made yet; that of work is d's */
    cudaEvent_t mark[GPU_MARKS]; /* NULL: not set yet */
};

static gpu_status staging_of(cuda_device *d, cuda_staging **out)
{
    if (d->staging == NULL)
        d->staging = (cuda_staging *)calloc(1, sizeof *d->staging);
    *out = d->staging;
    return *out ? GPU_OK : FAIL(GPU_MEMORY, "out of memory for a copy");
}

/* --- buffers -------------------------------------------------------------- */

static gpu_status make_buffer(cuda_device *d, buffer *b)
{
    cuda_staging *s = d->staging;
    if (b->done == NULL)
        CHECK(d, cudaEventCreateWithFlags(&b->done, cudaEventDisableTiming));
    b->is_pinned =
        !s->is_refused &&
        cudaHostAlloc(&b->data, PART, cudaHostAllocDefault) == cudaSuccess;
    if (b->is_pinned)
        return GPU_OK;
    s->is_refused = 1;
    cudaGetLastError();
    b->data = malloc(PART);
    return b->data ? GPU_OK : FAIL(GPU_MEMORY, "out of memory for a copy");
}

/* The buffer is the host's to fill, or the bus's to fill anew. */
static gpu_status take_buffer(cuda_device *d, buffer *b)
{
    return b->data ? gpu_cuda_wait_for(d, b->done) : make_buffer(d, b);
}

static void end_buffer(buffer *b)
{
    if (b->is_pinned)
        cudaFreeHost(b->data);
    else
        free(b->data);
    if (b->done != NULL)
        cudaEventDestroy(b->done);
}

void gpu_cuda_end_staging(cuda_device *d)
{
    cuda_staging *s = d->staging;
    if (s == NULL)
        return;
    for (int i = 0; i < GPU_LANES; i++)
        if (s->stream[i] != NULL) {
            cudaStreamSynchronize(s->stream[i]);
            cudaStreamDestroy(s->stream[i]);
        }
    for (int i = 0; i < GPU_MARKS; i++)
        if (s->mark[i] != NULL)
            cudaEventDestroy(s->mark[i]);
    for (int i = 0; i < PARTS; i++) {
        end_buffer(&s->in[i]);
        end_buffer(&s->out[i]);
    }
    free(s);
    d->staging = NULL;
}

/* --- parts ---------------------------------------------------------------- */

static size_t bytes_of(const gpu_view *v)
{
    return (size_t)(v->rows * v->cols) * dtype_bytes(v->dtype);
}

/* Without gaps, row by row? */
static int is_dense(const gpu_view *v)
{
    return (v->col_stride == 1 || v->cols == 1) &&
           (v->row_stride == v->cols || v->rows == 1);
}

static gpu_view block_of(const gpu_view *v, int64_t row, int64_t col,
                         int64_t rows, int64_t cols)
{
    gpu_view block = *v;
    int64_t at = row * v->row_stride + col * v->col_stride;
    block.data = (char *)v->data + at * (int64_t)dtype_bytes(v->dtype);
    block.rows = rows;
    block.cols = cols;
    return block;
}

/* Two views between which elements are copied by their bytes become one row. */
static void join_rows(gpu_view *a, gpu_view *b)
{
    if (a->dtype != b->dtype || !is_dense(a) || !is_dense(b))
        return;
    a->cols = b->cols = a->rows * a->cols;
    a->rows = b->rows = 1;
    a->col_stride = b->col_stride = 1;
}

/* Elements of a part, and how many rows and columns of a view they are. */
static void cut(const gpu_view *v, int64_t *rows, int64_t *cols)
{
    size_t part = bytes_of(v) / PARTS;
    part = part < LEAST_PART ? LEAST_PART : part > PART ? PART : part;
    int64_t elements = (int64_t)(part / dtype_bytes(v->dtype));
    *cols = smaller(v->cols, elements);
    *rows = smaller(v->rows, elements / *cols);
}

/* The same of a copy: a part fits a buffer in either type. */
static void cut_both(const gpu_view *from, const gpu_view *to, int64_t *rows,
                     int64_t *cols)
{
    cut(dtype_bytes(from->dtype) > dtype_bytes(to->dtype) ? from : to, rows,
        cols);
}

/* Between a packed buffer and rows on the device, which may lie apart. */
static cudaError_t cross(const gpu_view *to, const gpu_view *from,
                         cudaMemcpyKind way, cudaStream_t stream)
{
    size_t size = dtype_bytes(to->dtype), row = (size_t)to->cols * size;
    if (is_dense(to) && is_dense(from))
        return cudaMemcpyAsync(to->data, from->data, bytes_of(to), way, stream);
    return cudaMemcpy2DAsync(to->data, (size_t)to->row_stride * size,
                             from->data, (size_t)from->row_stride * size, row,
                             (size_t)to->rows, way, stream);
}

/* --- lanes ---------------------------------------------------------------- */

static gpu_status stream_of(cuda_device *d, gpu_lane lane, cudaStream_t *out)
{
    cuda_staging *s;
    *out = d->stream;
    if (lane == GPU_LANE_WORK)
        return GPU_OK;
    TRY(staging_of(d, &s));
    if (s->stream[lane] == NULL)
        CHECK(d, cudaStreamCreateWithFlags(&s->stream[lane],
                                           cudaStreamNonBlocking));
    *out = s->stream[lane];
    return GPU_OK;
}

static gpu_status record(cuda_device *d, gpu_lane lane, int mark)
{
    cuda_staging *s;
    cudaStream_t stream;
    TRY(staging_of(d, &s));
    TRY(stream_of(d, lane, &stream));
    if (s->mark[mark] == NULL)
        CHECK(d,
              cudaEventCreateWithFlags(&s->mark[mark], cudaEventDisableTiming));
    return gpu_cuda_check(d, cudaEventRecord(s->mark[mark], stream));
}

static gpu_status wait_behind(cuda_device *d, gpu_lane lane, int mark)
{
    cudaStream_t stream;
    TRY(stream_of(d, lane, &stream));
    if (d->staging == NULL || d->staging->mark[mark] == NULL)
        return GPU_OK;
    return gpu_cuda_check(
        d, cudaStreamWaitEvent(stream, d->staging->mark[mark], 0));
}

/* The bus has been given the copy of what lies in the buffer, or will. Where
 * that cannot be marked it is waited for. */
static gpu_status mark_buffer(cuda_device *d, const buffer *b,
                              cudaStream_t stream)
{
    cudaError_t error = cudaEventRecord(b->done, stream);
    if (error != cudaSuccess)
        cudaStreamSynchronize(stream);
    return gpu_cuda_check(d, error);
}

/* --- to the host ---------------------------------------------------------- */

/* The oldest of what was fetched goes where it belongs; past the caches where
 * other copies want the memory at the same time, which a lone one is slower
 * for. */
static gpu_status deliver_one(cuda_device *d)
{
    cuda_staging *s = d->staging;
    buffer *b = &s->out[s->first_out];
    TRY(gpu_cuda_wait_for(d, b->done));
    const gpu_backend *cpu = gpu_cuda_host->cpu;
    TRY((b->lane == GPU_LANE_OUT ? cpu->fetch : cpu->bring)(
        NULL, b->lane, &b->packed, &b->to));
    s->first_out = (s->first_out + 1) % PARTS;
    s->waiting--;
    return GPU_OK;
}

static gpu_status fetch_part(cuda_device *d, cudaStream_t stream,
                             const gpu_view *from, const gpu_view *to)
{
    cuda_staging *s = d->staging;
    if (s->waiting == PARTS)
        TRY(deliver_one(d));
    buffer *b = &s->out[(s->first_out + s->waiting) % PARTS];
    TRY(take_buffer(d, b));
    b->packed =
        (gpu_view){b->data, from->dtype, from->rows, from->cols, from->cols, 1};
    b->to = *to;
    b->lane = stream == d->stream ? GPU_LANE_WORK : GPU_LANE_OUT;
    CHECK(d, cross(&b->packed, from, cudaMemcpyDeviceToHost, stream));
    TRY(mark_buffer(d, b, stream));
    s->waiting++;
    return GPU_OK;
}

static void end_errand(cuda_staging *s)
{
    s->first_errand = (s->first_errand + 1) % ERRANDS;
    s->errands--;
}

static gpu_status issue_copy(cuda_device *d, errand *e)
{
    int64_t m = smaller(e->rows, e->to.rows - e->row);
    int64_t n = smaller(e->cols, e->to.cols - e->col);
    gpu_view from = block_of(&e->from, e->row, e->col, m, n);
    gpu_view to = block_of(&e->to, e->row, e->col, m, n);
    cudaStream_t stream;
    TRY(stream_of(d, GPU_LANE_OUT, &stream));
    TRY(fetch_part(d, stream, &from, &to));
    e->col += n;
    if (e->col < e->to.cols)
        return GPU_OK;
    e->col = 0;
    e->row += m;
    if (e->row == e->to.rows)
        end_errand(d->staging);
    return GPU_OK;
}

/* The oldest errand, or a part of it. */
static gpu_status issue_one(cuda_device *d)
{
    cuda_staging *s = d->staging;
    errand *e = &s->errand[s->first_errand];
    if (e->is == errand::COPY)
        return issue_copy(d, e);
    TRY(e->is == errand::MARK ? record(d, GPU_LANE_OUT, e->mark)
                              : wait_behind(d, GPU_LANE_OUT, e->mark));
    end_errand(s);
    return GPU_OK;
}

/* As many as there are buffers for. */
static gpu_status issue_some(cuda_device *d)
{
    cuda_staging *s = d->staging;
    while (s->errands > 0 && (s->waiting < PARTS ||
                              s->errand[s->first_errand].is != errand::COPY))
        TRY(issue_one(d));
    return GPU_OK;
}

static gpu_status add_errand(cuda_device *d, const errand *e)
{
    cuda_staging *s;
    TRY(staging_of(d, &s));
    while (s->errands == ERRANDS)
        TRY(issue_one(d));
    s->errand[(s->first_errand + s->errands++) % ERRANDS] = *e;
    return issue_some(d);
}

/* A gpu_cuda_work: what is there already, without waiting for the bus. */
static gpu_status deliver_ready(cuda_device *d, int *did)
{
    cuda_staging *s = d->staging;
    if (s->waiting == 0)
        return GPU_OK;
    cudaError_t error = cudaEventQuery(s->out[s->first_out].done);
    if (error == cudaErrorNotReady) {
        cudaGetLastError();
        return GPU_OK;
    }
    CHECK(d, error);
    *did = 1;
    TRY(deliver_one(d));
    return issue_some(d);
}

/* All that was fetched so far. */
static gpu_status deliver_all(cuda_device *d)
{
    cuda_staging *s = d->staging;
    while (s->errands > 0)
        TRY(issue_one(d));
    while (s->waiting > 0)
        TRY(deliver_one(d));
    return GPU_OK;
}

/* --- to the device -------------------------------------------------------- */

static gpu_status send_part(cuda_device *d, cudaStream_t stream,
                            const gpu_view *from, const gpu_view *to)
{
    cuda_staging *s = d->staging;
    buffer *b = &s->in[s->next_in];
    int did = 0;
    TRY(deliver_ready(d, &did)); /* neither direction waits for the other */
    if (b->data)
        TRY(gpu_cuda_work_until(d, b->done, deliver_ready));
    else
        TRY(make_buffer(d, b));
    s->next_in = (s->next_in + 1) % PARTS;
    gpu_view packed = {b->data, to->dtype, to->rows, to->cols, to->cols, 1};
    TRY(gpu_cuda_host->cpu->bring(NULL, GPU_LANE_IN, from, &packed));
    CHECK(d, cross(to, &packed, cudaMemcpyHostToDevice, stream));
    return mark_buffer(d, b, stream);
}

typedef gpu_status part_mover(cuda_device *d, cudaStream_t stream,
                              const gpu_view *from, const gpu_view *to);

/* Part by part, between which an interrupt is answered. */
static gpu_status move(cuda_device *d, cudaStream_t stream,
                       part_mover *move_part, const gpu_view *from,
                       const gpu_view *to)
{
    int64_t rows, cols, size = (int64_t)dtype_bytes(to->dtype);
    cuda_staging *s;
    TRY(staging_of(d, &s));
    cut_both(from, to, &rows, &cols);
    int is_told = bytes_of(to) > LASTING && stream == d->stream;
    int stage = is_told && gpu_cuda_host->begin_stage((int64_t)bytes_of(to));
    gpu_status status = GPU_OK;
    for (int64_t i = 0; i < to->rows && status == GPU_OK; i += rows)
        for (int64_t j = 0; j < to->cols && status == GPU_OK; j += cols) {
            int64_t m = smaller(rows, to->rows - i);
            int64_t n = smaller(cols, to->cols - j);
            gpu_view source = block_of(from, i, j, m, n);
            gpu_view target = block_of(to, i, j, m, n);
            status = *gpu_cuda_host->interrupted
                         ? FAIL(GPU_INTERRUPTED, "interrupted")
                         : move_part(d, stream, &source, &target);
            if (stage)
                gpu_cuda_host->advance(m * n * size);
        }
    gpu_cuda_host->end_stage(stage);
    return status;
}

/* --- the driver's own way ------------------------------------------------- */

/* Pageable memory: such a copy returns when the source has been read, or what
 * was copied is there. */
static gpu_status copy_plainly(cuda_device *d, cudaStream_t stream, void *to,
                               const void *from, size_t n, cudaMemcpyKind way)
{
    for (size_t at = 0; at < n; at += LASTING) {
        size_t part = n - at < LASTING ? n - at : LASTING;
        if (*gpu_cuda_host->interrupted && at > 0)
            return FAIL(GPU_INTERRUPTED, "interrupted");
        CHECK(d, cudaMemcpyAsync((char *)to + at, (const char *)from + at, part,
                                 way, stream));
    }
    return GPU_OK;
}

static int goes_plainly(const cuda_device *d, const gpu_view *a,
                        const gpu_view *b)
{
    int is_refused = d->staging != NULL && d->staging->is_refused;
    return a->dtype == b->dtype && is_dense(a) && is_dense(b) &&
           (bytes_of(a) < STAGED || is_refused);
}

/* --- entries -------------------------------------------------------------- */

gpu_status gpu_cuda_bring(void *device, gpu_lane lane, const gpu_view *from,
                          const gpu_view *to)
{
    ENTER(d, device);
    cudaStream_t stream;
    gpu_view source = *from, target = *to;
    if (bytes_of(to) == 0)
        return GPU_OK;
    join_rows(&source, &target);
    TRY(stream_of(d, lane, &stream));
    if (goes_plainly(d, &source, &target))
        return copy_plainly(d, stream, target.data, source.data,
                            bytes_of(&source), cudaMemcpyHostToDevice);
    return move(d, stream, send_part, &source, &target);
}

static int has_errands(const cuda_device *d)
{
    return d->staging != NULL && d->staging->errands > 0;
}

static int has_fetched(const cuda_device *d)
{
    return d->staging != NULL && d->staging->waiting + d->staging->errands > 0;
}

/* What is given up has no place to go to any more. */
gpu_status gpu_cuda_deliver(void *device, int give_up)
{
    cuda_device *d = (cuda_device *)device;
    if (!has_fetched(d))
        return GPU_OK;
    if (give_up) {
        d->staging->waiting = d->staging->errands = 0;
        return GPU_OK;
    }
    TRY(gpu_cuda_enter(d));
    return deliver_all(d);
}

/* What another lane has fetched is no part of this, whatever becomes of it. */
static gpu_status fetch_at_once(cuda_device *d, const gpu_view *from,
                                const gpu_view *to)
{
    if (goes_plainly(d, from, to)) {
        TRY(copy_plainly(d, d->stream, to->data, from->data, bytes_of(from),
                         cudaMemcpyDeviceToHost));
        return gpu_cuda_wait(d);
    }
    if (has_fetched(d))
        TRY(deliver_all(d));
    gpu_status status = move(d, d->stream, fetch_part, from, to);
    if (status == GPU_OK)
        status = deliver_all(d);
    if (status != GPU_OK)
        gpu_cuda_deliver(d, 1);
    return status;
}

gpu_status gpu_cuda_fetch(void *device, gpu_lane lane, const gpu_view *from,
                          const gpu_view *to)
{
    ENTER(d, device);
    errand e = {.is = errand::COPY, .from = *from, .to = *to};
    if (bytes_of(to) == 0)
        return GPU_OK;
    join_rows(&e.from, &e.to);
    if (lane == GPU_LANE_WORK)
        return fetch_at_once(d, &e.from, &e.to);
    cut_both(&e.from, &e.to, &e.rows, &e.cols);
    return add_errand(d, &e);
}

gpu_status gpu_cuda_mark(void *device, gpu_lane lane, int mark)
{
    ENTER(d, device);
    errand e = {.is = errand::MARK, .mark = mark};
    return lane == GPU_LANE_OUT && has_errands(d) ? add_errand(d, &e)
                                                  : record(d, lane, mark);
}

static int is_among_errands(const cuda_device *d, int mark)
{
    const cuda_staging *s = d->staging;
    for (int i = 0; i < s->errands; i++) {
        const errand *e = &s->errand[(s->first_errand + i) % ERRANDS];
        if (e->is == errand::MARK && e->mark == mark)
            return 1;
    }
    return 0;
}

gpu_status gpu_cuda_follow(void *device, gpu_lane lane, int mark)
{
    ENTER(d, device);
    errand e = {.is = errand::FOLLOW, .mark = mark};
    if (lane == GPU_LANE_OUT && has_errands(d))
        return add_errand(d, &e);
    while (has_errands(d) && is_among_errands(d, mark))
        TRY(issue_one(d));
    return wait_behind(d, lane, mark);
}

static gpu_view bytes_at(const void *data, size_t n)
{
    return (gpu_view){(void *)data, GPU_BOOL, 1, (int64_t)n, (int64_t)n, 1};
}

gpu_status gpu_cuda_upload(void *device, void *to, const void *from, size_t n)
{
    gpu_view source = bytes_at(from, n), target = bytes_at(to, n);
    return gpu_cuda_bring(device, GPU_LANE_WORK, &source, &target);
}

/* The number that a reduction has begun to write into the slot. */
static gpu_status take_answer(cuda_device *d, void *to)
{
    d->is_answering = 0;
    TRY(gpu_cuda_await_number(d, 0));
    memcpy(to, d->slot, sizeof *d->slot);
    return GPU_OK;
}

gpu_status gpu_cuda_download(void *device, void *to, const void *from, size_t n)
{
    if (((cuda_device *)device)->is_answering && n == sizeof(double) &&
        from == ((cuda_device *)device)->slot)
        return take_answer((cuda_device *)device, to);
    ENTER(d, device);
    if (n > sizeof *d->slot) {
        gpu_view source = bytes_at(from, n), target = bytes_at(to, n);
        return gpu_cuda_fetch(device, GPU_LANE_WORK, &source, &target);
    }
    if (from != d->slot) /* a number: pinned memory needs no staging */
        CHECK(d, cudaMemcpyAsync(d->slot, from, n, cudaMemcpyDeviceToHost,
                                 d->stream));
    TRY(gpu_cuda_wait(d));
    memcpy(to, d->slot, n);
    return GPU_OK;
}
