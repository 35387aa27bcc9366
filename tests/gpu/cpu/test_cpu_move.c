/* gather, scatter, compress, expand, scan and sort on the CPU against naive
 * versions, over random shapes, layouts and types. */
#include "cpu.h"
#include "cpu_testing.h"
#include "every_table.h"

static double element(gpu_dtype t, double v)
{
    return t == GPU_F64 ? v : t == GPU_F32 ? (double)(float)v : v != 0;
}

static gpu_dtype any_type(void)
{
    return (gpu_dtype)next_below(GPU_DTYPES);
}

static layout any_layout(void)
{
    return (layout)next_below(LAYOUTS);
}

static int64_t *any_indices(int64_t count, int64_t below)
{
    if (next_below(4) == 0)
        return NULL;
    int64_t *list = malloc((size_t)(count + 1) * sizeof *list);
    for (int64_t i = 0; i < count; i++)
        list[i] = next_below(below);
    return list;
}

static void gathering(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++) {
        int64_t m = 1 + next_below(60), n = 1 + next_below(60);
        int64_t p = 1 + next_below(60),
                q = 1 + next_below(round == 9 ? 2000 : 9);
        int64_t *rows = any_indices(p, m), *cols = any_indices(q, n);
        p = rows ? p : m;
        q = cols ? q : n;
        block x = make(any_type(), m, n, any_layout());
        block r = make(any_type(), p, q, any_layout());
        fill_integers(&x.v, 90);
        assert_int_equal(cpu->gather(device, &x.v, rows, cols, &r.v), GPU_OK);
        for (int64_t i = 0; i < p; i++)
            for (int64_t j = 0; j < q; j++)
                assert_true(get(&r.v, i, j) ==
                            element(r.v.dtype, get(&x.v, rows ? rows[i] : i,
                                                   cols ? cols[j] : j)));
        free(rows);
        free(cols);
        drop(&x);
        drop(&r);
    }
}

/* Repeated indices are frequent: the last must win. */
static void scattering(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++) {
        int64_t m = 1 + next_below(20);
        int64_t n = 1 + next_below(round % 50 == 3 ? 3000 : 20);
        int64_t p = 1 + next_below(60), q = 1 + next_below(60);
        int64_t *rows = any_indices(p, m), *cols = any_indices(q, n);
        p = rows ? p : m;
        q = cols ? q : n;
        block x = make(any_type(), p, q, any_layout());
        block r = make(any_type(), m, n, any_layout());
        block want = make(GPU_F64, m, n, DENSE);
        fill_integers(&x.v, 90);
        fill_integers(&r.v, 90);
        for (int64_t i = 0; i < m * n; i++)
            set(&want.v, i / n, i % n, get(&r.v, i / n, i % n));
        for (int64_t i = 0; i < p; i++)
            for (int64_t j = 0; j < q; j++)
                set(&want.v, rows ? rows[i] : i, cols ? cols[j] : j,
                    element(r.v.dtype, get(&x.v, i, j)));
        assert_int_equal(cpu->scatter(device, &x.v, rows, cols, &r.v), GPU_OK);
        for (int64_t i = 0; i < m * n; i++)
            assert_true(get(&r.v, i / n, i % n) == get(&want.v, i / n, i % n));
        free(rows);
        free(cols);
        drop(&x);
        drop(&r);
        drop(&want);
    }
}

/* The list as a column of numbers, some counted from the end. */
static block as_matrix(const int64_t *list, int64_t n, int64_t size)
{
    block b = make(next_below(2) ? GPU_F32 : GPU_F64, n, 1, any_layout());
    for (int64_t i = 0; i < n; i++)
        set(&b.v, i, 0, (double)(next_below(3) ? list[i] + 1 : list[i] - size));
    return b;
}

static void copy_elements(const gpu_view *from, const gpu_view *to)
{
    for (int64_t i = 0; i < from->rows; i++)
        for (int64_t j = 0; j < from->cols; j++)
            set(to, i, j, get(from, i, j));
}

