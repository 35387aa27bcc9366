/* The steps of matrix_statistics.lua and random_variates.lua that are not
 * composed of functions of the library. */
#include "arguments.h"
#include "cancellation.h"
#include "math_functions.h"
#include "value.h"

#include <string.h>

/* select(A, axis, spreads, places): the elements at places, a rising list of
 * 0-based integers, of each line of A when it is sorted: see gpu_select. */
static int select_places(lua_State *L)
{
    const gpu_matrix *m = lumat_check_matrix(L, 1);
    int axis = (int)luaL_checkinteger(L, 2);
    int spreads = lua_toboolean(L, 3);
    int64_t count = (int64_t)lua_rawlen(L, 4);
    int64_t *places =
        lua_newuserdatauv(L, ((size_t)count + 1) * sizeof *places, 0);
    for (int64_t i = 0; i < count; i++) {
        lua_rawgeti(L, 4, i + 1);
        places[i] = luaL_checkinteger(L, -1);
        lua_pop(L, 1);
    }
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_select(m, axis, spreads, places, count, out));
    lumat_account(L, out);
    return 1;
}

/* next_draw(options): the seed and the number of what is drawn next, as rand
 * has them. */
static int next_draw(lua_State *L)
{
    gpu_random r = lumat_next_random(L, 1);
    lua_pushinteger(L, (lua_Integer)r.seed);
    lua_pushinteger(L, (lua_Integer)r.call);
    return 2;
}

enum { STREAM_BITS = 16 };

/* draw(kind, seed, call, stream, dtype, device, m [, n]): "uniform" numbers in
 * [0, 1), or "normal" ones. Streams of a call, from 0 on, are apart from each
 * other, and 0 from what other calls draw: it is what rand itself would. */
static int draw(lua_State *L)
{
    const char *kind = luaL_checkstring(L, 1);
    gpu_random r = {
        .kind = *kind == 'n' ? GPU_NORMAL : GPU_UNIFORM,
        .seed = (uint64_t)luaL_checkinteger(L, 2),
        .call = (uint64_t)luaL_checkinteger(L, 3) +
                ((uint64_t)luaL_checkinteger(L, 4) << (64 - STREAM_BITS)),
        .low = 0,
        .high = 1};
    gpu_dtype dtype;
    gpu_device *device;
    if (!gpu_dtype_find(luaL_checkstring(L, 5), &dtype))
        return luaL_argerror(L, 5, "is no type");
    lumat_try(L, gpu_open(luaL_checkstring(L, 6), &device));
    int ndim = lua_isnoneornil(L, 8) ? 1 : 2;
    int64_t rows = luaL_checkinteger(L, 7);
    int64_t cols = ndim == 2 ? luaL_checkinteger(L, 8) : 1;
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_create_random(out, device, dtype, ndim, rows, cols, &r));
    lumat_account(L, out);
    return 1;
}

/* variates("poisson", seed, call, mean) or ("binomial", seed, call, trials,
 * chance): a whole number for each element, see gpu_create_variates. */
static int variates(lua_State *L)
{
    int is_poisson = *luaL_checkstring(L, 1) == 'p';
    const gpu_matrix *mean = lumat_check_matrix(L, 4);
    const gpu_matrix *chance = is_poisson ? NULL : lumat_check_matrix(L, 5);
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_create_variates(
                     out, is_poisson ? GPU_POISSON : GPU_BINOMIAL,
                     (uint64_t)luaL_checkinteger(L, 2),
                     (uint64_t)luaL_checkinteger(L, 3), mean, chance));
    lumat_account(L, out);
    return 1;
}

/* first_drawn(places, n, k): of a vector of whole numbers from 1 to n, f64,
 * those that are not there before, up to the k-th of them; nothing where its
 * elements do not lie in the host's memory. */
static int first_drawn(lua_State *L)
{
    gpu_matrix *places = lumat_check_matrix(L, 1);
    int64_t n = lumat_check_size(L, 2), k = lumat_check_size(L, 3), found = 0;
    double *x = gpu_own_bytes(places);
    if (!x)
        return 0;
    uint64_t *seen = lua_newuserdatauv(L, (size_t)(n / 64 + 1) * 8, 0);
    memset(seen, 0, (size_t)(n / 64 + 1) * 8);
    for (int64_t i = 0; i < places->rows && found < k; i++) {
        int64_t place = (int64_t)x[i] - 1;
        uint64_t bit = (uint64_t)1 << (place & 63), *word = &seen[place >> 6];
        lumat_poll(L, i);
        x[found] = x[i];
        found += (*word & bit) == 0;
        *word |= bit;
    }
    gpu_matrix *out = lumat_new_matrix(L);
    gpu_slice first = {0, 1, found}, all = {0, 1, 1};
    lumat_try(L, gpu_view_block(places, first, all, out));
    return 1;
}

void lumat_open_statistics_steps(lua_State *L)
{
    static const luaL_Reg steps[] = {
        {"select", select_places}, {"next_draw", next_draw},     {"draw", draw},
        {"variates", variates},    {"first_drawn", first_drawn}, {NULL, NULL}};
    luaL_newlib(L, steps);
    lumat_set_required(L, "statistics_steps");
}
