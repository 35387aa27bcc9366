/* map(A, B, …, f): a function of numbers for the elements of matrices. Where it
 * can be read as a formula the formula is run, one pass over memory, on the
 * device of the matrices; else f is called for every element. */
#include "arguments.h"
#include "cancellation.h"
#include "complex_value.h"
#include "formula.h"
#include "math_functions.h"
#include "op_list.h"
#include "value.h"

#include <stdio.h>
#include <string.h>

/* --- programs of a formula ------------------------------------------------ */

enum { LONGEST_NAME = 60 };

/* A formula, and the values of it that have become matrices. */
typedef struct running {
    lua_State *L;
    const lumat_formula *f;
    const gpu_matrix *shape; /* of all that is computed */
    gpu_device *device;
    gpu_team through;
    gpu_matrix *made[LUMAT_MOST_VALUES];
} running;

/* The part of a formula that one value is computed by, of operands, constants
 * and values that are matrices. */
typedef struct part {
    int inputs, constants, length;
    int input[GPU_MAX_INPUTS], constant[GPU_MAX_CONSTANTS];
    uint8_t seen[LUMAT_MOST_VALUES];
} part;

static const gpu_matrix *matrix_of(const running *r, int v)
{
    const lumat_formula_value *value = &r->f->values[v];
    if (value->is == LUMAT_VALUE_OPERAND)
        return lumat_test_matrix(r->L, value->x);
    return r->made[v];
}

/* Adds what value v is computed of, before it. What is too much is counted. */
static void add_to_part(const running *r, int v, part *p)
{
    const lumat_formula_value *value = &r->f->values[v];
    if (p->seen[v])
        return;
    p->seen[v] = 1;
    if (matrix_of(r, v)) {
        if (p->inputs < GPU_MAX_INPUTS)
            p->input[p->inputs] = v;
        p->inputs++;
        return;
    }
    if (value->is == LUMAT_VALUE_CONSTANT) {
        if (p->constants < GPU_MAX_CONSTANTS)
            p->constant[p->constants] = v;
        p->constants++;
        return;
    }
    const int operands[] = {value->x, value->y, value->z};
    for (int i = 0; i < gpu_op_arity(value->op); i++)
        add_to_part(r, operands[i], p);
    p->length++;
}

static int part_fits(const part *p)
{
    return p->inputs <= GPU_MAX_INPUTS && p->constants <= GPU_MAX_CONSTANTS &&
           p->length <= GPU_MAX_CODE;
}

static part part_of(const running *r, int v)
{
    part p = {.length = 0};
    add_to_part(r, v, &p);
    return p;
}

static gpu_program program_of(const running *r, const part *p)
{
    gpu_program program;
    int at[LUMAT_MOST_VALUES];
    gpu_program_start(&program, p->inputs);
    program.compute = GPU_F64;
    for (int i = 0; i < p->inputs; i++)
        at[p->input[i]] = i;
    for (int i = 0; i < p->constants; i++)
        at[p->constant[i]] =
            gpu_program_constant(&program, r->f->values[p->constant[i]].number);
    for (int v = 0; v < r->f->count; v++) {
        const lumat_formula_value *value = &r->f->values[v];
        int arity = gpu_op_arity(value->op);
        if (!p->seen[v] || matrix_of(r, v) ||
            value->is != LUMAT_VALUE_OPERATION)
            continue;
        at[v] = gpu_program_add(
            &program, value->op, arity > 0 ? at[value->x] : 0,
            arity > 1 ? at[value->y] : 0, arity > 2 ? at[value->z] : 0);
    }
    return program;
}

/* "map(mul, add)": what the trace and the profile say. */
static const char *name_of(const gpu_program *p)
{
    char text[LONGEST_NAME] = "map(";
    static const char more[] = "...";
    for (int i = 0; i < p->length; i++) {
        const char *name = gpu_op_name(p->code[i].op);
        if (strlen(text) + strlen(name) + sizeof ", " + sizeof more >=
            sizeof text) {
            strcat(text, more);
            break;
        }
        strcat(strcat(text, name), i + 1 < p->length ? ", " : "");
    }
    return p->length > 0 ? gpu_keep_name(strcat(text, ")")) : "map";
}

