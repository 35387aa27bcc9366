/* Work on the host's memory in tiles: the same bits as in one go, whatever the
 * tiles, by up to three devices whose lanes run as late, and in as many orders,
 * as their marks allow. */
#include "fake_device.h"
#include "op_list.h"
#include "reduce_tiles.h"
#include "tiles.h"

/* --- lanes ---------------------------------------------------------------- */

enum { MOST_WAITING = 64, DEVICES = 3 };

/* Something that a lane was given. Copies to the device have taken what they
 * copy with them. */
typedef struct task {
    enum { COPY, WAIT, MAP, REDUCE, MULTIPLY } is;
    gpu_view from, to, in[GPU_MAX_INPUTS];
    void *taken;
    int lane;   /* for WAIT: it has to have done */
    long tasks; /* so many */
    gpu_program p;
    int axis;
    gpu_gemm gemm;
} task;

/* Of a device, whose handle it is. */
typedef struct lane_set {
    task waiting[GPU_LANES][MOST_WAITING];
    long given[GPU_LANES], done[GPU_LANES];
    struct {
        int lane;
        long tasks;
    } mark[GPU_MARKS];
} lane_set;

static lane_set sets[DEVICES];
static struct {
    int brought, stops_after; /* bring calls; 0: an interrupt never comes */
    int breaks_in; /* a bring call at which finalisers do something, or 0 */
    int fails_in;  /* one that fails, or 0 */
    const lane_set *refuses; /* a device that gives no memory, or NULL */
    int64_t panel; /* rows and columns of a product's panels; 0: it is whole */
    void (*finalisers)(void);
} lanes;

static void run_task(const task *t)
{
    gpu_status status = GPU_OK;
    if (t->is == COPY)
        gpu_cpu_convert(&t->from, &t->to);
    else if (t->is == MAP)
        status = gpu_cpu_map(NULL, &t->p, t->in, &t->to);
    else if (t->is == REDUCE)
        status = gpu_cpu_reduce(NULL, &t->p, t->in, t->axis, &t->to);
    else if (t->is == MULTIPLY)
        status = multiply_in_place(NULL, &t->gemm);
    free(t->taken);
    assert_true(status == GPU_OK || gpu_is_interrupted());
}

static int can_run(const lane_set *s, int lane)
{
    if (s->done[lane] == s->given[lane])
        return 0;
    const task *t = &s->waiting[lane][s->done[lane] % MOST_WAITING];
    return t->is != WAIT || s->done[t->lane] >= t->tasks;
}

/* One task of any lane; 0: there is none. */
static int run_one(lane_set *s)
{
    int first = (int)next_below(GPU_LANES);
    for (int i = 0; i < GPU_LANES; i++) {
        int lane = (first + i) % GPU_LANES;
        if (!can_run(s, lane))
            continue;
        run_task(&s->waiting[lane][s->done[lane] % MOST_WAITING]);
        s->done[lane]++;
        return 1;
    }
    return 0;
}

static void drain(lane_set *s, int lane)
{
    while (s->done[lane] < s->given[lane])
        assert_true(run_one(s));
}

static void give(lane_set *s, int lane, task t)
{
    while (s->given[lane] - s->done[lane] == MOST_WAITING)
        assert_true(run_one(s));
    s->waiting[lane][s->given[lane]++ % MOST_WAITING] = t;
    while (next_below(3) == 0 && run_one(&sets[next_below(DEVICES)]))
        ;
}

static gpu_status lazy_mark(void *handle, gpu_lane lane, int mark)
{
    lane_set *s = handle;
    s->mark[mark].lane = (int)lane;
    s->mark[mark].tasks = s->given[lane];
    return GPU_OK;
}

static gpu_status lazy_follow(void *handle, gpu_lane lane, int mark)
{
    lane_set *s = handle;
    give(s, (int)lane,
         (task){.is = WAIT,
                .lane = s->mark[mark].lane,
                .tasks = s->mark[mark].tasks});
    return GPU_OK;
}

static void check_by_rows(const gpu_view *v)
{
    assert_true(v->col_stride == 1 || v->cols == 1);
    assert_true(v->row_stride >= v->cols || v->rows == 1);
}

static gpu_status lazy_bring(void *handle, gpu_lane lane, const gpu_view *from,
                             const gpu_view *to)
{
    check_by_rows(to);
    if (++lanes.brought == lanes.stops_after)
        gpu_interrupt();
    if (lanes.brought == lanes.breaks_in)
        lanes.finalisers();
    if (lanes.brought == lanes.fails_in)
        return gpu_fail(GPU_INTERNAL, "a device that fails");
    if (lane == GPU_LANE_WORK)
        drain(handle, lane);
    gpu_view taken = {NULL, from->dtype, from->rows, from->cols, from->cols, 1};
    taken.data = malloc(gpu_cpu_view_bytes(from));
    gpu_cpu_convert(from, &taken);
    give(handle, (int)lane,
         (task){.is = COPY, .from = taken, .to = *to, .taken = taken.data});
    return GPU_OK;
}

static gpu_status lazy_fetch(void *handle, gpu_lane lane, const gpu_view *from,
                             const gpu_view *to)
{
    check_by_rows(from);
    give(handle, (int)lane, (task){.is = COPY, .from = *from, .to = *to});
    if (lane == GPU_LANE_WORK)
        drain(handle, lane);
    return GPU_OK;
}

