/* Views: their parts, and copies between any two layouts and types. */
#include "cpu.h"
#include "vector.h"

size_t gpu_cpu_size(gpu_dtype t)
{
    return t == GPU_F64 ? 8 : t == GPU_F32 ? 4 : 1;
}

gpu_view gpu_cpu_turned(gpu_view v)
{
    gpu_view t = v;
    t.rows = v.cols;
    t.cols = v.rows;
    t.row_stride = v.col_stride;
    t.col_stride = v.row_stride;
    return t;
}

gpu_view gpu_cpu_part(const gpu_view *v, int64_t row, int64_t col, int64_t rows,
                      int64_t cols)
{
    gpu_view part = *v;
    int64_t place = row * v->row_stride + col * v->col_stride;
    part.data = (char *)v->data + place * (int64_t)gpu_cpu_size(v->dtype);
    part.rows = rows;
    part.cols = cols;
    return part;
}

gpu_view gpu_cpu_flat(gpu_view v)
{
    if (v.rows == 1)
        return v;
    if (v.cols == 1)
        return gpu_cpu_turned(v);
    if (v.row_stride == v.cols * v.col_stride) {
        v.cols *= v.rows;
        v.rows = 1;
    }
    return v;
}

/* Copies n elements at steps ts and fs. */
typedef void strided_copy(void *to, int64_t ts, const void *from, int64_t fs,
                          int64_t n);

#define STRIDED(name, to_type, from_type, expression)                    \
    static void name(void *to, int64_t ts, const void *from, int64_t fs, \
                     int64_t n)                                          \
    {                                                                    \
        to_type *r = to;                                                 \
        const from_type *x = from;                                       \
        for (int64_t i = 0; i < n; i++)                                  \
            r[i * ts] = (to_type)(expression);                           \
    }
STRIDED(strided_f32_f32, float, float, x[i * fs])
STRIDED(strided_f32_f64, double, float, x[i * fs])
STRIDED(strided_f32_bool, uint8_t, float, x[i * fs] != 0)
STRIDED(strided_f64_f32, float, double, x[i * fs])
STRIDED(strided_f64_f64, double, double, x[i * fs])
STRIDED(strided_f64_bool, uint8_t, double, x[i * fs] != 0)
STRIDED(strided_bool_f32, float, uint8_t, x[i * fs] != 0)
STRIDED(strided_bool_f64, double, uint8_t, x[i * fs] != 0)
STRIDED(strided_bool_bool, uint8_t, uint8_t, x[i * fs])

static strided_copy *const strided[GPU_DTYPES][GPU_DTYPES] = {
    {strided_f32_f32, strided_f32_f64, strided_f32_bool},
    {strided_f64_f32, strided_f64_f64, strided_f64_bool},
    {strided_bool_f32, strided_bool_f64, strided_bool_bool},
};

static int64_t length(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

/* The inner loop runs along the source's shorter step: what is read is read
 * once, and the pieces written fit the first cache. */
void gpu_cpu_convert(const gpu_view *from, const gpu_view *to)
{
    gpu_view f = *from, t = *to;
    if (t.cols == 1 ||
        (t.rows > 1 && length(f.row_stride) < length(f.col_stride))) {
        f = gpu_cpu_turned(f);
        t = gpu_cpu_turned(t);
    }
    char *r = t.data;
    const char *x = f.data;
    int64_t r_step = t.row_stride * (int64_t)gpu_cpu_size(t.dtype);
    int64_t x_step = f.row_stride * (int64_t)gpu_cpu_size(f.dtype);
    if (t.col_stride == 1 && f.col_stride == 1) {
        for (int64_t i = 0; i < t.rows; i++)
            gpu_cpu_vectors->convert[f.dtype][t.dtype](
                r + i * r_step, x + i * x_step, (size_t)t.cols);
        return;
    }
    strided_copy *copy = strided[f.dtype][t.dtype];
    for (int64_t i = 0; i < t.rows; i++)
        copy(r + i * r_step, t.col_stride, x + i * x_step, f.col_stride,
             t.cols);
}

/* Walks a row-major range of v against a buffer, a piece of a row a time. */
static void walk(const gpu_view *view, int64_t first, int64_t n, gpu_dtype t,
                 char *buffer, int storing)
{
    gpu_view v = gpu_cpu_flat(*view);
    while (n > 0) {
        int64_t row = v.rows == 1 ? 0 : first / v.cols;
        int64_t col = first - row * v.cols;
        int64_t count = v.cols - col < n ? v.cols - col : n;
        gpu_view part = gpu_cpu_part(&v, row, col, 1, count);
        gpu_view line = {buffer, t, 1, count, count, 1};
        if (storing)
            gpu_cpu_convert(&line, &part);
        else
            gpu_cpu_convert(&part, &line);
        buffer += (size_t)count * gpu_cpu_size(t);
        first += count;
        n -= count;
    }
}

void gpu_cpu_load(const gpu_view *v, int64_t first, int64_t n, gpu_dtype t,
                  void *buffer)
{
    walk(v, first, n, t, buffer, 0);
}

void gpu_cpu_store(const gpu_view *v, int64_t first, int64_t n, gpu_dtype t,
                   const void *buffer)
{
    walk(v, first, n, t, (void *)(uintptr_t)buffer, 1);
}

void gpu_cpu_store_one(const gpu_view *v, int64_t row, int64_t col,
                       double value)
{
    gpu_view to = gpu_cpu_part(v, row, col, 1, 1);
    gpu_view from = {&value, GPU_F64, 1, 1, 1, 1};
    gpu_cpu_convert(&from, &to);
}
