/* The steps of functions over data, for lua/std/lazy/groups.lua and others of
 * the library: searching, groups by code, their folds, moving windows. Their
 * arguments are those that these give, shapes and types apart, which gpu/
 * looks at.
 *
 *   search(sorted, values, is_after)  the place, from 1, before which each of
 *       values would go: f64, shaped as values. sorted ascends, NaN last.
 *   is_sorted(v)  does a vector ascend, NaN last?
 *   group(codes, first, groups, wants_order)  counts, f64; and order, see
 *       gpu_group: code x is group x - first + 1.
 *   fold(kind, X, skips_nan, codes, first, groups [, about])
 *   fold_ordered(kind, X, skips_nan, starts, places or nil [, about])  the rows
 *       of X folded group by group, f64: see gpu_fold. Kinds: "sum" "prod"
 *       "max" "min" "count" "spread" and, of ordered rows on the CPU, "median".
 *   window(kind, X, axis, length, first, count)  see gpu_window. Kinds: "mean"
 *       "min" "max" "var" "median". */
#include "arguments.h"
#include "math_functions.h"
#include "op_list.h"
#include "value.h"

static int search(lua_State *L)
{
    gpu_matrix *sorted = lumat_check_matrix(L, 1);
    gpu_matrix *values = lumat_check_matrix(L, 2);
    int is_after = lua_toboolean(L, 3);
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_search(sorted, values, is_after, out));
    lumat_account(L, out);
    return 1;
}

/* Is a[i] <= a[i + 1], or the second NaN, all along? */
static int is_sorted(lua_State *L)
{
    gpu_matrix *v = lumat_check_matrix(L, 1);
    double odd = 0;
    gpu_program p;
    if (v->rows > 1) {
        gpu_matrix *low = lumat_new_matrix(L), *high = lumat_new_matrix(L);
        gpu_slice all = {0, 1, 1};
        lumat_try(L,
                  gpu_view_block(v, (gpu_slice){0, 1, v->rows - 1}, all, low));
        lumat_try(L,
                  gpu_view_block(v, (gpu_slice){1, 1, v->rows - 1}, all, high));
        gpu_program_start(&p, 2);
        int rises = gpu_program_add(&p, GPU_OP_le, 0, 1, 0);
        int is_nan = gpu_program_add(&p, GPU_OP_isnan, 1, 0, 0);
        int is_right = gpu_program_add(&p, GPU_OP_lor, rises, is_nan, 0);
        gpu_program_add(&p, GPU_OP_lnot, is_right, 0, 0);
        p.reduction = GPU_REDUCE_any;
        const gpu_matrix *in[] = {low, high};
        lumat_try(L, gpu_reduce_all("searchsorted", &p, in, &odd));
    }
    lua_pushboolean(L, odd == 0 || gpu_is_dry());
    return 1;
}

static int group(lua_State *L)
{
    gpu_matrix *codes = lumat_check_matrix(L, 1);
    double first = luaL_checknumber(L, 2);
    int64_t groups = luaL_checkinteger(L, 3);
    int wants_order = lua_toboolean(L, 4);
    gpu_matrix *counts = lumat_new_matrix(L), *order = NULL;
    if (wants_order)
        order = lumat_new_matrix(L);
    lumat_try(L, gpu_group(codes, first, groups, order, counts));
    lumat_account(L, counts);
    if (!wants_order)
        return 1;
    lumat_account(L, order);
    return 2;
}

/* runs(sorted, has_values, has_starts, has_lengths): values, starts and lengths
 * of runs, those that are wanted: see gpu_find_runs. */
static int runs(lua_State *L)
{
    enum { RESULTS = 3 };
    gpu_matrix *sorted = lumat_check_matrix(L, 1), *result[RESULTS];
    int count = 0;
    for (int i = 0; i < RESULTS; i++)
        result[i] = lua_toboolean(L, 2 + i) ? lumat_new_matrix(L) : NULL;
    lumat_try(L, gpu_find_runs(sorted, result[0], result[1], result[2]));
    for (int i = 0; i < RESULTS; i++)
        if (result[i]) {
            lumat_account(L, result[i]);
            count++;
        }
    return count;
}

/* sort_first(A, axis, k, descending, has_places): the first k elements of each
 * line as sort has them, and their places, from 1; nothing where this is no
 * faster than a sort. */
