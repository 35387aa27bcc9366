/* Fourier transforms by the toolkit's cuFFT: loads liblumat-cuda-fft.so, and
 * does what stands around cuFFT's plans: a factor, the half of a spectrum that
 * is the other's mirror image, numbers that count as real.
 *
 * These are limited by bytes. Lines lie along rows or columns as they come, but
 * for many columns of real numbers. */
#include <stdio.h>
#include "fft.h"
#include "la.h"
#include "op_list.h"

extern "C" {
#include "la/fft_table.h"
}

enum { MOST_DEVICES = 64, THREADS = 256, TILE = 32, BLOCKS_PER_SM = 16 };

static found_library<fft_table> library;

static fft_device *opened[MOST_DEVICES]; /* by ordinal */

static gpu_status open_library(cuda_device *d, fft_device **out)
{
    if (!find_table(&library, "liblumat-cuda-fft.so", FFT_SYMBOL, FFT_ABI))
        return FAIL(GPU_UNSUPPORTED,
                    "fft: kernel cufft cannot run: it needs "
                    "liblumat-cuda-fft.so and the CUDA toolkit's cuFFT: %s",
                    library.why);
    if (d->ordinal >= MOST_DEVICES)
        return FAIL(GPU_UNSUPPORTED,
                    "fft: kernel cufft serves no device above cuda:%d",
                    MOST_DEVICES - 1);
    la_setup setup = gpu_cuda_la_setup(d);
    if (opened[d->ordinal] == NULL)
        TRY(library.table->open(&setup, &opened[d->ordinal]));
    *out = opened[d->ordinal];
    return GPU_OK;
}

void gpu_cuda_fft_close(cuda_device *d)
{
    if (d->ordinal >= MOST_DEVICES || opened[d->ordinal] == NULL)
        return;
    library.table->close(opened[d->ordinal]);
    opened[d->ordinal] = NULL;
}

/* --- kernels ---------------------------------------------------------------
 * One thread an element; P is a pair of T. */

static bool is_wide(const gpu_view *v)
{
    return v->dtype == GPU_F64 || v->dtype == GPU_C128;
}

static int blocks_for(const cuda_device *d, int64_t count)
{
    return (int)smaller(ceil_div(count, THREADS),
                        (int64_t)d->sms * BLOCKS_PER_SM);
}

/* A whole spectrum out of its half. */
typedef struct mirror_job {
    gpu_view v; /* rows x cols, the whole */
    int axis;   /* along which there is a half: 1 or 2; 0: along 2, of rows
                   and columns together */
    int is_conjugated; /* of what there is, first */
    double scale;
} mirror_job;

/* Thread e has element (i, j) of the half and writes it and its image. Where
 * both lie in the half, each writes its own alone: none is read once another
 * thread has written it. */
template <class T, class P>
__global__ void __launch_bounds__(THREADS)
    mirror_kernel(const __grid_constant__ mirror_job job)
{
    const gpu_view &v = job.v;
    int64_t rows = job.axis == 1 ? v.rows / 2 + 1 : v.rows;
    int64_t cols = job.axis == 1 ? v.cols : v.cols / 2 + 1;
    int64_t step = (int64_t)gridDim.x * THREADS;
    P *data = (P *)v.data;
    for (int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x;
         e < rows * cols; e += step) {
        int64_t i = divide(e, cols), j = e - i * cols;
        int64_t row = job.axis == 2 || i == 0 ? i : v.rows - i;
        int64_t col = job.axis == 1 || j == 0 ? j : v.cols - j;
        bool is_out = job.axis == 1 ? row >= rows : col >= cols;
        P x = data[place(v, i, j)];
        x.x = (T)(x.x * (T)job.scale);
        x.y = (T)(x.y * (T)job.scale);
        if (job.is_conjugated)
            x.y = -x.y;
        data[place(v, i, j)] = x;
        x.y = -x.y;
        if (is_out)
            data[place(v, row, col)] = x;
    }
}

