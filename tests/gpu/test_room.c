/* What happens when memory is short, or a product's kernel fails: what is kept
 * goes first, another attempt or another kernel follows. On a device of the
 * test's own. */
#include "kept_products.h"

/* --- memory is short ------------------------------------------------------ */

static struct {
    int calls;
    size_t kept; /* when it was called */
    gpu_matrix garbage;
} collector;

static int collect(void *data)
{
    (void)data;
    collector.calls++;
    collector.kept = kept();
    gpu_release(&collector.garbage);
    return 1;
}

static void set_collector(void)
{
    memset(&collector, 0, sizeof collector);
    collector.kept = SIZE_MAX;
    gpu_on_memory_short(collect, NULL);
}

static void kept_things_make_room(void **state)
{
    gpu_matrix a, b, more;
    (void)state;
    start(&a, &b);
    set_collector();
    ram.total = ram.used;
    assert_int_equal(gpu_create(&more, fake, GPU_F64, 2, 6, 4), GPU_OK);
    assert_int_equal(kept(), 0);
    assert_int_equal(collector.calls, 1);
    assert_int_equal(collector.kept, 0);
    assert_int_equal(ram.trims, 1);
    gpu_release(&more);
    ram.total *= 2;
    EXPECT_PRODUCT(&a, &b, 0, 2);
    EXPECT_PRODUCT(&a, &b, 2, 0);
    gpu_release(&a);
    gpu_release(&b);
}

static void so_does_garbage(void **state)
{
    gpu_matrix a, b, more;
    (void)state;
    start(&a, &b);
    set_collector();
    collector.garbage = matrix(100, 100);
    ram.total = ram.used;
    assert_int_equal(gpu_create(&more, fake, GPU_F32, 2, 100, 100), GPU_OK);
    gpu_release(&more);
    gpu_release(&a);
    gpu_release(&b);
}

static void nothing_makes_room(void **state)
{
    gpu_matrix a, b, more = {.storage = NULL};
    (void)state;
    start(&a, &b);
    set_collector();
    ram.total = ram.used + 1000;
    size_t live = gpu_device_live(fake);
    assert_int_equal(gpu_create(&more, fake, GPU_F64, 2, 50, 50), GPU_MEMORY);
    assert_non_null(strstr(gpu_message(), "out of memory on fake:0: 19.5 KiB"));
    assert_null(more.storage);
    assert_int_equal(collector.calls, 1);
    assert_int_equal(gpu_device_live(fake), live);
    EXPECT_PRODUCT(&a, &b, 0, 2);
    gpu_release(&a);
    gpu_release(&b);
}

/* Large sizes are compared with what is free before memory is asked for:
 * more may be promised than there is. */
static void large_matrices(void **state)
{
    gpu_matrix a = matrix(2, 2), large;
    gpu_keep_key key = {LEFT, gpu_view_of(&a)};
    size_t mib = 1 << 20;
    (void)state;
    ram.total = 100 * mib;
    ram.promises = 1;
    assert_non_null(gpu_keep(a.storage, &key, 20 * mib));
    assert_int_equal(gpu_create(&large, fake, GPU_F32, 1, 22 << 20, 1), GPU_OK);
    assert_int_equal(kept(), 0);
    gpu_release(&large);
    assert_non_null(gpu_keep(a.storage, &key, 20 * mib));
    assert_int_equal(gpu_create(&large, fake, GPU_F32, 1, 26 << 20, 1),
                     GPU_MEMORY);
    assert_int_equal(ram.trims, 2);
    gpu_release(&a);
}

/* Every operation that creates its result finds room for it. */
static gpu_status operate(int which, const gpu_matrix *a, gpu_matrix *out)
{
    out->storage = NULL;
    switch (which) {
    case 0:
        return gpu_clone(a, GPU_F32, NULL, out);
    case 1:
        return gpu_scan(a, GPU_SCAN_SUM, 1, out);
    case 2:
        return gpu_sort(a, 1, 0, out, NULL);
    case 3:
        return gpu_gather(a, NULL, 0, NULL, 0, out);
    default:
        return gpu_inverse(a, out);
    }
}

