/* The texts that kernels are compiled from. As C++ for this processor, where a
 * grid is a few loops and a block's threads take turns, random programs over
 * all layouts, lengths and types give what their operations give one after the
 * other, and write nothing else; and so do reductions of them. And NVRTC, where
 * it is there, compiles them. */
#include "jit_testing.h"

#include <dlfcn.h>
#include <sys/mman.h>

enum { PROGRAMS = 64, SHAPES = 6, GUARD = 64, MOST_ROW = 5000 };
enum { FEWER_PROGRAMS = 40, FEWER_FOLDS = 12 }; /* with LUMAT_TEST_EVERY */
enum { KEPT = 12 }; /* case of in-place writes that keep all */
enum { FOLDS = 48, FOLD_SHAPES = 4, MOST_PARTIALS = 1 << 12 };

/* --- random cases ----------------------------------------------------------
 */

static uint32_t seed = 1;

static int any(int n)
{
    seed = seed * 1664525 + 1013904223;
    return (int)((seed >> 8) % (uint32_t)n);
}

/* Whose results in f32 are those in f64, rounded. */
static const int exact[] = {
    GPU_OP_add,        GPU_OP_sub,     GPU_OP_mul,     GPU_OP_div,
    GPU_OP_neg,        GPU_OP_abs,     GPU_OP_sign,    GPU_OP_square,
    GPU_OP_reciprocal, GPU_OP_maximum, GPU_OP_minimum, GPU_OP_clip,
    GPU_OP_copysign,   GPU_OP_floor,   GPU_OP_ceil,    GPU_OP_trunc,
    GPU_OP_round,      GPU_OP_sqrt,    GPU_OP_mod,     GPU_OP_lt,
    GPU_OP_le,         GPU_OP_gt,      GPU_OP_ge,      GPU_OP_eq,
    GPU_OP_ne,         GPU_OP_land,    GPU_OP_lor,     GPU_OP_lxor,
    GPU_OP_lnot,       GPU_OP_isnan,   GPU_OP_isinf,   GPU_OP_isfinite,
    GPU_OP_where,      GPU_OP_single,
};

static gpu_program random_program(int length)
{
    gpu_program p;
    int values = 0;
    gpu_program_start(&p, 1 + any(any(3) == 0 ? GPU_MAX_INPUTS : 3));
    p.compute = any(3) == 0 ? GPU_F64 : GPU_F32;
    for (int c = any(4); c > 0; c--)
        gpu_program_constant(&p, any(9) - 4 + 0.1);
    values = p.inputs + p.constants;
    for (int n = 0; n < length; n++, values++)
        gpu_program_add(&p, exact[any(sizeof exact / sizeof *exact)],
                        n > 0 ? values - 1 : any(values), any(values),
                        any(values));
    return p;
}

/* A block of memory with a view in the middle, of which nothing outside may be
 * written. */
typedef struct held {
    gpu_view v;
    unsigned char *memory, *before;
    size_t bytes;
} held;

/* How an operand lies: 0 without gaps, 1 padded, 2 one element later, 3 every
 * other column, 4 backwards; of inputs 5 a row, 6 a column, 7 a single one for
 * all; BY_COLUMNS and on, of inputs of tiles: along columns, as kinds 0 to 4.
 */
enum { RESULT_KINDS = 5, INPUT_KINDS = 8, BY_COLUMNS = 8 };

static held make_held(gpu_dtype type, int64_t rows, int64_t cols, int kind)
{
    if (kind >= BY_COLUMNS) {
        held h = make_held(type, cols, rows, kind - BY_COLUMNS);
        h.v = (gpu_view){h.v.data, type,           rows,
                         cols,     h.v.col_stride, h.v.row_stride};
        return h;
    }
    int64_t step = kind == 3 ? 2 : 1, size = (int64_t)size_of(type);
    int64_t gap = kind == 1 ? 4 - cols % 4 + 4 : kind == 2 ? 1 : 0;
    int64_t row = cols * step + gap;
    held h = {.v = {NULL, type, rows, cols, rows > 1 ? row : 0, step}};
    h.bytes = (size_t)((rows * row + 2 * GUARD + 1) * size);
    h.bytes = (h.bytes + 63) / 64 * 64;
    h.memory = aligned_alloc(64, h.bytes);
    h.before = malloc(h.bytes);
    int64_t first = GUARD + (kind == 2);
    if (kind == 4) {
        first += cols - 1;
        h.v.col_stride = -1;
    }
    h.v.data = h.memory + first * size;
    if (kind == 5 || kind == 7)
        h.v.row_stride = 0;
    if (kind == 6 || kind == 7)
        h.v.col_stride = 0;
    for (size_t i = 0; i < h.bytes; i++)
        h.memory[i] = (unsigned char)(type == GPU_BOOL ? any(2) : 0xa5);
    for (int64_t i = 0; i < (int64_t)h.bytes / size; i++) {
        double x = any(9) == 0 ? NAN : (any(4001) - 2000) / 64.0;
        if (type == GPU_F32)
            ((float *)h.memory)[i] = (float)x;
        else if (type == GPU_F64)
            ((double *)h.memory)[i] = x;
    }
    memcpy(h.before, h.memory, h.bytes);
    return h;
}

