/* Products checked as they are made, and what the trace tells: on a device of
 * the test's own, whose kernel promises exact results. */
#include "kept_products.h"

#include <time.h>

/* --- checks --------------------------------------------------------------- */

static gpu_checks before;

static void check(int on)
{
    gpu_set_check(on);
    before = *gpu_checked();
}

static uint64_t checked(void)
{
    return gpu_checked()->products - before.products;
}

static void right_products(void **state)
{
    static const int64_t sizes[][3] = {
        {1, 1, 1}, {6, 4, 5}, {3, 200, 7}, {2, 5, 300}, {300, 3, 2}};
    (void)state;
    check(1);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int type = 0; type < 2; type++) {
            const int64_t *s = sizes[i];
            gpu_matrix a = matrix_of((gpu_dtype)type, 2, s[0], s[1]);
            gpu_matrix b = matrix_of((gpu_dtype)type, 2, s[1], s[2]);
            multiply(&a, &b);
            gpu_release(&a);
            gpu_release(&b);
        }
    assert_int_equal(checked(), 10);
    assert_true(gpu_checked()->worst <= 1);
    gpu_set_check(0);
}

static void vectors_and_views(void **state)
{
    (void)state;
    gpu_matrix a = matrix(6, 4), x = matrix_of(GPU_F32, 1, 4, 1), turned, y;
    double value;
    check(1);
    gpu_view_transposed(&a, &turned);
    multiply(&a, &x);
    multiply(&x, &turned);
    multiply(&turned, &a);
    gpu_view_row(&a, 2, &y);
    assert_int_equal(gpu_dot(&x, &y, NULL, &value), GPU_OK);
    assert_int_equal(checked(), 4);
    gpu_set_check(0);
    multiply(&a, &x);
    assert_int_equal(checked(), 4);
    gpu_release(&a);
    gpu_release(&x);
    gpu_release(&y);
    gpu_release(&turned);
}

static void alpha_and_beta(void **state)
{
    (void)state;
    gpu_matrix a = matrix(6, 4), b = matrix(4, 5), c = matrix(6, 5);
    gpu_product how = {.alpha = -0.5, .beta = 3};
    check(1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(gpu_matmul(&a, &b, &how, &c), GPU_OK);
    how.alpha = 0.1;
    how.beta = 0;
    assert_int_equal(gpu_matmul(&a, &b, &how, &c), GPU_OK);
    assert_int_equal(checked(), 5);
    gpu_set_check(0);
    gpu_release(&a);
    gpu_release(&b);
    gpu_release(&c);
}

/* Once a wrong product was met the worst ratio stays, so this comes late. */
static void wrong_products(void **state)
{
    static const double errors[] = {1e-2, -1e3, NAN, INFINITY};
    (void)state;
    gpu_matrix a = matrix(6, 4), b = matrix(4, 5), c = {.storage = NULL};
    size_t live = gpu_device_live(fake);
    check(1);
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        keeper.error = errors[i];
        assert_int_equal(product(&a, &b, 0, &c), GPU_INTERNAL);
        assert_null(c.storage);
        assert_non_null(strstr(gpu_message(),
                               "matmul: kernel keeper gave a wrong result: "
                               "in row 6, C x differs from A (B x) by "));
        assert_int_equal(gpu_device_live(fake), live);
    }
    assert_false(gpu_checked()->worst <= 1);
    assert_string_equal(gpu_checked()->worst_kernel, "keeper");
    check(0);
    assert_int_equal(product(&a, &b, 0, &c), GPU_OK);
    gpu_release(&a);
    gpu_release(&b);
    gpu_release(&c);
}

static void nan_and_inf(void **state)
{
    (void)state;
    gpu_matrix a = matrix(6, 4), b = matrix(4, 5), c = {.storage = NULL};
    check(1);
    assert_int_equal(gpu_set(&a, 1, 2, NAN), GPU_OK);
    assert_int_equal(product(&a, &b, 0, &c), GPU_OK);
    assert_int_equal(gpu_checked()->partly - before.partly, 1);
    gpu_release(&c);
    keeper.error = 1; /* in another row */
    assert_int_equal(product(&a, &b, 0, &c), GPU_INTERNAL);
    keeper.error = 0;
    gpu_release(&a);
    a = matrix(6, 4);
    assert_int_equal(gpu_fill(&a, 1e30), GPU_OK);
    assert_int_equal(gpu_fill(&b, 1e30), GPU_OK);
    assert_int_equal(product(&a, &b, 0, &c), GPU_OK); /* Inf everywhere */
    gpu_set_check(0);
    gpu_release(&a);
    gpu_release(&b);
    gpu_release(&c);
}