/* What is given up copies nowhere. */
static gpu_status lazy_deliver(void *handle, int give_up)
{
    lane_set *s = handle;
    for (long n = s->done[GPU_LANE_OUT]; n < s->given[GPU_LANE_OUT]; n++)
        if (give_up && s->waiting[GPU_LANE_OUT][n % MOST_WAITING].is == COPY)
            s->waiting[GPU_LANE_OUT][n % MOST_WAITING] =
                (task){.is = WAIT, .lane = GPU_LANE_OUT};
    if (!give_up)
        drain(s, GPU_LANE_OUT);
    return GPU_OK;
}

static gpu_status lazy_map(void *handle, const gpu_program *p,
                           const gpu_view *in, const gpu_view *out)
{
    task t = {.is = MAP, .p = *p, .to = *out};
    memcpy(t.in, in, (size_t)p->inputs * sizeof *in);
    give(handle, GPU_LANE_WORK, t);
    return GPU_OK;
}

static gpu_status lazy_reduce(void *handle, const gpu_program *p,
                              const gpu_view *in, int axis, const gpu_view *out)
{
    task t = {.is = REDUCE, .p = *p, .to = *out, .axis = axis};
    memcpy(t.in, in, (size_t)p->inputs * sizeof *in);
    give(handle, GPU_LANE_WORK, t);
    return GPU_OK;
}

static gpu_status lazy_matmul(void *handle, const gpu_gemm *p)
{
    give(handle, GPU_LANE_WORK, (task){.is = MULTIPLY, .gemm = *p});
    return GPU_OK;
}

static gpu_status lazy_bytes(void *handle, void *to, const void *from, size_t n)
{
    drain(handle, GPU_LANE_WORK);
    memcpy(to, from, n);
    return GPU_OK;
}

static gpu_status lazy_sync(void *handle)
{
    for (int lane = 0; lane < GPU_LANES; lane++)
        drain(handle, lane);
    return GPU_OK;
}

/* In the order of work, behind which no other lane has anything left. */
static void lazy_free(void *handle, void *data, size_t bytes)
{
    drain(handle, GPU_LANE_WORK);
    assert_false(can_run(handle, GPU_LANE_IN) || can_run(handle, GPU_LANE_OUT));
    fake_free(handle, data, bytes);
}

static gpu_status lazy_alloc(void *handle, size_t bytes, void **data)
{
    return handle == lanes.refuses ? GPU_MEMORY
                                   : fake_alloc(handle, bytes, data);
}

static void lazy_panel(void *handle, const gpu_kernel *k, const gpu_gemm *p,
                       int64_t *rows, int64_t *cols)
{
    (void)handle, (void)k, (void)p;
    *rows = lanes.panel && lanes.panel < *rows ? lanes.panel : *rows;
    *cols = lanes.panel && lanes.panel < *cols ? lanes.panel : *cols;
}

static gpu_kernel lazy_kernel;
static const gpu_kernel *choose_lazy(void *handle, const gpu_gemm *p)
{
    (void)handle, (void)p;
    return &lazy_kernel;
}

static int lazy_kernels(const gpu_kernel *const **list)
{
    static const gpu_kernel *const all[] = {&lazy_kernel};
    *list = all;
    return 1;
}

static gpu_device *host, *devices[DEVICES]; /* the first is fake */

static void release_all(gpu_matrix *m, int n)
{
    for (int i = 0; i < n; i++)
        gpu_release(&m[i]);
}

static int open_lazy(void **state)
{
    static gpu_backend table;
    if (open_fake(state))
        return 1;
    table = *fake->backend;
    table.alloc = lazy_alloc;
    table.free = lazy_free;
    table.upload = table.download = lazy_bytes;
    table.bring = lazy_bring;
    table.fetch = lazy_fetch;
    table.deliver = lazy_deliver;
    table.mark = lazy_mark;
    table.follow = lazy_follow;
    table.map = lazy_map;
    table.reduce = lazy_reduce;
    table.sync = lazy_sync;
    table.kernels = lazy_kernels;
    table.choose_matmul = choose_lazy;
    table.panel = lazy_panel;
    lazy_kernel = keeper_kernel;
    lazy_kernel.name = "lazy";
    lazy_kernel.matmul = lazy_matmul;
    devices[0] = fake;
    for (int i = 0; i < DEVICES; i++) {
        if (i > 0 && gpu_open("cpu", &devices[i]) != GPU_OK)
            return 1;
        devices[i]->backend = &table;
        devices[i]->handle = &sets[i];
        devices[i]->is_cpu = 0;
        snprintf(devices[i]->name, sizeof devices[i]->name, "fake:%d", i);
    }
    if (gpu_open("cpu", &host) != GPU_OK)
        return 1;
    memset(&lanes, 0, sizeof lanes);
    memset(sets, 0, sizeof sets);
    gpu_set_fusion(GPU_FUSION_OFF);
    return 0;
}

static int close_lazy(void **state)
{
    gpu_compute_through(NULL);
    gpu_set_fusion(GPU_FUSION_ON);
    gpu_set_tile_bytes(0);
    gpu_set_blocks(0, 0);
    int leaks = gpu_device_live(host) != 0;
    for (int i = 0; i < DEVICES; i++)
        for (int lane = 0; lane < GPU_LANES; lane++)
            leaks |= sets[i].given[lane] != sets[i].done[lane];
    for (int i = 0; i < DEVICES; i++)
        leaks |= devices[i]->live != 0;
    return close_fake(state) || leaks;
}

/* --- operands of the host ------------------------------------------------- */

