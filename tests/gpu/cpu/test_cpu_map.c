/* Elementwise programs on the CPU: layouts, broadcasting, types, chains,
 * places, threads, interruption. */
#include "cpu.h"
#include "cpu_testing.h"
#include "op_list.h"

/* A size of each kind: tiny, one block, several, more than one thread. */
static const int64_t shapes[][2] = {
    {1, 1},   {2, 2},    {1, 5},    {7, 1},    {3, 70},   {64, 1},    {65, 1},
    {33, 31}, {1, 1025}, {1030, 1}, {5, 3000}, {3000, 5}, {260, 257},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static double element(gpu_dtype t, double v)
{
    return t == GPU_F64 ? v : t == GPU_F32 ? (double)(float)v : v != 0;
}

/* x - 2 y over every pair of layouts and types. */
static void check_binary(int64_t m, int64_t n, gpu_dtype tx, gpu_dtype ty,
                         gpu_dtype tr, const layout how[3])
{
    gpu_dtype compute = tx == GPU_F64 || ty == GPU_F64 ? GPU_F64 : GPU_F32;
    block x = make(tx, m, n, how[0]), y = make(ty, m, n, how[1]);
    block r = make(tr, m, n, how[2]);
    gpu_program p = program_of(GPU_OP_sub, 2, compute);
    gpu_view in[2] = {x.v, y.v};
    fill_integers(&x.v, 50);
    fill_integers(&y.v, 50);
    assert_int_equal(cpu->map(device, &p, in, &r.v), GPU_OK);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double d = get(&x.v, i, j) - get(&y.v, i, j);
            if (get(&r.v, i, j) != element(tr, d))
                fail_msg("%ldx%ld layouts %d %d %d types %d %d %d at %ld %ld",
                         (long)m, (long)n, how[0], how[1], how[2], tx, ty, tr,
                         (long)i, (long)j);
        }
    drop(&x);
    drop(&y);
    drop(&r);
}

static void layouts_and_types(void **state)
{
    (void)state;
    for (int s = 0; s < SHAPES; s++)
        for (int k = 0; k < LAYOUTS * LAYOUTS * LAYOUTS; k++) {
            layout how[3] = {(layout)(k % LAYOUTS),
                             (layout)(k / LAYOUTS % LAYOUTS),
                             (layout)(k / LAYOUTS / LAYOUTS)};
            gpu_dtype t[3];
            for (int i = 0; i < 3; i++)
                t[i] = (gpu_dtype)next_below(GPU_DTYPES);
            check_binary(shapes[s][0], shapes[s][1], t[0], t[1], t[2], how);
            check_binary(shapes[s][0], shapes[s][1], GPU_F32, GPU_F32, GPU_F32,
                         how);
            check_binary(shapes[s][0], shapes[s][1], GPU_F64, GPU_F64, GPU_F64,
                         how);
        }
}

static void every_conversion(void **state)
{
    (void)state;
    static const double values[] = {0, -0.0, 1, -2.5, 1e-300, 1e30, 0.1, 3};
    for (int k = 0; k < GPU_DTYPES * GPU_DTYPES * LAYOUTS; k++) {
        gpu_dtype from = (gpu_dtype)(k % 3), to = (gpu_dtype)(k / 3 % 3);
        block x = make(from, 40, 50, (layout)(k / 9));
        block r = make(to, 40, 50, DENSE);
        gpu_program p = empty_program(GPU_F32);
        for (int64_t i = 0; i < 2000; i++)
            set(&x.v, i / 50, i % 50, values[next_below(8)]);
        assert_int_equal(cpu->map(device, &p, &x.v, &r.v), GPU_OK);
        for (int64_t i = 0; i < 2000; i++)
            assert_true(same(get(&r.v, i / 50, i % 50),
                             element(to, get(&x.v, i / 50, i % 50))));
        drop(&x);
        drop(&r);
    }
}