static void drop_held(held *h)
{
    free(h->memory);
    free(h->before);
}

static double element(const gpu_view *v, const void *data, int64_t at)
{
    if (v->dtype == GPU_F32)
        return ((const float *)data)[at];
    return v->dtype == GPU_F64 ? ((const double *)data)[at]
                               : ((const unsigned char *)data)[at] != 0;
}

static int64_t place_of(const gpu_view *v, int64_t i, int64_t j)
{
    return i * v->row_stride + j * v->col_stride;
}

/* --- the cases -------------------------------------------------------------
 */

typedef struct shaped {
    gpu_program p;
    jit_form form;
    gpu_dtype type[GPU_MAX_INPUTS], result;
    int kind[GPU_MAX_INPUTS], result_kind;
    int is_row;
    int is_in_place; /* the result lies where the first input does */
    int is_far;      /* of a reduction: neighbours are worked out far apart */
} shaped;

static shaped cases[PROGRAMS], folds[FOLDS];
static int programs = PROGRAMS, fold_count = FOLDS; /* of these */

/* As the CUDA backend does. */
static unsigned is_wide(const gpu_view *v)
{
    int64_t alignment = v->dtype == GPU_BOOL ? 4 : 16;
    return v->col_stride == 1 && (uintptr_t)v->data % (size_t)alignment == 0 &&
           (v->rows == 1 || v->row_stride % 4 == 0);
}

static void random_case(shaped *s)
{
    static const int lengths[] = {1, 2, 3, 6, 12, 30};
    s->p = random_program(lengths[any(6)]);
    s->is_row = any(2);
    s->result = any(3) == 0 ? GPU_BOOL : any(3) == 0 ? any(2) : s->p.compute;
    s->result_kind = any(2) ? 0 : any(RESULT_KINDS);
    for (int v = 0; v < s->p.inputs; v++) {
        s->type[v] = any(3) == 0 ? GPU_BOOL : any(3) == 0 ? GPU_F64 : GPU_F32;
        s->kind[v] = any(3) == 0 ? 0 : any(INPUT_KINDS);
    }
}

/* One input that lies along columns, or two, or three. */
static void turned_case(shaped *s, int turned)
{
    random_case(s);
    s->is_row = 0;
    if (s->p.compute == GPU_F64)
        turned = 1;
    for (int v = 0; v < s->p.inputs && v < turned; v++)
        s->kind[v] = BY_COLUMNS + (any(2) ? 0 : any(RESULT_KINDS));
}

static void several_results_case(shaped *s)
{
    random_case(s);
    s->p.extras = (uint8_t)(1 + any(GPU_MAX_EXTRAS));
    for (int e = 0; e < s->p.extras; e++)
        s->p.extra[e] =
            (uint8_t)(s->p.inputs + s->p.constants + any(s->p.length));
}

/* x = where(y, z, x), which keeps some of x. */
static void in_place_case(shaped *s)
{
    random_case(s);
    s->p = random_program(3);
    s->p.code[2].op = GPU_OP_where;
    s->p.code[2].z = 0;
    s->is_in_place = 1;
    s->result = s->type[0] = s->p.compute;
    s->kind[0] = any(2) ? 0 : any(RESULT_KINDS);
}

/* x[x > 1000000] = 0, where there are none. */
static void kept_case(shaped *s)
{
    *s = (shaped){.is_in_place = 1, .is_row = 1};
    gpu_program_start(&s->p, 1);
    int most = gpu_program_constant(&s->p, 1e6);
    int zero = gpu_program_constant(&s->p, 0);
    int mask = gpu_program_add(&s->p, GPU_OP_gt, 0, most, 0);
    gpu_program_add(&s->p, GPU_OP_where, mask, zero, 0);
}

/* Kinds take turns, so that each is there in every type. The sign of a NaN is
 * another one here. */
static void random_fold(shaped *s, int number)
{
    static const int kinds[] = {
        GPU_REDUCE_sum,    GPU_REDUCE_prod,   GPU_REDUCE_min,    GPU_REDUCE_max,
        GPU_REDUCE_argmin, GPU_REDUCE_argmax, GPU_REDUCE_SQUARES};
    random_case(s);
    s->p.reduction = (uint8_t)kinds[number % 7];
    for (int n = 0; n < s->p.length; n++)
        if (s->p.code[n].op == GPU_OP_copysign)
            s->p.code[n].op = GPU_OP_maximum;
    s->is_far = any(4) == 0;
    s->result_kind = 0;
}

