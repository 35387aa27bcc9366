/* What kernels keep stays in its limit; the oldest goes first. On a device of
 * the test's own. */
#include "kept_products.h"

enum { FEW = 5 };

/* Each of m once as a left operand, b being kept nowhere. */
static void keep_each(gpu_matrix *m, int n, const gpu_matrix *b)
{
    keeper.keeps = LEFT;
    for (int i = 0; i < n; i++) {
        m[i] = matrix(SIDE, SIDE);
        EXPECT_PRODUCT(&m[i], b, 0, 1);
    }
}

static void the_oldest_go_first(void **state)
{
    gpu_matrix m[FEW], b = matrix(SIDE, SIDE);
    (void)state;
    gpu_set_keep_limit(fake, 3 * PLANE + PLANE / 2);
    keep_each(m, FEW, &b);
    assert_int_equal(kept(), 3 * PLANE);
    for (int i = 0; i < FEW; i++)
        assert_int_equal(m[i].storage->kept, i >= 2);
    EXPECT_PRODUCT(&m[2], &b, 1, 0); /* used again: 3 is the oldest now */
    EXPECT_PRODUCT(&m[0], &b, 0, 1);
    assert_int_equal(m[2].storage->kept, 1);
    assert_int_equal(m[3].storage->kept, 0);
    gpu_set_keep_limit(fake, 2 * PLANE);
    assert_int_equal(m[4].storage->kept, 0);
    assert_int_equal(kept(), 2 * PLANE);
    release_all(m, FEW);
    gpu_release(&b);
}

/* To ask what auto takes is no use. */
static void asking_is_no_use(void **state)
{
    gpu_matrix m[2], b = matrix(SIDE, SIDE), x = matrix(SIDE, SIDE);
    const char *name;
    (void)state;
    gpu_set_keep_limit(fake, 2 * PLANE);
    keep_each(m, 2, &b);
    assert_int_equal(gpu_kernel_choice(&m[0], &b, &name), GPU_OK);
    multiply(&x, &b);
    assert_int_equal(m[0].storage->kept, 0);
    assert_int_equal(m[1].storage->kept, 1);
    release_all(m, 2);
    gpu_release(&b);
    gpu_release(&x);
}

/* Nor does a product use what its kernel does not ask for. */
static void choosing_is_no_use(void **state)
{
    gpu_matrix m[2], b = matrix(SIDE, SIDE), x = matrix(SIDE, SIDE);
    (void)state;
    gpu_set_keep_limit(fake, 2 * PLANE);
    keep_each(m, 2, &b);
    keeper.keeps = RIGHT;
    EXPECT_PRODUCT(&m[0], &x, 0, 1);
    assert_int_equal(m[0].storage->kept, 0);
    assert_int_equal(m[1].storage->kept, 1);
    release_all(m, 2);
    gpu_release(&b);
    gpu_release(&x);
}

static void the_limit_is_a_quarter(void **state)
{
    gpu_matrix m[FEW], b = matrix(SIDE, SIDE);
    (void)state;
    ram.total = 4 * (3 * PLANE) + 3;
    keep_each(m, FEW, &b);
    assert_int_equal(kept(), 3 * PLANE);
    release_all(m, FEW);
    gpu_release(&b);
}

/* Nothing is kept until the device says how much it has. */
static void the_size_is_unknown(void **state)
{
    gpu_matrix a = matrix(SIDE, SIDE), b = matrix(SIDE, SIDE);
    (void)state;
    ram.is_unknown = 1;
    EXPECT_PRODUCT(&a, &b, 0, 0);
    ram.is_unknown = 0;
    EXPECT_PRODUCT(&a, &b, 0, 2);
    gpu_release(&a);
    gpu_release(&b);
}

static void a_limit_of_nothing(void **state)
{
    gpu_matrix a, b;
    (void)state;
    start(&a, &b);
    gpu_set_keep_limit(fake, 0);
    assert_int_equal(kept(), 0);
    EXPECT_PRODUCT(&a, &b, 0, 0);
    EXPECT_PRODUCT(&a, &b, 0, 0);
    assert_int_equal(kept(), 0);
    gpu_set_keep_limit(fake, 1 << 20);
    EXPECT_PRODUCT(&a, &b, 0, 2);
    gpu_release(&a);
    gpu_release(&b);
}

/* What is larger than the limit drops nothing for its sake. */
static void what_never_fits(void **state)
{
    gpu_matrix m[2], b = matrix(SIDE, SIDE), large = matrix(4 * SIDE, SIDE);
    (void)state;
    gpu_set_keep_limit(fake, 3 * PLANE);
    keep_each(m, 2, &b);
    EXPECT_PRODUCT(&large, &b, 0, 0);
    assert_int_equal(kept(), 2 * PLANE);
    release_all(m, 2);
    gpu_release(&b);
    gpu_release(&large);
}