/* Are the matrices of the part as large as the result, together? */
static int has_shape(const running *r, const part *p,
                     const gpu_matrix *const *in)
{
    gpu_matrix s;
    return p->inputs > 0 && gpu_map_shape("map", in, p->inputs, &s) == GPU_OK &&
           s.rows == r->shape->rows && s.cols == r->shape->cols;
}

/* The type of what gpu_map makes of the part. */
static gpu_dtype made_type(const part *p, const gpu_program *program,
                           const gpu_matrix *const *in)
{
    gpu_dtype type = GPU_F32;
    if (program->length > 0 &&
        gpu_op_is_test(program->code[program->length - 1].op))
        return GPU_BOOL;
    for (int i = 0; i < p->inputs; i++)
        if (in[i]->dtype == GPU_F64)
            type = GPU_F64;
    for (int i = 0; i < program->length; i++)
        if (program->code[i].op >= GPU_OP_ROW)
            type = GPU_F64; /* places */
    return type;
}

/* Pushes the matrix of value v, whose part fits. Where gpu_map would make the
 * same it does: then the result may wait. */
static gpu_matrix *run_part(running *r, int v, const part *p, gpu_dtype dtype)
{
    lua_State *L = r->L;
    const gpu_matrix *in[GPU_MAX_INPUTS];
    const gpu_matrix *s = r->shape;
    gpu_matrix *out = lumat_new_matrix(L);
    gpu_program program = program_of(r, p);
    for (int i = 0; i < p->inputs; i++)
        in[i] = matrix_of(r, p->input[i]);
    if (program.length == 0 || !has_shape(r, p, in) ||
        made_type(p, &program, in) != dtype)
        lumat_try(L,
                  gpu_create(out, r->device, dtype, s->ndim, s->rows, s->cols));
    gpu_team before = gpu_compute_together(r->through);
    gpu_status status = gpu_map(name_of(&program), &program, in, out);
    gpu_compute_together(before);
    lumat_try(L, status);
    lumat_account(L, out);
    r->made[v] = out;
    return out;
}

/* Makes matrices of v's operands, that with the longest part first, until v's
 * own part fits one program. Theirs do: those before v have been looked at. */
static void shorten(running *r, int v)
{
    const lumat_formula_value *value = &r->f->values[v];
    const int operands[] = {value->x, value->y, value->z};
    for (part p = part_of(r, v); !part_fits(&p); p = part_of(r, v)) {
        int longest = -1, length = 0;
        for (int i = 0; i < gpu_op_arity(value->op); i++) {
            part of_operand = part_of(r, operands[i]);
            if (of_operand.length > length)
                length = of_operand.length, longest = operands[i];
        }
        if (longest < 0)
            return;
        p = part_of(r, longest);
        run_part(r, longest, &p, GPU_F64);
    }
}

gpu_matrix *lumat_run_formula(lua_State *L, const lumat_formula *formula,
                              int first, int count, const gpu_matrix *shape,
                              gpu_dtype dtype, gpu_team through)
{
    running *r = lua_newuserdatauv(L, sizeof *r, 0);
    int top = lua_gettop(L);
    *r = (running){.L = L, .f = formula, .shape = shape, .through = through};
    for (int i = 0; i < count && !r->device; i++)
        if (lumat_test_matrix(L, first + i))
            r->device = gpu_matrix_device(lumat_test_matrix(L, first + i));
    part all = part_of(r, formula->result);
    for (int v = 0; !part_fits(&all) && v <= formula->result; v++)
        if (all.seen[v] && formula->values[v].is == LUMAT_VALUE_OPERATION) {
            luaL_checkstack(L, 8, "map");
            shorten(r, v);
        }
    all = part_of(r, formula->result);
    gpu_matrix *out = run_part(r, formula->result, &all, dtype);
    for (int v = 0; v < formula->count; v++)
        if (r->made[v] && r->made[v] != out)
            gpu_release(r->made[v]);
    lua_replace(L, top);
    lua_settop(L, top);
    return out;
}

