/* Elementwise work: one kernel for every program, and a tiled one for copies
 * between row-major and column-major.
 *
 * Limited by bytes for all but the dearest functions, so the aim is 16-byte
 * accesses and many of them in flight; the switch over the operation costs a
 * few instructions for four elements. */
#include "interpret.h"

/* --- programs made ready for the device -------------------------------------
 * What the result does not need is dropped, and intermediate values get as few
 * slots as their lifetimes allow. */

enum { NEVER = -1 };

static const uint8_t arities[GPU_OPS] = {
#define OP(name, arity, expression, vector, help, example, result) arity,
#define TEST OP
#define REDUCTION(...)
#include "ops.def"
    0, /* GPU_OP_ROW */
    0, /* GPU_OP_COL */
};

static void operands_of(const gpu_instruction *c, int values[3])
{
    values[0] = c->x;
    values[1] = c->y;
    values[2] = c->z;
}

/* last[v]: the last needed instruction that reads value v. */
static void find_last_uses(const gpu_program *p, int last[GPU_MAX_VALUES])
{
    int first = p->inputs + p->constants;
    for (int v = 0; v < GPU_MAX_VALUES; v++)
        last[v] = NEVER;
    if (p->length > 0)
        last[first + p->length - 1] = p->length;
    for (int n = p->length - 1; n >= 0; n--) {
        int values[3];
        if (last[first + n] == NEVER)
            continue;
        operands_of(&p->code[n], values);
        for (int o = 0; o < arities[p->code[n].op]; o++)
            if (last[values[o]] == NEVER)
                last[values[o]] = n;
    }
}

static int take_slot(uint64_t *used, int *slots)
{
    int slot = 0;
    while (*used >> slot & 1)
        slot++;
    *used |= (uint64_t)1 << slot;
    if (slot + 1 > *slots)
        *slots = slot + 1;
    return slot;
}

/* last: the value that the step before gives, or NEVER. */
static uint8_t operand_number(const gpu_program *p, int value, int last,
                              const uint8_t slot_of[])
{
    if (value == last)
        return LAST_RESULT;
    if (value < p->inputs)
        return (uint8_t)value;
    if (value < p->inputs + p->constants)
        return (uint8_t)(FIRST_CONSTANT + value - p->inputs);
    return (uint8_t)(FIRST_SLOT + slot_of[value]);
}

/* Instruction n, which runs between two others. Its result may take the slot of
 * an operand read for the last time: a thread reads all operands before it
 * writes. One that the next instruction alone reads takes none. */
static void plan_instruction(const gpu_program *p, int n, int before, int after,
                             const int last[], uint8_t slot_of[],
                             uint64_t *used, plan *out)
{
    int first = p->inputs + p->constants, values[3];
    uint8_t numbers[3] = {0, 0, 0};
    plan_step *step = &out->code[out->length++];
    operands_of(&p->code[n], values);
    step->op = p->code[n].op;
    step->arity = arities[step->op];
    for (int o = 0; o < step->arity; o++) {
        numbers[o] = operand_number(p, values[o], first + before, slot_of);
        if (values[o] >= first && last[values[o]] == n &&
            slot_of[values[o]] != NO_SLOT)
            *used &= ~((uint64_t)1 << slot_of[values[o]]);
    }
    step->x = numbers[0];
    step->y = numbers[1];
    step->z = numbers[2];
    step->to = slot_of[first + n] = NO_SLOT;
    if (last[first + n] > after && after < p->length)
        step->to = slot_of[first + n] = (uint8_t)take_slot(used, &out->slots);
}

/* The next instruction behind n that the result needs, or p->length. */
static int next_needed(const gpu_program *p, int n, const int last[])
{
    do
        n++;
    while (n < p->length && last[p->inputs + p->constants + n] == NEVER);
    return n;
}

/* tgammaf misses 5 units, lgammaf 6 and beside its roots any number, as
 * LOGADDEXP does (CUDA C++ Programming Guide, mathematical functions). */
static int needs_f64(const gpu_program *p)
{
    for (int n = 0; n < p->length; n++)
        if (p->code[n].op == GPU_OP_gamma || p->code[n].op == GPU_OP_lgamma ||
            p->code[n].op == GPU_OP_logaddexp)
            return 1;
    return 0;
}

