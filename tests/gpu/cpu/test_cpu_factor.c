/* Factorisations on the CPU where memory ends right behind the operands: what
 * libraries read beyond them would be a fault. */
#include "cpu.h"
#include "cpu_testing.h"

#include <complex.h>
#include <sys/mman.h>
#include <unistd.h>

/* n x n of c128, column by column, up to the end of a page of which the next
 * one cannot be read. */
typedef struct edge {
    char *pages;
    size_t bytes;
    gpu_view v;
} edge;

static edge make_edge(int64_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t own = (size_t)(n * n) * sizeof(double complex);
    size_t most = (own + page - 1) / page * page;
    edge e = {.bytes = most + page};
    e.pages = mmap(NULL, e.bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(e.pages, MAP_FAILED);
    assert_int_equal(mprotect(e.pages + most, page, PROT_NONE), 0);
    e.v = (gpu_view){.data = e.pages + most - own,
                     .dtype = GPU_C128,
                     .rows = n,
                     .cols = n,
                     .row_stride = 1,
                     .col_stride = n};
    return e;
}

static double complex *at(const edge *e, int64_t i, int64_t j)
{
    return (double complex *)e->v.data + i + j * e->v.rows;
}

static void fill_triangle(const edge *e, double shift)
{
    for (int64_t j = 0; j < e->v.cols; j++)
        for (int64_t i = 0; i < e->v.rows; i++)
            *at(e, i, j) = i > j ? 0
                                 : 1.0 / (double)(i + j + 1) +
                                       (i == j ? shift : 0) + I * (double)j;
}

/* A X + X B - C at (i, j), of triangles A and B. */
static double off(const edge *a, const edge *b, const edge *x, int64_t i,
                  int64_t j)
{
    double complex sum = -(1 + I * (double)(i - j));
    for (int64_t k = 0; k < a->v.rows; k++)
        sum += *at(a, i, k) * *at(x, k, j) + *at(x, i, k) * *at(b, k, j);
    return cabs(sum);
}

static void sylvester_at_the_end_of_memory(void **state)
{
    (void)state;
    for (int64_t n = 1; n <= 40; n++) {
        edge a = make_edge(n), b = make_edge(n), x = make_edge(n);
        gpu_factoring f = {
            .kind = GPU_FACTOR_SYLVESTER, .a = a.v, .v = b.v, .b = x.v};
        fill_triangle(&a, 3);
        fill_triangle(&b, 5);
        for (int64_t i = 0; i < n * n; i++)
            *at(&x, i % n, i / n) = 1 + I * (double)(i % n - i / n);
        assert_int_equal(gpu_cpu_factor(device, &f), GPU_OK);
        assert_int_equal(f.trouble, 0);
        for (int64_t i = 0; i < n * n; i++)
            assert_true(off(&a, &b, &x, i % n, i / n) < 1e-11);
        munmap(a.pages, a.bytes);
        munmap(b.pages, b.bytes);
        munmap(x.pages, x.bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sylvester_at_the_end_of_memory),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_cpu, NULL);
}