/* --- f for every element -------------------------------------------------- */

/* An argument: elements on the host with what lies between neighbours, 0 where
 * it is broadcast, or data NULL and a number at index. */
typedef struct argument {
    const void *data;
    gpu_dtype dtype;
    int64_t down, across;
} argument;

typedef struct mapping {
    int count, f; /* arguments, from 1 on, and the index of the function */
    gpu_matrix shape;
    gpu_dtype dtype;
    gpu_device *device;
    gpu_team through; /* see lumat_option_through */
} mapping;

/* Returns whether it is true or false, no number. */
static int store(void *data, gpu_dtype dtype, int64_t at, lua_State *L)
{
    int is_truth = lua_isboolean(L, -1);
    double value = is_truth ? lua_toboolean(L, -1) : lua_tonumber(L, -1);
    if (lua_type(L, -1) != LUA_TNUMBER && !is_truth)
        lumat_raise(L, "map: the function gave a %s, not a number",
                    lumat_kind_of(L, -1));
    if (dtype == GPU_F32)
        ((float *)data)[at] = (float)value;
    else if (dtype == GPU_F64)
        ((double *)data)[at] = value;
    else
        ((uint8_t *)data)[at] = value != 0;
    lua_pop(L, 1);
    return is_truth;
}

/* Makes zeros and ones a mask's, in place. */
static void convert_to_truths(void *data, gpu_dtype dtype, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        ((uint8_t *)data)[i] = dtype == GPU_F32   ? ((float *)data)[i] != 0
                               : dtype == GPU_F64 ? ((double *)data)[i] != 0
                                                  : ((uint8_t *)data)[i];
}

/* Pushes copies of the matrices and what tells where elements are. */
static argument *push_arguments(lua_State *L, const mapping *m)
{
    argument *list = lua_newuserdatauv(L, (size_t)m->count * sizeof *list, 0);
    luaL_checkstack(L, m->count + 8, "map");
    for (int i = 0; i < m->count; i++) {
        const gpu_matrix *a = lumat_test_matrix(L, i + 1);
        list[i] = (argument){.data = NULL};
        if (!a)
            continue;
        int is_row = a->rows == 1 && m->shape.rows != 1;
        int is_column = a->cols == 1;
        list[i] = (argument){lumat_push_host_copy(L, a), a->dtype,
                             is_row ? 0 : a->cols, is_column ? 0 : 1};
    }
    return list;
}

static void call_with(lua_State *L, const mapping *m, const argument *list,
                      int64_t i, int64_t j)
{
    lua_pushvalue(L, m->f);
    for (int k = 0; k < m->count; k++) {
        const argument *a = &list[k];
        if (a->data)
            lumat_push_value(L, a->data, a->dtype, i * a->down + j * a->across);
        else
            lua_pushvalue(L, k + 1);
    }
    lua_pushinteger(L, i + 1);
    lua_pushinteger(L, j + 1);
    lua_call(L, m->count + 2, 1);
}

static gpu_matrix *push_result(lua_State *L, const mapping *m)
{
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_create(out, m->device, m->dtype, m->shape.ndim,
                            m->shape.rows, m->shape.cols));
    lumat_account(L, out);
    return out;
}