void gpu_cuda_plan(const gpu_program *p, plan *out)
{
    int last[GPU_MAX_VALUES];
    uint8_t slot_of[GPU_MAX_VALUES] = {0};
    uint64_t used = 0;
    find_last_uses(p, last);
    out->length = out->slots = 0;
    out->swapped = 0;
    out->wide = 0;
    out->result = operand_number(p, 0, NEVER, slot_of);
    out->is_f64 = p->compute == GPU_F64 || needs_f64(p);
    for (int v = 0; v < p->constants; v++) {
        out->single[v] = (float)p->constant[v];
        out->constant[v] =
            p->compute == GPU_F64 ? p->constant[v] : out->single[v];
    }
    int before = NEVER - p->inputs - p->constants;
    for (int n = next_needed(p, -1, last); n < p->length;) {
        int after = next_needed(p, n, last);
        plan_instruction(p, n, before, after, last, slot_of, &used, out);
        before = n;
        n = after;
    }
}

size_t gpu_cuda_plan_bytes(const plan *p, int threads, size_t type_bytes)
{
    return (size_t)p->slots * ITEMS * (size_t)threads * type_bytes;
}

int gpu_cuda_plan_has_places(const plan *p)
{
    for (int n = 0; n < p->length; n++)
        if (p->code[n].arity == 0)
            return 1;
    return 0;
}

/* --- the kernels --------------------------------------------------------- */

enum { MAP_THREADS = 256, PROGRAM_THREADS = 128, BLOCKS_PER_SM = 16 };
enum { MOST_SHARED = 64 << 10, MOST_BLOCKS = 1 << 20 };
enum { TILE = 32, TILE_ROWS = 8, MAX_GRID_Y = 65535 };

/* How a thread's four elements lie: neighbours in a row (for wide accesses),
 * one block's height apart in a column, or one block's width apart. */
typedef enum layout { NEIGHBOURS, DOWN, ACROSS } layout;

typedef struct map_job {
    plan p;
    gpu_view out;
    layout how;
    int wide_out; /* 0: element by element; else bytes of an element */
} map_job;

template <class T>
__device__ __forceinline__ void put(const map_job &job, const spot &s,
                                    const quad<T> &r)
{
    int64_t at = place(job.out, s.i, s.j);
    if (job.wide_out == sizeof(T) && s.count == ITEMS) {
        *(quad<T> *)((T *)job.out.data + at) = r;
        return;
    }
    if (job.wide_out == 1 && s.count == ITEMS) {
        *(uchar4 *)((uint8_t *)job.out.data + at) =
            make_uchar4(r.at[0] != 0, r.at[1] != 0, r.at[2] != 0, r.at[3] != 0);
        return;
    }
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        if (k < s.count)
            store<T>(job.out, place(job.out, s.i + k * s.di, s.j + k * s.dj),
                     r.at[k]);
}

/* How many of the four elements are inside. */
__device__ __forceinline__ int count_inside(const map_job &job, const spot &s)
{
    int64_t left = job.how == DOWN ? job.p.rows - s.i : job.p.cols - s.j;
    int64_t apart = job.how == DOWN ? s.di : s.dj;
    return left >= ITEMS * apart ? ITEMS : (int)((left + apart - 1) / apart);
}

/* How many spots of a thread a program is run for at once, over what lies in
 * long rows: more is on its way at once, and reading a step, which costs about
 * as much as an operation on four elements, is done for all of them. (A chain
 * of six over 2^28 f32 takes 1.63 ms of an H200 by two, 1.37 by three, and 1.58
 * by four, whose registers leave fewer threads.) */
template <class T> constexpr int SPOTS = sizeof(T) == sizeof(float) ? 3 : 2;
template <class T> constexpr int LONG_ROW = SPOTS<T> *ITEMS *PROGRAM_THREADS;

template <class T>
__global__ void __launch_bounds__(PROGRAM_THREADS)
    long_kernel(const __grid_constant__ map_job job)
{
    extern __shared__ __align__(16) char shared[];
    constexpr int N = SPOTS<T>;
    int64_t apart = (int64_t)PROGRAM_THREADS * ITEMS;
    spot s[N];
    for (int64_t i = blockIdx.y; i < job.p.rows; i += gridDim.y)
        for (int64_t j = blockIdx.x * N * apart + threadIdx.x * ITEMS;
             j < job.p.cols; j += gridDim.x * N * apart) {
#pragma unroll
            for (int q = 0; q < N; q++) {
                s[q] = {i, j + q * apart, 0, 1, 0};
                s[q].count = count_inside(job, s[q]);
            }
            lot<T, N> r = evaluate_lot<T, N>(
                job.p, s, (T *)shared + threadIdx.x, PROGRAM_THREADS);
#pragma unroll
            for (int q = 0; q < N; q++)
                put<T>(job, s[q], r.of[q]);
        }
}