/* A matrix without gaps beside one that is broadcast. */
static void broadcast_case(shaped *s, int kind)
{
    *s = (shaped){.type = {GPU_F32, GPU_F32}, .kind = {0, kind}};
    gpu_program_start(&s->p, 2);
    gpu_program_add(&s->p, GPU_OP_sub, 0, 1, 0);
}

/* The shapes that are run keep every operand's way: columns are a multiple of
 * four, or all are one less. */
static int64_t cols_of(const shaped *s, int n)
{
    static const int64_t rows[] = {1, 4, 1024, 1027, 4999, 4096};
    static const int64_t others[] = {4, 1024, 64, 260, 36, 2048};
    return s->is_row ? rows[n] : others[n] - (s == &cases[0] ? 1 : 0);
}

static int64_t rows_of(const shaped *s, int n)
{
    static const int64_t rows[] = {2, 3, 67, 9, 130, 5};
    return s->is_row ? 1 : rows[n];
}

typedef struct operands {
    held in[GPU_MAX_INPUTS], out, more[GPU_MAX_EXTRAS];
    jit_form form;
} operands;

static void make_operands(const shaped *s, int n, operands *o)
{
    int64_t rows = rows_of(s, n), cols = cols_of(s, n);
    gpu_view views[GPU_MAX_INPUTS];
    unsigned wide = 0;
    for (int v = 0; v < s->p.inputs; v++) {
        o->in[v] = make_held(s->type[v], rows, cols, s->kind[v]);
        views[v] = o->in[v].v;
        wide |= is_wide(&views[v]) << v;
    }
    o->out = s->is_in_place
                 ? o->in[0]
                 : make_held(s->result, rows, s->p.reduction ? 1 : cols,
                             s->result_kind);
    for (int e = 0; e < s->p.extras; e++)
        o->more[e] = make_held(s->result, rows, cols, s->result_kind);
    if (s->p.reduction) {
        assert_true(jit_fill_fold(&o->form, &s->p, (gpu_dtype)s->p.compute,
                                  views, &o->out.v,
                                  s->is_far ? 0 : wide | JIT_WIDE_RESULT));
        return;
    }
    wide |= is_wide(&o->out.v) ? JIT_WIDE_RESULT : 0;
    assert_true(jit_fill_form(&o->form, &s->p, (gpu_dtype)s->p.compute, views,
                              &o->out.v, wide));
}

static void drop_operands(const shaped *s, operands *o)
{
    for (int v = s->is_in_place; v < s->p.inputs; v++)
        drop_held(&o->in[v]);
    for (int e = 0; e < s->p.extras; e++)
        drop_held(&o->more[e]);
    drop_held(&o->out);
}

/* --- what is expected ------------------------------------------------------
 */

static double rounded(const gpu_program *p, double x)
{
    return p->compute == GPU_F32 ? (double)(float)x : x;
}

/* What the program gives for an element. */
static double computed(const shaped *s, const operands *o, int64_t i, int64_t j)
{
    const gpu_program *p = &s->p;
    double value[GPU_MAX_VALUES];
    int n = 0;
    for (int v = 0; v < p->inputs; v++) {
        const held *h = &o->in[v];
        size_t offset = (size_t)((unsigned char *)h->v.data - h->memory);
        value[n++] = rounded(
            p, element(&h->v, h->before + offset, place_of(&h->v, i, j)));
    }
    for (int c = 0; c < p->constants; c++)
        value[n++] = rounded(p, p->constant[c]);
    for (int k = 0; k < p->length; k++, n++) {
        const gpu_instruction *code = &p->code[k];
        value[n] = rounded(p, gpu_op_evaluate(code->op, value[code->x],
                                              value[code->y], value[code->z]));
    }
    return p->length > 0 ? value[n - 1] : value[0];
}

static double expected(const shaped *s, const operands *o, int64_t i, int64_t j)
{
    double x = computed(s, o, i, j);
    return s->result == GPU_BOOL  ? x != 0
           : s->result == GPU_F32 ? (double)(float)x
                                  : x;
}

/* Elements are right, and their neighbours as they were. */
static void check_result(const shaped *s, const operands *o, const held *h,
                         int number)
{
    size_t offset = (size_t)((unsigned char *)h->v.data - h->memory);
    size_t size = size_of(h->v.dtype);
    for (int64_t i = 0; i < h->v.rows; i++)
        for (int64_t j = 0; j < h->v.cols; j++) {
            int64_t at = place_of(&h->v, i, j);
            double x = element(&h->v, h->v.data, at);
            double y = expected(s, o, i, j);
            if (!same(x, y))
                fail_msg("program %d, %ldx%ld: %g at %ld, %ld, expected %g",
                         number, (long)h->v.rows, (long)h->v.cols, x, (long)i,
                         (long)j, y);
            memcpy(h->before + (int64_t)offset + at * (int64_t)size,
                   h->memory + (int64_t)offset + at * (int64_t)size, size);
        }
    assert_memory_equal(h->before, h->memory, h->bytes);
}

