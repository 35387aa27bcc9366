/* What only reads an operand drops nothing that is kept about it. On a device
 * of the test's own. */
#include "kept_products.h"
#include "op_list.h"

static void read_elements(const gpu_matrix *a, const gpu_matrix *part)
{
    float host[64];
    double x;
    assert_int_equal(gpu_download(a, host), GPU_OK);
    assert_int_equal(gpu_download(part, host), GPU_OK);
    assert_int_equal(gpu_get(a, 1, 1, &x), GPU_OK);
}

static void read_copies(const gpu_matrix *a, const gpu_matrix *part)
{
    gpu_matrix m[4] = {{.storage = NULL}};
    int64_t rows[] = {3, 1};
    assert_int_equal(gpu_clone(a, GPU_F64, NULL, &m[0]), GPU_OK);
    assert_int_equal(gpu_clone(part, GPU_F32, gpu_cpu(), &m[1]), GPU_OK);
    assert_int_equal(gpu_reshape(part, 1, gpu_size(part), 1, &m[2]), GPU_OK);
    assert_int_equal(gpu_gather(a, rows, 2, NULL, 0, &m[3]), GPU_OK);
    assert_int_equal(gpu_scatter("put", &m[3], rows, 2, NULL, 0, &m[0]),
                     GPU_OK);
    release_all(m, 4);
}

static void read_masked(const gpu_matrix *a, const gpu_matrix *part)
{
    gpu_matrix mask = like(a, GPU_BOOL), to = like(a, GPU_F32), m;
    (void)part;
    assert_int_equal(gpu_fill(&mask, 1), GPU_OK);
    assert_int_equal(gpu_compress(a, &mask, &m), GPU_OK);
    assert_int_equal(gpu_expand(a, &mask, &to), GPU_OK);
    gpu_release(&mask);
    gpu_release(&to);
    gpu_release(&m);
}

static void read_reduced(const gpu_matrix *a, const gpu_matrix *part)
{
    gpu_program p;
    gpu_matrix m;
    double x;
    gpu_program_start(&p, 1);
    p.reduction = GPU_REDUCE_std;
    assert_int_equal(gpu_reduce("std", &p, &a, 1, &m), GPU_OK);
    assert_int_equal(gpu_reduce_all("std", &p, &part, &x), GPU_OK);
    gpu_release(&m);
}

static void read_arranged(const gpu_matrix *a, const gpu_matrix *part)
{
    gpu_matrix m[3];
    assert_int_equal(gpu_scan(a, GPU_SCAN_SUM, 1, &m[0]), GPU_OK);
    assert_int_equal(gpu_sort(part, 2, 0, &m[1], &m[2]), GPU_OK);
    release_all(m, 3);
}

static void read_mapped(const gpu_matrix *a, const gpu_matrix *part)
{
    gpu_matrix m = {.storage = NULL}, to = like(part, GPU_F32);
    add_one(a, &m);
    add_one(part, &to);
    gpu_release(&m);
    gpu_release(&to);
}

static void read_products(const gpu_matrix *a, const gpu_matrix *part)
{
    gpu_matrix row, square, m;
    const char *name;
    double x;
    (void)part;
    gpu_view_row(a, 0, &row);
    square = block_of(a, (gpu_slice){0, 1, 4}, (gpu_slice){0, 1, 4});
    assert_int_equal(gpu_dot(&row, &row, NULL, &x), GPU_OK);
    assert_int_equal(gpu_determinant(&square, &x), GPU_OK);
    assert_int_equal(gpu_kernel_choice(a, &square, &name), GPU_OK);
    assert_string_equal(name, "keeper");
    if (gpu_inverse(&square, &m, NULL) == GPU_OK)
        gpu_release(&m);
    gpu_release(&row);
    gpu_release(&square);
}

static void read_sparse(const gpu_matrix *a, const gpu_matrix *part)
{
    gpu_sparse s;
    gpu_matrix turned, m;
    (void)part;
    gpu_view_transposed(a, &turned);
    assert_int_equal(gpu_sparse_from_dense(&turned, GPU_F32, NULL, &s), GPU_OK);
    assert_int_equal(gpu_sparse_multiply(&s, a, NULL, &m), GPU_OK);
    gpu_release(&m);
    gpu_release(&turned);
    gpu_sparse_release(&s);
}

/* What is refused has written nothing. */
static void read_refused(const gpu_matrix *a, const gpu_matrix *part)
{
    gpu_matrix to = *a, row = matrix(1, 2);
    gpu_random r = {GPU_UNIFORM, 1, 1, 2, 1, 0};
    int64_t far = 99;
    assert_int_equal(gpu_set(&to, 6, 0, 1), GPU_RANGE);
    assert_int_equal(gpu_copy(part, &to), GPU_SHAPE);
    assert_int_equal(gpu_scatter("put", part, NULL, 0, NULL, 0, &to),
                     GPU_SHAPE);
    assert_int_equal(gpu_scatter("put", &row, &far, 1, NULL, 0, &to),
                     GPU_RANGE);
    assert_int_equal(gpu_expand(part, part, &to), GPU_TYPE);
    assert_int_equal(gpu_fill_random(&to, &r), GPU_ARGUMENT);
    assert_int_equal(product(part, part, 0, &to), GPU_SHAPE);
    gpu_release(&row);
}

static void reading_drops_nothing(void **state)
{
    void (*const reads[])(const gpu_matrix *, const gpu_matrix *) = {
        read_elements, read_copies, read_masked,   read_reduced, read_arranged,
        read_mapped,   read_sparse, read_products, read_refused};
    gpu_matrix a, b;
    (void)state;
    start(&a, &b);
    gpu_matrix part = view_number(GAPS, &a);
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
        reads[i](&a, &part);
        assert_int_equal(kept(), plane_bytes(&a) + plane_bytes(&b));
        EXPECT_PRODUCT(&a, &b, 2, 0);
    }
    gpu_release(&part);
    gpu_release(&a);
    gpu_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_FAKE(reading_drops_nothing),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