static void broadcasting(void **state)
{
    (void)state;
    for (int s = 0; s < SHAPES; s++)
        for (int how = DENSE; how < LAYOUTS; how++) {
            int64_t m = shapes[s][0], n = shapes[s][1];
            block a = make(GPU_F32, m, n, (layout)how);
            block row = make(GPU_F32, 1, n, DENSE);
            block col = make(GPU_F32, m, 1, DENSE);
            block one = make(GPU_F64, 1, 1, DENSE);
            block r = make(GPU_F32, m, n, (layout)((how + s) % LAYOUTS));
            gpu_program p = program_of(GPU_OP_add, 4, GPU_F32);
            p.length = 3;
            p.code[1] = (gpu_instruction){GPU_OP_mul, 4, 2, 0};
            p.code[2] = (gpu_instruction){GPU_OP_sub, 5, 3, 0};
            fill_integers(&a.v, 20);
            fill_integers(&row.v, 20);
            fill_integers(&col.v, 20);
            fill_integers(&one.v, 20);
            gpu_view in[4] = {a.v,
                              {row.v.data, GPU_F32, m, n, 0, 1},
                              {col.v.data, GPU_F32, m, n, 1, 0},
                              {one.v.data, GPU_F64, m, n, 0, 0}};
            assert_int_equal(cpu->map(device, &p, in, &r.v), GPU_OK);
            for (int64_t i = 0; i < m; i++)
                for (int64_t j = 0; j < n; j++)
                    assert_true(get(&r.v, i, j) ==
                                (get(&a.v, i, j) + get(&row.v, 0, j)) *
                                        get(&col.v, i, 0) -
                                    get(&one.v, 0, 0));
            drop(&a);
            drop(&row);
            drop(&col);
            drop(&one);
            drop(&r);
        }
}

/* A random program, evaluated beside with gpu_op_evaluate on integers, which
 * stay exact. */
static gpu_program random_program(void)
{
    static const gpu_op ops[] = {GPU_OP_add,     GPU_OP_sub,  GPU_OP_neg,
                                 GPU_OP_maximum, GPU_OP_clip, GPU_OP_where,
                                 GPU_OP_lt,      GPU_OP_abs,  GPU_OP_sign,
                                 GPU_OP_ROW,     GPU_OP_COL};
    gpu_program p = empty_program((gpu_dtype)next_below(2));
    p.inputs = (uint8_t)(1 + next_below(GPU_MAX_INPUTS));
    p.constants = (uint8_t)next_below(GPU_MAX_CONSTANTS + 1);
    p.length = (uint8_t)(1 + next_below(12));
    for (int c = 0; c < p.constants; c++)
        p.constant[c] = (double)(next_below(20) - 10);
    for (int i = 0; i < p.length; i++) {
        int known = p.inputs + p.constants + i;
        p.code[i] = (gpu_instruction){
            (uint8_t)ops[next_below(sizeof ops / sizeof *ops)],
            (uint8_t)next_below(known), (uint8_t)next_below(known),
            (uint8_t)next_below(known)};
    }
    return p;
}

static double expected(const gpu_program *p, const block *x, int64_t i,
                       int64_t j)
{
    double v[GPU_MAX_VALUES];
    int k = 0;
    for (; k < p->inputs; k++)
        v[k] = get(&x[k].v, i, j);
    for (int c = 0; c < p->constants; c++)
        v[k++] = p->constant[c];
    for (int q = 0; q < p->length; q++) {
        const gpu_instruction *c = &p->code[q];
        v[k++] = c->op == GPU_OP_ROW   ? (double)i
                 : c->op == GPU_OP_COL ? (double)j
                                       : gpu_op_evaluate((gpu_op)c->op, v[c->x],
                                                         v[c->y], v[c->z]);
    }
    return v[k - 1];
}

static void random_programs(void **state)
{
    (void)state;
    for (int round = 0; round < 400; round++) {
        const int64_t *shape = shapes[next_below(SHAPES)];
        gpu_program p = random_program();
        block x[GPU_MAX_INPUTS];
        gpu_view in[GPU_MAX_INPUTS];
        block r = make(next_below(2) ? GPU_F64 : (gpu_dtype)p.compute, shape[0],
                       shape[1], (layout)next_below(LAYOUTS));
        for (int k = 0; k < p.inputs; k++) {
            x[k] = make((gpu_dtype)next_below(2), shape[0], shape[1],
                        (layout)next_below(LAYOUTS));
            fill_integers(&x[k].v, 30);
            in[k] = x[k].v;
        }
        assert_int_equal(cpu->map(device, &p, in, &r.v), GPU_OK);
        for (int64_t i = 0; i < shape[0]; i++)
            for (int64_t j = 0; j < shape[1]; j++)
                assert_true(get(&r.v, i, j) == expected(&p, x, i, j));
        for (int k = 0; k < p.inputs; k++)
            drop(&x[k]);
        drop(&r);
    }
}