/* A copy of half a spectrum whose first and, of an even n, last imaginary
 * parts along the axis are 0. */
template <class P>
__global__ void __launch_bounds__(THREADS)
    copy_half_kernel(const __grid_constant__ gpu_view from, P *to, int axis,
                     int64_t n)
{
    int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x;
         e < from.rows * from.cols; e += step) {
        int64_t i = divide(e, from.cols), j = e - i * from.cols;
        int64_t k = axis == 1 ? i : j;
        P x = ((const P *)from.data)[place(from, i, j)];
        if (k == 0 || 2 * k == n)
            x.y = 0;
        to[e] = x;
    }
}

/* The transpose of a view, its rows `to_step` apart. DROPS: of the view's row
 * 0, and of row n / 2 of an even n, imaginary parts are 0. Through shared
 * memory, so that both sides are read and written by whole lines. */
template <class P, bool DROPS>
__global__ void __launch_bounds__(THREADS)
    transpose_kernel(const __grid_constant__ gpu_view from, P *to,
                     int64_t to_step, int64_t n)
{
    __shared__ P tile[TILE][TILE + 1];
    int64_t across = (from.cols + TILE - 1) / TILE;
    int64_t tiles = (from.rows + TILE - 1) / TILE * across;
    for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        int64_t row = divide(t, across) * TILE, col = t % across * TILE;
        for (int r = threadIdx.y; r < TILE; r += blockDim.y) {
            int64_t i = row + r, j = col + threadIdx.x;
            if (i >= from.rows || j >= from.cols)
                continue;
            P x = ((const P *)from.data)[place(from, i, j)];
            if constexpr (DROPS)
                x.y = i == 0 || 2 * i == n ? 0 : x.y;
            tile[r][threadIdx.x] = x;
        }
        __syncthreads(); /* the tile is there */
        for (int r = threadIdx.y; r < TILE; r += blockDim.y) {
            int64_t i = row + threadIdx.x, j = col + r;
            if (i < from.rows && j < from.cols)
                to[j * to_step + i] = tile[threadIdx.x][r];
        }
        __syncthreads(); /* and has been read */
    }
}

static gpu_status mirror(cuda_device *d, const gpu_view *v, int axis,
                         int is_conjugated, double scale)
{
    mirror_job job = {*v, axis, is_conjugated, scale};
    int64_t half =
        axis == 1 ? (v->rows / 2 + 1) * v->cols : v->rows * (v->cols / 2 + 1);
    if (is_wide(v))
        mirror_kernel<double, double2>
            <<<blocks_for(d, half), THREADS, 0, d->stream>>>(job);
    else
        mirror_kernel<float, float2>
            <<<blocks_for(d, half), THREADS, 0, d->stream>>>(job);
    LAUNCHED(d);
    return GPU_OK;
}

/* v, which has no gaps, times a number. */
static gpu_status scale(cuda_device *d, const gpu_view *v, double by)
{
    gpu_program p = {};
    bool is_complex = v->dtype == GPU_C64 || v->dtype == GPU_C128;
    gpu_dtype type = is_wide(v) ? GPU_F64 : GPU_F32;
    gpu_view all = {v->data, type, 1, v->rows * v->cols * (is_complex ? 2 : 1),
                    0,       1};
    all.row_stride = all.cols;
    p.inputs = p.constants = p.length = 1;
    p.compute = (uint8_t)type;
    p.code[0] = {GPU_OP_mul, 0, 1, 0};
    p.constant[0] = by;
    return by == 1 ? GPU_OK : gpu_cuda_map(d, &p, &all, &all);
}

/* to: v's transpose, with rows `step` apart. n: of what is half a spectrum of n
 * numbers along v's rows; 0: of anything else. */