template <class T>
__global__ void __launch_bounds__(MAP_THREADS)
    map_kernel(const __grid_constant__ map_job job)
{
    extern __shared__ __align__(16) char shared[];
    int threads = blockDim.x * blockDim.y;
    T *file = (T *)shared + threadIdx.y * blockDim.x + threadIdx.x;
    int64_t rows = (int64_t)blockDim.y * (job.how == DOWN ? ITEMS : 1);
    int64_t cols = (int64_t)blockDim.x * (job.how == DOWN ? 1 : ITEMS);
    spot s;
    s.di = job.how == DOWN ? blockDim.y : 0;
    s.dj = job.how == ACROSS ? blockDim.x : job.how == NEIGHBOURS;
    int64_t j = (int64_t)threadIdx.x * (job.how == NEIGHBOURS ? ITEMS : 1);
    for (s.i = blockIdx.y * rows + threadIdx.y; s.i < job.p.rows;
         s.i += gridDim.y * rows)
        for (s.j = blockIdx.x * cols + j; s.j < job.p.cols;
             s.j += gridDim.x * cols) {
            s.count = count_inside(job, s);
            put<T>(job, s, evaluate<T>(job.p, s, file, threads));
        }
}

/* out (rows x cols, row-major) from a column-major input: both sides move
 * whole lines of 32 elements, and the turn happens in shared memory, whose
 * padding keeps columns off a single bank. */
template <class T>
__global__ void __launch_bounds__(TILE *TILE_ROWS)
    transpose_kernel(const __grid_constant__ gpu_view in,
                     const __grid_constant__ gpu_view out)
{
    __shared__ T tile[TILE][TILE + 1];
    int64_t across = (in.cols + TILE - 1) / TILE;
    int64_t tiles = across * ((in.rows + TILE - 1) / TILE);
    for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        int64_t ti = divide(t, across);
        int64_t i0 = ti * TILE, j0 = (t - ti * across) * TILE;
        int64_t i = i0 + threadIdx.x, j = j0 + threadIdx.x;
        for (int k = threadIdx.y; k < TILE; k += TILE_ROWS)
            if (i < in.rows && j0 + k < in.cols)
                tile[k][threadIdx.x] = load<T>(in, place(in, i, j0 + k));
        __syncthreads(); /* the tile is filled */
        for (int k = threadIdx.y; k < TILE; k += TILE_ROWS)
            if (i0 + k < in.rows && j < in.cols)
                store<T>(out, place(out, i0 + k, j), tile[threadIdx.x][k]);
        __syncthreads(); /* the tile is read, the next may come */
    }
}

static int is_flat(const gpu_view *v)
{
    return v->rows == 1 || v->row_stride == v->cols * v->col_stride;
}

/* Turns the job so that out's columns are the nearer neighbours, and makes
 * one long row of it where every view allows. */
static void normalise(map_job *job, int inputs)
{
    gpu_view *out = &job->out;
    int flat;
    if (out->cols == 1 || (out->rows > 1 && stride_size(out->row_stride) <
                                                stride_size(out->col_stride))) {
        job->p.swapped = 1;
        swap_axes(out);
        for (int v = 0; v < inputs; v++)
            swap_axes(&job->p.in[v]);
    }
    flat = is_flat(out) && !gpu_cuda_plan_has_places(&job->p);
    for (int v = 0; v < inputs; v++)
        flat = flat && is_flat(&job->p.in[v]);
    if (flat) {
        out->cols *= out->rows;
        out->rows = 1;
        for (int v = 0; v < inputs; v++)
            job->p.in[v].rows = 1, job->p.in[v].cols = out->cols;
    }
    job->p.rows = out->rows;
    job->p.cols = out->cols;
}

static int find_wide(map_job *job, int inputs, gpu_dtype type)
{
    const gpu_view *out = &job->out;
    for (int v = 0; v < inputs; v++)
        if (gpu_cuda_is_wide(&job->p.in[v]))
            job->p.wide |= 1u << v;
    if (gpu_cuda_is_wide(out) && (out->dtype == type || out->dtype == GPU_BOOL))
        job->wide_out = (int)dtype_bytes(out->dtype);
    return job->p.wide != 0 || job->wide_out != 0;
}

static int power_of_two(int64_t at_least, int low, int high)
{
    while (low < high && low < at_least)
        low *= 2;
    return low;
}