static void operations_find_room(void **state)
{
    gpu_matrix a = matrix(SIDE, SIDE), out;
    size_t total = ram.total;
    (void)state;
    for (int i = 0; i < SIDE; i++) /* not singular */
        assert_int_equal(gpu_set(&a, i, i, 100), GPU_OK);
    for (int i = 0; i < 5; i++) {
        multiply(&a, &a);
        assert_int_equal(kept(), 2 * PLANE);
        ram.total = ram.used;
        assert_int_equal(operate(i, &a, &out), GPU_OK);
        ram.total = total;
        gpu_release(&out);
    }
    gpu_release(&a);
}

/* Where nothing can be kept, scratch does. */
static void keeping_finds_no_room(void **state)
{
    gpu_matrix a = matrix(SIDE, SIDE), b = matrix(SIDE, SIDE),
               c = matrix(SIDE, SIDE);
    (void)state;
    ram.refusals = 2;
    assert_int_equal(product(&a, &b, 0, &c), GPU_OK);
    assert_product(&a, &b, &c);
    assert_int_equal(keeper.calls, 1);
    assert_int_equal(keeper.made, 0);
    assert_int_equal(kept(), 0);
    ram.refusals = 1;
    assert_int_equal(product(&a, &b, 1, &c), GPU_OK);
    assert_int_equal(keeper.made, 1);
    assert_int_equal(kept(), PLANE);
    EXPECT_PRODUCT(&a, &b, 1, 1);
    gpu_release(&a);
    gpu_release(&b);
    gpu_release(&c);
}

/* --- backends that ask for room ------------------------------------------- */

/* They get all but what the running product found or made. */
static void room_beside_a_product(void **state)
{
    gpu_matrix a, b;
    (void)state;
    start(&a, &b);
    gpu_keep_key old = {LEFT, gpu_view_of(&a)}, new = {10, gpu_view_of(&b)};
    gpu_begin_product(fake);
    assert_non_null(gpu_recall(a.storage, &old));
    assert_non_null(gpu_keep(b.storage, &new, 8));
    assert_int_equal(gpu_make_room(fake->handle), 1);
    assert_int_equal(kept(), plane_bytes(&a) + 8);
    assert_int_equal(gpu_make_room(fake->handle), 0);
    gpu_end_product(fake, GPU_OK);
    assert_int_equal(gpu_make_room(&a), 0); /* no device's handle */
    assert_int_equal(kept(), plane_bytes(&a) + 8);
    assert_int_equal(gpu_make_room(fake->handle), 1);
    assert_int_equal(kept(), 0);
    assert_int_equal(gpu_make_room(fake->handle), 0);
    gpu_release(&a);
    gpu_release(&b);
}

/* The plane of b is kept where those of others were, a's staying. */
static void keeping_makes_room(void **state)
{
    gpu_matrix others[2], a = matrix(SIDE, SIDE), b = matrix(SIDE, SIDE);
    (void)state;
    start(&others[0], &others[1]);
    gpu_matrix c = matrix(SIDE, SIDE);
    ram.makes_room = 1;
    ram.total = ram.used + PLANE + 8;
    assert_int_equal(product(&a, &b, 0, &c), GPU_OK);
    assert_product(&a, &b, &c);
    assert_int_equal(keeper.made, 2);
    assert_int_equal(kept(), 2 * PLANE);
    release_all(others, 2);
    gpu_release(&a);
    gpu_release(&b);
    gpu_release(&c);
}

enum { SORT_BYTES = 200 };
static const gpu_backend *plain;

static gpu_status sort_with_scratch(void *handle, int axis, int descending,
                                    const gpu_view *from, const gpu_view *to,
                                    const gpu_view *order)
{
    void *scratch;
    if (fake_alloc(handle, SORT_BYTES, &scratch) != GPU_OK)
        return gpu_fail(GPU_MEMORY, "sort: no room");
    fake_free(handle, scratch, SORT_BYTES);
    return plain->sort(handle, axis, descending, from, to, order);
}

/* What the last product used goes like the rest: it has ended. */
static void other_operations_make_room(void **state)
{
    gpu_matrix a, b, out;
    gpu_backend sorter = *fake->backend;
    (void)state;
    plain = fake->backend;
    fake->backend = &sorter;
    sorter.sort = sort_with_scratch;
    start(&a, &b);
    ram.total = ram.used + gpu_bytes(&a) + 8;
    assert_int_equal(gpu_sort(&a, 1, 0, &out, NULL), GPU_MEMORY);
    assert_int_equal(kept(), plane_bytes(&a) + plane_bytes(&b));
    ram.makes_room = 1;
    assert_int_equal(gpu_sort(&a, 1, 0, &out, NULL), GPU_OK);
    assert_int_equal(kept(), 0);
    gpu_release(&out);
    gpu_release(&a);
    gpu_release(&b);
}

