/* A[…] = value in all its forms. */
#include "complex_value.h"
#include "index.h"
#include "math_functions.h"
#include "op_list.h"
#include "value.h"

/* Numbers and booleans; 1 when the value at 3 is one. */
static int scalar_value(lua_State *L, gpu_complex *out)
{
    return lumat_take_complex(L, 3, out);
}

/* All elements become the number, which is complex where value at 3 is. */
static void fill(lua_State *L, gpu_matrix *target, gpu_complex number)
{
    if (lumat_test_complex(L, 3))
        lumat_try(L, gpu_complex_fill(target, number));
    else
        lumat_try(L, gpu_fill(target, number.re));
}

/* The matrix to be written, at stack place 3; a table becomes one. */
static gpu_matrix *matrix_value(lua_State *L, const gpu_matrix *like)
{
    if (lua_type(L, 3) == LUA_TTABLE) {
        lumat_push_from_table(L, 3, "assignment", like->dtype,
                              gpu_matrix_device(like));
        lua_replace(L, 3);
    }
    gpu_matrix *value = lumat_test_matrix(L, 3);
    if (!value)
        lumat_raise(L, "assignment: cannot put a %s into a matrix",
                    lumat_kind_of(L, 3));
    return value;
}

static int fits(const gpu_matrix *value, const gpu_matrix *target)
{
    if (value->ndim != target->ndim)
        return 0;
    if (value->ndim == 1)
        return value->rows == target->rows;
    return (value->rows == target->rows || value->rows == 1) &&
           (value->cols == target->cols || value->cols == 1);
}

/* matrix_value for a target of this shape; raises where it does not fit. */
static gpu_matrix *fitting_value(lua_State *L, const gpu_matrix *target)
{
    gpu_matrix *value = matrix_value(L, target);
    if (!fits(value, target)) {
        lumat_push_shape(L, value);
        lumat_push_shape(L, target);
        lumat_raise(L, "assignment: %s does not fit into %s%s",
                    lua_tostring(L, -2), lua_tostring(L, -1),
                    target->ndim == 1 && gpu_size(value) == target->rows
                        ? "; its :flatten() does"
                        : "");
    }
    return value;
}

/* Of one device: what waits is worked out where it is to go. */
static gpu_status put(const gpu_matrix *value, gpu_matrix *target)
{
    gpu_program p;
    if (!value->storage || !target->storage ||
        gpu_matrix_device(value) != gpu_matrix_device(target))
        return gpu_copy(value, target);
    gpu_program_start(&p, 1);
    return gpu_map_over("copy", &p, &value, target);
}

static int assign_view(lua_State *L, gpu_matrix *target)
{
    gpu_complex number;
    if (scalar_value(L, &number)) {
        fill(L, target, number);
        return 0;
    }
    gpu_matrix taken;
    fitting_value(L, target);
    const gpu_matrix *value =
        lumat_take(L, 3, target, LUMAT_TAKE_VALUE, &taken);
    gpu_status status = put(value, target);
    gpu_release(&taken);
    lumat_try(L, status);
    return 0;
}

/* Pushes the matrix of one element that is broadcast. */
static const gpu_matrix *push_single(lua_State *L, const gpu_matrix *like,
                                     gpu_complex number)
{
    gpu_matrix *one = lumat_push_like(L, like, 2, 1, 1);
    fill(L, one, number);
    return one;
}

/* The value on the target's device, where scatter wants it. */
static const gpu_matrix *push_near(lua_State *L, const gpu_matrix *value,
                                   const gpu_matrix *target)
{
    gpu_device *d = gpu_matrix_device(target);
    gpu_matrix *copy = lumat_new_matrix(L);
    if (!value->storage || gpu_matrix_device(value) == d)
        return value;
    lumat_try(L, gpu_clone(value, target->dtype, d, copy));
    return copy;
}

/* The places of block that are listed; nothing is written unless all fits. */
static gpu_status assign_lists(lua_State *L, gpu_matrix *block,
                               const lumat_lists *to)
{
    gpu_complex number;
    gpu_matrix target = *block;
    const gpu_matrix *value;
    if (to->rows || to->row_list)
        target.rows = to->nrows;
    if (to->cols || to->col_list)
        target.cols = to->ncols;
    if (scalar_value(L, &number))
        value = push_single(L, block, number);
    else
        value = push_near(L, fitting_value(L, &target), block);
    return lumat_scatter_lists("assignment", value, to, block);
}

