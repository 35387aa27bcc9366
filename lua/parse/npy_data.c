/* Converts the elements of .npy files: every width, both byte orders. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "npy.h"

static const int64_t EXACT_INTEGERS = (int64_t)1 << 53;

/* An element's bits, in the low bytes. */
static uint64_t bits_at(const lumat_npy *n, const unsigned char *p)
{
    uint64_t bits = 0;
    for (int i = 0; i < n->bytes; i++) {
        int little = (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) != n->swapped;
        int place = little ? i : n->bytes - 1 - i;
        bits |= (uint64_t)p[i] << (8 * place);
    }
    return bits;
}

/* Source: IEEE 754-2008, binary16. */
static double half_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size = exponent == 31 && fraction != 0 ? NAN
                  : exponent == 31                ? INFINITY
                  : exponent == 0                 ? ldexp(fraction, -24)
                                  : ldexp(fraction + 1024, exponent - 25);
    return bits >> 15 ? -size : size;
}

static double real_value(uint64_t bits, int bytes)
{
    float single;
    double value;
    uint32_t low = (uint32_t)bits;
    if (bytes == 2)
        return half_value((uint16_t)bits);
    memcpy(&single, &low, sizeof single);
    memcpy(&value, &bits, sizeof value);
    return bytes == 4 ? (double)single : value;
}

static int64_t signed_value(uint64_t bits, int bytes)
{
    int shift = 64 - 8 * bytes;
    return (int64_t)(bits << shift) >> shift;
}

static double value_of(const lumat_npy *n, uint64_t bits)
{
    if (n->kind == 'f')
        return real_value(bits, n->bytes);
    if (n->kind == 'i')
        return (double)signed_value(bits, n->bytes);
    return n->kind == 'b' ? bits != 0 : (double)bits;
}

/* Would f64 round this integer? Every one up to 2^53 is exact. */
static int is_rounded(const lumat_npy *n, uint64_t bits)
{
    if (n->bytes < 8 || n->kind == 'f')
        return 0;
    if (n->kind == 'u')
        return bits > (uint64_t)EXACT_INTEGERS;
    int64_t x = (int64_t)bits;
    return x > EXACT_INTEGERS || x < -EXACT_INTEGERS;
}

static int fail_rounded(const lumat_npy *n, int64_t i, uint64_t bits,
                        char *error, size_t size)
{
    char number[32];
    int64_t row = n->fortran ? i % n->rows : i / n->cols;
    int64_t col = n->fortran ? i / n->rows : i % n->cols;
    snprintf(number, sizeof number, n->kind == 'u' ? "%llu" : "%lld",
             (unsigned long long)bits);
    snprintf(error, size,
             "its element [%lld, %lld] is %s, beyond 2^53 where f64 rounds "
             "integers; give {dtype=\"f64\"} to accept that",
             (long long)row + 1, (long long)col + 1, number);
    return 0;
}

gpu_dtype lumat_npy_dtype(const lumat_npy *n)
{
    if (n->kind == 'b')
        return GPU_BOOL;
    if (n->kind == 'f')
        return n->bytes == 8 ? GPU_F64 : GPU_F32;
    return n->bytes >= 4 ? GPU_F64 : GPU_F32;
}

int lumat_npy_is_plain(const lumat_npy *n, gpu_dtype dtype)
{
    return n->kind == 'f' && !n->swapped && dtype != GPU_BOOL &&
           n->bytes == (dtype == GPU_F32 ? 4 : 8);
}

int lumat_npy_read(const lumat_npy *n, const void *elements, int64_t first,
                   int64_t count, gpu_dtype dtype, void *to, int exact,
                   char *error, size_t size)
{
    const unsigned char *p = elements;
    float *singles = to;
    double *doubles = to;
    unsigned char *truths = to;
    for (int64_t i = 0; i < count; i++, p += n->bytes) {
        uint64_t bits = bits_at(n, p);
        double x = value_of(n, bits);
        if (exact && is_rounded(n, bits))
            return fail_rounded(n, first + i, bits, error, size);
        if (dtype == GPU_F32)
            singles[i] = (float)x;
        else if (dtype == GPU_F64)
            doubles[i] = x;
        else
            truths[i] = x != 0;
    }
    return 1;
}