/* --- kernels that fail ---------------------------------------------------- */

/* a and b of a product about to be made, c for it, and others about which
 * things are kept. */
static struct {
    gpu_matrix a, b, c, others[2];
} scene;

static void lay_out(void)
{
    start(&scene.others[0], &scene.others[1]);
    scene.a = matrix(3, 4);
    scene.b = matrix(4, 2);
    scene.c = matrix(3, 2);
}

static void put_away(void)
{
    release_all(scene.others, 2);
    gpu_release(&scene.a);
    gpu_release(&scene.b);
    gpu_release(&scene.c);
}

static int kept_about_operands(void)
{
    return scene.a.storage->kept + scene.b.storage->kept;
}

static void a_second_attempt(void **state)
{
    (void)state;
    lay_out();
    set_collector();
    keeper.failures = 1;
    keeper.failure = GPU_MEMORY;
    assert_int_equal(product(&scene.a, &scene.b, 0, &scene.c), GPU_OK);
    assert_product(&scene.a, &scene.b, &scene.c);
    assert_int_equal(keeper.calls, 2);
    assert_int_equal(keeper.made, 4);
    assert_int_equal(collector.calls, 1);
    assert_int_equal(collector.kept, 0);
    assert_int_equal(kept(), plane_bytes(&scene.a) + plane_bytes(&scene.b));
    EXPECT_PRODUCT(&scene.a, &scene.b, 2, 0);
    put_away();
}

/* The scratch fits where the others' planes were. */
static void scratch_finds_room(void **state)
{
    (void)state;
    lay_out();
    keeper.scratch = kept();
    ram.total = ram.used + plane_bytes(&scene.a) + plane_bytes(&scene.b) + 8;
    assert_int_equal(product(&scene.a, &scene.b, 0, &scene.c), GPU_OK);
    assert_product(&scene.a, &scene.b, &scene.c);
    assert_int_equal(keeper.calls, 2);
    assert_int_equal(kept(), plane_bytes(&scene.a) + plane_bytes(&scene.b));
    put_away();
}

/* At once, where the backend asks for room: there is no lost attempt. */
static void scratch_makes_room(void **state)
{
    (void)state;
    lay_out();
    set_collector();
    ram.makes_room = 1;
    assert_int_equal(gpu_fill(&scene.c, 0), GPU_OK);
    keeper.scratch = kept();
    ram.total = ram.used + plane_bytes(&scene.a) + plane_bytes(&scene.b) + 8;
    assert_int_equal(product(&scene.a, &scene.b, 1, &scene.c), GPU_OK);
    assert_product(&scene.a, &scene.b, &scene.c);
    assert_int_equal(keeper.calls, 1);
    assert_int_equal(collector.calls, 0);
    assert_int_equal(kept(), plane_bytes(&scene.a) + plane_bytes(&scene.b));
    assert_int_equal(kept_about_operands(), 2);
    put_away();
}

/* A product that lacks more than there is takes nothing from itself. */
static void scratch_makes_too_little_room(void **state)
{
    (void)state;
    lay_out();
    ram.makes_room = 1;
    EXPECT_PRODUCT(&scene.a, &scene.b, 0, 2);
    keeper.scratch = ram.total;
    assert_int_equal(product(&scene.a, &scene.b, 0, &scene.c), GPU_MEMORY);
    assert_int_equal(keeper.calls, 2);
    keeper.scratch = 0;
    EXPECT_PRODUCT(&scene.a, &scene.b, 0, 2);
    put_away();
}

/* The next attempt finds the room that the lost one lacked. */
static void an_added_product_finds_room(void **state)
{
    (void)state;
    lay_out();
    set_collector();
    assert_int_equal(gpu_fill(&scene.c, 0), GPU_OK);
    keeper.scratch = kept();
    ram.total = ram.used + plane_bytes(&scene.a) + plane_bytes(&scene.b) + 8;
    assert_int_equal(product(&scene.a, &scene.b, 1, &scene.c), GPU_OK);
    assert_product(&scene.a, &scene.b, &scene.c);
    assert_int_equal(keeper.calls, 2);
    assert_int_equal(collector.calls, 1);
    assert_int_equal(kept_about_operands(), 2);
    put_away();
}

