/* Random fills: Philox4x32-10 by element index, so that any element can be
 * made anywhere and every device gives the same. Must not be compiled with
 * contraction to FMA (-ffp-contract=off, which -std=c11 implies). */
#include <math.h>
#include <Random123/philox.h>
#include "cpu.h"
#include "vector.h"

enum { PIECE = 1024 }; /* a multiple of the elements of a Philox block */

typedef struct filling {
    const gpu_random *r;
    const gpu_view *to;
} filling;

typedef union values {
    float f[PIECE];
    double d[PIECE];
} values;

static philox4x32_ctr_t block(const gpu_random *r, int64_t number)
{
    uint64_t n = (uint64_t)number;
    philox4x32_ctr_t counter = {{(uint32_t)n, (uint32_t)(n >> 32),
                                 (uint32_t)r->call, (uint32_t)(r->call >> 32)}};
    philox4x32_key_t key = {{(uint32_t)r->seed, (uint32_t)(r->seed >> 32)}};
    return philox4x32(counter, key);
}

static uint64_t word(const philox4x32_ctr_t *c, int which)
{
    return c->v[2 * which] | (uint64_t)c->v[2 * which + 1] << 32;
}

/* Rounding may reach high, which is outside. */
static void uniform_f32(const gpu_random *r, int64_t first, float *to)
{
    float low = (float)r->low, high = (float)r->high, span = high - low;
    float last = high > low ? nextafterf(high, low) : high;
    for (int64_t i = 0; i < PIECE; i += 4) {
        philox4x32_ctr_t c = block(r, (first + i) / 4);
        for (int k = 0; k < 4; k++) {
            float scaled = span * ((float)(c.v[k] >> 8) * 0x1p-24f);
            float value = low + scaled;
            to[i + k] = value >= high ? last : value;
        }
    }
}

static void uniform_f64(const gpu_random *r, int64_t first, double *to)
{
    double low = r->low, high = r->high, span = high - low;
    double last = high > low ? nextafter(high, low) : high;
    for (int64_t i = 0; i < PIECE; i += 2) {
        philox4x32_ctr_t c = block(r, (first + i) / 2);
        for (int k = 0; k < 2; k++) {
            double scaled = span * ((double)(word(&c, k) >> 11) * 0x1p-53);
            double value = low + scaled;
            to[i + k] = value >= high ? last : value;
        }
    }
}

static void integers(const gpu_random *r, int64_t first, double *to)
{
    int64_t low = (int64_t)r->low;
    uint64_t span = (uint64_t)((int64_t)r->high - low) + 1;
    for (int64_t i = 0; i < PIECE; i += 2) {
        philox4x32_ctr_t c = block(r, (first + i) / 2);
        for (int k = 0; k < 2; k++) {
            unsigned __int128 wide = (unsigned __int128)word(&c, k) * span;
            to[i + k] = (double)(low + (int64_t)(wide >> 64));
        }
    }
}

static void normals(const gpu_random *r, int64_t first, double *to)
{
    double a[PIECE / 2], b[PIECE / 2];
    for (int64_t i = 0; i < PIECE / 2; i++) {
        philox4x32_ctr_t c = block(r, first / 2 + i);
        a[i] = (double)((word(&c, 0) >> 11) + 1) * 0x1p-53;
        b[i] = (double)(word(&c, 1) >> 11) * 0x1p-53;
    }
    gpu_cpu_vectors->normal(a, b, PIECE / 2);
    for (int64_t i = 0; i < PIECE / 2; i++) {
        to[2 * i] = r->low + r->high * a[i];
        to[2 * i + 1] = r->low + r->high * b[i];
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
        gpu_dtype t = GPU_F64;
        if (gpu_cpu_interrupted())
            return GPU_INTERRUPTED;
        if (f->r->kind == GPU_NORMAL)
            normals(f->r, first, v.d);
        else if (f->r->kind == GPU_INTEGER)
            integers(f->r, first, v.d);
        else if (f->to->dtype == GPU_F64)
            uniform_f64(f->r, first, v.d);
        else
            uniform_f32(f->r, first, v.f), t = GPU_F32;
        gpu_cpu_store(f->to, first, count, t, &v);
    }
    return GPU_OK;
}

gpu_status gpu_cpu_random(void *device, const gpu_random *r,
                          const gpu_view *to)
{
    (void)device;
    filling f = {r, to};
    int64_t n = to->rows * to->cols;
    return gpu_cpu_parallel((n + PIECE - 1) / PIECE, n, fill_range, &f);
}
