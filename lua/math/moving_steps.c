/* Steps of functions in Lua that choose and rearrange elements: what takes a
 * pass over memory in C, and several of matrix operations. Their arguments have
 * been checked by those functions. */
#include "arguments.h"
#include "cancellation.h"
#include "function.h"
#include "math_functions.h"
#include "op_list.h"
#include "value.h"

/* empty(A, rows [, cols]): a matrix, or a vector, of A's type and device, whose
 * elements are yet to be written. */
static int empty(lua_State *L)
{
    const gpu_matrix *like = lumat_check_matrix(L, 1);
    int64_t rows = lumat_check_size(L, 2);
    int is_vector = lua_isnoneornil(L, 3);
    int64_t cols = is_vector ? 1 : lumat_check_size(L, 3);
    lumat_push_like(L, like, is_vector ? 1 : 2, rows, cols);
    return 1;
}

/* find(mask): where it is true, places that count from 1, row by row. */
static int find(lua_State *L)
{
    const gpu_matrix *mask = lumat_check_matrix(L, 1);
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_find(mask, out));
    lumat_account(L, out);
    return 1;
}

/* band(A, below, above): zeros where column - row is less than -below or more
 * than above. */
static int band(lua_State *L)
{
    const gpu_matrix *m = lumat_check_two_axes(L, 1);
    double below = (double)lumat_check_integer(L, 2);
    double above = (double)lumat_check_integer(L, 3);
    gpu_matrix *out = lumat_push_like(L, m, 2, m->rows, m->cols);
    gpu_program p;
    gpu_program_start(&p, 1);
    int first = gpu_program_constant(&p, -below);
    int last = gpu_program_constant(&p, above);
    int zero = gpu_program_constant(&p, 0);
    int row = gpu_program_add(&p, GPU_OP_ROW, 0, 0, 0);
    int col = gpu_program_add(&p, GPU_OP_COL, 0, 0, 0);
    int gap = gpu_program_add(&p, GPU_OP_sub, col, row, 0);
    int right = gpu_program_add(&p, GPU_OP_ge, gap, first, 0);
    int left = gpu_program_add(&p, GPU_OP_le, gap, last, 0);
    int kept = gpu_program_add(&p, GPU_OP_land, left, right, 0);
    gpu_program_add(&p, GPU_OP_where, kept, 0, zero);
    lumat_try(L, gpu_map("band", &p, &m, out));
    return 1;
}

/* --- repeated elements ---------------------------------------------------- */

static const char *push_figure(lua_State *L, double x)
{
    lua_Integer whole;
    lua_pushnumber(L, x);
    if (lua_numbertointeger(x, &whole) && (double)whole == x)
        lua_pushinteger(L, whole);
    return lumat_push_brief(L, -1);
}

/* The sum of the counts, which the vector of the argument called `name` has. */
static int64_t sum_counts(lua_State *L, const char *name, const double *counts,
                          int64_t n)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < n && sum < 1ll << 48; i++) {
        lumat_poll(L, i);
        double c = counts[i];
        if (!(c >= 0 && c < 0x1p48 && (double)(int64_t)c == c))
            lumat_raise(L,
                        "repelem: count %I of %s is %s, expected a whole "
                        "number from 0 on",
                        (LUAI_UACINT)i + 1, name, push_figure(L, c));
        sum += (int64_t)c;
    }
    if (sum >= 1ll << 48)
        lumat_raise(L, "repelem: out of memory: %I elements are too many",
                    (LUAI_UACINT)sum);
    return sum;
}

/* repeated(A, axis, counts, name): the elements along the axis, each so many
 * times, as an f64 vector says that is called `name`. */
static int repeated(lua_State *L)
{
    const gpu_matrix *m = lumat_check_matrix(L, 1);
    int axis = (int)lumat_check_integer(L, 2);
    const gpu_matrix *list = lumat_check_matrix(L, 3);
    const char *name = luaL_checkstring(L, 4);
    if (gpu_is_dry())
        lumat_raise(L, "repelem: how many elements there are depends on the "
                       "counts");
    const double *counts = lumat_push_host_copy(L, list);
    int64_t total = sum_counts(L, name, counts, list->rows);
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_repeat(m, axis, counts, total, out));
    lumat_account(L, out);
    return 1;
}

/* repeated_rows(A, times): the rows of a matrix, each so many times. */
static int repeated_rows(lua_State *L)
{
    const gpu_matrix *m = lumat_check_matrix(L, 1);
    int64_t times = lumat_check_size(L, 2), total;
    if (__builtin_mul_overflow(m->rows, times, &total))
        lumat_raise(L, "repelem: out of memory: %I rows, each %I times",
                    (LUAI_UACINT)m->rows, (LUAI_UACINT)times);
    double *counts =
        lua_newuserdatauv(L, (size_t)m->rows * sizeof *counts + 1, 0);
    for (int64_t i = 0; i < m->rows; i++)
        counts[i] = (double)times;
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_repeat(m, 1, counts, total, out));
    lumat_account(L, out);
    return 1;
}

/* Every times-th element of out from the k-th on becomes one of m, a column, on
 * a GPU. */
static gpu_status interleave(const gpu_matrix *m, const gpu_matrix *out)
{
    gpu_slice rows = {0, 1, m->rows};
    gpu_status status = GPU_OK;
    for (int64_t k = 0; k < out->cols && status == GPU_OK; k++) {
        gpu_matrix to = {.storage = NULL};
        status = gpu_view_block(out, rows, (gpu_slice){k, 1, 1}, &to);
        if (status == GPU_OK)
            status = gpu_copy(m, &to);
        gpu_release(&to);
    }
    return status;
}

/* spread(A, times), of an mx1 matrix: m x times, each row one element. */
static int spread(lua_State *L)
{
    enum { MOST = 16 };
    const gpu_matrix *m = lumat_check_matrix(L, 1);
    int64_t times = lumat_check_size(L, 2);
    gpu_matrix *out = lumat_push_like(L, m, 2, m->rows, times);
    int is_copied = times > MOST || gpu_size(out) == 0 ||
                    gpu_device_is_cpu(gpu_matrix_device(m));
    lumat_try(L, is_copied ? gpu_copy(m, out) : interleave(m, out));
    return 1;
}

void lumat_open_moving_steps(lua_State *L)
{
    static const luaL_Reg steps[] = {{"band", band},
                                     {"empty", empty},
                                     {"find", find},
                                     {"repeated", repeated},
                                     {"repeated_rows", repeated_rows},
                                     {"spread", spread},
                                     {NULL, NULL}};
    luaL_newlib(L, steps);
    lumat_set_required(L, "moving_steps");
}