/* A matrix of the shape: dense, the transpose of one, or a part of one. */
static gpu_matrix operand(gpu_dtype t, int64_t rows, int64_t cols, int how)
{
    gpu_matrix all, m;
    int64_t wide = how == 2 ? cols + 3 : how == 1 ? rows : cols;
    int64_t high = how == 2 ? 2 * rows : how == 1 ? cols : rows;
    assert_int_equal(gpu_create(&all, host, t, 2, high, wide), GPU_OK);
    gpu_view v = gpu_view_of(&all);
    fill_integers(&v, 9);
    for (int64_t i = 0; i < high && t != GPU_BOOL; i++)
        set(&v, i, next_below(wide), next_uniform());
    if (how == 0)
        return all;
    if (how == 1)
        gpu_view_transposed(&all, &m);
    else
        assert_int_equal(gpu_view_block(&all, (gpu_slice){0, 2, rows},
                                        (gpu_slice){2, 1, cols}, &m),
                         GPU_OK);
    gpu_release(&all);
    return m;
}

static gpu_matrix any_operand(int64_t rows, int64_t cols)
{
    return operand((gpu_dtype)next_below(GPU_DTYPES), rows, cols,
                   (int)next_below(3));
}

static void assert_same(const gpu_matrix *a, const gpu_matrix *b)
{
    assert_ptr_equal(gpu_matrix_device(a), host);
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->cols, b->cols);
    gpu_view x = gpu_view_of(a), y = gpu_view_of(b);
    for (int64_t i = 0; i < a->rows; i++)
        for (int64_t j = 0; j < a->cols; j++) {
            double one = get(&x, i, j), other = get(&y, i, j);
            if (one == one || other == other)
                assert_true(one == other);
        }
}

static gpu_status by_devices(int count,
                             gpu_status (*call)(void *context, gpu_matrix *out),
                             void *context, gpu_matrix *out)
{
    gpu_team team = {count, {NULL}};
    for (int i = 0; i < count; i++)
        team.devices[i] = devices[i];
    team = gpu_compute_together(team);
    gpu_status status = call(context, out);
    team = gpu_compute_together(team);
    assert_int_equal(team.count, count);
    assert_ptr_equal(team.devices[0], fake);
    return status;
}

static gpu_status by_device(gpu_status (*call)(void *context, gpu_matrix *out),
                            void *context, gpu_matrix *out)
{
    return by_devices(1, call, context, out);
}

static gpu_status by_any(gpu_status (*call)(void *context, gpu_matrix *out),
                         void *context, gpu_matrix *out)
{
    return by_devices(1 + (int)next_below(DEVICES), call, context, out);
}

/* The same in one go and in tiles. */
static void compare(gpu_status (*call)(void *context, gpu_matrix *out),
                    void *context)
{
    gpu_matrix whole = {.storage = NULL}, tiled = {.storage = NULL};
    assert_int_equal(call(context, &whole), GPU_OK);
    gpu_set_tile_bytes((size_t)(8 << next_below(12)));
    assert_int_equal(by_any(call, context, &tiled), GPU_OK);
    assert_same(&tiled, &whole);
    gpu_release(&whole);
    gpu_release(&tiled);
}

/* --- elementwise programs ------------------------------------------------- */

typedef struct call {
    gpu_program p;
    gpu_matrix operands[3];
    const gpu_matrix *in[3];
    int axis;
    gpu_product how;
    gpu_dtype type;
    int has_out;
} call;

static gpu_status map_call(void *context, gpu_matrix *out)
{
    const call *c = context;
    return gpu_map("test", &c->p, c->in, out);
}

static int64_t any_size(void)
{
    static const int64_t sizes[] = {1, 2, 7, 33, 64, 129};
    return sizes[next_below(sizeof sizes / sizeof *sizes)];
}

static void take_operands(call *c, int count, int64_t rows, int64_t cols)
{
    for (int i = 0; i < count; i++) {
        int shape = i > 0 ? (int)next_below(5) : 0; /* 1 to 3 are broadcast */
        c->operands[i] = any_operand(shape == 1 || shape == 3 ? 1 : rows,
                                     shape == 2 || shape == 3 ? 1 : cols);
        c->in[i] = &c->operands[i];
    }
}

static void maps_in_tiles(void **state)
{
    (void)state;
    for (int n = 0; n < 400; n++) {
        call c = {.axis = 0};
        take_operands(&c, 3, any_size(), any_size());
        gpu_program_start(&c.p, 3);
        int k = gpu_program_constant(&c.p, 0.75);
        int x = gpu_program_add(&c.p, GPU_OP_mul, 0, 1, 0);
        x = gpu_program_add(&c.p, GPU_OP_add, x, k, 0);
        gpu_program_add(&c.p, n % 2 ? GPU_OP_sub : GPU_OP_lt, x, 2, 0);
        compare(map_call, &c);
        release_all(c.operands, 3);
    }
}

/* Over one of its operands. */
static void maps_in_place(void **state)
{
    (void)state;
    for (int n = 0; n < 50; n++) {
        call c = {.axis = 0};
        gpu_matrix whole;
        take_operands(&c, 1, any_size(), any_size());
        assert_int_equal(
            gpu_clone(&c.operands[0], c.operands[0].dtype, NULL, &whole),
            GPU_OK);
        gpu_program_start(&c.p, 1);
        gpu_program_add(&c.p, GPU_OP_square, 0, 0, 0);
        const gpu_matrix *in[] = {&whole};
        assert_int_equal(gpu_map("test", &c.p, in, &whole), GPU_OK);
        gpu_set_tile_bytes((size_t)(8 << next_below(12)));
        assert_int_equal(by_any(map_call, &c, &c.operands[0]), GPU_OK);
        assert_same(&c.operands[0], &whole);
        gpu_release(&whole);
        gpu_release(&c.operands[0]);
    }
}

