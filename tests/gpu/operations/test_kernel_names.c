/* Kernels of a product that are chosen by name or by precision. On a device of
 * the test's own. */
#include "short_memory.h"

static void expect_refusal(const gpu_product *how, const char *words)
{
    gpu_matrix none = {.storage = NULL};
    assert_int_not_equal(traced_product(how, &none), GPU_OK);
    assert_string_equal(gpu_message(), words);
    assert_null(none.storage);
    assert_int_equal(keeper.calls + keeper.others, 0);
}

static void expect_kernel(const char *kernel, const char *precision,
                          const char *expected_kernel)
{
    gpu_product how = {.alpha = 1, .kernel = kernel, .precision = precision};
    assert_int_equal(traced_product(&how, &scene.c), GPU_OK);
    assert_string_equal(traced, expected_kernel);
}

/* The first of a precision that this device has. */
static void precisions(void **state)
{
    gpu_product how = {.alpha = 1, .precision = "bf16"};
    (void)state;
    lay_out();
    expect_kernel(NULL, "f32", "keeper");
    expect_kernel("auto", "f32", "keeper");
    expect_kernel(NULL, "tf32", "rough");
    expect_kernel("auto", "tf32", "rough");
    expect_kernel("peer", "tf32", "peer");
    expect_kernel("small", "f32", "small");
    expect_refusal(&how, "matmul: no kernel on fake:0 multiplies f32 in "
                         "precision \"bf16\"");
    how.precision = "f64";
    expect_refusal(&how, "matmul: no kernel on fake:0 multiplies f32 in "
                         "precision \"f64\"");
    how.precision = "f8";
    expect_refusal(&how, "matmul: no precision is called 'f8'; there are f32, "
                         "f64, tf32, bf16");
    how = (gpu_product){.alpha = 1, .kernel = "small", .precision = "tf32"};
    expect_refusal(&how, "matmul: kernel small gives precision \"f32\", not "
                         "\"tf32\"");
    gpu_release(&scene.a);
    gpu_release(&scene.c);
    scene.a = matrix_of(GPU_F64, 2, 3, 4);
    scene.c = matrix_of(GPU_F64, 2, 3, 2);
    expect_kernel(NULL, "f64", "keeper");
    expect_kernel("keeper", "f64", "keeper");
    how = (gpu_product){.alpha = 1, .precision = "tf32"};
    expect_refusal(&how, "matmul: no kernel on fake:0 multiplies f64 in "
                         "precision \"tf32\"");
    how.precision = "f32";
    expect_refusal(&how, "matmul: no kernel on fake:0 multiplies f64 in "
                         "precision \"f32\"");
    put_away();
}

/* In an empty product, too; and a bound has no auto. */
static void wrong_names(void **state)
{
    gpu_product how = {.alpha = 1, .kernel = "fast"};
    double gamma;
    (void)state;
    lay_out();
    expect_refusal(&how, "matmul: no kernel is called 'fast' on fake:0; there "
                         "are auto, keeper, small, later, rough, peer");
    gpu_release(&scene.a);
    scene.a = matrix(0, 4);
    expect_refusal(&how, "matmul: no kernel is called 'fast' on fake:0; there "
                         "are auto, keeper, small, later, rough, peer");
    assert_int_equal(
        gpu_kernel_bound(fake, "matmul", "auto", GPU_F32, 1, &gamma),
        GPU_ARGUMENT);
    assert_string_equal(gpu_message(),
                        "matmul: no kernel is called 'auto' on fake:0; there "
                        "are keeper, small, later, rough, peer");
    assert_int_equal(
        gpu_kernel_bound(fake, "solve", "keeper", GPU_F32, 1, &gamma),
        GPU_ARGUMENT);
    assert_string_equal(gpu_message(), "solve: has no kernels on fake:0");
    put_away();
}

/* No kernel runs: c = beta c, whatever a and b hold. */
static void alpha_of_nothing(void **state)
{
    gpu_product how = {.alpha = 0};
    (void)state;
    lay_out();
    assert_int_equal(gpu_fill(&scene.a, NAN), GPU_OK);
    assert_int_equal(gpu_fill(&scene.c, 5), GPU_OK);
    for (int beta = 2; beta >= 0; beta -= 2) {
        how.beta = beta;
        assert_int_equal(traced_product(&how, &scene.c), GPU_OK);
        gpu_view v = gpu_view_of(&scene.c);
        for (int i = 0; i < 6; i++)
            assert_true(get(&v, i / 2, i % 2) == 5 * beta);
        assert_int_equal(keeper.calls + keeper.others, 0);
    }
    put_away();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_FAKE(precisions),
        ON_FAKE(wrong_names),
        ON_FAKE(alpha_of_nothing),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
