/* Elementwise work: one kernel for every program, and a tiled one where what is
 * read lies along columns.
 *
 * Limited by bytes for all but the dearest functions, so the aim is 16-byte
 * accesses and many of them in flight; the switch over the operation costs a
 * few instructions for four elements. */
#include <limits.h>
#include "map_job.h"
#include "turn_body.h"

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
enum { TILE = 32, MAX_GRID_Y = 65535 };

/* How many spots of a thread a program is run for at once, over what lies in
 * long rows: more is on its way at once, and reading a step, which costs about
 * as much as an operation on four elements, is done for all of them. (A chain
 * of six over 2^28 f32 takes 1.63 ms of an H200 by two, 1.37 by three, and 1.58
 * by four, whose registers leave fewer threads.) */
template <class T> constexpr int SPOTS = sizeof(T) == sizeof(float) ? 3 : 2;
template <class T> constexpr int LONG_ROW = SPOTS<T> *ITEMS *PROGRAM_THREADS;

template <class T>
__global__ void __launch_bounds__(PROGRAM_THREADS, sizeof(T) == 4 ? 7 : 4)
    long_kernel(const __grid_constant__ map_job job)
{
    extern __shared__ __align__(16) char shared[];
    constexpr int N = SPOTS<T>;
    int64_t apart = (int64_t)PROGRAM_THREADS * ITEMS;
    int64_t own = threadIdx.x * (job.how == NEIGHBOURS ? ITEMS : 1);
    spot s[N];
    for (int64_t i = blockIdx.y; i < job.p.rows; i += gridDim.y)
        for (int64_t j = blockIdx.x * N * apart + own; j < job.p.cols;
             j += gridDim.x * N * apart) {
#pragma unroll
            for (int q = 0; q < N; q++) {
                s[q] = {i, j + q * apart, 0, 1, 0};
                s[q].dj = job.how == NEIGHBOURS ? 1 : PROGRAM_THREADS;
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
    map_block<T>(job, shared, blockDim, threadIdx, gridDim, blockIdx);
}

static int is_flat(const gpu_view *v)
{
    return v->rows == 1 || v->row_stride == v->cols * v->col_stride;
}

/* Turns the job so that out's columns are the nearer neighbours, and makes
 * one long row of it where every view allows. */
static void normalise(map_job *job)
{
    gpu_view *out = &job->out;
    int flat;
    if (out->cols == 1 || (out->rows > 1 && stride_size(out->row_stride) <
                                                stride_size(out->col_stride))) {
        job->p.swapped = 1;
        swap_axes(out);
        for (int v = 0; v < job->inputs; v++)
            swap_axes(&job->p.in[v]);
    }
    flat = is_flat(out) && !gpu_cuda_plan_has_places(&job->p);
    for (int v = 0; v < job->inputs; v++)
        flat = flat && is_flat(&job->p.in[v]);
    if (flat) {
        out->cols *= out->rows;
        out->rows = 1;
        for (int v = 0; v < job->inputs; v++)
            job->p.in[v].rows = 1, job->p.in[v].cols = out->cols;
    }
    job->p.rows = out->rows;
    job->p.cols = out->cols;
}

/* Which views may be read and written four elements at once. Returns whether
 * threads are to take neighbours: all views that go along rows may be; what is
 * moved one by one wants neighbouring threads at neighbours. */
static int find_wide(map_job *job, gpu_dtype type)
{
    const gpu_view *out = &job->out;
    unsigned narrow = 0;
    for (int v = 0; v < job->inputs; v++) {
        const gpu_view *in = &job->p.in[v];
        unsigned is_wide = gpu_cuda_is_wide(in);
        job->p.wide |= is_wide << v;
        narrow |=
            !is_wide && in->col_stride != 0 && !gpu_cuda_reads_columns(in);
    }
    if (!narrow && gpu_cuda_is_wide(out) &&
        (out->dtype == type || out->dtype == GPU_BOOL))
        job->wide_out = (int)dtype_bytes(out->dtype);
    else
        job->p.wide = 0;
    return job->wide_out != 0;
}

/* The inputs that lie along columns. */
static unsigned columns_of(const map_job *job)
{
    unsigned columns = 0;
    for (int v = 0; v < job->inputs; v++)
        columns |= (unsigned)gpu_cuda_reads_columns(&job->p.in[v]) << v;
    return columns;
}

/* Takes neighbours, or elements a block's width apart that are moved one by
 * one. */
static void choose_neighbours(map_job *job, gpu_dtype type)
{
    bool is_wide = find_wide(job, type) && columns_of(job) == 0;
    job->how = is_wide ? NEIGHBOURS : ACROSS;
    if (!is_wide)
        job->p.wide = 0, job->wide_out = 0;
}

static int power_of_two(int64_t at_least, int low, int high)
{
    while (low < high && low < at_least)
        low *= 2;
    return low;
}

/* --- inputs that lie along columns ------------------------------------------
 * What a block's tile has of such an input is put where the interpreter keeps a
 * slot, from which a program reads it as it reads what a step gave. Limited by
 * bytes. */

enum { TURN_SPOTS = 2, TURN_ROUNDS = (int)TURN_FOURS / TURN_SPOTS };
constexpr int ONE_SLOT = (int)TURN_SPOTS * ITEMS * TURN_THREADS; /* a round's */
enum { MOST_TURNED = 160 << 10 }; /* bytes of shared memory */

/* slot: of the inputs that are turned, whose bits are set. */
typedef struct turn_job {
    map_job map;
    unsigned down, across; /* tiles */
    unsigned turned;
    uint8_t slot[GPU_MAX_INPUTS];
} turn_job;

template <class S, class T>
__device__ __forceinline__ void fill_slot(const turn_job &job, int v,
                                          int64_t i0, int64_t j0, T *slots)
{
    const plan &p = job.map.p;
    const gpu_view &in = p.in[v];
    tile_source<S> from = {(const S *)in.data + place(in, i0, j0),
                           in.row_stride,
                           in.col_stride,
                           p.rows - i0,
                           p.cols - j0,
                           job.map.how == ACROSS,
                           (p.slots - 1) * ONE_SLOT};
    fill_tile(from, slots + job.slot[v] * ONE_SLOT);
}

template <class T>
__device__ __forceinline__ void fill_slots(const turn_job &job, int64_t i0,
                                           int64_t j0, T *slots)
{
    for (unsigned left = job.turned; left; left &= left - 1) {
        int v = __ffs(left) - 1;
        switch (job.map.p.in[v].dtype) {
        case GPU_F32:
            fill_slot<float>(job, v, i0, j0, slots);
            break;
        case GPU_F64:
            fill_slot<double>(job, v, i0, j0, slots);
            break;
        default:
            fill_slot<uint8_t>(job, v, i0, j0, slots);
        }
    }
}

/* The thread's elements of the tile's q-th 16 rows. */
__device__ __forceinline__ spot spot_in_tile(const turn_job &job, int64_t i0,
                                             int64_t j0, int q)
{
    bool is_apart = job.map.how == ACROSS;
    int c = threadIdx.x % TURN_ACROSS, row = threadIdx.x / TURN_ACROSS;
    spot s = {i0 + q * TURN_DOWN + row, j0 + c * (is_apart ? 1 : ITEMS), 0,
              is_apart ? TURN_ACROSS : 1, 0};
    s.count = s.i < job.map.p.rows ? count_inside(job.map, s) : 0;
    return s;
}

template <class T>
__global__ void __launch_bounds__(TURN_THREADS, 16 / sizeof(T))
    turn_kernel(const __grid_constant__ turn_job job)
{
    extern __shared__ __align__(16) char shared[];
    const plan &p = job.map.p;
    int64 i0, j0;
    find_tile(blockIdx.x, job.down, job.across, &i0, &j0);
    fill_slots(job, i0, j0, (T *)shared);
    __syncthreads(); /* the tile is there */
    T *file = (T *)shared + own_column(threadIdx.x);
#pragma unroll 1
    for (int round = 0; round < TURN_ROUNDS; round++) {
        spot s[TURN_SPOTS];
#pragma unroll
        for (int q = 0; q < TURN_SPOTS; q++)
            s[q] = spot_in_tile(job, i0, j0, round * TURN_SPOTS + q);
        lot<T, TURN_SPOTS> r =
            evaluate_lot<T, TURN_SPOTS>(p, s, file, TURN_THREADS);
#pragma unroll
        for (int q = 0; q < TURN_SPOTS; q++)
            put<T>(job.map, s[q], r.of[q]);
        file += p.slots * ONE_SLOT;
    }
}

/* There is no program, only an input to turn. */
template <class T>
__global__ void __launch_bounds__(TURN_THREADS, 5)
    turned_copy_kernel(const __grid_constant__ turn_job job)
{
    extern __shared__ __align__(16) char shared[];
    int64 i0, j0;
    find_tile(blockIdx.x, job.down, job.across, &i0, &j0);
    fill_slots(job, i0, j0, (T *)shared);
    __syncthreads(); /* the tile is there */
    const T *file = (const T *)shared + own_column(threadIdx.x);
#pragma unroll 1
    for (int q = 0; q < TURN_FOURS; q++) {
        quad<T> r;
#pragma unroll
        for (int k = 0; k < ITEMS; k++)
            r.at[k] = file[(q * ITEMS + k) * TURN_THREADS];
        put<T>(job.map, spot_in_tile(job, i0, j0, q), r);
    }
}

/* Takes slots for the inputs that are turned, in place of which the program's
 * steps read those. */
static void take_turned(turn_job *job, int inputs)
{
    plan *p = &job->map.p;
    for (int v = 0; v < inputs; v++) {
        if (!(job->turned >> v & 1))
            continue;
        job->slot[v] = (uint8_t)p->slots++;
        uint8_t number = FIRST_SLOT + job->slot[v];
        for (int n = 0; n < p->length; n++) {
            plan_step *step = &p->code[n];
            step->x = step->x == v ? number : step->x;
            step->y = step->y == v ? number : step->y;
            step->z = step->z == v ? number : step->z;
        }
        if (p->result == v)
            p->result = number;
    }
}

/* GPU_UNSUPPORTED, without a message: nothing is to be turned, tiles would be
 * mostly empty, or there is no room for all inputs. */
template <class T, bool COPY>
static gpu_status launch_turned(cuda_device *d, const map_job *map)
{
    turn_job job = {*map};
    if (columns_of(map) == 0 ||
        smaller(map->p.rows, map->p.cols) < JIT_LEAST_SIDE)
        return GPU_UNSUPPORTED;
    job.turned = columns_of(map);
    take_turned(&job, map->inputs);
    size_t shared = TURN_SPOTS * TURN_ROUNDS *
                    gpu_cuda_plan_bytes(&job.map.p, TURN_THREADS, sizeof(T));
    int64_t down = ceil_div(map->p.rows, SIDE);
    int64_t across = ceil_div(map->p.cols, SIDE);
    if (shared > MOST_TURNED || down * across > INT_MAX)
        return GPU_UNSUPPORTED;
    job.down = (unsigned)down;
    job.across = (unsigned)across;
    gpu_dtype type = sizeof(T) == 8 ? GPU_F64 : GPU_F32;
    job.map.how = find_wide(&job.map, type) ? NEIGHBOURS : ACROSS;
    auto kernel = COPY ? turned_copy_kernel<T> : turn_kernel<T>;
    static int done;
    TRY(set_once(d, (const void *)kernel,
                 cudaFuncAttributeMaxDynamicSharedMemorySize, MOST_TURNED,
                 &done));
    kernel<<<job.down * job.across, TURN_THREADS, shared, d->stream>>>(job);
    LAUNCHED(d);
    return GPU_OK;
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

int gpu_cuda_lay_out(map_job *job, int threads)
{
    unsigned columns = columns_of(job);
    gpu_dtype type = job->p.is_f64 ? GPU_F64 : GPU_F32;
    choose_neighbours(job, type);
    if (job->how != NEIGHBOURS && job->p.rows > 1)
        job->how = DOWN;
    int64_t unit = job->how == DOWN ? 1 : ITEMS;
    return columns ? TILE
                   : power_of_two(ceil_div(job->p.cols, unit), 1, threads);
}

template <class T> static gpu_status launch(cuda_device *d, map_job *job)
{
    int threads = job->p.length > 1 ? PROGRAM_THREADS : MAP_THREADS;
    size_t shared = gpu_cuda_plan_bytes(&job->p, threads, sizeof(T));
    if (job->p.cols >= LONG_ROW<T> && columns_of(job) == 0 &&
        SPOTS<T> * shared <= MOST_SHARED) {
        choose_neighbours(job, sizeof(T) == 8 ? GPU_F64 : GPU_F32);
        return launch_long<T>(d, job);
    }
    int width = gpu_cuda_lay_out(job, threads);
    int64_t unit = job->how == DOWN ? 1 : ITEMS;
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
    gpu_status status = as_f64 ? launch_turned<double, true>(d, job)
                               : launch_turned<float, true>(d, job);
    if (status != GPU_UNSUPPORTED)
        return status;
    return as_f64 ? launch<double>(d, job) : launch<float>(d, job);
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
    if (status == GPU_UNSUPPORTED)
        status = job->p.is_f64 ? launch_turned<double, false>(d, job)
                               : launch_turned<float, false>(d, job);
    if (status != GPU_UNSUPPORTED)
        return status;
    return job->p.is_f64 ? launch<double>(d, job) : launch<float>(d, job);
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

void gpu_cuda_make_job(const gpu_program *p, const gpu_view *in,
                       const gpu_view *out, map_job *job)
{
    gpu_cuda_plan(p, &job->p);
    for (int v = 0; v < p->inputs; v++)
        job->p.in[v] = in[v];
    job->inputs = p->inputs;
    job->out = *out;
    job->wide_out = 0;
    normalise(job);
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
    gpu_cuda_make_job(p, in, out, &job);
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
    gpu_cuda_make_job(p, in, out, &job);
    if (p->extras > 0) {
        turn_results(p, &job, out, turned);
        gpu_status status = gpu_cuda_run_compiled(d, p, &job.p, turned);
        return status == GPU_UNSUPPORTED ? run_apart(d, p, in, out) : status;
    }
    return p->draw != NULL ? run_drawn(d, p, &job) : run_job(d, p, &job);
}