/* By lists that are matrices all is as by those on the host. */
static void check_pick(int64_t m, int64_t n, int64_t p, int64_t q, int scatters)
{
    int64_t *rows = any_indices(p, m), *cols = any_indices(q, n);
    p = rows ? p : m;
    q = cols ? q : n;
    block big[2] = {make(any_type(), m, n, any_layout())};
    block small[2] = {make(any_type(), p, q, any_layout())};
    big[1] = make(big[0].v.dtype, m, n, any_layout());
    small[1] = make(small[0].v.dtype, p, q, any_layout());
    fill_integers(&big[0].v, 90);
    fill_integers(&small[0].v, 90);
    copy_elements(&big[0].v, &big[1].v);
    copy_elements(&small[0].v, &small[1].v);
    gpu_picking pick = {.big = big[1].v, .small = small[1].v};
    pick.last_row = pick.big.rows;
    pick.last_col = pick.big.cols;
    block row_list = {0}, col_list = {0};
    pick.scatters = scatters;
    if (rows)
        pick.rows = (row_list = as_matrix(rows, p, m)).v;
    if (cols)
        pick.cols = (col_list = as_matrix(cols, q, n)).v;
    assert_int_equal(
        scatters ? cpu->scatter(device, &small[0].v, rows, cols, &big[0].v)
                 : cpu->gather(device, &big[0].v, rows, cols, &small[0].v),
        GPU_OK);
    assert_int_equal(cpu->pick(device, &pick), GPU_OK);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            assert_true(get(&big[0].v, i, j) == get(&big[1].v, i, j));
    for (int64_t i = 0; i < p; i++)
        for (int64_t j = 0; j < q; j++)
            assert_true(get(&small[0].v, i, j) == get(&small[1].v, i, j));
    for (int i = 0; i < 2; i++) {
        drop(&big[i]);
        drop(&small[i]);
    }
    if (rows)
        drop(&row_list);
    if (cols)
        drop(&col_list);
    free(rows);
    free(cols);
}

static void picks(void **state)
{
    (void)state;
    for (int round = 0; round < 400; round++)
        check_pick(1 + next_below(20), round % 4 < 2 ? 1 : 1 + next_below(20),
                   1 + next_below(60), round % 4 < 2 ? 1 : 1 + next_below(60),
                   round % 2);
    for (int round = 0; round < 8; round++)
        check_pick(1 + next_below(90000), 1, 150000, 1, round % 2);
}

/* Enough elements for threads, every row of the list the same: the last row
 * must win all along. */
/* What is no place is told before anything moves there, wherever it stands. */
static void wrong_places(void **state)
{
    static const double wrong[] = {
        0, -0.0, 1.5, 41, -41, 1e10, 1e300, (double)NAN, (double)INFINITY};
    (void)state;
    block big = make(GPU_F64, 40, 1, DENSE), small = make(GPU_F64, 3000, 1, 0);
    for (int round = 0; round < 36; round++) {
        block list = make(round % 2 ? GPU_F32 : GPU_F64, 3000, 1, any_layout());
        for (int64_t i = 0; i < 3000; i++)
            set(&list.v, i, 0,
                (double)(next_below(2) ? 1 : -1) *
                    (double)(1 + next_below(40)));
        for (int64_t i = 0; i < 40; i++)
            set(&big.v, i, 0, 7);
        gpu_picking p = {.big = big.v,
                         .small = small.v,
                         .rows = list.v,
                         .last_row = 40,
                         .last_col = 1,
                         .scatters = round / 2 % 2};
        if (!p.scatters)
            assert_int_equal(cpu->pick(device, &p), GPU_OK);
        set(&list.v, next_below(3000), 0, wrong[round / 4]);
        assert_int_equal(cpu->pick(device, &p), GPU_RANGE);
        for (int64_t i = 0; i < 40; i++)
            assert_true(get(&big.v, i, 0) == 7);
        drop(&list);
    }
    drop(&big);
    drop(&small);
}

