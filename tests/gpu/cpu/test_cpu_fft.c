/* Fourier transforms on the CPU: long lines that are cut into a matrix, beside
 * whole ones; and what does not depend on the number of threads. */
#include "cpu.h"
#include "cpu_testing.h"

enum { MOST = 1 << 16 };

static double *in, *out, *other;

static int prepare(void **state)
{
    if (open_cpu(state))
        return 1;
    in = aligned_alloc(64, 2 * MOST * sizeof *in);
    out = aligned_alloc(64, 2 * MOST * sizeof *in);
    other = aligned_alloc(64, 2 * MOST * sizeof *in);
    for (int64_t i = 0; i < 2 * MOST; i++)
        in[i] = (double)((i * 7919) % 1013) / 1013 - 0.5;
    return !in || !out || !other;
}

static int finish(void **state)
{
    (void)state;
    free(in);
    free(out);
    free(other);
    return 0;
}

static gpu_view line(double *data, int64_t n, int64_t step)
{
    return (gpu_view){data, GPU_C128, 1, n, n * step, step};
}

static void transform(double *to, int64_t n, int64_t step, int is_inverse)
{
    gpu_fft_call c = {.kind = GPU_FFT_COMPLEX,
                      .axis = 2,
                      .is_inverse = is_inverse,
                      .scale = is_inverse ? 1 / (double)n : 1,
                      .in = line(in, n, step),
                      .out = line(to, n, 1)};
    assert_int_equal(cpu->fft(device, &c), GPU_OK);
}

static void check_cut(int64_t n, int64_t step, int is_inverse)
{
    double largest = 0;
    transform(out, n, step, is_inverse);
    gpu_cpu_set_long_lines(2);
    transform(other, n, step, is_inverse);
    gpu_cpu_set_long_lines(0);
    for (int64_t i = 0; i < 2 * n; i++)
        largest = fmax(largest, fabs(out[i]));
    for (int64_t i = 0; i < 2 * n; i++)
        if (!(fabs(out[i] - other[i]) <= 1e-14 * largest))
            fail_msg("%ld of %ld: %g, cut %g", (long)i, (long)n, out[i],
                     other[i]);
}

static void test_cut_lines(void **state)
{
    static const int64_t lengths[] = {2,    3,    4,    6,    35,    36,
                                      1000, 1024, 6561, 9797, 10007, 32768};
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int is_inverse = 0; is_inverse < 2; is_inverse++) {
            check_cut(lengths[i], 1, is_inverse);
            check_cut(lengths[i], 2, is_inverse);
        }
}

static void test_threads(void **state)
{
    (void)state;
    for (int is_cut = 0; is_cut < 2; is_cut++) {
        int64_t n = 48000;
        gpu_cpu_set_long_lines(is_cut ? 2 : 0);
        gpu_cpu_set_threads(1);
        transform(out, n, 1, 0);
        gpu_cpu_set_threads(5);
        transform(other, n, 1, 0);
        assert_memory_equal(out, other, (size_t)n * 2 * sizeof *out);
    }
    gpu_cpu_set_threads(0);
    gpu_cpu_set_long_lines(0);
}

/* As many plans as are kept, and more. */
static void test_plans(void **state)
{
    (void)state;
    transform(out, 30, 1, 0);
    for (int64_t n = 1; n <= 150; n++)
        transform(other, n, 1, 1);
    transform(other, 30, 1, 0);
    assert_memory_equal(out, other, 30 * 2 * sizeof *out);
}

static void test_interruption(void **state)
{
    (void)state;
    gpu_fft_call c = {.kind = GPU_FFT_COMPLEX,
                      .axis = 2,
                      .scale = 1,
                      .in = line(in, 40000, 1),
                      .out = line(out, 40000, 1)};
    gpu_cpu_set_long_lines(2);
    interrupted = 1;
    assert_int_equal(cpu->fft(device, &c), GPU_INTERRUPTED);
    interrupted = 0;
    gpu_cpu_set_long_lines(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_lines),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_plans),
        cmocka_unit_test(test_interruption),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, prepare, finish);
}