static int sort_first(lua_State *L)
{
    gpu_matrix *m = lumat_check_matrix(L, 1);
    int axis = (int)luaL_checkinteger(L, 2);
    int64_t k = lumat_check_size(L, 3);
    int descending = lua_toboolean(L, 4), has_places = lua_toboolean(L, 5);
    gpu_matrix *out = lumat_new_matrix(L), *order = NULL;
    if (has_places)
        order = lumat_new_matrix(L);
    gpu_status status = gpu_sort_first(m, axis, descending, k, out, order);
    if (status == GPU_UNSUPPORTED)
        return 0;
    lumat_try(L, status);
    lumat_account(L, out);
    if (!order)
        return 1;
    lumat_count_from_one(L, "topk", order, order);
    lumat_account(L, order);
    return 2;
}

/* groups_present(codes, first, groups): a mask of which have a row. */
static int groups_present(lua_State *L)
{
    gpu_matrix *codes = lumat_check_matrix(L, 1);
    double first = luaL_checknumber(L, 2);
    int64_t groups = luaL_checkinteger(L, 3);
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_groups_present(codes, first, groups, out));
    lumat_account(L, out);
    return 1;
}

/* even_bins(x, low, high, bins): how many elements lie in each of so many equal
 * bins, whose edges are those of linspace. Nothing: there are too many, or they
 * lie too near together for such edges. */
static int even_bins(lua_State *L)
{
    gpu_matrix *x = lumat_check_matrix(L, 1);
    double low = luaL_checknumber(L, 2), high = luaL_checknumber(L, 3);
    int64_t bins = luaL_checkinteger(L, 4);
    if (bins < 1 || bins > GPU_MOST_BINS)
        return 0;
    gpu_edges edges = gpu_even_edges(low, high, (int)bins);
    if (edges.over != 1)
        return 0;
    gpu_matrix *counts = lumat_new_matrix(L);
    lumat_try(L, gpu_histogram(x, &edges, counts));
    lumat_account(L, counts);
    return 1;
}

static int fold_into(lua_State *L, const gpu_fold_call *call)
{
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_fold(call, out));
    lumat_account(L, out);
    return 1;
}

static gpu_fold_call check_fold(lua_State *L, int about)
{
    static const char *const kinds[] = {"sum",   "prod",   "max",    "min",
                                        "count", "spread", "median", NULL};
    gpu_fold_call call = {
        .kind = (gpu_fold_kind)luaL_checkoption(L, 1, NULL, kinds),
        .values = lumat_check_matrix(L, 2),
        .skips_nan = lua_toboolean(L, 3)};
    if (call.kind == GPU_FOLD_SPREAD)
        call.about = lumat_check_matrix(L, about);
    return call;
}

static int fold(lua_State *L)
{
    gpu_fold_call call = check_fold(L, 7);
    call.codes = lumat_check_matrix(L, 4);
    call.first = luaL_checknumber(L, 5);
    call.groups = luaL_checkinteger(L, 6);
    return fold_into(L, &call);
}

static int fold_ordered(lua_State *L)
{
    gpu_fold_call call = check_fold(L, 6);
    call.starts = lumat_check_matrix(L, 4);
    if (!lua_isnoneornil(L, 5))
        call.places = lumat_check_matrix(L, 5);
    return fold_into(L, &call);
}

static int window(lua_State *L)
{
    static const char *const kinds[] = {"mean", "min",    "max",
                                        "var",  "median", NULL};
    int kind = luaL_checkoption(L, 1, NULL, kinds);
    gpu_matrix *m = lumat_check_matrix(L, 2);
    int axis = (int)luaL_checkinteger(L, 3);
    int64_t length = luaL_checkinteger(L, 4), first = luaL_checkinteger(L, 5);
    int64_t count = luaL_checkinteger(L, 6);
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_window(m, (gpu_window_kind)kind, axis, length, first,
                            count, out));
    lumat_account(L, out);
    return 1;
}

void lumat_open_data_steps(lua_State *L)
{
    static const luaL_Reg steps[] = {
        {"search", search}, {"is_sorted", is_sorted},
        {"group", group},   {"groups_present", groups_present},
        {"runs", runs},     {"sort_first", sort_first},
        {"fold", fold},     {"fold_ordered", fold_ordered},
        {"window", window}, {"even_bins", even_bins},
        {NULL, NULL}};
    luaL_newlib(L, steps);
    lumat_set_required(L, "data_steps");
}