/* In f64, with parts that are rounded to f32 and operands of all types: steps
 * that are taken in f32 give what f64 gives. */
static gpu_program program_of_two_types(void)
{
    static const gpu_op ops[] = {
        GPU_OP_add,     GPU_OP_sub,       GPU_OP_mul,    GPU_OP_div,
        GPU_OP_sqrt,    GPU_OP_mod,       GPU_OP_idiv,   GPU_OP_neg,
        GPU_OP_maximum, GPU_OP_where,     GPU_OP_lt,     GPU_OP_ge,
        GPU_OP_land,    GPU_OP_floor,     GPU_OP_round,  GPU_OP_sign,
        GPU_OP_isnan,   GPU_OP_clip,      GPU_OP_square, GPU_OP_atan,
        GPU_OP_ROW,     GPU_OP_reciprocal};
    static const double hard[] = {0.5, 0.1, 1e-38, 3e38, -1e-45, 0, 3, 1e300};
    gpu_program p = random_program();
    p.compute = GPU_F64;
    for (int c = 0; c < p.constants; c++)
        p.constant[c] = hard[next_below(8)];
    for (int i = 0; i < p.length; i++) {
        gpu_instruction *code = &p.code[i];
        code->op = (uint8_t)ops[next_below(sizeof ops / sizeof *ops)];
        if (i == 0 || next_below(2))
            continue;
        code->op = GPU_OP_single;
        code->x = (uint8_t)(p.inputs + p.constants + i - 1);
    }
    return p;
}

static void programs_of_two_types(void **state)
{
    (void)state;
    for (int round = 0; round < 1500; round++) {
        const int64_t *shape = shapes[next_below(SHAPES)];
        gpu_program p = program_of_two_types();
        block x[GPU_MAX_INPUTS];
        gpu_view in[GPU_MAX_INPUTS];
        block r = make((gpu_dtype)next_below(GPU_DTYPES), shape[0], shape[1],
                       (layout)next_below(LAYOUTS));
        for (int k = 0; k < p.inputs; k++) {
            x[k] = make((gpu_dtype)next_below(GPU_DTYPES), shape[0], shape[1],
                        (layout)next_below(LAYOUTS));
            fill_uniform(&x[k].v, -4, 4);
            in[k] = x[k].v;
        }
        assert_int_equal(cpu->map(device, &p, in, &r.v), GPU_OK);
        for (int64_t i = 0; i < shape[0]; i++)
            for (int64_t j = 0; j < shape[1]; j++) {
                double e = element(r.v.dtype, expected(&p, x, i, j));
                double found = get(&r.v, i, j);
                assert_true(found == e || (isnan(found) && isnan(e)));
            }
        for (int k = 0; k < p.inputs; k++)
            drop(&x[k]);
        drop(&r);
    }
}

static void operands_past_the_arity_are_ignored(void **state)
{
    (void)state;
    for (int64_t n = 3; n < 3000; n *= 10) {
        block x = make(GPU_F32, n, 1, DENSE);
        gpu_program p = program_of(GPU_OP_neg, 1, GPU_F32);
        p.code[0].y = p.code[0].z = 255;
        fill_integers(&x.v, 9);
        double first = get(&x.v, 0, 0);
        assert_int_equal(cpu->map(device, &p, &x.v, &x.v), GPU_OK);
        assert_true(get(&x.v, 0, 0) == -first);
        drop(&x);
    }
}

static void in_place(void **state)
{
    (void)state;
    for (int s = 0; s < SHAPES; s++)
        for (int how = DENSE; how < LAYOUTS; how++)
            for (int op = 0; op < 2; op++) {
                int64_t m = shapes[s][0], n = shapes[s][1];
                block x = make(GPU_F32, m, n, (layout)how);
                block before = make(GPU_F32, m, n, DENSE);
                gpu_op which = op ? GPU_OP_cos : GPU_OP_square;
                gpu_program p = program_of(which, 1, GPU_F32);
                gpu_program copy = empty_program(GPU_F32);
                fill_integers(&x.v, 30);
                cpu->map(device, &copy, &x.v, &before.v);
                assert_int_equal(cpu->map(device, &p, &x.v, &x.v), GPU_OK);
                for (int64_t i = 0; i < m * n; i++) {
                    double v = get(&before.v, i / n, i % n);
                    double r = get(&x.v, i / n, i % n);
                    double e = gpu_op_evaluate(which, v, 0, 0);
                    assert_true(ulps(GPU_F32, r, e) <= 1.1);
                }
                drop(&x);
                drop(&before);
            }
}

