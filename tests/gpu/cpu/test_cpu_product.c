/* Products, dot products and linear systems on the CPU: every rung over odd
 * shapes, transpositions, gaps, alpha and beta, against exact references and
 * the bound each rung states. */
#include "cpu.h"
#include "cpu_testing.h"

static const int64_t sides[] = {1, 2, 3, 5, 31, 33, 64, 65, 127};
enum { SIDES = sizeof sides / sizeof *sides };

static const gpu_kernel *kernel(const char *operation, const char *name)
{
    const gpu_kernel *const *list;
    int n = cpu->kernels(&list);
    for (int i = 0; i < n; i++)
        if (!strcmp(list[i]->operation, operation) &&
            !strcmp(list[i]->name, name))
            return list[i];
    fail_msg("there is no %s %s", operation, name);
    return NULL;
}

static long double exact(const gpu_gemm *g, int64_t i, int64_t j,
                         double *magnitude)
{
    long double sum = 0;
    *magnitude = 0;
    for (int64_t p = 0; p < g->a.cols; p++) {
        double a = get(&g->a, i, p), b = get(&g->b, p, j);
        sum += (long double)a * b;
        *magnitude += fabs(a * b);
    }
    return sum;
}

/* Integers must come out exactly, whatever the layouts, alpha and beta. */
static void check_integers(const gpu_kernel *k, const int64_t s[3], gpu_dtype t,
                           const layout how[3], double alpha, double beta)
{
    block a = make(t, s[0], s[2], how[0]), b = make(t, s[2], s[1], how[1]);
    block c = make(t, s[0], s[1], how[2]);
    block old = make(GPU_F64, s[0], s[1], DENSE);
    gpu_gemm g = {.a = a.v, .b = b.v, .c = c.v, .alpha = alpha, .beta = beta};
    fill_integers(&a.v, 8);
    fill_integers(&b.v, 8);
    fill_integers(&c.v, 8);
    for (int64_t i = 0; i < s[0] * s[1]; i++) {
        if (beta == 0)
            set(&c.v, i / s[1], i % s[1], NAN);
        set(&old.v, i / s[1], i % s[1],
            beta == 0 ? 0 : get(&c.v, i / s[1], i % s[1]));
    }
    assert_int_equal(k->matmul(device, &g), GPU_OK);
    for (int64_t i = 0; i < s[0]; i++)
        for (int64_t j = 0; j < s[1]; j++) {
            double size;
            double want = alpha * (double)exact(&g, i, j, &size) +
                          beta * get(&old.v, i, j);
            if (get(&c.v, i, j) != want)
                fail_msg("%s %ldx%ldx%ld type %d layouts %d %d %d (%ld, %ld): "
                         "%g not %g",
                         k->name, (long)s[0], (long)s[1], (long)s[2], t, how[0],
                         how[1], how[2], (long)i, (long)j, get(&c.v, i, j),
                         want);
        }
    drop(&a);
    drop(&b);
    drop(&c);
    drop(&old);
}

static void integers_are_exact(void **state)
{
    (void)state;
    const gpu_kernel *kernels[] = {kernel("matmul", "reference"),
                                   kernel("matmul", "packed"),
                                   kernel("matmul", "openblas")};
    static const double alphas[] = {1, 1, 2, -1}, betas[] = {0, 1, -3, 0};
    for (int round = 0; round < 1800; round++) {
        int64_t s[3];
        layout how[3];
        for (int i = 0; i < 3; i++) {
            s[i] = sides[next_below(round % 4 ? SIDES - 3 : SIDES)];
            how[i] = (layout)next_below(round < 400 ? 2 : LAYOUTS);
        }
        int k = round % 4;
        check_integers(kernels[round / 4 % 3], s, (gpu_dtype)(round / 12 % 2),
                       how, alphas[k], betas[k]);
    }
}