/* The check's own work counts nowhere, and does not happen in a pause. */
static void unseen(void **state)
{
    (void)state;
    gpu_matrix a = matrix(6, 4), b = matrix(4, 5), c = {.storage = NULL};
    check(1);
    gpu_counters counted = *gpu_counts();
    assert_int_equal(product(&a, &b, 0, &c), GPU_OK);
    assert_int_equal(gpu_counts()->operations, counted.operations + 1);
    assert_int_equal(gpu_counts()->allocations, counted.allocations + 1);
    assert_int_equal(gpu_pause_trace(1), 0);
    assert_int_equal(product(&a, &b, 0, &c), GPU_OK);
    assert_int_equal(gpu_pause_trace(0), 1);
    assert_int_equal(checked(), 1);
    gpu_set_check(0);
    gpu_release(&a);
    gpu_release(&b);
    gpu_release(&c);
}

/* --- the trace ------------------------------------------------------------ */

enum { FEW = 16 };

static struct {
    int count;
    gpu_event event[FEW];
} heard;

static void hear(const gpu_event *e, void *data)
{
    (void)data;
    if (heard.count < FEW)
        heard.event[heard.count++] = *e;
}

static void listen(int on)
{
    heard.count = 0;
    gpu_set_trace(on ? hear : NULL, NULL);
}

static void assert_heard(int i, const char *operation, const char *kernel,
                         gpu_status status)
{
    assert_true(i < heard.count);
    assert_string_equal(heard.event[i].operation, operation);
    assert_string_equal(heard.event[i].kernel, kernel);
    assert_int_equal(heard.event[i].status, status);
}

static void failures_are_told(void **state)
{
    (void)state;
    gpu_matrix a = matrix(6, 4), b = matrix(4, 5), c = {.storage = NULL};
    listen(1);
    keeper.failures = 1;
    keeper.failure = GPU_INTERNAL;
    assert_int_equal(product(&a, &b, 0, &c), GPU_INTERNAL);
    assert_int_equal(product(&a, &b, 0, &c), GPU_OK);
    assert_int_equal(heard.count, 2);
    assert_heard(0, "matmul", "keeper", GPU_INTERNAL);
    assert_heard(1, "matmul", "keeper", GPU_OK);
    assert_true(heard.event[1].checked == -1);
    listen(0);
    gpu_release(&a);
    gpu_release(&b);
    gpu_release(&c);
}

static void a_check_is_told(void **state)
{
    (void)state;
    gpu_matrix a = matrix(6, 4), b = matrix(4, 5), c = {.storage = NULL};
    listen(1);
    gpu_set_check(1);
    assert_int_equal(product(&a, &b, 0, &c), GPU_OK);
    assert_int_equal(heard.count, 1);
    assert_true(heard.event[0].checked >= 0 && heard.event[0].checked <= 1);
    gpu_set_check(0);
    listen(0);
    gpu_release(&a);
    gpu_release(&b);
    gpu_release(&c);
}

/* What crosses the bus is told, and is no operation. */
static void transfers(void **state)
{
    float host[24] = {1};
    double x;
    (void)state;
    gpu_matrix a = matrix(6, 4);
    listen(1);
    uint64_t operations = gpu_counts()->operations;
    assert_int_equal(gpu_upload(&a, host), GPU_OK);
    assert_int_equal(gpu_download(&a, host), GPU_OK);
    assert_int_equal(gpu_get(&a, 0, 0, &x), GPU_OK);
    assert_int_equal(gpu_set(&a, 0, 0, x), GPU_OK);
    assert_int_equal(gpu_counts()->operations, operations);
    assert_int_equal(heard.count, 4);
    assert_heard(0, "upload", "bus", GPU_OK);
    assert_true(heard.event[0].bytes == 96 && heard.event[0].m == 6);
    assert_heard(1, "download", "bus", GPU_OK);
    assert_true(heard.event[2].bytes == 4 && heard.event[2].n == 1);
    assert_heard(3, "upload", "bus", GPU_OK);
    listen(0);
    gpu_release(&a);
}

