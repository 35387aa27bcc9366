/* What kernels keep about operands is found by the next product and goes with
 * them. On a device of the test's own. */
#include "kept_products.h"

/* --- finding -------------------------------------------------------------- */

static void the_next_product_finds_them(void **state)
{
    gpu_matrix a, b, other = matrix(4, 3);
    (void)state;
    assert_int_equal(kept(), 0);
    start(&a, &b);
    EXPECT_PRODUCT(&a, &b, 2, 0);
    EXPECT_PRODUCT(&a, &other, 1, 1);
    EXPECT_PRODUCT(&a, &other, 2, 0);
    EXPECT_PRODUCT(&a, &b, 2, 0);
    gpu_release(&a);
    gpu_release(&b);
    gpu_release(&other);
}

/* As a left and as a right operand, a matrix is kept twice. */
static void squares(void **state)
{
    gpu_matrix a = matrix(4, 4);
    (void)state;
    EXPECT_PRODUCT(&a, &a, 0, 2);
    EXPECT_PRODUCT(&a, &a, 2, 0);
    assert_int_equal(kept(), 2 * plane_bytes(&a));
    gpu_release(&a);
    assert_int_equal(kept(), 0);
}

/* A view and what it is a view of begin at one place. */
static void views_are_told_apart(void **state)
{
    gpu_matrix a = matrix(4, 4), b = matrix(4, 4), m[4];
    (void)state;
    gpu_view_transposed(&a, &m[0]);
    m[1] = block_of(&a, (gpu_slice){0, 1, 2}, (gpu_slice){0, 1, 4});
    m[2] = block_of(&a, (gpu_slice){0, 2, 2}, (gpu_slice){0, 1, 4});
    m[3] = block_of(&a, (gpu_slice){3, -1, 4}, (gpu_slice){3, -1, 4});
    EXPECT_PRODUCT(&a, &b, 0, 2);
    for (int i = 0; i < 4; i++)
        EXPECT_PRODUCT(&m[i], &b, 1, 1);
    for (int i = 0; i < 4; i++)
        EXPECT_PRODUCT(&m[i], &b, 2, 0);
    EXPECT_PRODUCT(&a, &b, 2, 0);
    assert_int_equal(gpu_fill(&m[1], 2), GPU_OK);
    assert_int_equal(kept(), plane_bytes(&b));
    for (int i = 0; i < 4; i++)
        EXPECT_PRODUCT(&m[i], &b, 1, 1);
    release_all(m, 4);
    gpu_release(&a);
    gpu_release(&b);
}

static void vectors(void **state)
{
    gpu_matrix a = matrix(4, 4), x = matrix_of(GPU_F32, 1, 4, 1), row;
    (void)state;
    gpu_view_row(&a, 0, &row);
    EXPECT_PRODUCT(&a, &x, 0, 2);
    EXPECT_PRODUCT(&a, &x, 2, 0);
    EXPECT_PRODUCT(&x, &a, 0, 2);
    EXPECT_PRODUCT(&row, &x, 1, 1);
    EXPECT_PRODUCT(&row, &a, 2, 0);
    EXPECT_PRODUCT(&x, &a, 2, 0);
    gpu_release(&a);
    gpu_release(&x);
    gpu_release(&row);
}

/* Whatever differs in the key, in nothing but that, is another thing. */
static void keys_are_compared_in_full(void **state)
{
    gpu_matrix a = matrix(6, 4), other = matrix(6, 4);
    gpu_keep_key key = {LEFT, gpu_view_of(&a)}, wrong[7];
    (void)state;
    for (int i = 0; i < 7; i++)
        wrong[i] = key;
    wrong[0].kind = RIGHT;
    wrong[1].view.data = (float *)key.view.data + 1;
    wrong[2].view.dtype = GPU_F64;
    wrong[3].view.rows--;
    wrong[4].view.cols--;
    wrong[5].view.row_stride++;
    wrong[6].view.col_stride++;
    void *data = gpu_keep(a.storage, &key, 100);
    assert_non_null(data);
    assert_non_null(gpu_keep(other.storage, &wrong[0], 100));
    for (int i = 0; i < 7; i++)
        assert_null(gpu_recall(a.storage, &wrong[i]));
    assert_null(gpu_recall(other.storage, &key));
    assert_null(gpu_recall(NULL, &key));
    assert_null(gpu_keep(NULL, &key, 100));
    assert_ptr_equal(gpu_recall(a.storage, &key), data);
    gpu_release(&a);
    gpu_release(&other);
}

/* Operands of another type are copied; nothing is kept about a copy. */
static void converted_operands(void **state)
{
    gpu_matrix a = matrix(3, 4), b = matrix_of(GPU_F64, 2, 4, 5);
    gpu_matrix mask = matrix_of(GPU_BOOL, 2, 4, 4);
    (void)state;
    EXPECT_PRODUCT(&a, &b, 0, 1);
    assert_int_equal(kept(), plane_bytes(&b));
    EXPECT_PRODUCT(&a, &b, 1, 0);
    EXPECT_PRODUCT(&mask, &b, 1, 0);
    EXPECT_PRODUCT(&mask, &mask, 0, 0);
    assert_int_equal(kept(), plane_bytes(&b));
    assert_int_equal(a.storage->kept + mask.storage->kept, 0);
    gpu_release(&a);
    gpu_release(&b);
    gpu_release(&mask);
}

/* --- letting go ----------------------------------------------------------- */

static void the_last_release_drops(void **state)
{
    gpu_matrix a, b, row;
    (void)state;
    start(&a, &b);
    size_t of_b = plane_bytes(&b);
    gpu_view_row(&a, 0, &row);
    gpu_release(&a);
    assert_int_equal(kept(), plane_bytes(&b) + 24 * sizeof(double));
    gpu_release(&row);
    assert_int_equal(kept(), of_b);
    gpu_release(&b);
    assert_int_equal(kept(), 0);
    assert_int_equal(ram.used, 0);
}

static void forgetting(void **state)
{
    gpu_matrix a, b, row, none = {.storage = NULL};
    (void)state;
    start(&a, &b);
    gpu_forget(&none);
    gpu_forget(&a);
    assert_int_equal(kept(), plane_bytes(&b));
    gpu_forget(&a);
    EXPECT_PRODUCT(&a, &b, 1, 1);
    gpu_view_row(&a, 3, &row);
    gpu_forget(&row);
    assert_int_equal(kept(), plane_bytes(&b));
    EXPECT_PRODUCT(&a, &b, 1, 1);
    gpu_release(&row);
    gpu_release(&a);
    gpu_release(&b);
}

/* A lost device computes no more, but gives back. */
static void lost_devices(void **state)
{
    gpu_matrix a, b, c = {.storage = NULL};
    (void)state;
    start(&a, &b);
    ram.is_lost = 1;
    assert_int_equal(product(&a, &b, 0, &c), GPU_LOST);
    assert_null(c.storage);
    gpu_release(&a);
    gpu_release(&b);
    assert_int_equal(ram.used, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_FAKE(the_next_product_finds_them),
        ON_FAKE(squares),
        ON_FAKE(views_are_told_apart),
        ON_FAKE(vectors),
        ON_FAKE(keys_are_compared_in_full),
        ON_FAKE(converted_operands),
        ON_FAKE(the_last_release_drops),
        ON_FAKE(forgetting),
        ON_FAKE(lost_devices),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