static gpu_status transpose(cuda_device *d, const gpu_view *v, void *to,
                            int64_t step, int64_t n)
{
    dim3 threads(TILE, THREADS / TILE);
    int64_t tiles = ceil_div(v->rows, TILE) * ceil_div(v->cols, TILE);
    int blocks = (int)smaller(tiles, (int64_t)d->sms * BLOCKS_PER_SM);
#define TRANSPOSE(type, drops)    \
    transpose_kernel<type, drops> \
        <<<blocks, threads, 0, d->stream>>>(*v, (type *)to, step, n)
    if (v->dtype == GPU_F32)
        TRANSPOSE(float, false);
    else if (v->dtype == GPU_F64)
        TRANSPOSE(double, false);
    else if (v->dtype == GPU_C64 && n > 0)
        TRANSPOSE(float2, true);
    else if (v->dtype == GPU_C64)
        TRANSPOSE(float2, false);
    else if (n > 0)
        TRANSPOSE(double2, true);
    else
        TRANSPOSE(double2, false);
#undef TRANSPOSE
    LAUNCHED(d);
    return GPU_OK;
}

/* --- transforms ----------------------------------------------------------- */

/* Lines of a view, or the view as a whole where they lie along rows. */
static fft_layout layout_of(const gpu_view *v, int axis)
{
    if (axis == 1)
        return {v->row_stride, v->col_stride, 1};
    if (axis == 2)
        return {v->col_stride, v->row_stride, 1};
    return {1, v->rows * v->row_stride, v->row_stride};
}

static gpu_status run(cuda_device *d, const gpu_fft_call *c)
{
    fft_device *f = NULL;
    const gpu_view *real = c->kind == GPU_FFT_FROM_HALF ? &c->out : &c->in;
    fft_batch b = {};
    b.form = c->kind == GPU_FFT_COMPLEX     ? FFT_COMPLEX
             : c->kind == GPU_FFT_FROM_HALF ? FFT_TO_REAL
                                            : FFT_FROM_REAL;
    b.type = is_wide(&c->in) ? GPU_F64 : GPU_F32;
    b.is_inverse = c->is_inverse;
    b.axes = c->axis == 0 ? 2 : 1;
    b.n[0] = c->axis == 2 ? real->cols : real->rows;
    b.n[1] = c->axis == 0 ? real->cols : 1;
    b.count = c->axis == 0 ? 1 : c->axis == 1 ? real->cols : real->rows;
    b.in_layout = layout_of(&c->in, c->axis);
    b.out_layout = layout_of(&c->out, c->axis);
    b.in = c->in.data;
    b.out = c->out.data;
    TRY(open_library(d, &f));
    gpu_status status = library.table->transform(f, &b);
    if (status == GPU_INTERNAL)
        TRY(gpu_cuda_wait(d)); /* the stream tells whether the device is lost */
    return status;
}

/* Rows first, then columns in place, of a matrix that lies otherwise. */
static gpu_status run_both(cuda_device *d, const gpu_fft_call *c)
{
    gpu_fft_call across = *c, down = *c;
    if (c->in.col_stride == 1 && c->in.row_stride >= c->in.cols)
        return run(d, c);
    across.axis = 2;
    down.axis = 1;
    if (c->kind == GPU_FFT_REAL) {
        across.out.cols = c->out.cols / 2 + 1;
        down.kind = GPU_FFT_COMPLEX;
        down.is_inverse = 0; /* mirror conjugates all of it */
    }
    down.in = down.out = across.out;
    TRY(run(d, &across));
    return run(d, &down);
}

static gpu_status run_from_half(cuda_device *d, const gpu_fft_call *c)
{
    gpu_fft_call there = *c;
    int64_t count = c->in.rows * c->in.cols;
    int64_t n = c->axis == 1 ? c->out.rows : c->out.cols;
    size_t bytes = (size_t)count * (is_wide(&c->in) ? 16 : 8);
    void *copy = NULL;
    if (gpu_cuda_alloc(d, bytes, &copy) != GPU_OK)
        return FAIL(GPU_MEMORY, "fft: no memory for %zu MiB to work in",
                    (bytes >> 20) + 1);
    if (is_wide(&c->in))
        copy_half_kernel<<<blocks_for(d, count), THREADS, 0, d->stream>>>(
            c->in, (double2 *)copy, c->axis, n);
    else
        copy_half_kernel<<<blocks_for(d, count), THREADS, 0, d->stream>>>(
            c->in, (float2 *)copy, c->axis, n);
    there.in.data = copy;
    there.in.row_stride = c->in.cols;
    there.in.col_stride = 1;
    gpu_status status = gpu_cuda_check(d, cudaGetLastError());
    if (status == GPU_OK)
        status = run(d, &there);
    gpu_cuda_free(d, copy, bytes);
    return status;
}

