/* Whatever writes to an operand drops what is kept about it. On a device of the
 * test's own. */
#include "kept_products.h"

static void write_fill(gpu_matrix *v)
{
    assert_int_equal(gpu_fill(v, 3), GPU_OK);
}

static void write_upload(gpu_matrix *v)
{
    float host[64];
    assert_true(gpu_size(v) <= 64);
    for (int i = 0; i < 64; i++)
        host[i] = (float)(i - 30);
    assert_int_equal(gpu_upload(v, host), GPU_OK);
}

static void write_copy_of(const gpu_matrix *from, gpu_matrix *v)
{
    assert_int_equal(gpu_copy(from, v), GPU_OK);
}

static void write_copy(gpu_matrix *v)
{
    gpu_matrix from = like(v, GPU_F32);
    write_copy_of(&from, v);
    gpu_release(&from);
}

static void write_converted(gpu_matrix *v)
{
    gpu_matrix from = like(v, GPU_F64);
    write_copy_of(&from, v);
    gpu_release(&from);
}

static void write_stretched(gpu_matrix *v)
{
    gpu_matrix from =
        matrix_of(GPU_F32, v->ndim, v->ndim == 1 ? v->rows : 1, v->cols);
    write_copy_of(&from, v);
    gpu_release(&from);
}

static void write_across(gpu_matrix *v, gpu_dtype t)
{
    gpu_matrix here = like(v, t), there;
    assert_int_equal(gpu_clone(&here, t, gpu_cpu(), &there), GPU_OK);
    assert_ptr_not_equal(gpu_matrix_device(&there), fake);
    write_copy_of(&there, v);
    gpu_release(&here);
    gpu_release(&there);
}

static void write_from_cpu(gpu_matrix *v)
{
    write_across(v, GPU_F32);
}

static void write_from_cpu_converted(gpu_matrix *v)
{
    write_across(v, GPU_BOOL);
}

static void write_map(gpu_matrix *v)
{
    add_one(v, v);
}

/* From other places of the same storage. */
static void write_map_reversed(gpu_matrix *v)
{
    gpu_matrix back = block_of(v, (gpu_slice){v->rows - 1, -1, v->rows},
                               (gpu_slice){v->cols - 1, -1, v->cols});
    add_one(&back, v);
    gpu_release(&back);
}

static void write_scatter(gpu_matrix *v)
{
    gpu_matrix from = matrix_of(GPU_F64, v->ndim, 1, v->cols);
    int64_t row = v->rows - 1;
    assert_int_equal(gpu_scatter("put", &from, &row, 1, NULL, 0, v), GPU_OK);
    gpu_release(&from);
}

static void write_scatter_within(gpu_matrix *v)
{
    gpu_matrix first =
        block_of(v, (gpu_slice){0, 1, 1}, (gpu_slice){0, 1, v->cols});
    int64_t row = v->rows - 1;
    assert_int_equal(gpu_scatter("put", &first, &row, 1, NULL, 0, v), GPU_OK);
    gpu_release(&first);
}

static void write_expand(gpu_matrix *v)
{
    gpu_matrix mask = like(v, GPU_BOOL);
    gpu_matrix from = matrix_of(GPU_F32, 1, gpu_size(v), 1);
    assert_int_equal(gpu_fill(&mask, 1), GPU_OK);
    assert_int_equal(gpu_expand(&from, &mask, v), GPU_OK);
    gpu_release(&mask);
    gpu_release(&from);
}

static void write_random(gpu_matrix *v)
{
    gpu_random r = {GPU_INTEGER, 1, 2, -8, 8, 0};
    assert_int_equal(gpu_fill_random(v, &r), GPU_OK);
}

/* v = a b + beta v, with an inner dimension that may be 0. */
static void write_as_product(gpu_matrix *v, gpu_dtype t, int64_t inner,
                             double beta)
{
    gpu_matrix a = matrix_of(t, 2, v->rows, inner);
    gpu_matrix b = matrix_of(t, v->ndim, inner, v->cols);
    assert_int_equal(product(&a, &b, beta, v), GPU_OK);
    gpu_release(&a);
    gpu_release(&b);
}

static void write_product(gpu_matrix *v)
{
    write_as_product(v, GPU_F32, 3, 0);
}

static void write_product_added(gpu_matrix *v)
{
    write_as_product(v, GPU_F32, 3, 2);
}

static void write_product_converted(gpu_matrix *v)
{
    write_as_product(v, GPU_F64, 3, 2);
}

static void write_product_of_nothing(gpu_matrix *v)
{
    write_as_product(v, GPU_F32, 0, 0);
}

static void write_scaled(gpu_matrix *v)
{
    write_as_product(v, GPU_F32, 0, 3);
}

/* v is an operand itself, and something is kept about it before it is
 * written. */
static void write_product_of_itself(gpu_matrix *v)
{
    gpu_matrix a = matrix(v->rows, v->rows);
    assert_int_equal(product(&a, v, 0, v), GPU_OK);
    gpu_release(&a);
}

static void write_product_added_to_itself(gpu_matrix *v)
{
    gpu_matrix a = matrix(v->rows, v->rows);
    assert_int_equal(product(&a, v, 1, v), GPU_OK);
    gpu_release(&a);
}

static const struct {
    const char *name;
    void (*write)(gpu_matrix *v);
} writes[] = {
    {"fill", write_fill},
    {"upload", write_upload},
    {"set", write_element},
    {"copy", write_copy},
    {"copy of f64", write_converted},
    {"copy of a row", write_stretched},
    {"copy from the CPU", write_from_cpu},
    {"copy of a mask from the CPU", write_from_cpu_converted},
    {"map", write_map},
    {"map of other places", write_map_reversed},
    {"scatter", write_scatter},
    {"scatter of its own", write_scatter_within},
    {"expand", write_expand},
    {"random", write_random},
    {"matmul", write_product},
    {"matmul, added", write_product_added},
    {"matmul of f64, added", write_product_converted},
    {"matmul of nothing", write_product_of_nothing},
    {"matmul of nothing, scaled", write_scaled},
    {"matmul of itself", write_product_of_itself},
    {"matmul of itself, added", write_product_added_to_itself},
};
enum { WRITES = sizeof writes / sizeof *writes };

static void check_write(int which, int view)
{
    gpu_matrix a, b;
    start(&a, &b);
    gpu_matrix v = view_number(view, &a);
    writes[which].write(&v);
    if (a.storage->kept != 0 || kept() != plane_bytes(&b))
        fail_msg("%s, view %d: something is kept", writes[which].name, view);
    EXPECT_PRODUCT(&a, &b, 1, 1);
    writes[which].write(&v);
    EXPECT_PRODUCT(&a, &b, 1, 1);
    gpu_release(&v);
    gpu_release(&a);
    gpu_release(&b);
}

static void every_write_drops(void **state)
{
    (void)state;
    for (int i = 0; i < WRITES; i++)
        for (int view = 0; view < VIEWS; view++)
            check_write(i, view);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_FAKE(every_write_drops),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