/* A further result is that of the program up to it. */
static void check_results(const shaped *s, const operands *o, int number)
{
    int first = s->p.inputs + s->p.constants;
    check_result(s, o, &o->out, number);
    for (int e = 0; e < s->p.extras; e++) {
        shaped one = *s;
        one.p.length = (uint8_t)(s->p.extra[e] - first + 1);
        check_result(&one, o, &o->more[e], number);
    }
}

/* --- as C++ ----------------------------------------------------------------
 */

static char folder[64];

static FILE *create(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    return f;
}

static void write_files(void)
{
    for (int i = 0; i < JIT_FILES; i++) {
        FILE *f = create(jit_files[i].name);
        fputs(jit_files[i].text, f);
        fclose(f);
    }
}

/* Each kernel in a namespace of its own, and a function for its grid. */
static void write_kernel(FILE *f, int number, const char *text, int is_fold)
{
    int meets = is_fold || !strstr(text, "#define TURNED 0\n");
    const char *type = is_fold ? "jit_reduction" : "jit_job";
    fprintf(f, "#define compiled compiled_%d\nnamespace k%d {\n%s}\n", number,
            number, text);
    fprintf(f,
            "#undef compiled\n#undef QUADS\n#undef IS_ROW\n#undef IS_WIDE\n"
            "#undef IS_LONG\n#undef DRAWS\n#undef INPUTS\n#undef KIND\n"
            "#undef IN_PLACE\n#undef BEFORE\n#undef READ\n#undef ITEM\n"
            "#undef READ_ONE\n#undef EXTRAS\n#undef TURNED\n#undef FILL\n"
            "static const %s *job_%d;\n"
            "static void thread_%d(void)\n{\n"
            "    k%d::compiled_%d(*job_%d);\n}\n"
            "extern \"C\" void run_%d(const %s *job, const unsigned *grid)\n"
            "{\n    job_%d = job;\n    run_grid(thread_%d, grid, %d);\n}\n",
            type, number, number, number, number, number, number, type, number,
            number, meets);
}

/* Threads that meet at barriers have stacks of their own, and each runs up to
 * the next barrier while the others wait. */
static const char beginning[] =
    "#include <cmath>\n#include <cstring>\n#include <ucontext.h>\n"
    "using namespace std;\n"
    "#define __device__\n#define __global__\n#define __grid_constant__\n"
    "#define __forceinline__ inline\n#define __launch_bounds__(...)\n"
    "#define __shared__ static\n"
    "struct places { unsigned x, y; };\n"
    "static places threadIdx, blockIdx, blockDim, gridDim;\n"
    "#include \"jit_job.h\"\n#include \"op_macros.h\"\n"
    "#include \"op_list.h\"\n"
    "static double __longlong_as_double(long long x)\n{\n"
    "    double r;\n    memcpy(&r, &x, sizeof r);\n    return r;\n}\n"
    "enum { MOST = 256, STACK = 64 << 10 };\n"
    "static ucontext_t others, context[MOST];\n"
    "static char stack[MOST][STACK];\n"
    "static bool has_ended[MOST];\n"
    "static unsigned now;\n"
    "static void (*body)(void);\n"
    "static void __syncthreads()\n{\n"
    "    unsigned own = now;\n    places place = threadIdx;\n"
    "    swapcontext(&context[own], &others);\n    threadIdx = place;\n}\n"
    "static void run_thread()\n{\n"
    "    body();\n    has_ended[now] = true;\n}\n"
    "static void run_together(unsigned count)\n{\n"
    "    for (now = 0; now < count; now++) {\n"
    "        getcontext(&context[now]);\n"
    "        context[now].uc_stack.ss_sp = stack[now];\n"
    "        context[now].uc_stack.ss_size = STACK;\n"
    "        context[now].uc_link = &others;\n"
    "        makecontext(&context[now], run_thread, 0);\n"
    "        has_ended[now] = false;\n    }\n"
    "    for (bool goes_on = true; goes_on;) {\n"
    "        goes_on = false;\n"
    "        for (now = 0; now < count; now++) {\n"
    "            if (has_ended[now])\n                continue;\n"
    "            threadIdx = {now % blockDim.x, now / blockDim.x};\n"
    "            swapcontext(&others, &context[now]);\n"
    "            goes_on = true;\n        }\n    }\n}\n"
    "static void run_grid(void (*thread)(void), const unsigned *grid,\n"
    "                     int meets)\n{\n"
    "    gridDim = {grid[0], grid[1]};\n    blockDim = {grid[2], grid[3]};\n"
    "    unsigned count = blockDim.x * blockDim.y;\n    body = thread;\n"
    "    for (unsigned b = 0; b < gridDim.x * gridDim.y; b++) {\n"
    "        blockIdx = {b % gridDim.x, b / gridDim.x};\n"
    "        for (unsigned t = 0; t < count && !meets; t++) {\n"
    "            threadIdx = {t % blockDim.x, t / blockDim.x};\n"
    "            thread();\n        }\n"
    "        if (meets)\n            run_together(count);\n    }\n}\n";