/* Down many columns, from real numbers or to them, cuFFT takes several times as
 * long as along rows: so it goes along rows of the transpose. */
static bool is_turned(const gpu_fft_call *c)
{
    const int64_t LARGE = 1 << 22; /* elements */
    return c->kind != GPU_FFT_COMPLEX && c->axis == 1 && c->in.cols > 1 &&
           c->in.rows * c->in.cols >= LARGE && c->out.col_stride == 1;
}

static gpu_view dense_rows(const gpu_view *like, int64_t rows, int64_t cols)
{
    return {NULL, like->dtype, rows, cols, cols, 1};
}

static size_t bytes_of(const gpu_view *v)
{
    bool is_complex = v->dtype == GPU_C64 || v->dtype == GPU_C128;
    size_t part = is_wide(v) ? 8 : 4;
    return (size_t)(v->rows * v->cols) * part * (is_complex ? 2 : 1);
}

/* in and out of t have memory. */
static gpu_status run_transposed(cuda_device *d, const gpu_fft_call *c,
                                 const gpu_fft_call *t)
{
    int64_t n = c->kind == GPU_FFT_FROM_HALF ? c->out.rows : 0;
    TRY(transpose(d, &c->in, t->in.data, t->in.row_stride, n));
    TRY(run(d, t));
    return transpose(d, &t->out, c->out.data, c->out.row_stride, 0);
}

/* GPU_MEMORY, without a message, where there is none for the transposes. */
static gpu_status run_turned(cuda_device *d, const gpu_fft_call *c)
{
    gpu_fft_call t = *c;
    int64_t made =
        c->kind == GPU_FFT_FROM_HALF ? c->out.rows : c->in.rows / 2 + 1;
    t.axis = 2;
    t.in = dense_rows(&c->in, c->in.cols, c->in.rows);
    t.out = dense_rows(&c->out, c->in.cols, made);
    size_t in = bytes_of(&t.in), out = bytes_of(&t.out);
    if (gpu_cuda_alloc(d, in, &t.in.data) != GPU_OK)
        return GPU_MEMORY;
    gpu_status status = gpu_cuda_alloc(d, out, &t.out.data);
    if (status == GPU_OK) {
        status = run_transposed(d, c, &t);
        gpu_cuda_free(d, t.out.data, out);
    }
    gpu_cuda_free(d, t.in.data, in);
    return status;
}

static gpu_status run_any(cuda_device *d, const gpu_fft_call *c)
{
    gpu_status status = is_turned(c) ? run_turned(d, c) : GPU_MEMORY;
    if (status != GPU_MEMORY)
        return status;
    if (c->kind == GPU_FFT_FROM_HALF)
        return run_from_half(d, c);
    return c->axis == 0 ? run_both(d, c) : run(d, c);
}

static bool lies_down(const gpu_view *v)
{
    return v->row_stride == 1 && v->col_stride >= v->rows;
}

gpu_status gpu_cuda_fft(void *device, const gpu_fft_call *call)
{
    gpu_fft_call turned = *call;
    const gpu_fft_call *c = &turned;
    ENTER(d, device);
    if (c->axis == 0 && lies_down(&c->in) && lies_down(&c->out)) {
        swap_axes(&turned.in);
        swap_axes(&turned.out);
    }
    TRY(run_any(d, c));
    if (c->kind == GPU_FFT_REAL)
        return mirror(d, &c->out, c->axis, c->is_inverse, c->scale);
    return scale(d, &c->out, c->scale);
}