/* --- what auto does when memory stays short ------------------------------- */

static const char *traced;

static void note_kernel(const gpu_event *e, void *data)
{
    (void)data;
    if (e->status == GPU_OK && strcmp(e->operation, "matmul") == 0)
        traced = e->kernel;
}

static gpu_status traced_product(const gpu_product *how, gpu_matrix *c)
{
    traced = NULL;
    keeper.calls = keeper.others = 0;
    gpu_set_trace(note_kernel, NULL);
    gpu_status status = gpu_matmul(&scene.a, &scene.b, how, c);
    gpu_set_trace(NULL, NULL);
    return status;
}

/* After two attempts another kernel runs, and is what the trace names. */
static void another_kernel(void **state)
{
    gpu_product how = {.alpha = 1};
    (void)state;
    lay_out();
    keeper.has_substitute = 1;
    keeper.scratch = ram.total;
    for (int beta = 0; beta < 2; beta++) {
        how.beta = beta;
        how.kernel = beta ? "auto" : NULL;
        assert_int_equal(gpu_fill(&scene.c, 0), GPU_OK);
        assert_int_equal(traced_product(&how, &scene.c), GPU_OK);
        assert_product(&scene.a, &scene.b, &scene.c);
        assert_int_equal(keeper.calls, 2);
        assert_int_equal(keeper.others, 1);
        assert_string_equal(traced, "small");
    }
    keeper.scratch = 0;
    assert_int_equal(traced_product(&how, &scene.c), GPU_OK);
    assert_string_equal(traced, "keeper");
    assert_int_equal(keeper.others, 0);
    put_away();
}

/* Who names a kernel gets that or none. */
static void no_other_kernel(void **state)
{
    gpu_product how = {.alpha = 1, .kernel = "keeper"};
    (void)state;
    lay_out();
    keeper.has_substitute = 1;
    keeper.scratch = ram.total;
    assert_int_equal(traced_product(&how, &scene.c), GPU_MEMORY);
    assert_int_equal(keeper.calls, 2);
    assert_int_equal(keeper.others, 0);
    assert_null(traced);
    put_away();
}

static void two_lost_attempts(void **state)
{
    gpu_matrix none = {.storage = NULL};
    (void)state;
    lay_out();
    size_t live = gpu_device_live(fake);
    keeper.failures = 2;
    keeper.failure = GPU_MEMORY;
    assert_int_equal(product(&scene.a, &scene.b, 0, &none), GPU_MEMORY);
    assert_int_equal(keeper.calls, 2);
    assert_null(none.storage);
    assert_int_equal(kept(), 0);
    assert_int_equal(gpu_device_live(fake), live);
    EXPECT_PRODUCT(&scene.a, &scene.b, 0, 2);
    put_away();
}

static void expect_failure(gpu_status failure)
{
    keeper.failures = 1;
    keeper.failure = failure;
    assert_int_equal(product(&scene.a, &scene.b, 0, &scene.c), failure);
    assert_string_equal(gpu_message(), "matmul: kernel keeper was told to");
    assert_int_equal(keeper.calls, 1);
}

/* Other failures are final. What was kept before the kernel failed, and never
 * filled, is not found again; what earlier products filled is. */
static void failures_keep_nothing(void **state)
{
    static const gpu_status all[] = {GPU_UNSUPPORTED, GPU_ARGUMENT, GPU_SHAPE,
                                     GPU_INTERNAL,    GPU_LOST,     GPU_RANGE};
    (void)state;
    lay_out();
    size_t others = kept();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        expect_failure(all[i]);
        assert_int_equal(kept(), others);
        EXPECT_PRODUCT(&scene.a, &scene.b, 0, 2);
        expect_failure(all[i]);
        EXPECT_PRODUCT(&scene.a, &scene.b, 2, 0);
        gpu_forget(&scene.a);
        expect_failure(all[i]);
        assert_int_equal(kept(), others + plane_bytes(&scene.b));
        EXPECT_PRODUCT(&scene.a, &scene.b, 1, 1);
        gpu_forget(&scene.a);
        gpu_forget(&scene.b);
    }
    put_away();
}

/* --- kernels chosen by name or precision ---------------------------------- */

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

/* --- failures of other sorts ---------------------------------------------- */

/* With c among its operands the product goes to memory of its own, and c
 * stays as it was. */