/* Row and column blocks of a larger matrix, and broadcast operands. */
static void check_odd_strides(const gpu_kernel *k)
{
    block a = make(GPU_F32, 200, 200, DENSE), c = make(GPU_F32, 90, 80, DENSE);
    block x = make(GPU_F32, 1, 1, DENSE);
    fill_integers(&a.v, 5);
    set(&x.v, 0, 0, 3);
    static const gpu_view shapes[] = {
        {NULL, GPU_F32, 90, 70, 200, 1}, {NULL, GPU_F32, 90, 70, 1, 200},
        {NULL, GPU_F32, 90, 70, 0, 1},   {NULL, GPU_F32, 90, 70, 1, 0},
        {NULL, GPU_F32, 90, 70, 0, 0},   {NULL, GPU_F32, 90, 70, 1, 1},
        {NULL, GPU_F32, 90, 70, 3, 2},   {NULL, GPU_F32, 90, 70, 2, 200},
    };
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++)
            for (int n = 1; n < 81; n += 79) {
                gpu_view va = shapes[i], vb = shapes[j], vc = c.v;
                va.data = (float *)a.memory + 7;
                vb.data = (float *)a.memory + 11;
                vb.rows = 70;
                vb.cols = vc.cols = n;
                gpu_gemm g = {.a = va, .b = vb, .c = vc, .alpha = 1, .beta = 0};
                assert_int_equal(k->matmul(device, &g), GPU_OK);
                double size;
                for (int64_t e = 0; e < 90 * n; e++)
                    assert_true(get(&vc, e / n, e % n) ==
                                (double)exact(&g, e / n, e % n, &size));
            }
    drop(&a);
    drop(&c);
    drop(&x);
}

static void odd_strides(void **state)
{
    (void)state;
    check_odd_strides(kernel("matmul", "packed"));
    check_odd_strides(kernel("matmul", "openblas"));
}

static void bounds_hold(void **state)
{
    (void)state;
    static const char *const names[] = {"reference", "packed", "openblas"};
    static const int64_t shape[][3] = {
        {5, 7, 3}, {33, 65, 127}, {4, 3, 5000}, {1, 40, 999}, {40, 1, 999}};
    for (int round = 0; round < 30; round++) {
        const gpu_kernel *k = kernel("matmul", names[round % 3]);
        const int64_t *s = shape[round / 6];
        gpu_dtype t = (gpu_dtype)(round / 3 % 2);
        block a = make(t, s[0], s[2], DENSE), b = make(t, s[2], s[1], TURNED);
        block c = make(t, s[0], s[1], DENSE);
        gpu_gemm g = {.a = a.v, .b = b.v, .c = c.v, .alpha = 1, .beta = 0};
        double gamma = k->bound(t, s[2]), size, worst = 0;
        fill_uniform(&a.v, -1, 1);
        fill_uniform(&b.v, 0, 1);
        assert_int_equal(k->matmul(device, &g), GPU_OK);
        for (int64_t i = 0; i < s[0]; i++)
            for (int64_t j = 0; j < s[1]; j++) {
                long double e = exact(&g, i, j, &size);
                double off = (double)fabsl(get(&c.v, i, j) - e) / size;
                worst = off > worst ? off : worst;
            }
        if (worst > gamma)
            fail_msg("%s: %g above its bound %g", k->name, worst, gamma);
        drop(&a);
        drop(&b);
        drop(&c);
    }
}

/* Some elements of c, which are integers. old: what was there, or NULL. */
static void check_some(const gpu_kernel *k, const gpu_gemm *g,
                       const gpu_view *old)
{
    double size;
    for (int round = 0; round < 100; round++) {
        int64_t i = next_below(g->c.rows), j = next_below(g->c.cols);
        double want = (double)exact(g, i, j, &size);
        if (old)
            want += get(old, i, j);
        if (get(&g->c, i, j) != want)
            fail_msg("%s %ldx%ldx%ld (%ld, %ld): %g not %g", k->name,
                     (long)g->c.rows, (long)g->c.cols, (long)g->a.cols, (long)i,
                     (long)j, get(&g->c, i, j), want);
    }
}

static void check_large(const gpu_kernel *k, const int64_t s[3], gpu_dtype t,
                        const layout how[3])
{
    block a = make(t, s[0], s[2], how[0]), b = make(t, s[2], s[1], how[1]);
    block c = make(t, s[0], s[1], how[2]), old = make(t, s[0], s[1], DENSE);
    gpu_gemm g = {.a = a.v, .b = b.v, .c = c.v, .alpha = 1, .beta = 1};
    fill_integers(&a.v, 2);
    fill_integers(&b.v, 2);
    fill_integers(&c.v, 2);
    for (int64_t i = 0; i < s[0] * s[1]; i++)
        set(&old.v, i / s[1], i % s[1], get(&c.v, i / s[1], i % s[1]));
    assert_int_equal(k->matmul(device, &g), GPU_OK);
    check_some(k, &g, &old.v);
    g.beta = 0;
    assert_int_equal(k->matmul(device, &g), GPU_OK);
    check_some(k, &g, NULL);
    drop(&a);
    drop(&b);
    drop(&c);
    drop(&old);
}