static void last_row_wins(void **state)
{
    (void)state;
    for (int64_t n = 50; n <= 2000; n += 1950) {
        block x = make(GPU_F32, 2000, n, DENSE), r = make(GPU_F32, 3, n, 0);
        int64_t rows[2000];
        for (int64_t i = 0; i < 2000; i++) {
            rows[i] = 1;
            for (int64_t j = 0; j < n; j++)
                set(&x.v, i, j, (double)i);
        }
        assert_int_equal(cpu->scatter(device, &x.v, rows, NULL, &r.v), GPU_OK);
        for (int64_t j = 0; j < n; j++)
            assert_true(get(&r.v, 1, j) == 1999 && get(&r.v, 0, j) == 0);
        drop(&x);
        drop(&r);
    }
}

static void check_mask(int64_t m, int64_t n, int density)
{
    gpu_dtype t = any_type();
    block x = make(t, m, n, any_layout());
    block mask = make(GPU_BOOL, m, n, any_layout());
    int64_t count = 0;
    fill_integers(&x.v, 90);
    for (int64_t i = 0; i < m * n; i++) {
        set(&mask.v, i / n, i % n, next_below(100) < density);
        count += get(&mask.v, i / n, i % n) != 0;
    }
    block packed = make(t, count, 1, DENSE);
    assert_int_equal(cpu->compress(device, &x.v, &mask.v, &packed.v), GPU_OK);
    int64_t k = 0;
    for (int64_t i = 0; i < m * n; i++)
        if (get(&mask.v, i / n, i % n) != 0)
            assert_true(get(&packed.v, k++, 0) == get(&x.v, i / n, i % n));
    block from = make(any_type(), count, 1, any_layout());
    block before = make(GPU_F64, m, n, DENSE);
    gpu_program copy = empty_program(GPU_F64);
    fill_integers(&from.v, 9);
    cpu->map(device, &copy, &x.v, &before.v);
    assert_int_equal(cpu->expand(device, &from.v, &mask.v, &x.v), GPU_OK);
    k = 0;
    for (int64_t i = 0; i < m * n; i++) {
        double want = get(&mask.v, i / n, i % n) != 0
                          ? element(t, get(&from.v, k++, 0))
                          : get(&before.v, i / n, i % n);
        assert_true(get(&x.v, i / n, i % n) == want);
    }
    drop(&x);
    drop(&mask);
    drop(&packed);
    drop(&from);
    drop(&before);
}

static void masks(void **state)
{
    (void)state;
    static const int densities[] = {0, 3, 50, 100};
    for (int round = 0; round < 120; round++)
        check_mask(1 + next_below(70), 1 + next_below(70),
                   densities[round % 4]);
    check_mask(200001, 1, 50);
    check_mask(3, 90000, 20);
    check_mask(90000, 3, 70);
}

/* Of extremes steps up and down that go on for long, and now and then NaN. */
static double any_scanned(gpu_scan_kind kind)
{
    if (kind == GPU_SCAN_SUM)
        return (double)next_below(7) - 3;
    if (kind == GPU_SCAN_PROD)
        return next_below(2) ? 1 : -1;
    return next_below(2000) == 0 ? NAN : (double)next_below(1 << 20) - 5e5;
}

static double scanned(gpu_scan_kind kind, double a, double b)
{
    if (kind == GPU_SCAN_SUM)
        return a + b;
    if (kind == GPU_SCAN_PROD)
        return a * b;
    if (isnan(a) || isnan(b))
        return NAN;
    return kind == GPU_SCAN_MAX ? fmax(a, b) : fmin(a, b);
}

static void check_scan(int64_t m, int64_t n, int axis, gpu_scan_kind kind,
                       gpu_dtype t)
{
    block x = make(t, m, n, any_layout()), r = make(t, m, n, any_layout());
    for (int64_t i = 0; i < m * n; i++)
        set(&x.v, i / n, i % n, any_scanned(kind));
    assert_int_equal(cpu->scan(device, kind, axis, &x.v, &r.v), GPU_OK);
    int64_t lines = axis == 1 ? n : m, length = axis == 1 ? m : n;
    for (int64_t l = 0; l < lines; l++) {
        double running = 0;
        for (int64_t k = 0; k < length; k++) {
            int64_t i = axis == 1 ? k : l, j = axis == 1 ? l : k;
            double own = get(&x.v, i, j), found = get(&r.v, i, j);
            running = k == 0 ? own : scanned(kind, running, own);
            assert_true(found == running || (isnan(found) && isnan(running)));
        }
    }
    drop(&x);
    drop(&r);
}

