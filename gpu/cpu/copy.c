/* Copies of whole matrices, on all cores; they can be stopped. Limited by
 * memory: what is written past the caches need not be read from there first,
 * which is twice as fast for what is not read again soon; and where rows are
 * parts of longer ones the processor does not see the next coming, and is
 * told. */
#include <string.h>
#include "cpu.h"
#include "vector.h"
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Bytes copied between two looks at the flag; so many together are worth more
 * than one core, and AS_ONE bytes are as an element to gpu_cpu_parallel: 16
 * cores of 32 copy 8 MiB. Rows shorter than SHORT are no matter of bytes. */
enum { CHUNK = 1 << 17, MANY = 1 << 19, SHORT = 256 };
enum { AS_ONE = 32 };
enum { LINE = 64, PAGE = 4096, TOLD = 1024 }; /* bytes */

/* Rows of bytes, so many from one to the next. A piece of the work is several
 * of them, or a part of one. */
typedef struct copying {
    char *to;
    const char *from;
    int64_t rows;
    size_t row, to_next, from_next;
    int64_t of_row, together; /* pieces of a row, rows of a piece */
    int is_past_caches;
} copying;

/* What is read next: the beginning of each page, from where the processor goes
 * on by itself. */
static void announce(const char *next, size_t n)
{
    for (size_t page = 0; page < n; page += PAGE)
        for (size_t at = page; at < n && at < page + TOLD; at += LINE)
            __builtin_prefetch(next + at, 0, 2);
}

/* Whole lines past the caches, what is around them as ever. */
static void copy_past_caches(char *to, const char *from, size_t n)
{
#ifdef __SSE2__
    size_t at = (size_t)(-(uintptr_t)to % LINE);
    at = at < n ? at : n;
    memcpy(to, from, at);
    for (; at + LINE <= n; at += LINE) {
        const __m128i *x = (const __m128i *)(from + at);
        __m128i *r = (__m128i *)(to + at);
        __m128i a = _mm_loadu_si128(x), b = _mm_loadu_si128(x + 1);
        __m128i c = _mm_loadu_si128(x + 2), d = _mm_loadu_si128(x + 3);
        _mm_stream_si128(r, a);
        _mm_stream_si128(r + 1, b);
        _mm_stream_si128(r + 2, c);
        _mm_stream_si128(r + 3, d);
    }
    memcpy(to + at, from + at, n - at);
#else
    memcpy(to, from, n);
#endif
}

static void copy_piece(const copying *c, int64_t i)
{
    int64_t first = i / c->of_row * c->together;
    int64_t last = gpu_cpu_smaller(first + c->together, c->rows);
    size_t at = (size_t)(i % c->of_row) * CHUNK;
    size_t n = c->of_row > 1 && c->row - at > CHUNK ? CHUNK : c->row - at;
    for (int64_t r = first; r < last; r++) {
        char *to = c->to + (size_t)r * c->to_next + at;
        const char *from = c->from + (size_t)r * c->from_next + at;
        if (r + 1 < last && c->from_next != c->row)
            announce(from + c->from_next, n);
        if (c->is_past_caches)
            copy_past_caches(to, from, n);
        else /* bytes, whatever they are of */
            gpu_cpu_vectors->convert[GPU_BOOL][GPU_BOOL](to, from, n);
    }
#ifdef __SSE2__
    if (c->is_past_caches)
        _mm_sfence();
#endif
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
    if (c->to_next == c->row && c->from_next == c->row) { /* no gaps */
        c->row = n;
        c->rows = 1;
    }
    c->of_row = gpu_cpu_pieces((int64_t)c->row, CHUNK);
    c->together = c->of_row > 1 ? 1 : CHUNK / (int64_t)c->row;
    int64_t count = gpu_cpu_pieces(c->rows, c->together) * c->of_row;
    int64_t elements = (int64_t)(n / AS_ONE);
    if (n > MANY)
        return gpu_cpu_parallel(
            count,
            elements > GPU_CPU_WORTH_THREADS ? elements : GPU_CPU_WORTH_THREADS,
            copy_pieces, c);
    for (int64_t i = 0; i < count; i++)
        copy_piece(c, i);
    return GPU_OK;
}

gpu_status gpu_cpu_copy_bytes(void *device, void *to, const void *from,
                              size_t n)
{
    (void)device;
    copying c = {.to = to, .from = from, .rows = 1, .row = n};
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

static gpu_status copy(const gpu_view *from, const gpu_view *to,
                       int is_past_caches)
{
    size_t size = gpu_cpu_size(to->dtype);
    if (are_rows(from, to)) {
        copying c = {.to = to->data,
                     .from = from->data,
                     .rows = to->rows,
                     .row = (size_t)to->cols * size,
                     .to_next = (size_t)to->row_stride * size,
                     .from_next = (size_t)from->row_stride * size,
                     .is_past_caches = is_past_caches};
        return copy_rows(&c);
    }
    gpu_program p = {.inputs = 1};
    p.compute = (uint8_t)from->dtype;
    return gpu_cpu_map(NULL, &p, from, to);
}

gpu_status gpu_cpu_copy(const gpu_view *from, const gpu_view *to)
{
    return copy(from, to, 0);
}

gpu_status gpu_cpu_bring(void *device, gpu_lane lane, const gpu_view *from,
                         const gpu_view *to)
{
    (void)device, (void)lane;
    return copy(from, to, 0);
}

gpu_status gpu_cpu_fetch(void *device, gpu_lane lane, const gpu_view *from,
                         const gpu_view *to)
{
    (void)device, (void)lane;
    return copy(from, to, gpu_cpu_view_bytes(to) > MANY);
}