typedef void grid_fn(const void *job, const unsigned grid[4]);

static void *library; /* NULL: there is no compiler here */

static void write_case(FILE *f, int number, const jit_form *form)
{
    char text[JIT_MOST_TEXT];
    text[jit_write_source(form, text)] = '\0';
    write_kernel(f, number, text, form->fold != 0);
}

/* NULL: there is no compiler here. */
static void *compile_all(void)
{
    char command[512], path[256];
    FILE *f = create("kernels.cpp");
    fputs(beginning, f);
    for (int k = 0; k < programs; k++)
        write_case(f, k, &cases[k].form);
    for (int k = 0; k < fold_count; k++)
        write_case(f, PROGRAMS + k, &folds[k].form);
    fclose(f);
    snprintf(path, sizeof path, "%s/kernels.so", folder);
    snprintf(command, sizeof command,
             "cd %s && c++ -O1 -std=c++20 -w -ffp-contract=off -fPIC -shared "
             "-o kernels.so kernels.cpp",
             folder);
    if (system("c++ --version >/dev/null 2>&1") != 0)
        return NULL;
    assert_int_equal(system(command), 0);
    void *made = dlopen(path, RTLD_NOW);
    assert_non_null(made);
    return made;
}

static void run_kernel(int number, const void *job, const unsigned grid[4])
{
    char name[32];
    grid_fn *run;
    snprintf(name, sizeof name, "run_%d", number);
    *(void **)&run = dlsym(library, name);
    assert_non_null(run);
    run(job, grid);
}

static jit_operand operand_of(const held *h)
{
    return (jit_operand){h->v.data, h->v.row_stride, h->v.col_stride};
}

static void fill_job(const shaped *s, const operands *o, jit_job *job)
{
    for (int v = 0; v < s->p.inputs; v++)
        job->in[v] = operand_of(&o->in[v]);
    job->out = operand_of(&o->out);
    for (int e = 0; e < s->p.extras; e++)
        job->extra[e] = o->more[e].v.data;
    for (int c = 0; c < s->p.constants; c++) {
        job->single[c] = (float)s->p.constant[c];
        job->constant[c] = s->p.constant[c];
    }
}

static void run_case(int number, int n)
{
    const shaped *s = &cases[number];
    operands o;
    jit_launch l;
    jit_job job = {.rows = rows_of(s, n), .cols = cols_of(s, n)};
    make_operands(s, n, &o);
    assert_memory_equal(&o.form, &s->form, sizeof o.form);
    fill_job(s, &o, &job);
    assert_true(jit_plan_launch(&s->form, job.rows, job.cols, 1, &l));
    job.across = l.across;
    run_kernel(number, &job, (unsigned[]){l.blocks, 1, l.width, l.height});
    check_results(s, &o, number);
    drop_operands(s, &o);
}

static void elements_are_right(void **state)
{
    (void)state;
    if (!library)
        LEAVE_OUT("compiler for C++");
    for (int k = 0; k < programs; k++)
        for (int n = 0; n < SHAPES; n++)
            run_case(k, n);
}

