/* Copies of whole matrices, on all cores; they can be stopped. Limited by
 * memory. */
#include <string.h>
#include "cpu.h"

/* Bytes copied between two looks at the flag; so many together are worth more
 * than one core. Rows shorter than SHORT are no matter of bytes. */
enum { CHUNK = 1 << 17, MANY = 1 << 19, SHORT = 256 };

/* Rows of bytes, so many from one to the next. A piece of the work is several
 * of them, or a part of one. */
typedef struct copying {
    char *to;
    const char *from;
    int64_t rows;
    size_t row, to_next, from_next;
    int64_t of_row, together; /* pieces of a row, rows of a piece */
} copying;

static void copy_piece(const copying *c, int64_t i)
{
    int64_t first = i / c->of_row * c->together, last = first + c->together;
    size_t at = (size_t)(i % c->of_row) * CHUNK;
    size_t n = c->of_row > 1 && c->row - at > CHUNK ? CHUNK : c->row - at;
    for (int64_t r = first; r < last && r < c->rows; r++)
        memcpy(c->to + (size_t)r * c->to_next + at,
               c->from + (size_t)r * c->from_next + at, n);
}

static gpu_status copy_pieces(void *context, int64_t first, int64_t last)
{
    for (int64_t i = first; i < last; i++) {
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        copy_piece(context, i);
    }
    return GPU_OK;
}

static gpu_status copy_rows(copying *c)
{
    size_t n = (size_t)c->rows * c->row;
    c->of_row = gpu_cpu_pieces((int64_t)c->row, CHUNK);
    c->together = c->of_row > 1 ? 1 : CHUNK / (int64_t)c->row;
    int64_t count = gpu_cpu_pieces(c->rows, c->together) * c->of_row;
    if (n > MANY)
        return gpu_cpu_parallel(count, (int64_t)n / 8, copy_pieces, c);
    for (int64_t i = 0; i < count; i++)
        copy_piece(c, i);
    return GPU_OK;
}

gpu_status gpu_cpu_copy_bytes(void *device, void *to, const void *from,
                              size_t n)
{
    (void)device;
    copying c = {to, from, 1, n, n, n, 0, 0};
    return n > 0 ? copy_rows(&c) : GPU_OK;
}

/* Do elements of both follow each other in rows, from the one to the next? */
static int are_rows(const gpu_view *from, const gpu_view *to)
{
    return from->dtype == to->dtype && from->col_stride == 1 &&
           to->col_stride == 1 && from->row_stride >= 0 &&
           to->row_stride >= 0 &&
           (size_t)to->cols * gpu_cpu_size(to->dtype) >= SHORT;
}

gpu_status gpu_cpu_copy(const gpu_view *from, const gpu_view *to)
{
    size_t size = gpu_cpu_size(to->dtype);
    if (are_rows(from, to)) {
        copying c = {.to = to->data,
                     .from = from->data,
                     .rows = to->rows,
                     .row = (size_t)to->cols * size,
                     .to_next = (size_t)to->row_stride * size,
                     .from_next = (size_t)from->row_stride * size};
        return copy_rows(&c);
    }
    gpu_program p = {.inputs = 1};
    p.compute = (uint8_t)from->dtype;
    return gpu_cpu_map(NULL, &p, from, to);
}

gpu_status gpu_cpu_copy_views(void *device, gpu_lane lane, const gpu_view *from,
                              const gpu_view *to)
{
    (void)device, (void)lane;
    return gpu_cpu_copy(from, to);
}