/* --- reductions ----------------------------------------------------------- */

static gpu_status reduce_call(void *context, gpu_matrix *out)
{
    const call *c = context;
    double value;
    gpu_matrix number = {.storage = NULL};
    if (c->axis > 0)
        return gpu_reduce("test", &c->p, c->in, c->axis, out);
    TRY(gpu_reduce_all("test", &c->p, c->in, &value));
    TRY(gpu_create(&number, host, GPU_F64, 2, 1, 1));
    *out = number;
    return gpu_fill(out, value);
}

/* In one go of copies without gaps, as they would lie on the device: the bits
 * of a sum follow how its elements lie. */
static void compare_reduced(call *c, int count)
{
    gpu_matrix whole = {.storage = NULL}, tiled = {.storage = NULL};
    gpu_matrix dense[2];
    const gpu_matrix *in[] = {c->in[0], c->in[1]};
    for (int i = 0; i < count; i++) {
        assert_int_equal(gpu_clone(in[i], in[i]->dtype, NULL, &dense[i]),
                         GPU_OK);
        c->in[i] = &dense[i];
    }
    assert_int_equal(reduce_call(c, &whole), GPU_OK);
    memcpy(c->in, in, sizeof in);
    gpu_set_tile_bytes((size_t)(8 << next_below(12)));
    assert_int_equal(by_any(reduce_call, c, &tiled), GPU_OK);
    assert_same(&tiled, &whole);
    release_all(dense, count);
    gpu_release(&whole);
    gpu_release(&tiled);
}

/* What is not cut, what is cut into blocks, and what tiles may cut. */
static void reductions_in_tiles(void **state)
{
    static const gpu_reduction kinds[] = {
        GPU_REDUCE_sum,    GPU_REDUCE_mean,   GPU_REDUCE_norm,
        GPU_REDUCE_min,    GPU_REDUCE_max,    GPU_REDUCE_any,
        GPU_REDUCE_all,    GPU_REDUCE_argmin, GPU_REDUCE_argmax,
        GPU_REDUCE_SQUARES};
    (void)state;
    for (int n = 0; n < 1500; n++) {
        call c = {.axis = (int)next_below(3)};
        int64_t rows = any_size(), cols = any_size();
        gpu_set_blocks(1 << next_below(13), 1 << next_below(11));
        take_operands(&c, 2, rows, cols);
        gpu_program_start(&c.p, 1 + n % 2);
        if (n % 2)
            gpu_program_add(&c.p, GPU_OP_sub, 0, 1, 0);
        c.p.reduction =
            (uint8_t)kinds[next_below(sizeof kinds / sizeof *kinds)];
        compare_reduced(&c, 2);
        release_all(c.operands, 2);
    }
}

/* Where an element is NaN it is the extreme, and the first of several counts.
 */
static void places_of_nan(void **state)
{
    (void)state;
    for (int n = 0; n < 200; n++) {
        call c = {.axis = (int)next_below(3)};
        c.operands[0] = operand(GPU_F64, any_size(), any_size(), n % 3);
        c.in[0] = &c.operands[0];
        gpu_view v = gpu_view_of(&c.operands[0]);
        for (int k = 0; k < 3; k++)
            set(&v, next_below(v.rows), next_below(v.cols), NAN);
        gpu_program_start(&c.p, 1);
        c.p.reduction = n % 2 ? GPU_REDUCE_argmax : GPU_REDUCE_argmin;
        compare(reduce_call, &c);
        gpu_release(&c.operands[0]);
    }
}

/* What cannot be put together is computed while it is one block. */
static void products_and_variances(void **state)
{
    (void)state;
    call c = {.axis = 0};
    gpu_matrix out = {.storage = NULL};
    c.operands[0] = operand(GPU_F64, 40, 30, 0);
    c.in[0] = &c.operands[0];
    gpu_program_start(&c.p, 1);
    for (int i = 0; i < 3; i++) {
        static const gpu_reduction kinds[] = {GPU_REDUCE_prod, GPU_REDUCE_var,
                                              GPU_REDUCE_std};
        c.p.reduction = (uint8_t)kinds[i];
        gpu_set_blocks(1200, 100);
        compare(reduce_call, &c);
        gpu_set_blocks(1199, 100);
        assert_int_equal(by_device(reduce_call, &c, &out), GPU_UNSUPPORTED);
        assert_non_null(strstr(gpu_message(), "leave {device=} away"));
    }
    gpu_release(&c.operands[0]);
}

/* --- products ------------------------------------------------------------- */

static gpu_status product_call(void *context, gpu_matrix *out)
{
    call *c = context;
    if (!c->has_out)
        return gpu_matmul(c->in[0], c->in[1], &c->how, out);
    TRY(gpu_clone(c->in[2], c->type, NULL, out));
    return gpu_matmul(c->in[0], c->in[1], &c->how, out);
}

static gpu_matrix integers(gpu_dtype t, int64_t rows, int64_t cols)
{
    gpu_matrix m = operand(t, rows, cols, (int)next_below(3));
    gpu_view v = gpu_view_of(&m);
    fill_integers(&v, 5);
    return m;
}