static int assign_element(lua_State *L, gpu_matrix *m, int64_t i, int64_t j)
{
    gpu_complex number;
    if (lua_type(L, 3) == LUA_TNUMBER) {
        lumat_try(L, gpu_set(m, i, j, lua_tonumber(L, 3)));
        return 0;
    }
    if (!scalar_value(L, &number))
        return lumat_raise(L, "assignment: an element is a number, not a %s",
                           lumat_kind_of(L, 3));
    lumat_try(L, lumat_test_complex(L, 3) ? gpu_complex_set(m, i, j, number)
                                          : gpu_set(m, i, j, number.re));
    return 0;
}

static int assign_place(lua_State *L, gpu_matrix *m, lumat_part part[2])
{
    if (lumat_is_element(m, part))
        return assign_element(L, m, part[0].slice.first,
                              m->ndim == 1 ? 0 : part[1].slice.first);
    lumat_fetch_lists(L, m, part);
    lumat_push_block(L, m, part);
    gpu_matrix *block = lumat_test_matrix(L, -1);
    lumat_lists lists = lumat_lists_of(m, part);
    if (!lists.rows && !lists.cols && !lists.row_list && !lists.col_list)
        return assign_view(L, block);
    gpu_status status = assign_lists(L, block, &lists);
    if (status != GPU_OK)
        lumat_refuse_parts(L, status, m, part);
    return 0;
}

/* x[x:gt(2)] = 0 is one pass: a mask that waits becomes part of it. */
static int assign_mask(lua_State *L, gpu_matrix *m, const gpu_matrix *mask)
{
    gpu_complex number;
    if (!scalar_value(L, &number)) {
        lumat_try(L, gpu_expand(matrix_value(L, m), mask, m));
        return 0;
    }
    if (mask->ndim != m->ndim || mask->rows != m->rows ||
        mask->cols != m->cols) {
        lumat_push_shape(L, m);
        lumat_push_shape(L, mask);
        return lumat_raise(L, "assignment: shapes differ (%s, mask %s)",
                           lua_tostring(L, -2), lua_tostring(L, -1));
    }
    if (lumat_test_complex(L, 3)) {
        gpu_operand in[] = {{.matrix = mask},
                            {.value = number, .is_complex = 1},
                            {.matrix = m}};
        lumat_try(L, gpu_complex_map("mask", GPU_OP_where, in, m));
        return 0;
    }
    gpu_program p;
    gpu_program_start(&p, 2);
    int value = gpu_program_constant(&p, number.re);
    gpu_program_add(&p, GPU_OP_where, 0, value, 1);
    gpu_matrix taken;
    const gpu_matrix *in[] = {lumat_take(L, 2, m, LUMAT_TAKE_KEY, &taken), m};
    gpu_status status = gpu_map_over("mask", &p, in, m);
    gpu_release(&taken);
    lumat_try(L, status);
    return 0;
}

int lumat_newindex(lua_State *L)
{
    lumat_part part[2] = {{.slice = {0, 1, 1}, .is_index = 1},
                          {.slice = {0, 1, 0}}};
    gpu_matrix *m = lumat_check_indexed(L, "assignment"), *mask;
    lua_Integer place[2];
    part[1].slice.count = m->cols;
    switch (lua_type(L, 2)) {
    case LUA_TNUMBER:
        part[0].slice.first = lumat_check_place(L, m, 2, 1);
        if (m->ndim == 1)
            return assign_element(L, m, part[0].slice.first, 0);
        return assign_place(L, m, part);
    case LUA_TTABLE:
        if (lumat_names_element(L, m, 2, place))
            return assign_element(L, m, place[0], place[1]);
        lumat_table_parts(L, m, 2, part);
        return assign_place(L, m, part);
    case LUA_TSTRING:
        if (lumat_is_property(lua_tostring(L, 2)))
            return lumat_raise(L, "assignment: '%s' cannot be assigned",
                               lua_tostring(L, 2));
        if (!lumat_is_slice(lua_tostring(L, 2)))
            return lumat_unknown_name(L, lua_tostring(L, 2));
        lumat_string_parts(L, m, 2, part);
        return assign_place(L, m, part);
    default:
        if (lumat_is_unknown(L, 2)) {
            part[0].slice.first = lumat_check_place(L, m, 2, 1);
            return assign_place(L, m, part);
        }
        mask = lumat_test_matrix(L, 2);
        if (!mask)
            return lumat_bad_key(L, 2);
        if (lumat_is_element_mask(m, mask))
            return assign_mask(L, m, mask);
        lumat_list_parts(L, m, 2, part);
        return assign_place(L, m, part);
    }
}
