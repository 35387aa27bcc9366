/* Random fills: Philox4x32-10 by element index, so that any element can be
 * made anywhere and every device gives the same. Must not be compiled with
 * contraction to FMA (-ffp-contract=off, which -std=c11 implies). */
#include <math.h>
#include <string.h>
#include "cpu.h"
#include "vector.h"

/* PIECE: a multiple of the elements of a Philox block, of which there is one
 * more where what is drawn does not begin with one. */
enum { PIECE = 1024, ROOM = PIECE + 4 };

typedef struct filling {
    const gpu_random *r;
    const gpu_view *to;
} filling;

typedef union values {
    float f[ROOM];
    double d[ROOM];
} values;

/* A block of Philox: four f32, or two f64. */
typedef uint32_t words[4];

static uint64_t wide(const words *w, int64_t i)
{
    const uint32_t *pair = w[i / 2] + i % 2 * 2;
    return pair[0] | (uint64_t)pair[1] << 32;
}

static void draw(const gpu_random *r, int64_t block, size_t n, words *to)
{
    gpu_cpu_vectors->philox(to, (uint64_t)block, n, r->call, r->seed);
}

/* In what follows first and n are multiples of 4. Rounding may reach high,
 * which is outside. */
static void uniform_f32(const gpu_random *r, int64_t first, int64_t n,
                        float *to)
{
    words w[ROOM / 4];
    float low = (float)r->low, high = (float)r->high, span = high - low;
    float last = high > low ? nextafterf(high, low) : high;
    draw(r, first / 4, (size_t)n / 4, w);
    const uint32_t *word = w[0];
    for (int64_t i = 0; i < n; i++) {
        float scaled = span * ((float)(int32_t)(word[i] >> 8) * 0x1p-24f);
        float value = low + scaled;
        to[i] = value >= high ? last : value;
    }
}

/* A whole number below 2^53, whose halves are exact beside a power of two: so
 * vectors convert it that have 32 bits alone. */
INLINE double of_whole(uint64_t x)
{
    uint64_t upper = x >> 32 | 0x4530000000000000,     /* 2^84 + 2^32 of it */
        lower = (x & UINT32_MAX) | 0x4330000000000000; /* 2^52 + it */
    double high, low;
    memcpy(&high, &upper, sizeof high);
    memcpy(&low, &lower, sizeof low);
    return (high - (0x1p84 + 0x1p52)) + low;
}

VECTORS static void scale_f64(const uint64_t *word, double low, double high,
                              int64_t n, double *to)
{
    double span = high - low, last = high > low ? nextafter(high, low) : high;
    for (int64_t i = 0; i < n; i++) {
        double scaled = span * (of_whole(word[i] >> 11) * 0x1p-53);
        double value = low + scaled;
        to[i] = value >= high ? last : value;
    }
}

static void uniform_f64(const gpu_random *r, int64_t first, int64_t n,
                        double *to)
{
    union {
        words w[ROOM / 2];
        uint64_t wide[ROOM]; /* where the lower half comes first */
    } drawn;
    draw(r, first / 2, (size_t)n / 2, drawn.w);
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    for (int64_t i = 0; i < n; i++)
        drawn.wide[i] = wide(drawn.w, i);
#endif
    scale_f64(drawn.wide, r->low, r->high, n, to);
}

static void integers(const gpu_random *r, int64_t first, int64_t n, double *to)
{
    words w[ROOM / 2];
    int64_t low = (int64_t)r->low;
    uint64_t span = (uint64_t)((int64_t)r->high - low) + 1;
    draw(r, first / 2, (size_t)n / 2, w);
    for (int64_t i = 0; i < n; i++) {
        unsigned __int128 product = (unsigned __int128)wide(w, i) * span;
        to[i] = (double)(low + (int64_t)(product >> 64));
    }
}

static void normals(const gpu_random *r, int64_t first, int64_t n, double *to)
{
    words w[ROOM / 2];
    double a[ROOM / 2], b[ROOM / 2];
    draw(r, first / 2, (size_t)n / 2, w);
    for (int64_t i = 0; i < n / 2; i++) {
        a[i] = (double)(int64_t)((wide(w, 2 * i) >> 11) + 1) * 0x1p-53;
        b[i] = (double)(int64_t)(wide(w, 2 * i + 1) >> 11) * 0x1p-53;
    }
    gpu_cpu_vectors->normal(a, b, (size_t)n / 2);
    for (int64_t i = 0; i < n / 2; i++) {
        to[2 * i] = r->low + r->high * a[i];
        to[2 * i + 1] = r->low + r->high * b[i];
    }
}

/* Of those that are to become elements of type t; returns the type of what
 * came. */
static gpu_dtype make(const gpu_random *r, gpu_dtype t, int64_t first,
                      int64_t n, values *v)
{
    if (r->kind == GPU_NORMAL)
        normals(r, first, n, v->d);
    else if (r->kind == GPU_INTEGER)
        integers(r, first, n, v->d);
    else if (t == GPU_F64)
        uniform_f64(r, first, n, v->d);
    else
        uniform_f32(r, first, n, v->f);
    return r->kind == GPU_UNIFORM && t != GPU_F64 ? GPU_F32 : GPU_F64;
}

void gpu_draw(const gpu_random *r, gpu_dtype t, int64_t first, int64_t n,
              void *to)
{
    values v;
    for (int64_t lead = first % 4; n > 0; lead = 0) {
        int64_t count = gpu_cpu_smaller(n, PIECE);
        gpu_dtype made =
            make(r, t, first - lead, (lead + count + 3) / 4 * 4, &v);
        const char *from = (const char *)&v + (size_t)lead * gpu_cpu_size(made);
        gpu_cpu_vectors->convert[made][t](to, from, (size_t)count);
        to = (char *)to + (size_t)count * gpu_cpu_size(t);
        first += count;
        n -= count;
    }
}

static gpu_status fill_range(void *context, int64_t from, int64_t to)
{
    const filling *f = context;
    int64_t n = f->to->rows * f->to->cols;
    values v;
    for (int64_t piece = from; piece < to; piece++) {
        int64_t first = piece * PIECE;
        int64_t count = n - first < PIECE ? n - first : PIECE;
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        gpu_dtype t = make(f->r, f->to->dtype, f->r->first + first, PIECE, &v);
        gpu_cpu_store(f->to, first, count, t, &v);
    }
    return GPU_OK;
}

gpu_status gpu_cpu_random(void *device, const gpu_random *r, const gpu_view *to)
{
    (void)device;
    filling f = {r, to};
    int64_t n = to->rows * to->cols;
    return gpu_cpu_parallel((n + PIECE - 1) / PIECE, n, fill_range, &f);
}