/* Of integers, whose sums are exact however they are cut. */
static void products_in_tiles(void **state)
{
    (void)state;
    for (int n = 0; n < 300; n++) {
        call c = {.type = next_below(2) ? GPU_F32 : GPU_F64};
        int64_t m = any_size(), k = any_size(), cols = any_size();
        /* factors stay, or do not */
        ram.total = n % 3 ? 64 << 20 : n % 2 ? 300 << 10 : 100 << 10;
        lanes.panel = next_below(2) ? 1 + next_below(20) : 0;
        c.how.alpha = (double)(1 + next_below(3));
        c.has_out = (int)next_below(2);
        c.how.beta = c.has_out ? (double)next_below(3) : 0;
        c.operands[0] = integers(c.type, m, k);
        c.operands[1] = integers(c.type, k, cols);
        c.operands[2] = integers(c.type, m, cols);
        for (int i = 0; i < 3; i++)
            c.in[i] = &c.operands[i];
        compare(product_call, &c);
        release_all(c.operands, 3);
    }
}

/* Where both factors fit, and where only the smaller does. */
static void factors_come_once(void **state)
{
    static const struct {
        size_t memory;
        int64_t m, k, n;
    } cases[] = {{1 << 20, 129, 64, 129},  {240 << 10, 129, 64, 129},
                 {240 << 10, 400, 64, 65}, {240 << 10, 65, 64, 400},
                 {1 << 20, 9, 64, 700},    {1 << 20, 1, 1, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        call c = {.how = {.alpha = 1}};
        c.operands[0] = integers(GPU_F32, cases[i].m, cases[i].k);
        c.operands[1] = integers(GPU_F32, cases[i].k, cases[i].n);
        c.in[0] = &c.operands[0];
        c.in[1] = &c.operands[1];
        gpu_matrix whole = {.storage = NULL}, tiled = {.storage = NULL};
        assert_int_equal(product_call(&c, &whole), GPU_OK);
        ram.total = cases[i].memory;
        gpu_set_tile_bytes(1024);
        size_t before = gpu_counted.uploaded;
        assert_int_equal(by_device(product_call, &c, &tiled), GPU_OK);
        assert_int_equal(gpu_counted.uploaded - before,
                         gpu_bytes(&c.operands[0]) + gpu_bytes(&c.operands[1]));
        assert_same(&tiled, &whole);
        gpu_release(&whole);
        gpu_release(&tiled);
        release_all(c.operands, 2);
    }
}

/* --- several devices ------------------------------------------------------ */

static void same_by_all(gpu_status (*run)(void *context, gpu_matrix *out),
                        void *context)
{
    gpu_matrix alone = {.storage = NULL};
    assert_int_equal(by_device(run, context, &alone), GPU_OK);
    for (int count = 2; count <= DEVICES; count++) {
        gpu_matrix together = {.storage = NULL};
        for (int i = 0; i < DEVICES; i++)
            sets[i].given[GPU_LANE_WORK] = sets[i].done[GPU_LANE_WORK] = 0;
        assert_int_equal(by_devices(count, run, context, &together), GPU_OK);
        assert_same(&together, &alone);
        for (int i = 0; i < DEVICES; i++) /* all of them had something to do */
            assert_true((sets[i].given[GPU_LANE_WORK] > 0) == (i < count));
        gpu_release(&together);
    }
    gpu_release(&alone);
}

/* Of sums that are not exact, cut along the inner dimension, too. */
static void products_together(void **state)
{
    static const struct {
        size_t memory;
        int64_t m, k, n;
    } cases[] = {{64 << 20, 129, 64, 129}, {64 << 20, 9, 64, 700},
                 {64 << 20, 700, 64, 9},   {240 << 10, 129, 64, 129},
                 {240 << 10, 65, 64, 400}, {100 << 10, 129, 600, 129},
                 {100 << 10, 63, 1400, 40}};
    (void)state;
    for (int n = 0; n < 60; n++) {
        size_t i = (size_t)n % (sizeof cases / sizeof *cases);
        gpu_dtype t = n % 2 ? GPU_F32 : GPU_F64;
        call c = {.how = {.alpha = 1.5}, .type = t, .has_out = n % 3 == 0};
        c.how.beta = c.has_out ? 0.5 : 0;
        c.operands[0] = operand(t, cases[i].m, cases[i].k, n % 3);
        c.operands[1] = operand(t, cases[i].k, cases[i].n, n / 3 % 3);
        c.operands[2] = operand(t, cases[i].m, cases[i].n, n / 9 % 3);
        for (int j = 0; j < 3; j++)
            c.in[j] = &c.operands[j];
        ram.total = ram.used + cases[i].memory;
        lanes.panel = n % 2 ? 7 : 0;
        gpu_set_tile_bytes(1024);
        same_by_all(product_call, &c);
        release_all(c.operands, 3);
    }
}

static void others_together(void **state)
{
    (void)state;
    for (int n = 0; n < 30; n++) {
        call c = {.axis = n % 3};
        c.operands[0] = operand(n % 2 ? GPU_F32 : GPU_F64, 100, 130, n % 3);
        c.in[0] = &c.operands[0];
        gpu_program_start(&c.p, 1);
        gpu_program_add(&c.p, GPU_OP_square, 0, 0, 0);
        gpu_set_tile_bytes(1024);
        gpu_set_blocks(1000, 500);
        same_by_all(map_call, &c);
        c.p.reduction = n % 2 ? GPU_REDUCE_sum : GPU_REDUCE_argmax;
        same_by_all(reduce_call, &c);
        release_all(c.operands, 1);
    }
}

static void make_product(call *c)
{
    *c = (call){.how = {.alpha = 1}, .type = GPU_F32};
    for (int i = 0; i < 2; i++) {
        c->operands[i] = integers(GPU_F32, 100, 100);
        c->in[i] = &c->operands[i];
    }
    lanes.panel = 9;
    gpu_set_tile_bytes(1024);
}

static gpu_status by_all(call *c, gpu_matrix *out)
{
    return by_devices(DEVICES, product_call, c, out);
}

/* At any of their copies one of them fails, or all are interrupted: one error,
 * all memory is back, and they go on. */
static void one_of_them_fails(void **state)
{
    (void)state;
    call c;
    gpu_matrix whole = {.storage = NULL}, out = whole;
    make_product(&c);
    assert_int_equal(by_device(product_call, &c, &whole), GPU_OK);
    for (int at = 1; at < 60; at += 2) {
        int is_stopped = at / 2 % 2;
        lanes.brought = 0;
        lanes.fails_in = is_stopped ? 0 : at;
        lanes.stops_after = is_stopped ? at : 0;
        assert_int_equal(by_all(&c, &out),
                         is_stopped ? GPU_INTERRUPTED : GPU_INTERNAL);
        assert_string_equal(gpu_message(),
                            is_stopped ? "interrupted" : "a device that fails");
        gpu_clear_interrupt();
        lanes.fails_in = lanes.stops_after = 0;
        assert_null(out.storage);
        for (int i = 0; i < DEVICES; i++)
            assert_int_equal(gpu_device_live(devices[i]), 0);
        assert_int_equal(by_all(&c, &out), GPU_OK);
        assert_same(&out, &whole);
        gpu_release(&out);
    }
    gpu_release(&whole);
    release_all(c.operands, 2);
}

static void finalisers_of_all(void)
{
    call c;
    gpu_matrix out = {.storage = NULL};
    int64_t panel = lanes.panel;
    lanes.breaks_in = 0;
    make_product(&c);
    assert_int_equal(by_all(&c, &out), GPU_OK);
    gpu_release(&out);
    release_all(c.operands, 2);
    lanes.panel = panel;
}

/* What finalisers have them do in the midst of it is done apart. */
static void all_of_them_twice(void **state)
{
    (void)state;
    call c;
    gpu_matrix whole = {.storage = NULL}, out = whole;
    make_product(&c);
    assert_int_equal(by_device(product_call, &c, &whole), GPU_OK);
    lanes.finalisers = finalisers_of_all;
    for (int at = 2; at < 60; at += 3) {
        lanes.brought = 0;
        lanes.breaks_in = at;
        assert_int_equal(by_all(&c, &out), GPU_OK);
        assert_int_equal(lanes.breaks_in, 0);
        assert_same(&out, &whole);
        gpu_release(&out);
    }
    gpu_release(&whole);
    release_all(c.operands, 2);
}

/* A device without memory is told of by its name. */
static void one_has_no_memory(void **state)
{
    (void)state;
    call c;
    gpu_matrix out = {.storage = NULL};
    make_product(&c);
    for (int i = 0; i < DEVICES; i++) {
        lanes.refuses = &sets[i];
        assert_int_equal(by_all(&c, &out), GPU_MEMORY);
        assert_non_null(strstr(gpu_message(), "out of memory on fake:"));
        assert_non_null(strstr(gpu_message(), gpu_device_name(devices[i])));
        lanes.refuses = NULL;
        assert_int_equal(by_all(&c, &out), GPU_OK);
        gpu_release(&out);
    }
    release_all(c.operands, 2);
}

/* --- what stops it -------------------------------------------------------- */

static gpu_status make_add(call *c)
{
    take_operands(c, 1, 64, 129);
    gpu_program_start(&c->p, 1);
    gpu_program_add(&c->p, GPU_OP_add, 0, 0, 0);
    return GPU_OK;
}

/* After any of its copies: what it wrote is incomplete, and all memory back. */
static void an_interrupt_between_tiles(void **state)
{
    (void)state;
    for (int after = 1; after < 40; after += 3) {
        call c = {.axis = 0};
        gpu_matrix out;
        make_add(&c);
        assert_int_equal(gpu_create(&out, host, GPU_F64, 2, 64, 129), GPU_OK);
        gpu_set_tile_bytes(1024);
        lanes.brought = 0;
        lanes.stops_after = after;
        assert_int_equal(by_device(map_call, &c, &out), GPU_INTERRUPTED);
        gpu_clear_interrupt();
        lanes.stops_after = 0;
        assert_true(gpu_is_incomplete(&out));
        assert_int_equal(gpu_device_live(fake), 0);
        assert_int_equal(by_device(map_call, &c, &out), GPU_OK);
        assert_false(gpu_is_incomplete(&out));
        gpu_release(&out);
        gpu_release(&c.operands[0]);
    }
}

/* Work in tiles of their own, that is stopped. */
static void stopped_finalisers(void)
{
    call c = {.axis = 0};
    gpu_matrix out = {.storage = NULL};
    make_add(&c);
    lanes.stops_after = lanes.brought + 3;
    assert_int_equal(by_device(map_call, &c, &out), GPU_INTERRUPTED);
    gpu_clear_interrupt();
    lanes.stops_after = 0;
    gpu_release(&c.operands[0]);
}

/* What others give up in the midst of it is not what it has fetched. */
static void another_run_between_tiles(void **state)
{
    (void)state;
    for (int at = 2; at < 40; at += 3) {
        call c = {.axis = 0};
        gpu_matrix whole = {.storage = NULL}, tiled = {.storage = NULL};
        make_add(&c);
        assert_int_equal(map_call(&c, &whole), GPU_OK);
        gpu_set_tile_bytes(1024);
        lanes.brought = 0;
        lanes.breaks_in = at;
        lanes.finalisers = stopped_finalisers;
        assert_int_equal(by_device(map_call, &c, &tiled), GPU_OK);
        lanes.breaks_in = 0;
        assert_same(&tiled, &whole);
        gpu_release(&whole);
        gpu_release(&tiled);
        gpu_release(&c.operands[0]);
    }
}

/* Tiles are as small as memory wants them, until there is none. */
static void little_memory(void **state)
{
    (void)state;
    call c = {.axis = 0};
    gpu_matrix whole = {.storage = NULL}, tiled = {.storage = NULL};
    make_add(&c);
    assert_int_equal(map_call(&c, &whole), GPU_OK);
    ram.total = 40 << 10;
    assert_int_equal(by_device(map_call, &c, &tiled), GPU_OK);
    assert_same(&tiled, &whole);
    gpu_release(&tiled);
    ram.total = 1 << 10;
    assert_int_equal(by_device(map_call, &c, &tiled), GPU_MEMORY);
    assert_non_null(strstr(gpu_message(), "out of memory on fake:0"));
    gpu_release(&whole);
    gpu_release(&c.operands[0]);
}

/* Operands that lie on a device are its own. */
static void others_stay_where_they_are(void **state)
{
    (void)state;
    gpu_matrix a, b = {.storage = NULL};
    assert_int_equal(gpu_create(&a, fake, GPU_F32, 2, 5, 5), GPU_OK);
    assert_int_equal(gpu_fill(&a, 3), GPU_OK);
    call c = {.in = {&a}};
    gpu_program_start(&c.p, 1);
    gpu_program_add(&c.p, GPU_OP_neg, 0, 0, 0);
    lanes.brought = 0;
    assert_int_equal(by_device(map_call, &c, &b), GPU_OK);
    assert_ptr_equal(gpu_matrix_device(&b), fake);
    assert_int_equal(lanes.brought, 0);
    gpu_release(&a);
    gpu_release(&b);
}

/* --- results that do not fit ---------------------------------------------- */

static gpu_matrix on_fake(const gpu_matrix *m)
{
    gpu_matrix there;
    assert_int_equal(gpu_clone(m, m->dtype, fake, &there), GPU_OK);
    return there;
}

/* A program of an instruction over two operands. */
static gpu_status apply(gpu_op op, const gpu_matrix *x, const gpu_matrix *y,
                        gpu_matrix *out)
{
    gpu_program p;
    const gpu_matrix *in[] = {x, y};
    gpu_program_start(&p, 2);
    gpu_program_add(&p, op, 0, 1, 0);
    return gpu_map("test", &p, in, out);
}

static void check_sum(const gpu_matrix *x, const gpu_matrix *y, double expected)
{
    gpu_program p;
    const gpu_matrix *in[] = {x, y};
    double sum;
    gpu_program_start(&p, 2);
    gpu_program_add(&p, GPU_OP_mul, 0, 1, 0);
    p.reduction = GPU_REDUCE_sum;
    assert_int_equal(gpu_reduce_all("test", &p, in, &sum), GPU_OK);
    assert_true(sum == expected);
}

static double sum_of_products(const gpu_matrix *x, const gpu_matrix *y)
{
    double sum = 0;
    gpu_view a = gpu_view_of(x), b = gpu_view_of(y);
    for (int64_t i = 0; i < a.rows; i++)
        for (int64_t j = 0; j < a.cols; j++)
            sum += get(&a, i, j) * get(&b, i, j);
    return sum;
}

/* m's elements, wherever it lies, against those of a matrix on the host. */
static void assert_elements(gpu_matrix *m, gpu_matrix *expected)
{
    gpu_matrix here;
    assert_int_equal(gpu_clone(m, m->dtype, host, &here), GPU_OK);
    assert_same(&here, expected);
    gpu_release(&here);
}

/* It lies on the host, and goes on being an operand beside those of the
 * device. */
static void elements_that_do_not_fit(void **state)
{
    (void)state;
    gpu_matrix a = integers(GPU_F64, 64, 129), b = integers(GPU_F64, 64, 129);
    gpu_matrix x = on_fake(&a), y = on_fake(&b);
    gpu_matrix sum = {.storage = NULL}, c = sum, other = sum, more = sum,
               expected = sum;
    gpu_take_overflow();
    ram.total = ram.used + (40 << 10); /* of 66 KiB */
    gpu_set_tile_bytes(1 << 10);
    gpu_set_blocks(0, 1 << 9);
    assert_int_equal(apply(GPU_OP_add, &x, &y, &c), GPU_OK);
    assert_ptr_equal(gpu_matrix_device(&c), host);
    assert_int_equal(apply(GPU_OP_add, &a, &b, &sum), GPU_OK);
    assert_same(&c, &sum);
    const char *told = gpu_take_overflow();
    if (told)
        assert_non_null(strstr(told, "does not fit fake:0"));
    assert_null(gpu_take_overflow());

    assert_int_equal(apply(GPU_OP_mul, &c, &x, &other), GPU_OK);
    assert_int_equal(apply(GPU_OP_mul, &sum, &a, &expected), GPU_OK);
    assert_elements(&other, &expected);
    check_sum(&x, &c, sum_of_products(&a, &sum));
    check_sum(&c, &c, sum_of_products(&sum, &sum));

    assert_int_equal(apply(GPU_OP_sub, &c, &c, &more), GPU_OK);
    assert_ptr_equal(gpu_matrix_device(&more), host);
    assert_int_equal(apply(GPU_OP_add, &x, &more, &x), GPU_OK);
    assert_elements(&x, &a);
    assert_int_equal(apply(GPU_OP_add, &y, &x, &more), GPU_OK);
    assert_same(&more, &sum);

    gpu_release(&other);
    assert_int_equal(apply(GPU_OP_add, &x, &a, &other), GPU_DEVICE);
    assert_int_equal(apply(GPU_OP_add, &a, &x, &other), GPU_DEVICE);
    gpu_matrix all[] = {a, b, x, y, sum, c, more, expected};
    release_all(all, 8);
}

/* All that a result, tiles and the host's memory cannot take is an error. */
static void nothing_fits(void **state)
{
    (void)state;
    gpu_matrix a = integers(GPU_F64, 64, 129), x = on_fake(&a);
    gpu_matrix c = {.storage = NULL};
    ram.total = ram.used + (3 << 10);
    assert_int_equal(apply(GPU_OP_add, &x, &x, &c), GPU_MEMORY);
    assert_non_null(strstr(gpu_message(), "out of memory on fake:0"));
    assert_null(c.storage);
    gpu_release(&a);
    gpu_release(&x);
}

/* Factors and results on either side, each product checked. */
static void products_that_do_not_fit(void **state)
{
    static const gpu_product plain = {.alpha = 1},
                             adding = {.alpha = 2, .beta = 1};
    (void)state;
    for (int n = 0; n < 60; n++) {
        int64_t m = any_size(), k = any_size(), cols = any_size();
        gpu_dtype t = n % 2 ? GPU_F32 : GPU_F64;
        gpu_matrix f[] = {integers(t, m, k), integers(t, k, cols)}, g[2];
        gpu_matrix expected = {.storage = NULL}, c = expected;
        assert_int_equal(gpu_matmul(&f[0], &f[1], &plain, &expected), GPU_OK);
        for (int i = 0; i < 2; i++)
            g[i] = on_fake(&f[i]);
        for (int i = 0; i < 2; i++) /* it did not fit either */
            if (next_below(3) == 0) {
                gpu_release(&g[i]);
                assert_int_equal(
                    gpu_create(&g[i], fake, t, 2, f[i].rows, f[i].cols),
                    GPU_OK);
                gpu_release(&g[i]);
                size_t before = ram.total;
                ram.total = ram.used;
                assert_int_equal(gpu_create_anywhere(&g[i], fake, t, 2,
                                                     f[i].rows, f[i].cols),
                                 GPU_OK);
                ram.total = before;
                assert_int_equal(gpu_copy(&f[i], &g[i]), GPU_OK);
                assert_ptr_equal(gpu_matrix_device(&g[i]), host);
            }
        gpu_set_tile_bytes((size_t)(64 << next_below(6)));
        int is_short = gpu_bytes(&expected) > 64 << 10 && next_below(2);
        if (is_short)
            ram.total = ram.used + (60 << 10);
        uint64_t checked = gpu_checked()->products;
        gpu_set_check(1);
        assert_int_equal(gpu_matmul(&g[0], &g[1], &plain, &c), GPU_OK);
        assert_ptr_equal(gpu_matrix_device(&c), is_short ? host : fake);
        assert_elements(&c, &expected);
        assert_int_equal(gpu_matmul(&g[0], &g[1], &adding, &c), GPU_OK);
        gpu_set_check(0);
        assert_int_equal(gpu_checked()->products, checked + 2);
        assert_int_equal(gpu_matmul(&f[0], &f[1], &adding, &expected), GPU_OK);
        assert_elements(&c, &expected);
        ram.total = 64 << 20;
        gpu_matrix all[] = {f[0], f[1], g[0], g[1], expected, c};
        release_all(all, 6);
    }
}

/* --- copies --------------------------------------------------------------- */

/* Between the host and a device, of any layout and type, there and back. */
static void copies_of_views(void **state)
{
    (void)state;
    for (int n = 0; n < 200; n++) {
        gpu_matrix m = any_operand(any_size(), any_size()), there, back;
        gpu_dtype type = (gpu_dtype)next_below(GPU_DTYPES);
        gpu_matrix expected;
        assert_int_equal(gpu_clone(&m, type, NULL, &expected), GPU_OK);
        assert_int_equal(gpu_clone(&m, type, fake, &there), GPU_OK);
        assert_int_equal(gpu_clone(&there, type, host, &back), GPU_OK);
        assert_same(&back, &expected);
        gpu_matrix turned, again;
        gpu_view_transposed(&there, &turned);
        assert_int_equal(gpu_clone(&turned, type, host, &again), GPU_OK);
        gpu_matrix all[] = {again, m, there, back, expected, turned};
        gpu_view_transposed(&again, &m);
        assert_same(&m, &expected);
        gpu_release(&m);
        release_all(all, 6);
    }
}

int main(void)
{
#define ON_LAZY(f) cmocka_unit_test_setup_teardown(f, open_lazy, close_lazy)
    const struct CMUnitTest tests[] = {
        ON_LAZY(maps_in_tiles),
        ON_LAZY(maps_in_place),
        ON_LAZY(reductions_in_tiles),
        ON_LAZY(places_of_nan),
        ON_LAZY(products_and_variances),
        ON_LAZY(products_in_tiles),
        ON_LAZY(factors_come_once),
        ON_LAZY(products_together),
        ON_LAZY(others_together),
        ON_LAZY(one_of_them_fails),
        ON_LAZY(all_of_them_twice),
        ON_LAZY(one_has_no_memory),
        ON_LAZY(an_interrupt_between_tiles),
        ON_LAZY(another_run_between_tiles),
        ON_LAZY(little_memory),
        ON_LAZY(others_stay_where_they_are),
        ON_LAZY(elements_that_do_not_fit),
        ON_LAZY(nothing_fits),
        ON_LAZY(products_that_do_not_fit),
        ON_LAZY(copies_of_views),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