static void call_for_each(lua_State *L, mapping *m)
{
    gpu_matrix *out = push_result(L, m);
    int result = lua_gettop(L);
    int64_t elements = out->rows * out->cols, truths = 0;
    argument *list = push_arguments(L, m);
    void *data = lua_newuserdatauv(L, gpu_bytes(out), 0);
    for (int64_t i = 0; i < out->rows; i++)
        for (int64_t j = 0; j < out->cols; j++) {
            int64_t at = i * out->cols + j;
            lumat_poll(L, at);
            call_with(L, m, list, i, j);
            truths += store(data, out->dtype, at, L);
        }
    if (elements > 0 && truths == elements && m->dtype != GPU_BOOL) {
        convert_to_truths(data, m->dtype, elements);
        m->dtype = GPU_BOOL;
        out = push_result(L, m);
        lua_replace(L, result);
    }
    lumat_try(L, gpu_upload(out, data));
    lua_settop(L, result);
}

/* In a dry run: what Lua takes is not counted, so f is not called. */
static void count_for_each(lua_State *L, const mapping *m)
{
    gpu_matrix *out = push_result(L, m);
    for (int i = 1; i <= m->count; i++)
        if (lumat_test_matrix(L, i))
            lumat_try(L, gpu_download_unseen(lumat_test_matrix(L, i), NULL));
    lumat_try(L, gpu_upload(out, NULL));
}

/* --- map ------------------------------------------------------------------ */

/* The matrix at index, or NULL for a number or boolean; raises for others. */
static const gpu_matrix *check_operand(lua_State *L, int index)
{
    const gpu_matrix *m = lumat_test_matrix(L, index);
    if (m && gpu_is_complex(m))
        lumat_raise(L, "map: is of real numbers: write operations of complex "
                       "matrices as they are, as in A %% A + 1");
    if (m || lumat_look_at_sparse(L, index))
        return lumat_check_matrix(L, index);
    if (lua_type(L, index) != LUA_TNUMBER && !lua_isboolean(L, index))
        lumat_raise(L,
                    "map: argument %d is %s, expected a matrix or a number: "
                    "write map(A, B, …, f)",
                    index, lumat_push_brief(L, index));
    return NULL;
}

/* f64 where one is, else f32 where one is, else bool. */
static gpu_dtype wider(gpu_dtype a, gpu_dtype b)
{
    if (a == GPU_BOOL || b == GPU_BOOL)
        return a == GPU_BOOL ? b : a;
    return a == GPU_F64 || b == GPU_F64 ? GPU_F64 : GPU_F32;
}

/* The common shape with the matrix at index. */
static void take_shape(lua_State *L, mapping *m, int first, int index)
{
    const gpu_matrix *a = lumat_test_matrix(L, index);
    const gpu_matrix *const both[] = {&m->shape, a};
    gpu_matrix s;
    gpu_device *d = gpu_meeting_device(lumat_test_matrix(L, first), a);
    if (!d)
        lumat_raise(L,
                    "map: operands are on different devices (%s and %s); move "
                    "one, as in A:to(\"%s\")",
                    gpu_device_name(m->device),
                    gpu_device_name(gpu_matrix_device(a)),
                    gpu_device_name(m->device));
    if (!gpu_device_is_cpu(d))
        m->device = d;
    if (gpu_map_shape("map", both, 2, &s) != GPU_OK)
        lumat_raise_shapes(L, first, index, LUMAT_FIT_ELEMENTS);
    m->shape = s;
}

/* Matrices can be called, too, but as A(i, j). */
static void check_function(lua_State *L, int index)
{
    int is_matrix =
        lumat_test_matrix(L, index) || lumat_look_at_sparse(L, index);
    if (lua_type(L, index) == LUA_TFUNCTION)
        return;
    if (!is_matrix && luaL_getmetafield(L, index, "__call") != LUA_TNIL)
        return;
    lumat_refuse_kind(L, index);
    lumat_raise(L,
                "map: f is %s, expected a function: write map(A, f) or map(A, "
                "B, …, f)",
                lumat_push_brief(L, index));
}