/* Memory that cannot be written. */
static void what_stays_is_not_written(void **state)
{
    enum { SIZE = 1 << 16 };
    (void)state;
    if (!library)
        LEAVE_OUT("compiler for C++");
    float *x = mmap(NULL, SIZE * sizeof *x, PROT_READ,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(x, MAP_FAILED);
    jit_job job = {
        .in = {{x, 0, 1}}, .out = {x, 0, 1}, .rows = 1, .cols = SIZE};
    jit_launch l;
    assert_int_equal(cases[KEPT].form.in_place, 1);
    assert_true(jit_plan_launch(&cases[KEPT].form, 1, SIZE, 1, &l));
    run_kernel(KEPT, &job, (unsigned[]){l.blocks, 1, l.width, l.height});
    munmap(x, SIZE * sizeof *x);
}

/* --- reductions, as C++ -----------------------------------------------------
 * Of a block's share and of partial results; their sums are compared with those
 * in another order. */

typedef struct known {
    double value, size; /* size: what rounding is measured by */
    int64_t place, count;
} known;

static void meet(int kind, known *k, double x, int64_t place)
{
    int is_first = k->count++ == 0, is_nan = isnan(x) && !isnan(k->value);
    switch (kind) {
    case GPU_REDUCE_prod:
        k->value = is_first ? x : k->value * x;
        k->size = fabs(k->value);
        return;
    case GPU_REDUCE_sum:
    case GPU_REDUCE_SQUARES:
        x = kind == GPU_REDUCE_sum ? x : x * x;
        k->value = is_first ? x : k->value + x;
        k->size += fabs(x);
        return;
    case GPU_REDUCE_min:
    case GPU_REDUCE_argmin:
        is_first |= x < k->value || is_nan;
        break;
    default:
        is_first |= x > k->value || is_nan;
    }
    if (is_first) {
        k->value = x;
        k->place = place;
    }
}

static int is_place(int kind)
{
    return kind == GPU_REDUCE_argmin || kind == GPU_REDUCE_argmax;
}

/* The lines first .. of the elements. */
static known expect_lines(const shaped *s, const operands *o, int64_t first,
                          int64_t lines, int64_t length)
{
    known k = {0};
    for (int64_t i = first; i < first + lines; i++)
        for (int64_t j = 0; j < length; j++)
            meet(s->p.reduction, &k, computed(s, o, i, j),
                 lines > 1 ? i * length + j : j);
    return k;
}

/* Far from exact is what comes of differences that cancel. */
static void check_known(const shaped *s, int number, const known *k, double x)
{
    double y = is_place(s->p.reduction) ? (double)k->place : k->value;
    double most = s->result == GPU_F32 ? 1e-7 * fabs(y) + 1e-37 : 1e-300;
    if (s->result == GPU_BOOL)
        y = y != 0;
    else if (s->result == GPU_F32)
        y = (float)y;
    if (same(x, y) || fabs(x - y) <= most + 1e-12 * k->size ||
        (s->p.reduction == GPU_REDUCE_prod && k->size > 1e300))
        return;
    fail_msg("reduction %d, kind %d: %g, expected %g", number, s->p.reduction,
             x, y);
}

/* What a second stage would make of the partial results of a line: of equal
 * ones the first place. */
static double folded(int kind, const void *partials, int64_t count)
{
    known k = {0};
    for (int64_t n = 0; n < count; n++) {
        const double *total = (const double *)partials + n;
        const struct {
            double value;
            int64_t place;
        } *best = (const void *)((const double *)partials + 2 * n);
        if (!is_place(kind))
            meet(kind == GPU_REDUCE_SQUARES ? (int)GPU_REDUCE_sum : kind, &k,
                 *total, 0);
        else if (k.count > 0 && same(best->value, k.value))
            k.place = best->place >= 0 && best->place < k.place ? best->place
                                                                : k.place;
        else if (best->place >= 0)
            meet(kind, &k, best->value, best->place);
    }
    return is_place(kind) ? (double)k.place : k.value;
}

static void run_fold(int number, int n)
{
    static double partials[2 * MOST_PARTIALS];
    shaped *s = &folds[number];
    operands o;
    jit_reduction job = {0};
    jit_lines *l = &job.lines;
    make_operands(s, n, &o);
    fill_job(s, &o, &job.job);
    l->lines = rows_of(s, n);
    l->length = l->row_length = cols_of(s, n);
    l->kind = s->p.reduction;
    l->is_whole = number % 3 == 0;
    l->along_threads = JIT_FOLD_THREADS >> any(8);
    l->along_first = s->form.is_wide || any(2);
    l->neighbours = s->form.is_wide;
    l->chunk = (l->length / (1 + any(3)) + 4) / 4 * 4;
    l->chunks = (l->length + l->chunk - 1) / l->chunk;
    l->partials = partials;
    unsigned down = 1 + (unsigned)any(3);
    run_kernel(PROGRAMS + number, &job,
               (unsigned[]){(unsigned)l->chunks, down, JIT_FOLD_THREADS, 1});
    int64_t count = l->is_whole ? l->chunks * down : l->chunks;
    int64_t size = is_place(l->kind) ? 2 : 1;
    assert_true(count * l->lines <= MOST_PARTIALS);
    for (int64_t i = 0; i < (l->is_whole ? 1 : l->lines); i++) {
        known k = expect_lines(s, &o, i, l->is_whole ? l->lines : 1, l->length);
        double x =
            count > 1
                ? folded(l->kind, partials + i * count * size, count)
                : element(&o.out.v, o.out.v.data, place_of(&o.out.v, i, 0));
        if (count > 1 && s->result == GPU_BOOL)
            x = x != 0;
        else if (count > 1 && s->result == GPU_F32)
            x = (float)x;
        check_known(s, number, &k, x);
    }
    drop_operands(s, &o);
}

static void reductions_are_right(void **state)
{
    (void)state;
    if (!library)
        LEAVE_OUT("compiler for C++");
    for (int k = 0; k < fold_count; k++)
        for (int n = 0; n < FOLD_SHAPES; n++)
            run_fold(k, n);
}

/* --- by NVRTC --------------------------------------------------------------
 */

static void nvrtc_compiles_them(void **state)
{
    char text[JIT_MOST_TEXT], why[1000];
    (void)state;
    if (!has_nvrtc())
        LEAVE_OUT("NVRTC");
    for (int k = 0; k < programs + fold_count; k += 5) {
        const shaped *s = k < programs ? &cases[k] : &folds[k - programs];
        text[jit_write_source(&s->form, text)] = '\0';
        void *image = compiled(text, VERSION, why, sizeof why);
        if (!image)
            fail_msg("program %d: %s", k, why);
        free(image);
    }
}

/* What does not compile is told. */
static void it_says_what_is_wrong(void **state)
{
    char why[1000];
    size_t bytes;
    jit_compiler c = {0};
    (void)state;
    if (!has_nvrtc())
        LEAVE_OUT("NVRTC");
    assert_null(compiled("int x = unknown;", VERSION, why, sizeof why));
    assert_non_null(strstr(why, "\"unknown\" is undefined"));
    assert_null(compiled("int x;", 1000, why, sizeof why));
    assert_string_equal(why, "there is no NVRTC of this version");
    assert_null(jit_compile(&c, "/nowhere", VERSION, "int x;", CAPABILITY,
                            &bytes, why, sizeof why));
    assert_string_equal(why, "/nowhere: No such file or directory");
}

static void every_operation_compiles(void **state)
{
    char text[JIT_MOST_TEXT], why[1000];
    (void)state;
    if (!has_nvrtc())
        LEAVE_OUT("NVRTC");
    for (int compute = GPU_F32; compute <= GPU_F64; compute++) {
        jit_form f = {.compute = (uint8_t)compute, .inputs = 3, .is_row = 1};
        for (int op = 0; op < GPU_OP_ROW; op += 16) {
            f.length = 0;
            for (int o = op; o < op + 16 && o < GPU_OP_ROW; o++) {
                uint8_t last = (uint8_t)(f.length > 0 ? 2 + f.length : 0);
                f.code[f.length++] = (gpu_instruction){(uint8_t)o, last, 1, 2};
            }
            text[jit_write_source(&f, text)] = '\0';
            void *image = compiled(text, VERSION, why, sizeof why);
            if (!image)
                fail_msg("operations from %d on: %s", op, why);
            free(image);
        }
    }
}

/* A row, or rows of which the last lack elements of a four, drawn in each way,
 * twice, beside what is read. */
static void random_numbers_compile(void **state)
{
    char text[JIT_MOST_TEXT], why[1000];
    (void)state;
    if (!has_nvrtc())
        LEAVE_OUT("NVRTC");
    for (int k = 0; k < 12; k++) {
        gpu_dtype type = k % 2 ? GPU_F64 : GPU_F32;
        gpu_random draw[3] = {[1] = {.kind = (gpu_random_kind)(k / 2 % 3)},
                              [2] = {.kind = GPU_UNIFORM}};
        int64_t cols = k < 6 ? 64 : 63, rows = k < 6 ? 1 : 9;
        float memory[1];
        gpu_view v = {memory, type, rows, cols, cols, 1}, drawn = v;
        gpu_program p;
        jit_form f;
        drawn.data = NULL;
        gpu_program_start(&p, 3);
        int product = gpu_program_add(&p, GPU_OP_mul, 0, 1, 0);
        gpu_program_add(&p, GPU_OP_add, product, 2, 0);
        p.draw = draw;
        const gpu_view in[] = {v, drawn, drawn};
        assert_true(jit_fill_form(&f, &p, type, in, &v,
                                  k < 6 ? 7 | JIT_WIDE_RESULT : 0));
        assert_int_equal(f.way[1], JIT_UNIFORM + k / 2 % 3);
        text[jit_write_source(&f, text)] = '\0';
        void *image = compiled(text, VERSION, why, sizeof why);
        if (!image)
            fail_msg("kind %d, type %d: %s", k / 2, (int)type, why);
        free(image);
    }
}

/* Nor have those whose fours would begin between two blocks of numbers, or that
 * draw three times. */
static void some_draws_have_no_kernel(void **state)
{
    gpu_random draw[3] = {{.kind = GPU_UNIFORM}};
    gpu_view v = {NULL, GPU_F32, 9, 64, 64, 1};
    jit_form f;
    gpu_program p;
    (void)state;
    gpu_program_start(&p, 1);
    gpu_program_add(&p, GPU_OP_neg, 0, 0, 0);
    p.draw = draw;
    assert_true(jit_fill_form(&f, &p, GPU_F32, &v, &v, 1 | JIT_WIDE_RESULT));
    assert_false(jit_fill_form(&f, &p, GPU_F32, &v, &v, JIT_WIDE_RESULT));
    assert_true(jit_fill_form(&f, &p, GPU_F32, &v, &v, 0));
    gpu_program_start(&p, 3);
    gpu_program_add(&p, GPU_OP_clip, 0, 1, 2);
    p.draw = draw;
    const gpu_view in[] = {v, v, v};
    assert_false(jit_fill_form(&f, &p, GPU_F32, in, &v, 7 | JIT_WIDE_RESULT));
}

/* --- which kernels there are -----------------------------------------------
 */

/* Programs that differ in their constants alone share a kernel. */
static void constants_do_not_matter(void **state)
{
    gpu_program p, q;
    gpu_view v = {NULL, GPU_F32, 1, 100, 100, 1};
    jit_form f, g;
    (void)state;
    gpu_program_start(&p, 1);
    gpu_program_constant(&p, 2);
    gpu_program_add(&p, GPU_OP_mul, 0, 1, 77);
    gpu_program_start(&q, 1);
    gpu_program_constant(&q, 3);
    gpu_program_add(&q, GPU_OP_mul, 0, 1, 0);
    assert_true(jit_fill_form(&f, &p, GPU_F32, &v, &v, 0));
    assert_true(jit_fill_form(&g, &q, GPU_F32, &v, &v, 0));
    assert_memory_equal(&f, &g, sizeof f);
    assert_true(jit_fill_form(&g, &q, GPU_F64, &v, &v, 0));
    assert_memory_not_equal(&f, &g, sizeof f);
}

static void places_have_no_kernel(void **state)
{
    gpu_program p;
    gpu_view v = {NULL, GPU_F32, 1, 100, 100, 1};
    jit_form f;
    (void)state;
    gpu_program_start(&p, 1);
    gpu_program_add(&p, GPU_OP_ROW, 0, 0, 0);
    assert_false(jit_fill_form(&f, &p, GPU_F64, &v, &v, 0));
}

/* The longest program there can be has room. */
static void the_longest_text_fits(void **state)
{
    char text[JIT_MOST_TEXT];
    jit_form f = {.compute = GPU_F64, .inputs = 8, .constants = 8};
    (void)state;
    f.length = GPU_MAX_CODE;
    for (int n = 0; n < GPU_MAX_CODE; n++)
        f.code[n] = (gpu_instruction){GPU_OP_logaddexp, 15, 15, 15};
    size_t used = jit_write_source(&f, text);
    assert_true(used < JIT_MOST_TEXT - 256);
    assert_non_null(strstr(text + used - 40, "#include \"kernel_body.h\""));
}

static int make_cases(void **state)
{
    operands o;
    (void)state;
    if (getenv("LUMAT_TEST_SEED"))
        seed = (uint32_t)atoi(getenv("LUMAT_TEST_SEED"));
    if (getenv("LUMAT_TEST_EVERY")) {
        programs = FEWER_PROGRAMS;
        fold_count = FEWER_FOLDS;
    }
    strcpy(folder, "/tmp/lumat-kernels-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    write_files();
    for (int k = 0; k < programs; k++) {
        random_case(&cases[k]);
        if (k > 0 && k < 4)
            broadcast_case(&cases[k], 4 + k);
        if (k >= 4 && k < KEPT)
            in_place_case(&cases[k]);
        if (k > KEPT && k < KEPT + 12)
            several_results_case(&cases[k]);
        if (k == KEPT)
            kept_case(&cases[k]);
        if (k >= programs - 12)
            turned_case(&cases[k], 1 + k % 3);
        make_operands(&cases[k], 1, &o);
        cases[k].form = o.form;
        drop_operands(&cases[k], &o);
    }
    for (int k = 0; k < fold_count; k++) {
        random_fold(&folds[k], k);
        make_operands(&folds[k], 1, &o);
        folds[k].form = o.form;
        drop_operands(&folds[k], &o);
    }
    library = compile_all();
    return 0;
}

static int remove_folder(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants_do_not_matter),
        cmocka_unit_test(places_have_no_kernel),
        cmocka_unit_test(the_longest_text_fits),
        cmocka_unit_test(elements_are_right),
        cmocka_unit_test(what_stays_is_not_written),
        cmocka_unit_test(reductions_are_right),
        cmocka_unit_test(nvrtc_compiles_them),
        cmocka_unit_test(every_operation_compiles),
        cmocka_unit_test(random_numbers_compile),
        cmocka_unit_test(some_draws_have_no_kernel),
        cmocka_unit_test(it_says_what_is_wrong),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_cases, remove_folder);
}