template <class T>
static gpu_status launch_long(cuda_device *d, const map_job *job)
{
    size_t shared =
        SPOTS<T> * gpu_cuda_plan_bytes(&job->p, PROGRAM_THREADS, sizeof(T));
    int64_t x = smaller(ceil_div(job->p.cols, LONG_ROW<T>), MOST_BLOCKS);
    int64_t y = smaller(job->p.rows, ceil_div(MOST_BLOCKS, x));
    if (shared > 48 << 10)
        CHECK(d, cudaFuncSetAttribute(
                     long_kernel<T>,
                     cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared));
    long_kernel<T><<<dim3((unsigned)x, (unsigned)smaller(y, MAX_GRID_Y)),
                     PROGRAM_THREADS, shared, d->stream>>>(*job);
    LAUNCHED(d);
    return GPU_OK;
}

template <class T>
static gpu_status launch(cuda_device *d, map_job *job, int inputs)
{
    gpu_dtype type = sizeof(T) == 8 ? GPU_F64 : GPU_F32;
    int threads = job->p.length > 1 ? PROGRAM_THREADS : MAP_THREADS;
    size_t shared = gpu_cuda_plan_bytes(&job->p, threads, sizeof(T));
    int columns = 0;
    for (int v = 0; v < inputs; v++)
        columns |= gpu_cuda_reads_columns(&job->p.in[v]);
    job->how = job->p.rows == 1 ? ACROSS : DOWN;
    if (find_wide(job, inputs, type) && !columns)
        job->how = NEIGHBOURS;
    else
        job->p.wide = 0, job->wide_out = 0;
    if (job->how == NEIGHBOURS && job->p.cols >= LONG_ROW<T> &&
        SPOTS<T> * shared <= MOST_SHARED)
        return launch_long<T>(d, job);
    int64_t unit = job->how == DOWN ? 1 : ITEMS;
    int width =
        columns ? TILE : power_of_two(ceil_div(job->p.cols, unit), 1, threads);
    dim3 block(width, threads / width);
    int64_t height = (int64_t)block.y * (job->how == DOWN ? ITEMS : 1);
    int64_t most = (int64_t)d->sms * BLOCKS_PER_SM;
    int64_t x = smaller(ceil_div(job->p.cols, unit * width), most);
    int64_t y = smaller(ceil_div(job->p.rows, height), ceil_div(most, x));
    if (shared > 48 << 10)
        CHECK(d, cudaFuncSetAttribute(
                     map_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                     (int)shared));
    map_kernel<T><<<dim3((unsigned)x, (unsigned)smaller(y, MAX_GRID_Y)), block,
                    shared, d->stream>>>(*job);
    LAUNCHED(d);
    return GPU_OK;
}

template <class T>
static gpu_status transpose(cuda_device *d, const map_job *job)
{
    int64_t tiles = ceil_div(job->p.rows, TILE) * ceil_div(job->p.cols, TILE);
    int64_t blocks = smaller(tiles, (int64_t)d->sms * BLOCKS_PER_SM);
    transpose_kernel<T>
        <<<(unsigned)blocks, dim3(TILE, TILE_ROWS), 0, d->stream>>>(
            job->p.in[0], job->out);
    LAUNCHED(d);
    return GPU_OK;
}

/* --- x[mask] = number ------------------------------------------------------
 * where(mask, number, x) into x itself: only the mask is read, and only what is
 * true is written. */

enum { FILL_ITEMS = 8 }; /* words of the mask that a thread reads at once */

template <class T>
__global__ void __launch_bounds__(MAP_THREADS)
    masked_fill_kernel(const uint8_t *mask, T value, T *out, int64_t size)
{
    const int64_t apart = (int64_t)MAP_THREADS * ITEMS;
    const int64_t step = apart * FILL_ITEMS;
    int64_t e = blockIdx.x * step + threadIdx.x * ITEMS;
    for (; e < size; e += gridDim.x * step) {
        uint32_t truths[FILL_ITEMS];
#pragma unroll
        for (int q = 0; q < FILL_ITEMS; q++) {
            int64_t at = e + q * apart;
            truths[q] = at + ITEMS <= size ? *(const uint32_t *)(mask + at) : 0;
            for (int k = 0; at + ITEMS > size && at + k < size; k++)
                truths[q] |= (uint32_t)mask[at + k] << 8 * k;
        }
#pragma unroll
        for (int q = 0; q < FILL_ITEMS; q++) {
            T *to = out + e + q * apart;
            if (__vcmpne4(truths[q], 0) == ~0u) {
                *(quad<T> *)to = {value, value, value, value};
                continue;
            }
#pragma unroll
            for (int k = 0; k < ITEMS; k++)
                if (truths[q] >> 8 * k & 0xff)
                    to[k] = value;
        }
    }
}