static void scans(void **state)
{
    (void)state;
    for (int round = 0; round < 400; round++)
        check_scan(1 + next_below(150), 1 + next_below(150), 1 + round % 2,
                   (gpu_scan_kind)(round / 2 % 4), (gpu_dtype)(round / 8 % 2));
    check_scan(100000, 1, 1, GPU_SCAN_SUM, GPU_F32);
    check_scan(3000, 130, 1, GPU_SCAN_SUM, GPU_F64);
    check_scan(130, 3000, 2, GPU_SCAN_SUM, GPU_F64);
    check_scan(100000, 1, 1, GPU_SCAN_MAX, GPU_F32);
    check_scan(3000, 130, 1, GPU_SCAN_MIN, GPU_F64);
    check_scan(130, 3000, 2, GPU_SCAN_MAX, GPU_F64);
}

/* --- sorting: the result must be ordered, stable, and a permutation --------
 */

static int before(double a, double b, int descending)
{
    if (isnan(a) || isnan(b))
        return !isnan(a) && isnan(b);
    return descending ? a > b : a < b;
}

static void check_line(const gpu_view *x, const gpu_view *r,
                       const gpu_view *order, int descending)
{
    int64_t n = x->cols;
    char *seen = calloc((size_t)n, 1);
    for (int64_t k = 0; k < n; k++) {
        int64_t at = (int64_t)get(order, 0, k);
        assert_true(at >= 0 && at < n && !seen[at]);
        seen[at] = 1;
        assert_true(same(get(r, 0, k), get(x, 0, at)));
        if (k == 0)
            continue;
        int64_t last = (int64_t)get(order, 0, k - 1);
        double a = get(r, 0, k - 1), b = get(r, 0, k);
        assert_false(before(b, a, descending));
        assert_true(before(a, b, descending) || last < at);
    }
    free(seen);
}

static gpu_view line_of(const gpu_view *v, int axis, int64_t l)
{
    gpu_view line = *v;
    int64_t at = l * (axis == 1 ? v->col_stride : v->row_stride);
    line.data = (char *)v->data + at * (int64_t)size_of(v->dtype);
    line.rows = 1;
    line.cols = axis == 1 ? v->rows : v->cols;
    line.col_stride = axis == 1 ? v->row_stride : v->col_stride;
    return line;
}

static void check_sort(int64_t m, int64_t n, int axis, int descending,
                       gpu_dtype t, int64_t span)
{
    static const double odd[] = {0.0,
                                 -0.0,
                                 (double)NAN,
                                 -(double)NAN,
                                 (double)INFINITY,
                                 -(double)INFINITY};
    block x = make(t, m, n, any_layout()), r = make(t, m, n, any_layout());
    block order = make(GPU_F64, m, n, any_layout());
    for (int64_t i = 0; i < m * n; i++)
        set(&x.v, i / n, i % n,
            next_below(9) == 0 && t != GPU_BOOL ? odd[next_below(6)]
            : span < 0 ? 1 + (double)next_below(-span) * 0x1p-50
            : span     ? (double)(next_below(span) - span / 2)
                       : (next_uniform() - 0.5) * 1e30);
    assert_int_equal(cpu->sort(device, axis, descending, &x.v, &r.v, &order.v),
                     GPU_OK);
    for (int64_t l = 0; l < (axis == 1 ? n : m); l++) {
        gpu_view a = line_of(&x.v, axis, l), b = line_of(&r.v, axis, l);
        gpu_view c = line_of(&order.v, axis, l);
        check_line(&a, &b, &c, descending);
    }
    block again = make(t, m, n, DENSE), places = make(GPU_F64, m, n, DENSE);
    assert_int_equal(cpu->sort(device, axis, descending, &x.v, &again.v, NULL),
                     GPU_OK);
    assert_int_equal(cpu->sort(device, axis, descending, &x.v, NULL, &places.v),
                     GPU_OK);
    for (int64_t i = 0; i < m * n; i++) {
        double a = get(&again.v, i / n, i % n), b = get(&r.v, i / n, i % n);
        assert_true(same(a, b) && signbit(a) == signbit(b));
        assert_true(get(&places.v, i / n, i % n) ==
                    get(&order.v, i / n, i % n));
    }
    drop(&places);
    drop(&x);
    drop(&r);
    drop(&order);
    drop(&again);
}

