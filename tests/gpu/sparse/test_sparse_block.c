/* Blocks, ranks and chosen places of sparse matrices against their dense form,
 * on the device LUMAT_TEST_DEVICE names where its backend lies beside this
 * program, else on the CPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "gpu.h"

static const int64_t sides[] = {1, 2, 7, 33, 130};
enum { SIDES = sizeof sides / sizeof *sides, MOST = 130 * 130 };

static gpu_device *device;

static int open_device(void **state)
{
    const char *name = getenv("LUMAT_TEST_DEVICE");
    (void)state;
    if (name != NULL && gpu_open(name, &device) == GPU_OK)
        return 0;
    return gpu_open("cpu", &device) != GPU_OK;
}

static int below(int limit)
{
    static uint32_t state = 2463534242u; /* Marsaglia, xorshift, 2003 */
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return (int)(state % (uint32_t)limit);
}

/* Each place has an entry with a probability of one in `rarity`; some entries
 * are zeros. dense and stored get what the matrix is. */
static void make(gpu_dtype t, int64_t rows, int64_t cols, int rarity,
                 double *dense, uint8_t *stored, gpu_sparse *out)
{
    static int64_t row[MOST], col[MOST];
    static double value[MOST];
    gpu_triplets list = {
        .rows = rows, .cols = cols, .row = row, .col = col, .value = value};
    for (int64_t at = 0; at < rows * cols; at++) {
        int64_t n = list.count;
        stored[at] = below(rarity) == 0;
        dense[at] = stored[at] ? below(5) - 2 : 0;
        if (!stored[at])
            continue;
        row[n] = at / cols;
        col[n] = at % cols;
        value[n] = dense[at];
        list.count++;
    }
    assert_int_equal(gpu_sparse_create(out, device, t, &list), GPU_OK);
}

static void check_block(const gpu_sparse *s, const double *dense,
                        const uint8_t *stored)
{
    static double values[MOST];
    static uint8_t there[MOST];
    gpu_slice rows = {below((int)s->rows), 1, 0};
    gpu_slice cols = {below((int)s->cols), 1, 0};
    rows.count = 1 + below((int)(s->rows - rows.first));
    cols.count = 1 + below((int)(s->cols - cols.first));
    assert_int_equal(gpu_sparse_block(s, rows, cols, values, there), GPU_OK);
    for (int64_t at = 0; at < rows.count * cols.count; at++) {
        int64_t i = rows.first + at / cols.count;
        int64_t j = cols.first + at % cols.count;
        assert_true(values[at] == dense[i * s->cols + j]);
        assert_int_equal(there[at], stored[i * s->cols + j]);
    }
}

static void check_rank(const gpu_sparse *s, const uint8_t *stored)
{
    int64_t rank, place = below((int)(s->rows * s->cols)), before = 0;
    for (int64_t at = 0; at < place; at++)
        before += stored[at];
    assert_int_equal(
        gpu_sparse_rank(s, place / s->cols, place % s->cols, &rank), GPU_OK);
    assert_int_equal(rank, before);
}

/* Places of a side with repeats, at most MOST_PLACES; NULL: all of them. */
enum { MOST_PLACES = 150 };

static const int64_t *any_places(int64_t size, int64_t list[MOST_PLACES],
                                 int64_t *count)
{
    *count = size;
    if (below(4) == 0)
        return NULL;
    *count = below(MOST_PLACES);
    for (int64_t k = 0; k < *count; k++)
        list[k] = below((int)size);
    return list;
}

static void check_gather(const gpu_sparse *s, const double *dense,
                         const uint8_t *stored)
{
    static double values[MOST_PLACES * MOST_PLACES];
    static uint8_t there[MOST_PLACES * MOST_PLACES];
    int64_t row[MOST_PLACES], col[MOST_PLACES], m, n, count = 0;
    const int64_t *rows = any_places(s->rows, row, &m);
    const int64_t *cols = any_places(s->cols, col, &n);
    gpu_slice all_rows = {0, 1, m}, all_cols = {0, 1, n};
    gpu_sparse out;
    assert_int_equal(gpu_sparse_gather(s, rows, m, cols, n, &out), GPU_OK);
    assert_true(out.rows == m && out.cols == n);
    assert_int_equal(gpu_sparse_block(&out, all_rows, all_cols, values, there),
                     GPU_OK);
    for (int64_t at = 0; at < m * n; at++) {
        int64_t i = rows ? rows[at / n] : at / n;
        int64_t j = cols ? cols[at % n] : at % n;
        assert_true(values[at] == dense[i * s->cols + j]);
        assert_int_equal(there[at], stored[i * s->cols + j]);
        count += there[at];
    }
    assert_true(out.count == count);
    gpu_sparse_release(&out);
}

static void check_refused(const gpu_sparse *s)
{
    int64_t far[] = {0, s->rows > s->cols ? s->rows : s->cols};
    gpu_sparse out;
    assert_int_equal(gpu_sparse_gather(s, far, 2, NULL, 0, &out), GPU_RANGE);
    assert_int_equal(gpu_sparse_gather(s, NULL, 0, far, 2, &out), GPU_RANGE);
    assert_null(out.values.storage);
}

static void blocks_are_those_of_the_dense_form(void **state)
{
    static double dense[MOST];
    static uint8_t stored[MOST];
    static const int rarities[] = {1, 3, 40};
    gpu_sparse s;
    (void)state;
    for (int i = 0; i < SIDES; i++)
        for (int j = 0; j < SIDES; j++)
            for (int r = 0; r < 3; r++) {
                make(r % 2 ? GPU_F64 : GPU_F32, sides[i], sides[j], rarities[r],
                     dense, stored, &s);
                for (int k = 0; k < 5; k++) {
                    check_block(&s, dense, stored);
                    check_rank(&s, stored);
                    check_gather(&s, dense, stored);
                }
                check_refused(&s);
                gpu_sparse_release(&s);
            }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_those_of_the_dense_form),
    };
    return cmocka_run_group_tests(tests, open_device, NULL);
}