/* Shapes of which each is cut in a way of its own. */
static const int64_t large[][3] = {
    {700, 650, 600},   {300, 200, 6000}, {3000, 1, 1001}, {1, 3000, 1001},
    {40, 5000, 300},   {9000, 33, 500},  {60, 60, 20000}, {10, 1, 100000},
    {1, 2000, 100000}, {257, 999, 1},    {151, 110, 125}};
enum { LARGE = sizeof large / sizeof *large };

static void large_products(void **state)
{
    (void)state;
    static const char *const names[] = {"packed", "openblas"};
    for (int i = 0; i < 2 * LARGE; i++) {
        layout how[3];
        for (int l = 0; l < 3; l++)
            how[l] = (layout)next_below(LAYOUTS);
        check_large(kernel("matmul", names[i % 2]), large[i / 2],
                    (gpu_dtype)next_below(2), how);
    }
}

/* The bits of a product, and of what follows from it, are those of one thread,
 * however many there are. */
static void same_bits_of_any_threads(void **state)
{
    (void)state;
    static const char *const names[] = {"packed", "openblas"};
    static const int threads[] = {1, 2, 3, 7, 40};
    for (int i = 0; i < 2 * LARGE; i++) {
        const int64_t *s = large[i / 2];
        gpu_dtype t = (gpu_dtype)next_below(2);
        block a = make(t, s[0], s[2], (layout)next_below(2));
        block b = make(t, s[2], s[1], (layout)next_below(2));
        block c = make(t, s[0], s[1], DENSE), one = make(t, s[0], s[1], DENSE);
        gpu_gemm g = {.a = a.v, .b = b.v, .c = one.v, .alpha = 1};
        fill_uniform(&a.v, -1, 1);
        fill_uniform(&b.v, -1, 1);
        for (int n = 0; n < 5; n++) {
            const gpu_kernel *k = kernel("matmul", names[i % 2]);
            gpu_cpu_set_threads(threads[n]);
            assert_int_equal(k->matmul(device, &g), GPU_OK);
            g.c = c.v;
            if (n > 0 && memcmp(c.memory, one.memory, c.bytes) != 0)
                fail_msg("%s %ldx%ldx%ld differs with %d threads", k->name,
                         (long)s[0], (long)s[1], (long)s[2], threads[n]);
        }
        gpu_cpu_set_threads(0);
        drop(&a);
        drop(&b);
        drop(&c);
        drop(&one);
    }
}

static void interruption(void **state)
{
    (void)state;
    static const char *const names[] = {"reference", "packed", "openblas"};
    block a = make(GPU_F32, 100, 100, DENSE), c = make(GPU_F32, 100, 100, 0);
    gpu_gemm g = {.a = a.v, .b = a.v, .c = c.v, .alpha = 1, .beta = 0};
    for (int i = 0; i < 3; i++) {
        interrupted = 1;
        gpu_status status = kernel("matmul", names[i])->matmul(device, &g);
        interrupted = 0;
        assert_int_equal(status, GPU_INTERRUPTED);
        assert_string_equal(message, "interrupted");
    }
    drop(&a);
    drop(&c);
}

/* --- dot ------------------------------------------------------------------ */

static void check_dot(const gpu_kernel *k, gpu_dtype t, int64_t n, layout hx,
                      layout hy)
{
    block x = make(t, n, 1, hx), y = make(t, n, 1, hy);
    double out = 0, size = 0;
    long double sum = 0, whole = 0;
    fill_uniform(&x.v, -1, 1);
    fill_uniform(&y.v, -1, 1);
    for (int64_t i = 0; i < n; i++) {
        sum += (long double)get(&x.v, i, 0) * get(&y.v, i, 0);
        size += fabs(get(&x.v, i, 0) * get(&y.v, i, 0));
    }
    assert_int_equal(k->dot(device, &x.v, &y.v, &out), GPU_OK);
    if (fabsl(out - sum) > k->bound(t, n) * size)
        fail_msg("%s type %d n %ld: off by %Lg of %g", k->name, t, (long)n,
                 fabsl(out - sum) / size, k->bound(t, n));
    fill_integers(&x.v, 10);
    fill_integers(&y.v, 10);
    for (int64_t i = 0; i < n; i++)
        whole += get(&x.v, i, 0) * get(&y.v, i, 0);
    assert_int_equal(k->dot(device, &x.v, &y.v, &out), GPU_OK);
    assert_true(out == (double)whole);
    drop(&x);
    drop(&y);
}