static int is_flat_row(const gpu_view *v, uintptr_t alignment)
{
    return v->rows == 1 && v->col_stride == 1 &&
           (uintptr_t)v->data % alignment == 0;
}

static int fills_masked(const gpu_program *p, const map_job *job)
{
    const gpu_instruction *code = &p->code[0];
    const gpu_view *mask = &job->p.in[code->x], *x = &job->p.in[code->z];
    if (p->length != 1 || code->op != GPU_OP_where || code->x >= p->inputs ||
        code->y < p->inputs || code->z >= p->inputs)
        return 0;
    return mask->dtype == GPU_BOOL && is_flat_row(mask, sizeof(uint32_t)) &&
           is_flat_row(x, 16) && x->data == job->out.data &&
           x->dtype == job->out.dtype &&
           x->dtype == (job->p.is_f64 ? GPU_F64 : GPU_F32) &&
           job->out.rows == 1 && job->out.col_stride == 1;
}

template <class T>
static gpu_status fill_masked(cuda_device *d, const map_job *job)
{
    const plan_step *step = &job->p.code[0];
    T value = (T)job->p.constant[step->y - FIRST_CONSTANT];
    int64_t each = (int64_t)MAP_THREADS * ITEMS * FILL_ITEMS;
    int64_t blocks = ceil_div(job->out.cols, each);
    blocks = smaller(blocks, (int64_t)d->sms * BLOCKS_PER_SM);
    masked_fill_kernel<T><<<(unsigned)blocks, MAP_THREADS, 0, d->stream>>>(
        (const uint8_t *)job->p.in[step->x].data, value, (T *)job->out.data,
        job->out.cols);
    LAUNCHED(d);
    return GPU_OK;
}

/* A copy between views of one type without gaps is the copy engine's. */
static int is_plain_copy(const map_job *job)
{
    const gpu_view *in = &job->p.in[0], *out = &job->out;
    return in->dtype == out->dtype && out->rows == 1 && in->col_stride == 1 &&
           out->col_stride == 1;
}

/* Rows that lie without gaps, in units of 16 bytes: blocks beside each other.
 */
static int is_block_copy(const map_job *job)
{
    const gpu_view *in = &job->p.in[0], *out = &job->out;
    int64_t unit = 16 / (int64_t)dtype_bytes(in->dtype);
    return in->dtype == out->dtype && in->col_stride == 1 &&
           out->col_stride == 1 && in->cols % unit == 0 &&
           in->row_stride % unit == 0 && out->row_stride % unit == 0 &&
           (uintptr_t)in->data % 16 == 0 && (uintptr_t)out->data % 16 == 0;
}

static gpu_status copy(cuda_device *d, map_job *job, int as_f64)
{
    if (is_plain_copy(job) && job->p.in[0].data == job->out.data)
        return GPU_OK;
    if (is_plain_copy(job))
        return gpu_cuda_check(
            d,
            cudaMemcpyAsync(job->out.data, job->p.in[0].data,
                            (size_t)job->out.cols * dtype_bytes(job->out.dtype),
                            cudaMemcpyDeviceToDevice, d->stream));
    if (is_block_copy(job))
        return gpu_cuda_gather(d, &job->p.in[0], NULL, NULL, &job->out);
    if (gpu_cuda_reads_columns(&job->p.in[0]))
        return as_f64 ? transpose<double>(d, job) : transpose<float>(d, job);
    return as_f64 ? launch<double>(d, job, 1) : launch<float>(d, job, 1);
}

/* All inputs are there. */
static gpu_status run_job(cuda_device *d, const gpu_program *p, map_job *job)
{
    if (p->length == 0 && p->inputs > 0)
        return copy(d, job, job->p.is_f64);
    if (fills_masked(p, job))
        return job->p.is_f64 ? fill_masked<double>(d, job)
                             : fill_masked<float>(d, job);
    gpu_status status = gpu_cuda_stream(d, p, job->p.in, &job->out);
    if (status == GPU_UNSUPPORTED)
        status = gpu_cuda_run_compiled(d, p, &job->p, &job->out);
    if (status != GPU_UNSUPPORTED)
        return status;
    return job->p.is_f64 ? launch<double>(d, job, p->inputs)
                         : launch<float>(d, job, p->inputs);
}

