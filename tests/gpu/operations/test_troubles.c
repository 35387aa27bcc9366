/* Products, writes and releases in any order while memory is refused and
 * kernels fail: what is right stays right. On a device of the test's own. */
#include "kept_products.h"

enum { POOL = 8, SPAN = 8, STEPS = 20000 };

static gpu_matrix pool[POOL];

static void new_in_pool(int i)
{
    static const gpu_dtype types[] = {GPU_F32, GPU_F32, GPU_F32, GPU_F64,
                                      GPU_BOOL};
    pool[i] = matrix_of(types[next_below(5)], 2, SPAN, SPAN);
}

/* Half of the rows and columns of one of the pool, in some order. */
static gpu_matrix any_view(void)
{
    gpu_slice s[2];
    for (int i = 0; i < 2; i++) {
        int64_t step = 1 + next_below(2), spread = 3 * step;
        int64_t first = next_below(SPAN - spread);
        s[i] = (gpu_slice){first, step, 4};
        if (next_below(3) == 0)
            s[i] = (gpu_slice){first + spread, -step, 4};
    }
    gpu_matrix v = block_of(&pool[next_below(POOL)], s[0], s[1]), turned;
    if (next_below(2))
        return v;
    gpu_view_transposed(&v, &turned);
    gpu_release(&v);
    return turned;
}

static void expected(const gpu_matrix *a, const gpu_matrix *b,
                     const gpu_matrix *c, double beta, double sum[4][4])
{
    gpu_view x = gpu_view_of(a), y = gpu_view_of(b), z;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            sum[i][j] = 0;
            for (int k = 0; k < 4; k++)
                sum[i][j] += get(&x, i, k) * get(&y, k, j);
            if (beta == 0)
                continue;
            z = gpu_view_of(c);
            sum[i][j] += beta * get(&z, i, j);
        }
}

static void assert_elements(const gpu_matrix *c, double sum[4][4])
{
    gpu_view z = gpu_view_of(c);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            double want = c->dtype == GPU_BOOL ? sum[i][j] != 0 : sum[i][j];
            assert_true(get(&z, i, j) == want);
        }
}

static void any_trouble(void)
{
    static const gpu_status statuses[] = {GPU_MEMORY, GPU_MEMORY, GPU_INTERNAL};
    ram.makes_room = (int)next_below(2);
    if (next_below(8) == 0)
        ram.refusals = (int)next_below(6);
    if (next_below(8) == 0)
        keeper.failures = (int)next_below(3);
    keeper.has_substitute = (int)next_below(2);
    keeper.failure = statuses[next_below(3)];
    keeper.spoils = 1;
    keeper.scratch = next_below(3) ? 0 : (size_t)next_below(500);
}

static void any_product(void)
{
    gpu_matrix a = any_view(), b = any_view(), c = {.storage = NULL};
    double beta = 0, sum[4][4];
    gpu_random r = {GPU_INTEGER, 3, next_bits(), -8, 8, 0};
    int is_given = next_below(3) == 0;
    if (is_given) {
        c = any_view();
        beta = (double)next_below(2);
        r.low = c.dtype == GPU_BOOL ? 0 : -8;
    }
    expected(&a, &b, &c, beta, sum);
    any_trouble();
    if (product(&a, &b, beta, &c) == GPU_OK)
        assert_elements(&c, sum);
    ram.refusals = keeper.failures = 0;
    if (is_given) /* small integers again */
        assert_int_equal(gpu_fill_random(&c, &r), GPU_OK);
    gpu_release(&a);
    gpu_release(&b);
    gpu_release(&c);
}

static void any_write(void)
{
    gpu_matrix v = any_view(), from = any_view();
    if (next_below(2))
        assert_int_equal(gpu_copy(&from, &v), GPU_OK);
    else
        write_element(&v);
    gpu_release(&v);
    gpu_release(&from);
}

static void any_change(void)
{
    int i = (int)next_below(POOL);
    switch (next_below(4)) {
    case 0:
        gpu_release(&pool[i]);
        new_in_pool(i);
        break;
    case 1:
        gpu_set_keep_limit(fake, (size_t)next_below(2000));
        break;
    case 2:
        gpu_forget(&pool[i]);
        break;
    default:
        gpu_set_keep_limit(fake, 1 << 20);
    }
}

static void assert_sound(void)
{
    int count = 0;
    for (int i = 0; i < POOL; i++)
        count += pool[i].storage->kept;
    assert_int_equal(count, fake->kept_count);
    assert_int_equal(ram.used, gpu_device_live(fake) + kept());
    assert_true(kept() <= fake->keep_limit || !fake->keep_limit_known);
    assert_true(count <= MOST);
}

static void everything_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < POOL; i++)
        new_in_pool(i);
    for (int i = 0; i < STEPS; i++) {
        int64_t which = next_below(20);
        if (which < 15)
            any_product();
        else if (which < 19)
            any_write();
        else
            any_change();
        assert_sound();
    }
    release_all(pool, POOL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_FAKE(everything_at_once),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