static void dots(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1,   2,    3,    31,   32,    33,
                                      100, 1023, 1025, 5000, 70001, 200000};
    static const char *const names[] = {"reference", "vector", "openblas"};
    for (int k = 0; k < 3; k++)
        for (gpu_dtype t = GPU_F32; t <= GPU_F64; t++)
            for (int n = 0; n < 12; n++)
                for (int how = 0; how < LAYOUTS * LAYOUTS; how++)
                    if (lengths[n] <= 5000 || how % 5 == 0)
                        check_dot(kernel("dot", names[k]), t, lengths[n],
                                  (layout)(how % LAYOUTS),
                                  (layout)(how / LAYOUTS));
}

static void dot_of_broadcast_and_special(void **state)
{
    (void)state;
    static const char *const names[] = {"reference", "vector", "openblas"};
    block x = make(GPU_F32, 3000, 1, DENSE);
    gpu_view two = {x.memory, GPU_F32, 3000, 1, 0, 1};
    for (int k = 0; k < 3; k++) {
        const gpu_kernel *dot = kernel("dot", names[k]);
        double out;
        for (int64_t i = 0; i < 3000; i++)
            set(&x.v, i, 0, 2);
        assert_int_equal(dot->dot(device, &x.v, &two, &out), GPU_OK);
        assert_true(out == 12000);
        set(&x.v, 1500, 0, INFINITY);
        assert_int_equal(dot->dot(device, &x.v, &two, &out), GPU_OK);
        assert_true(isinf(out));
        set(&x.v, 1501, 0, NAN);
        assert_int_equal(dot->dot(device, &x.v, &two, &out), GPU_OK);
        assert_true(isnan(out));
    }
    drop(&x);
}

static void cancelling_dots(void **state)
{
    (void)state;
    block x = make(GPU_F64, 4000, 1, DENSE), y = make(GPU_F64, 4000, 1, DENSE);
    static const char *const names[] = {"reference", "vector"};
    for (int64_t i = 0; i < 4000; i++)
        set(&y.v, i, 0, 1);
    set(&x.v, 0, 0, 1e17);
    set(&x.v, 1500, 0, 1);
    set(&x.v, 2500, 0, 1);
    set(&x.v, 3900, 0, -1e17);
    for (int k = 0; k < 2; k++) {
        double out;
        assert_int_equal(kernel("dot", names[k])->dot(device, &x.v, &y.v, &out),
                         GPU_OK);
        assert_true(out == 2);
    }
    drop(&x);
    drop(&y);
}

static void auto_choices(void **state)
{
    (void)state;
    block x = make(GPU_F32, 4, 4, DENSE);
    gpu_gemm g = {.a = x.v, .b = x.v, .c = x.v, .alpha = 1, .beta = 0};
    assert_string_equal(cpu->choose_matmul(device, &g)->name, "packed");
    assert_string_equal(cpu->choose_dot(device, &x.v, &x.v)->name, "vector");
    drop(&x);
}

/* --- linear systems --------------------------------------------------------
 */

static void check_solve(gpu_dtype t, int64_t n, int64_t m)
{
    block a = make(t, n, n, DENSE), lu = make(t, n, n, DENSE);
    block b = make(t, n, m, DENSE), x = make(t, n, m, DENSE);
    fill_uniform(&a.v, -1, 1);
    fill_uniform(&b.v, -1, 1);
    for (int64_t i = 0; i < n; i++)
        set(&a.v, i, i, get(&a.v, i, i) + 4);
    memcpy(lu.memory, a.memory, a.bytes);
    memcpy(x.memory, b.memory, b.bytes);
    assert_int_equal(cpu->solve(device, &lu.v, &x.v, NULL), GPU_OK);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++) {
            double sum = 0, size = 0;
            for (int64_t k = 0; k < n; k++) {
                sum += get(&a.v, i, k) * get(&x.v, k, j);
                size += fabs(get(&a.v, i, k) * get(&x.v, k, j));
            }
            double u = t == GPU_F64 ? 0x1p-53 : 0x1p-24;
            assert_true(fabs(sum - get(&b.v, i, j)) <=
                        8 * (double)n * u * (size + 1));
        }
    drop(&a);
    drop(&lu);
    drop(&b);
    drop(&x);
}

static void solving(void **state)
{
    (void)state;
    static const int64_t n[] = {1, 2, 3, 16, 17, 23, 127, 128, 200, 401};
    for (int i = 0; i < 10; i++)
        for (gpu_dtype t = GPU_F32; t <= GPU_F64; t++) {
            check_solve(t, n[i], 1);
            check_solve(t, n[i], 5);
            check_solve(t, n[i], 70);
        }
}