static void constants_alone(void **state)
{
    (void)state;
    for (int64_t n = 1; n < 100000; n *= 7)
        for (gpu_dtype t = GPU_F32; t < GPU_DTYPES; t++) {
            block r = make(t, n, 1, DENSE);
            gpu_program p = empty_program(t == GPU_F64 ? GPU_F64 : GPU_F32);
            p.inputs = 0;
            p.constants = 1;
            p.constant[0] = 0.1;
            assert_int_equal(cpu->map(device, &p, NULL, &r.v), GPU_OK);
            for (int64_t i = 0; i < n; i++)
                assert_true(get(&r.v, i, 0) == element(t, 0.1));
            drop(&r);
        }
}

static void nothing_outside_is_written(void **state)
{
    (void)state;
    block r = make(GPU_F32, 50, 70, GAPPED), x = make(GPU_F32, 50, 70, DENSE);
    gpu_program p = program_of(GPU_OP_exp, 1, GPU_F32);
    float *memory = r.memory;
    for (size_t i = 0; i < r.bytes / 4; i++)
        memory[i] = -7;
    assert_int_equal(cpu->map(device, &p, &x.v, &r.v), GPU_OK);
    int64_t ones = 0, others = 0;
    for (size_t i = 0; i < r.bytes / 4; i++) {
        ones += memory[i] == 1;
        others += memory[i] == -7;
    }
    assert_int_equal(ones, 50 * 70);
    assert_int_equal(ones + others, r.bytes / 4);
    drop(&r);
    drop(&x);
}

static void threads_do_not_matter(void **state)
{
    (void)state;
    int64_t n = 200003;
    block x = make(GPU_F32, n, 1, DENSE), r[2];
    gpu_program p = program_of(GPU_OP_sin, 1, GPU_F32);
    fill_uniform(&x.v, -100, 100);
    for (int k = 0; k < 2; k++) {
        r[k] = make(GPU_F32, n, 1, DENSE);
        gpu_cpu_set_threads(k ? 5 : 1);
        assert_int_equal(cpu->map(device, &p, &x.v, &r[k].v), GPU_OK);
    }
    gpu_cpu_set_threads(0);
    assert_memory_equal(r[0].memory, r[1].memory, (size_t)n * 4);
    drop(&x);
    drop(&r[0]);
    drop(&r[1]);
}

static void interruption(void **state)
{
    (void)state;
    block x = make(GPU_F32, 1000000, 1, DENSE);
    gpu_program p = program_of(GPU_OP_sin, 1, GPU_F32);
    interrupted = 1;
    gpu_status status = cpu->map(device, &p, &x.v, &x.v);
    interrupted = 0;
    assert_int_equal(status, GPU_INTERRUPTED);
    assert_string_equal(message, "interrupted");
    assert_int_equal(cpu->map(device, &p, &x.v, &x.v), GPU_OK);
    drop(&x);
}

static void empty_shapes(void **state)
{
    (void)state;
    gpu_view none = {NULL, GPU_F32, 0, 5, 5, 1};
    gpu_program p = program_of(GPU_OP_neg, 1, GPU_F32);
    assert_int_equal(cpu->map(device, &p, &none, &none), GPU_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_and_types),
        cmocka_unit_test(every_conversion),
        cmocka_unit_test(broadcasting),
        cmocka_unit_test(random_programs),
        cmocka_unit_test(programs_of_two_types),
        cmocka_unit_test(operands_past_the_arity_are_ignored),
        cmocka_unit_test(in_place),
        cmocka_unit_test(constants_alone),
        cmocka_unit_test(nothing_outside_is_written),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(interruption),
        cmocka_unit_test(empty_shapes),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_cpu, NULL);
}