/* --- time, epochs, peaks -------------------------------------------------- */

static void spend(double seconds)
{
    struct timespec t = {0, (long)(seconds * 1e9)};
    nanosleep(&t, NULL);
}

static void timers_within_timers(void **state)
{
    (void)state;
    gpu_matrix a = matrix(6, 4);
    gpu_timer outer, inner;
    double whole = 0, part = 0;
    assert_int_equal(gpu_timer_start(fake, &outer), GPU_OK);
    spend(0.02);
    assert_int_equal(gpu_timer_start(fake, &inner), GPU_OK);
    spend(0.01);
    assert_int_equal(gpu_timer_stop(fake, &inner, &part), GPU_OK);
    listen(1);
    assert_int_equal(gpu_fill(&a, 1), GPU_OK);
    listen(0);
    assert_int_equal(gpu_timer_stop(fake, &outer, &whole), GPU_OK);
    assert_true(part >= 0.01 && whole >= part + 0.02);
    gpu_release(&a);
}

static void epochs(void **state)
{
    (void)state;
    uint32_t first = gpu_begin_epoch();
    gpu_matrix a = matrix(6, 4), row;
    gpu_view_row(&a, 1, &row);
    uint32_t second = gpu_begin_epoch();
    assert_true(second != first);
    assert_int_equal(gpu_epoch_written(&row), first);
    write_element(&a);
    assert_int_equal(gpu_epoch_written(&row), second);
    assert_int_equal(gpu_epoch_made(&row), first);
    uint32_t third = gpu_begin_epoch();
    assert_int_equal(gpu_fill(&row, 2), GPU_OK);
    assert_int_equal(gpu_epoch_written(&a), third);
    gpu_release(&row);
    gpu_release(&a);
}

static void peaks(void **state)
{
    gpu_memory m;
    (void)state;
    gpu_matrix a = matrix(60, 40);
    gpu_release(&a);
    assert_int_equal(gpu_device_memory(fake, &m), GPU_OK);
    assert_int_equal(m.peak, 9600);
    gpu_reset_peak(fake);
    assert_int_equal(gpu_device_memory(fake, &m), GPU_OK);
    assert_int_equal(m.peak, 0);
}

/* What the fake measures as its peaks, in turn. */
static gpu_peak measured[] = {{10, 20, 30}, {12, 15, 30}, {11, 25, 29}};
static int measurements;

static gpu_status fake_peak(void *handle, gpu_peak *out)
{
    (void)handle;
    *out = measured[measurements++];
    return GPU_OK;
}

/* Measured once; again, the better of each counts from then on. */
static void measured_peaks(void **state)
{
    gpu_peak p;
    (void)state;
    gpu_backend table = *fake->backend;
    const gpu_backend *real = fake->backend;
    table.peak = fake_peak;
    fake->backend = &table;
    assert_int_equal(gpu_device_peak(fake, &p), GPU_OK);
    assert_int_equal(gpu_device_peak(fake, &p), GPU_OK);
    assert_int_equal(measurements, 1);
    assert_true(p.f32_flops == 10 && p.f64_flops == 20 && p.bytes == 30);
    assert_int_equal(gpu_device_peak_again(fake, &p), GPU_OK);
    assert_true(p.f32_flops == 12 && p.f64_flops == 20 && p.bytes == 30);
    assert_int_equal(gpu_device_peak_again(fake, &p), GPU_OK);
    assert_int_equal(gpu_device_peak(fake, &p), GPU_OK);
    assert_int_equal(measurements, 3);
    assert_true(p.f32_flops == 12 && p.f64_flops == 25 && p.bytes == 30);
    fake->backend = real;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_FAKE(right_products),
        ON_FAKE(vectors_and_views),
        ON_FAKE(alpha_and_beta),
        ON_FAKE(nan_and_inf),
        ON_FAKE(unseen),
        ON_FAKE(wrong_products),
        ON_FAKE(failures_are_told),
        ON_FAKE(a_check_is_told),
        ON_FAKE(transfers),
        ON_FAKE(timers_within_timers),
        ON_FAKE(epochs),
        ON_FAKE(peaks),
        ON_FAKE(measured_peaks),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