static void solve_with(int threads, int64_t n, gpu_dtype t, const block *from,
                       block *x)
{
    block lu = make(t, n, n, DENSE);
    memcpy(lu.memory, from[0].memory, from[0].bytes);
    memcpy(x->memory, from[1].memory, from[1].bytes);
    gpu_cpu_set_threads(threads);
    assert_int_equal(cpu->solve(device, &lu.v, &x->v, NULL), GPU_OK);
    gpu_cpu_set_threads(0);
    drop(&lu);
}

static void same_solutions_of_any_threads(void **state)
{
    (void)state;
    enum { N = 500, COLUMNS = 70 };
    for (gpu_dtype t = GPU_F32; t <= GPU_F64; t++) {
        block from[] = {make(t, N, N, DENSE), make(t, N, COLUMNS, DENSE)};
        block one = make(t, N, COLUMNS, DENSE), x = make(t, N, COLUMNS, DENSE);
        fill_uniform(&from[0].v, -1, 1);
        fill_uniform(&from[1].v, -1, 1);
        solve_with(1, N, t, from, &one);
        for (int threads = 2; threads < 9; threads += 3) {
            solve_with(threads, N, t, from, &x);
            assert_memory_equal(x.memory, one.memory, x.bytes);
        }
        drop(&from[0]);
        drop(&from[1]);
        drop(&one);
        drop(&x);
    }
}

/* Of pivots whose reciprocals overflow, in blocks of every kind. */
static void tiny_pivots(void **state)
{
    (void)state;
    enum { N = 300 };
    block a = make(GPU_F64, N, N, DENSE), b = make(GPU_F64, N, 1, DENSE);
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < N; j++)
            set(&a.v, i, j, i == j ? 0x1p-1060 : 0);
    for (int64_t i = 0; i < N; i++)
        set(&b.v, i, 0, (double)(i + 1) * 0x1p-1060);
    assert_int_equal(cpu->solve(device, &a.v, &b.v, NULL), GPU_OK);
    for (int64_t i = 0; i < N; i++)
        assert_true(get(&b.v, i, 0) == (double)(i + 1));
    drop(&a);
    drop(&b);
}

static void singular_systems(void **state)
{
    (void)state;
    block a = make(GPU_F64, 3, 3, DENSE), b = make(GPU_F64, 3, 1, DENSE);
    double det;
    for (int i = 0; i < 9; i++)
        set(&a.v, i / 3, i % 3, i / 3 == 2 ? 0 : i * i);
    assert_int_equal(cpu->solve(device, &a.v, &b.v, NULL), GPU_SINGULAR);
    assert_string_equal(message,
                        "solve: the matrix is singular (pivot 3 is zero)");
    for (int i = 0; i < 9; i++)
        set(&a.v, i / 3, i % 3, i / 3 == 2 ? 0 : i * i);
    assert_int_equal(cpu->determinant(device, &a.v, &det), GPU_OK);
    assert_true(det == 0);
    drop(&a);
    drop(&b);
}

static void determinants(void **state)
{
    (void)state;
    block a = make(GPU_F64, 3, 3, DENSE);
    static const double values[] = {2, -1, 0, 1, 3, 5, 4, 0, 1};
    double det;
    memcpy(a.memory, values, sizeof values);
    assert_int_equal(cpu->determinant(device, &a.v, &det), GPU_OK);
    assert_true(fabs(det - (2 * 3 + 1 * (1 - 20))) < 1e-12);
    drop(&a);
    int64_t n = 400;
    a = make(GPU_F64, n, n, DENSE);
    for (int64_t i = 0; i < n; i++)
        set(&a.v, i, n - 1 - i, i % 2 ? 1e-3 : 1e3);
    assert_int_equal(cpu->determinant(device, &a.v, &det), GPU_OK);
    assert_true(fabs(det - 1) < 1e-10);
    drop(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_exact),
        cmocka_unit_test(odd_strides),
        cmocka_unit_test(bounds_hold),
        cmocka_unit_test(large_products),
        cmocka_unit_test(same_bits_of_any_threads),
        cmocka_unit_test(interruption),
        cmocka_unit_test(dots),
        cmocka_unit_test(dot_of_broadcast_and_special),
        cmocka_unit_test(cancelling_dots),
        cmocka_unit_test(auto_choices),
        cmocka_unit_test(solving),
        cmocka_unit_test(same_solutions_of_any_threads),
        cmocka_unit_test(tiny_pivots),
        cmocka_unit_test(singular_systems),
        cmocka_unit_test(determinants),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_cpu, NULL);
}