static mapping check_mapping(lua_State *L)
{
    mapping m = {.f = lua_gettop(L), .dtype = GPU_BOOL};
    int first = 0, options = 0;
    if (m.f > 1 && lua_istable(L, m.f) && lua_isfunction(L, m.f - 1))
        options = m.f--;
    m.count = m.f - 1;
    check_function(L, m.f);
    for (int i = 1; i <= m.count; i++) {
        const gpu_matrix *a = check_operand(L, i);
        if (!a)
            continue;
        m.dtype = wider(m.dtype, a->dtype);
        if (first > 0) {
            take_shape(L, &m, first, i);
            continue;
        }
        first = i;
        m.shape =
            (gpu_matrix){.ndim = a->ndim, .rows = a->rows, .cols = a->cols};
        m.device = gpu_matrix_device(a);
    }
    if (first > 0)
        m.through =
            lumat_option_through(L, options, lumat_test_matrix(L, first));
    lua_settop(L, m.f);
    if (first == 0)
        lumat_raise(L, "map: no matrix among the operands: write map(A, f) or "
                       "map(A, B, …, f)");
    return m;
}

/* Reading f takes as long as calling it for so many elements. */
enum { LEAST_READ = 64 };
/* From here on calling f takes as long as one notices, a tenth of a second. */
enum { LEAST_TOLD = 1000000 };

/* Which type a mixed result has is known when there are its elements alone. */
static int read_mapping(lua_State *L, const mapping *m, lumat_formula *f)
{
    if (!lumat_read_formula(L, m->f, 1, m->count, &m->shape, f))
        return 0;
    if (!f->is_mixed || m->dtype == GPU_BOOL)
        return 1;
    snprintf(f->hindrance, sizeof f->hindrance,
             "may give true or false for some elements and numbers for others");
    return 0;
}

static int map(lua_State *L)
{
    mapping m = check_mapping(L);
    int64_t elements = m.shape.rows * m.shape.cols;
    int is_small = elements < LEAST_READ && gpu_device_is_cpu(m.device) &&
                   m.through.count == 0;
    if (!is_small) {
        lumat_formula *f = lua_newuserdatauv(L, sizeof *f, 0);
        if (read_mapping(L, &m, f)) {
            if (elements > 0 && f->values[f->result].kind == LUMAT_TRUTH)
                m.dtype = GPU_BOOL;
            lumat_run_formula(L, f, 1, m.count, &m.shape, m.dtype, m.through);
            return 1;
        }
        if (m.through.count > 0)
            lumat_raise(L,
                        "map: f %s, so it is called for each element, on the "
                        "CPU: leave {device=} away",
                        f->hindrance);
        if (elements >= LEAST_TOLD)
            lumat_warn(L, "map",
                       "f %s, so it is called for each of %lld elements; f of "
                       "arithmetic, operations and conditions alone runs as "
                       "one pass",
                       f->hindrance, (long long)elements);
    }
    if (gpu_is_dry())
        count_for_each(L, &m);
    else
        call_for_each(L, &m);
    return 1;
}

#define OPERAND "matrix|number|boolean"

static const lumat_function functions[] = {
    {"map", map, 1,
     "A: matrix, f: function {device} or A: " OPERAND ", B: " OPERAND
     "|function elements A, … {device}",
     "matrix",
     "f(x, y, …, i, j) for the elements x, y … of the operands, which are "
     "broadcast as in A + B, and their row and column. f gets numbers: % is "
     "the remainder, * a product of numbers. Where f only computes, with "
     "operations such as sin or where, with if and with numbers from outside, "
     "it runs in f64 as one pass over memory, on the device of the matrices; "
     "else it is called for every element, on the CPU. Where it gives true or "
     "false for each the result is a mask, bool; among numbers true is 1.",
     "map(mat{{1, 2}, {3, 4}}, vec{10, 20}:row(), function(x, y) if x > 3 "
     "then return 0 end return x * y end)",
     "{{10, 40}, {30, 0}}", .group = "iterating mapping",
     .options = lumat_through_options,
     .usage = "map(A, f) or map(A, B, …, f [, {device=}])"},
    {0}};

void lumat_open_map(lua_State *L)
{
    lumat_know_math(L);
    lumat_register(L, functions);
}