static void failures_beside_c(void **state)
{
    gpu_matrix a = matrix(SIDE, SIDE), b = matrix(SIDE, SIDE), before;
    (void)state;
    assert_int_equal(gpu_clone(&a, GPU_F32, NULL, &before), GPU_OK);
    for (int beta = 0; beta < 2; beta++) {
        keeper.failures = 1;
        keeper.failure = GPU_INTERNAL;
        assert_int_equal(product(&a, &b, beta, &a), GPU_INTERNAL);
        assert_int_equal(kept(), 0);
        assert_memory_equal(a.storage->data, before.storage->data,
                            gpu_bytes(&a));
        EXPECT_PRODUCT(&a, &b, 0, 2);
        gpu_forget(&a);
        gpu_forget(&b);
    }
    gpu_release(&a);
    gpu_release(&b);
    gpu_release(&before);
}

/* a = a a + a as often as it takes: each attempt begins with a's old values,
 * and a has them still where two are lost. */
static void a_second_attempt_beside_c(void **state)
{
    gpu_matrix a = matrix(SIDE, SIDE), expected, before;
    gpu_status final[] = {GPU_OK, GPU_OK, GPU_MEMORY};
    (void)state;
    assert_int_equal(gpu_clone(&a, GPU_F32, NULL, &before), GPU_OK);
    assert_int_equal(gpu_clone(&a, GPU_F32, NULL, &expected), GPU_OK);
    assert_int_equal(product(&before, &before, 1, &expected), GPU_OK);
    for (int failures = 2; failures >= 0; failures--) {
        keeper.failures = failures;
        keeper.failure = GPU_MEMORY;
        keeper.spoils = 1;
        assert_int_equal(product(&a, &a, 1, &a), final[failures]);
        assert_int_equal(keeper.calls, failures ? 2 : 1);
        keeper.failures = 0;
        assert_memory_equal(a.storage->data,
                            (failures == 2 ? before : expected).storage->data,
                            gpu_bytes(&a));
        assert_int_equal(gpu_copy(&before, &a), GPU_OK);
    }
    keeper.failures = 2;
    assert_int_equal(product(&a, &a, 0, &a), GPU_MEMORY);
    assert_int_equal(keeper.calls, 2);
    gpu_release(&a);
    gpu_release(&before);
    gpu_release(&expected);
}

static void failures_of_copies(void **state)
{
    gpu_matrix a = matrix(SIDE, SIDE), b = matrix_of(GPU_F64, 2, SIDE, SIDE);
    gpu_matrix c = {.storage = NULL};
    (void)state;
    EXPECT_PRODUCT(&a, &a, 0, 2);
    for (int refusals = 0; refusals < 12; refusals++) {
        keeper.failures = 1;
        keeper.failure = GPU_INTERNAL;
        ram.refusals = refusals;
        assert_int_not_equal(product(&a, &b, 0, &c), GPU_OK);
        assert_null(c.storage);
        ram.refusals = keeper.failures = 0;
        multiply(&a, &b);
        multiply(&a, &a);
    }
    gpu_release(&a);
    gpu_release(&b);
}

/* --- everything at once --------------------------------------------------- */

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
    gpu_random r = {GPU_INTEGER, 3, next_bits(), -8, 8};
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
        ON_FAKE(kept_things_make_room),
        ON_FAKE(so_does_garbage),
        ON_FAKE(nothing_makes_room),
        ON_FAKE(large_matrices),
        ON_FAKE(operations_find_room),
        ON_FAKE(keeping_finds_no_room),
        ON_FAKE(room_beside_a_product),
        ON_FAKE(keeping_makes_room),
        ON_FAKE(other_operations_make_room),
        ON_FAKE(a_second_attempt),
        ON_FAKE(scratch_finds_room),
        ON_FAKE(scratch_makes_room),
        ON_FAKE(scratch_makes_too_little_room),
        ON_FAKE(an_added_product_finds_room),
        ON_FAKE(another_kernel),
        ON_FAKE(no_other_kernel),
        ON_FAKE(two_lost_attempts),
        ON_FAKE(failures_keep_nothing),
        ON_FAKE(precisions),
        ON_FAKE(wrong_names),
        ON_FAKE(alpha_of_nothing),
        ON_FAKE(failures_beside_c),
        ON_FAKE(a_second_attempt_beside_c),
        ON_FAKE(failures_of_copies),
        ON_FAKE(everything_at_once),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
