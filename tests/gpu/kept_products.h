/* Products on a fake device, of matrices whose products are exact, and what is
 * kept of them. For the tests of what kernels keep and of short memory. */
#ifndef TESTS_KEPT_PRODUCTS_H
#define TESTS_KEPT_PRODUCTS_H

#include "fake_device.h"
#include "op_list.h"

/* Square operands, the bytes of what is kept of one, and how many things are
 * kept at most. */
enum { SIDE = 4, PLANE = SIDE * SIDE * 8, MOST = 256 };

/* --- matrices of small integers, whose products are exact ----------------- */

static inline gpu_matrix matrix_of(gpu_dtype t, int ndim, int64_t rows,
                                   int64_t cols)
{
    gpu_matrix m;
    assert_int_equal(gpu_create(&m, fake, t, ndim, rows, cols), GPU_OK);
    gpu_view v = gpu_view_of(&m);
    fill_integers(&v, 8);
    return m;
}

static inline gpu_matrix matrix(int64_t rows, int64_t cols)
{
    return matrix_of(GPU_F32, 2, rows, cols);
}

static inline gpu_matrix like(const gpu_matrix *m, gpu_dtype t)
{
    return matrix_of(t, m->ndim, m->rows, m->cols);
}

static inline gpu_matrix block_of(const gpu_matrix *m, gpu_slice rows,
                                  gpu_slice cols)
{
    gpu_matrix v;
    assert_int_equal(gpu_view_block(m, rows, cols, &v), GPU_OK);
    return v;
}

static inline void write_element(gpu_matrix *v)
{
    assert_int_equal(gpu_set(v, v->rows - 1, v->cols - 1, 11), GPU_OK);
}

static inline void release_all(gpu_matrix *m, int n)
{
    for (int i = 0; i < n; i++)
        gpu_release(&m[i]);
}

static inline size_t plane_bytes(const gpu_matrix *m)
{
    return (size_t)gpu_size(m) * sizeof(double);
}

static inline size_t kept(void)
{
    gpu_memory m;
    assert_int_equal(gpu_device_memory(fake, &m), GPU_OK);
    return m.kept;
}

/* --- products ------------------------------------------------------------- */

static inline gpu_view as_factor(const gpu_matrix *m, int is_row)
{
    gpu_view v = gpu_view_of(m);
    return m->ndim == 1 && is_row ? gpu_cpu_turned(v) : v;
}

static inline void assert_product(const gpu_matrix *a, const gpu_matrix *b,
                                  const gpu_matrix *c)
{
    gpu_view x = as_factor(a, 1), y = as_factor(b, 0);
    gpu_view z = as_factor(c, a->ndim == 1);
    for (int64_t i = 0; i < z.rows; i++)
        for (int64_t j = 0; j < z.cols; j++) {
            double sum = 0;
            for (int64_t k = 0; k < x.cols; k++)
                sum += get(&x, i, k) * get(&y, k, j);
            assert_true(get(&z, i, j) == sum);
        }
}

static inline gpu_status product(const gpu_matrix *a, const gpu_matrix *b,
                                 double beta, gpu_matrix *c)
{
    gpu_product how = {.alpha = 1, .beta = beta};
    keeper.calls = keeper.found = keeper.made = 0;
    return gpu_matmul(a, b, &how, c);
}

static inline void multiply(const gpu_matrix *a, const gpu_matrix *b)
{
    gpu_matrix c = {.storage = NULL};
    assert_int_equal(product(a, b, 0, &c), GPU_OK);
    assert_product(a, b, &c);
    gpu_release(&c);
}

/* a b is right, and of its operands so many were kept before and now. */
#define EXPECT_PRODUCT(a, b, before, now)       \
    do {                                        \
        multiply(a, b);                         \
        assert_int_equal(keeper.found, before); \
        assert_int_equal(keeper.made, now);     \
    } while (0)

/* Two operands about which everything is kept. */
static inline void start(gpu_matrix *a, gpu_matrix *b)
{
    *a = matrix(6, 4);
    *b = matrix(4, 5);
    EXPECT_PRODUCT(a, b, 0, 2);
    assert_int_equal(kept(), plane_bytes(a) + plane_bytes(b));
}

/* --- other operations ----------------------------------------------------- */

static inline void add_one(const gpu_matrix *from, gpu_matrix *to)
{
    gpu_program p;
    const gpu_matrix *in[] = {from};
    gpu_program_start(&p, 1);
    int one = gpu_program_constant(&p, 1);
    gpu_program_add(&p, GPU_OP_add, 0, one, 0);
    assert_int_equal(gpu_map("add", &p, in, to), GPU_OK);
}

/* --- parts of a matrix ---------------------------------------------------- */

enum {
    THE_MATRIX,
    TURNED_VIEW,
    BACK,
    GAPS,
    ROW,
    COLUMN,
    DIAGONAL,
    FLAT,
    VIEWS
};

/* Ways to see m, 6 x 4. */
static inline gpu_matrix view_number(int which, const gpu_matrix *m)
{
    gpu_matrix v = *m;
    if (which == THE_MATRIX)
        gpu_retain(m);
    else if (which == TURNED_VIEW)
        gpu_view_transposed(m, &v);
    else if (which == BACK)
        v = block_of(m, (gpu_slice){5, -1, 6}, (gpu_slice){3, -1, 4});
    else if (which == GAPS)
        v = block_of(m, (gpu_slice){1, 2, 2}, (gpu_slice){0, 3, 2});
    else if (which == ROW)
        gpu_view_row(m, 2, &v);
    else if (which == COLUMN)
        gpu_view_column(m, 1, &v);
    else if (which == DIAGONAL)
        gpu_view_diagonal(m, -1, &v);
    else
        assert_int_equal(gpu_reshape(m, 1, 24, 1, &v), GPU_OK);
    assert_true(gpu_shares_storage(m, &v));
    return v;
}

#define ON_FAKE(test) \
    cmocka_unit_test_setup_teardown(test, open_fake, close_fake)

#endif