/* The kernel holds a's plane while it asks for b's. */
static void a_product_keeps_its_own(void **state)
{
    gpu_matrix a = matrix(SIDE, SIDE), b = matrix(SIDE, SIDE), m[1];
    (void)state;
    gpu_set_keep_limit(fake, PLANE);
    EXPECT_PRODUCT(&a, &b, 0, 1);
    assert_int_equal(a.storage->kept, 1);
    EXPECT_PRODUCT(&a, &b, 1, 0);
    EXPECT_PRODUCT(&b, &a, 0, 1); /* of an earlier product: it goes */
    assert_int_equal(a.storage->kept, 0);
    keep_each(m, 1, &a);
    assert_int_equal(b.storage->kept, 0);
    keeper.keeps = LEFT | RIGHT;
    gpu_set_keep_limit(fake, 2 * PLANE);
    EXPECT_PRODUCT(&a, &b, 0, 2);
    assert_int_equal(m[0].storage->kept, 0);
    release_all(m, 1);
    gpu_release(&a);
    gpu_release(&b);
}

/* What fits not beside a's plane drops nothing for its sake either. */
static void what_never_fits_beside(void **state)
{
    gpu_matrix m[1], a = matrix(SIDE, SIDE), b = matrix(SIDE, 2 * SIDE);
    (void)state;
    gpu_set_keep_limit(fake, 2 * PLANE);
    keep_each(m, 1, &a);
    keeper.keeps = LEFT | RIGHT;
    EXPECT_PRODUCT(&a, &b, 0, 1);
    assert_int_equal(m[0].storage->kept, 1);
    assert_int_equal(a.storage->kept, 1);
    gpu_set_keep_limit(fake, 3 * PLANE);
    EXPECT_PRODUCT(&a, &b, 1, 1);
    assert_int_equal(m[0].storage->kept, 0);
    release_all(m, 1);
    gpu_release(&a);
    gpu_release(&b);
}

static void copies_push_nothing_out(void **state)
{
    gpu_matrix m[1], b = matrix(SIDE, SIDE);
    gpu_matrix mask = matrix_of(GPU_BOOL, 2, SIDE, SIDE);
    (void)state;
    gpu_set_keep_limit(fake, PLANE);
    keep_each(m, 1, &b);
    EXPECT_PRODUCT(&mask, &b, 0, 0);
    assert_int_equal(m[0].storage->kept, 1);
    release_all(m, 1);
    gpu_release(&b);
    gpu_release(&mask);
}

enum { MORE = 300 };

static void so_many_and_no_more(void **state)
{
    static gpu_matrix m[MORE];
    gpu_matrix b = matrix(SIDE, SIDE);
    (void)state;
    keep_each(m, MORE, &b);
    for (int i = 0; i < MORE; i++)
        assert_int_equal(m[i].storage->kept, i >= MORE - MOST);
    assert_int_equal(kept(), MOST * PLANE);
    release_all(m, MORE);
    assert_int_equal(kept(), 0);
    gpu_release(&b);
}

/* One product that keeps and keeps loses none of what it got. */
static void so_many_in_one_product(void **state)
{
    gpu_matrix a = matrix(SIDE, SIDE), b = matrix(SIDE, SIDE);
    gpu_keep_key key = {LEFT, gpu_view_of(&a)};
    (void)state;
    EXPECT_PRODUCT(&a, &b, 0, 2);
    gpu_begin_product(fake);
    for (int i = 0; i < MORE; i++) {
        key.kind = 10 + i;
        assert_int_equal(gpu_keep(a.storage, &key, 8) != NULL, i < MOST);
    }
    gpu_end_product(fake, GPU_OK);
    assert_int_equal(kept(), MOST * 8);
    for (int i = 0; i < MORE; i++) {
        key.kind = 10 + i;
        assert_int_equal(gpu_recall(a.storage, &key) != NULL, i < MOST);
    }
    EXPECT_PRODUCT(&a, &b, 0, 2);
    gpu_release(&a);
    gpu_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_FAKE(the_oldest_go_first),    ON_FAKE(asking_is_no_use),
        ON_FAKE(choosing_is_no_use),     ON_FAKE(the_limit_is_a_quarter),
        ON_FAKE(the_size_is_unknown),    ON_FAKE(a_limit_of_nothing),
        ON_FAKE(what_never_fits),        ON_FAKE(a_product_keeps_its_own),
        ON_FAKE(what_never_fits_beside), ON_FAKE(copies_push_nothing_out),
        ON_FAKE(so_many_and_no_more),    ON_FAKE(so_many_in_one_product),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