/* Numbers alone, and with places as a look at them: lines of every length, that
 * rise, fall, are few, or have their like in another order. */
static void check_numbers(void)
{
    for (int64_t n = 1; n < 400; n++)
        check_sort(1, n, 2, n % 2, n % 3 ? GPU_F64 : GPU_F32,
                   n % 5 == 0 ? 3 : 0);
    for (int kind = 0; kind < 4; kind++) {
        int64_t n = 3000 + 611 * kind;
        for (gpu_dtype t = GPU_F32; t <= GPU_F64; t++) {
            block x = make(t, 1, n, DENSE), r = make(t, 1, n, DENSE);
            for (int64_t i = 0; i < n; i++)
                set(&x.v, 0, i,
                    (double)(kind == 0   ? i
                             : kind == 1 ? -i
                             : kind == 2 ? i * (n - i)
                                         : 7));
            assert_int_equal(cpu->sort(device, 2, 0, &x.v, &r.v, NULL), GPU_OK);
            double sum = 0;
            for (int64_t i = 0; i < n; i++) {
                assert_false(i && get(&r.v, 0, i) < get(&r.v, 0, i - 1));
                sum += get(&r.v, 0, i) - get(&x.v, 0, i);
            }
            assert_true(sum == 0);
            drop(&x);
            drop(&r);
        }
    }
}

static void numbers(void **state)
{
    (void)state;
    by_every_table(check_numbers);
    for (int partitions = 1; partitions < 4; partitions++) {
        gpu_cpu_set_sort_depth(partitions);
        check_numbers();
    }
    gpu_cpu_set_sort_depth(0);
}

static void sorting(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++)
        check_sort(1 + next_below(120), 1 + next_below(120), 1 + round % 2,
                   round / 2 % 2, (gpu_dtype)(round / 4 % 3),
                   round % 3 ? 20 : 0);
    for (int k = 0; k < 12; k++)
        check_sort(k % 2 ? 1 : 5000 + k, k % 2 ? 2047 + k : 3, 1 + k % 2,
                   k / 2 % 2, (gpu_dtype)(k % 3), k < 6 ? 100 : 0);
    check_sort(300000, 1, 1, 0, GPU_F64, 0);
    check_sort(300000, 1, 1, 1, GPU_F32, 0);
}

/* The first of a line without their places are what a sort begins with; where
 * numbers are fewer another way is asked for. */
static void check_first(int64_t n, int64_t k, int descending, gpu_dtype t,
                        int64_t span)
{
    block x = make(t, 1, n, any_layout()), all = make(t, 1, n, DENSE);
    block r = make(t, 1, k, any_layout());
    int64_t numbers = 0;
    for (int64_t i = 0; i < n; i++) {
        double value = (double)(next_below(span) - span / 2);
        if (next_below(50) == 0)
            value = next_below(9) ? -0.0 : (double)NAN;
        set(&x.v, 0, i, value);
        numbers += value == value;
    }
    gpu_status status = cpu->first(device, 2, descending, &x.v, &r.v, NULL);
    assert_int_equal(status, k <= numbers ? GPU_OK : GPU_UNSUPPORTED);
    assert_int_equal(cpu->sort(device, 2, descending, &x.v, &all.v, NULL),
                     GPU_OK);
    for (int64_t i = 0; status == GPU_OK && i < k; i++) {
        double a = get(&all.v, 0, i), b = get(&r.v, 0, i);
        assert_true(a == b && signbit(a) == signbit(b));
    }
    drop(&x);
    drop(&all);
    drop(&r);
}