/* The interpreter reads random numbers as others do. */
static gpu_status draw_apart(cuda_device *d, const gpu_program *p, map_job *job,
                             void **room)
{
    gpu_dtype type = p->compute == GPU_F64 ? GPU_F64 : GPU_F32;
    int64_t size = job->p.rows * job->p.cols;
    size_t bytes = (size_t)size * dtype_bytes(type);
    for (int v = 0; v < p->inputs; v++) {
        if (job->p.in[v].data != NULL)
            continue;
        if (gpu_cuda_alloc(d, bytes, &room[v]) != GPU_OK)
            return gpu_cuda_host->fail(GPU_MEMORY,
                                       "rand: there is no memory for %lld "
                                       "random numbers",
                                       (long long)size);
        gpu_view to = {room[v], type, size, 1, 1, 1};
        TRY(gpu_cuda_random(d, &p->draw[v], &to));
        job->p.in[v].data = room[v];
        job->p.in[v].dtype = type;
    }
    return GPU_OK;
}

static gpu_status run_drawn(cuda_device *d, const gpu_program *p, map_job *job)
{
    void *room[GPU_MAX_INPUTS] = {};
    gpu_dtype type = p->compute == GPU_F64 ? GPU_F64 : GPU_F32;
    size_t bytes =
        (size_t)(job->p.rows * job->p.cols) * (size_t)dtype_bytes(type);
    gpu_status status = gpu_cuda_run_compiled(d, p, &job->p, &job->out);
    if (status != GPU_UNSUPPORTED)
        return status;
    status = draw_apart(d, p, job, room);
    if (status == GPU_OK)
        status = run_job(d, p, job);
    for (int v = 0; v < p->inputs; v++)
        if (room[v] != NULL)
            gpu_cuda_free(d, room[v], bytes);
    return status;
}

/* The job of p, over what normalise makes of the views. */
static void make_job(const gpu_program *p, const gpu_view *in,
                     const gpu_view *out, map_job *job)
{
    gpu_cuda_plan(p, &job->p);
    for (int v = 0; v < p->inputs; v++)
        job->p.in[v] = in[v];
    job->out = *out;
    job->wide_out = 0;
    normalise(job, p->inputs);
}

/* The results from out on, as normalise has turned the first. */
static void turn_results(const gpu_program *p, const map_job *job,
                         const gpu_view *out, gpu_view turned[])
{
    for (int e = 0; e <= p->extras; e++) {
        turned[e] = job->out;
        turned[e].data = out[e].data;
    }
}

int gpu_cuda_joins(void *device, const gpu_program *p, const gpu_view *in,
                   const gpu_view *out)
{
    cuda_device *d = (cuda_device *)device;
    map_job job;
    gpu_view turned[1 + GPU_MAX_EXTRAS];
    if (gpu_cuda_enter(d) != GPU_OK)
        return 0;
    make_job(p, in, out, &job);
    turn_results(p, &job, out, turned);
    return gpu_cuda_has_compiled(d, p, &job.p, turned);
}

/* Each by a program that ends with it: should the kernel not have started. */
static gpu_status run_apart(cuda_device *d, const gpu_program *p,
                            const gpu_view *in, const gpu_view *out)
{
    gpu_program one = *p;
    one.extras = 0;
    TRY(gpu_cuda_map(d, &one, in, out));
    for (int e = 0; e < p->extras; e++) {
        one.length = (uint8_t)(p->extra[e] - p->inputs - p->constants + 1);
        TRY(gpu_cuda_map(d, &one, in, &out[1 + e]));
    }
    return GPU_OK;
}

gpu_status gpu_cuda_map(void *device, const gpu_program *p, const gpu_view *in,
                        const gpu_view *out)
{
    ENTER(d, device);
    map_job job;
    gpu_view turned[1 + GPU_MAX_EXTRAS];
    if (out->rows == 0 || out->cols == 0)
        return GPU_OK;
    make_job(p, in, out, &job);
    if (p->extras > 0) {
        turn_results(p, &job, out, turned);
        gpu_status status = gpu_cuda_run_compiled(d, p, &job.p, turned);
        return status == GPU_UNSUPPORTED ? run_apart(d, p, in, out) : status;
    }
    return p->draw != NULL ? run_drawn(d, p, &job) : run_job(d, p, &job);
}