static void first_numbers(void **state)
{
    (void)state;
    if (!gpu_cpu_vectors->split[0])
        skip();
    for (int k = 0; k < 60; k++) {
        int64_t n = 16384 + next_below(30000);
        int64_t wanted[] = {300, n / 3, n / 2, n - 100, n - 1};
        check_first(n, wanted[k % 5], k / 5 % 2, k / 10 % 2 ? GPU_F64 : GPU_F32,
                    k % 3 == 0   ? 5
                    : k % 3 == 1 ? 1000
                                 : 1 << 20);
    }
}

/* Lines for several threads, whose numbers differ anywhere, or in their last
 * bits beside others that differ in all: a few of them, or most, are alike in
 * what is packed beside a place. */
static void check_long_lines(void)
{
    static const int64_t span[] = {0, 3, 100000, -100, -(1 << 20), -(1 << 30)};
    for (int k = 0; k < 24; k++) {
        int64_t n = 16384 + 4099 * (k % 5) + (k == 23) * 120000;
        check_sort(k % 2 ? 1 : n, k % 2 ? n : 1, 1 + k % 2, k / 6 % 2,
                   k % 4 < 3 ? GPU_F64 : GPU_F32, span[k % 6]);
    }
    check_sort(2, 600000, 2, 0, GPU_F64, 1);
}

static void long_lines(void **state)
{
    (void)state;
    by_every_table(check_long_lines);
    gpu_cpu_set_threads(3);
    check_long_lines();
    gpu_cpu_set_threads(1);
    check_long_lines();
    gpu_cpu_set_threads(0);
}

/* Bytes that go so far behind, or before, those that are read, within their
 * pages: what is beside them stays. */
static void check_copies(void)
{
    enum { PAGE = 4096, ROOM = 4 * PAGE, BESIDE = 80 };
    static const size_t counts[] = {0, 1, 1023, 1024, 1151, 1152, 4096, 9001};
    uint8_t *from = aligned_alloc(PAGE, ROOM), *to = aligned_alloc(PAGE, ROOM);
    for (size_t i = 0; i < ROOM; i++)
        from[i] = (uint8_t)(i * 7 + i / 251);
    for (size_t at = 0; at <= 2 * BESIDE; at++) {
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
            size_t n = counts[k];
            memset(to, 0xa5, ROOM);
            gpu_cpu_vectors->convert[GPU_BOOL][GPU_BOOL](to + at, from + BESIDE,
                                                         n);
            assert_memory_equal(to + at, from + BESIDE, n);
            assert_true((at == 0 || to[at - 1] == 0xa5) && to[at + n] == 0xa5);
        }
    }
    for (size_t at = 0; at <= 2 * BESIDE; at++) { /* onto themselves */
        memcpy(to, from, ROOM);
        gpu_cpu_vectors->convert[GPU_BOOL][GPU_BOOL](to + at, to + BESIDE,
                                                     9001);
        assert_memory_equal(to + at, from + BESIDE, 9001);
    }
    free(from);
    free(to);
}

static void copies(void **state)
{
    (void)state;
    by_every_table(check_copies);
}

static void interruption(void **state)
{
    (void)state;
    block x = make(GPU_F32, 100000, 1, DENSE);
    interrupted = 1;
    gpu_status sort = cpu->sort(device, 1, 0, &x.v, &x.v, NULL);
    gpu_status scan = cpu->scan(device, GPU_SCAN_SUM, 1, &x.v, &x.v);
    gpu_status gather = cpu->gather(device, &x.v, NULL, NULL, &x.v);
    interrupted = 0;
    assert_int_equal(sort, GPU_INTERRUPTED);
    assert_int_equal(scan, GPU_INTERRUPTED);
    assert_int_equal(gather, GPU_INTERRUPTED);
    drop(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gathering),     cmocka_unit_test(scattering),
        cmocka_unit_test(last_row_wins), cmocka_unit_test(masks),
        cmocka_unit_test(picks),         cmocka_unit_test(scans),
        cmocka_unit_test(sorting),       cmocka_unit_test(interruption),
        cmocka_unit_test(numbers),       cmocka_unit_test(long_lines),
        cmocka_unit_test(first_numbers), cmocka_unit_test(wrong_places),
        cmocka_unit_test(copies),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_cpu, NULL);
}
