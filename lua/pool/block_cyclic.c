/* The operations on elements by name, with how many operands they have; and
 * which rows, or columns, of a matrix lie where: see cyclic.h. Processes are
 * counted from 0, rows from 1. */
#include "pool.h"

#include "complex_numbers.h"
#include "cyclic.h"
#include "op_list.h"
#include "value.h"

#include <string.h>

typedef lumat_cyclic line;

static line check_line(lua_State *L)
{
    line l = {luaL_checkinteger(L, 1), luaL_checkinteger(L, 2),
              luaL_checkinteger(L, 3), luaL_checkinteger(L, 4)};
    luaL_argcheck(L, l.n >= 0, 1, "is negative");
    luaL_argcheck(L, l.block > 0, 2, "is no block");
    luaL_argcheck(L, l.processes > 0, 4, "are no processes");
    luaL_argcheck(L, l.process >= 0 && l.process < l.processes, 3,
                  "is none of them");
    return l;
}

/* A vector of n numbers here, and where they lie. */
static double *push_vector(lua_State *L, int64_t n)
{
    gpu_device *cpu;
    lumat_try(L, gpu_open("cpu", &cpu));
    gpu_matrix *m = lumat_new_matrix(L);
    lumat_try(L, gpu_create(m, cpu, GPU_F64, 1, n, 1));
    lumat_account(L, m);
    return n > 0 ? gpu_own_bytes(m) : NULL;
}

/* count(n, block, process, processes) */
static int count(lua_State *L)
{
    line l = check_line(L);
    lua_pushinteger(L, lumat_cyclic_count(&l, l.n));
    return 1;
}

/* places(n, block, process, processes [, first, last]): a vector of those from
 * first to last that the process has, and the number, from 1, that the first
 * of them has among its own. */
static int places(lua_State *L)
{
    line l = check_line(L);
    int64_t first = luaL_optinteger(L, 5, 1), last = luaL_optinteger(L, 6, l.n);
    luaL_argcheck(L, first >= 1, 5, "is no place");
    luaL_argcheck(L, last <= l.n, 6, "is no place");
    int64_t from = lumat_cyclic_count(&l, first - 1);
    int64_t to = last < first ? from : lumat_cyclic_count(&l, last);
    double *place = push_vector(L, to - from);
    for (int64_t i = from; i < to; i++)
        place[i - from] = (double)(lumat_cyclic_place(&l, i) + 1);
    lua_pushinteger(L, from + 1);
    return 2;
}

/* The line in the table at index: {n, block, process, processes, first}, and
 * what counts as its first place, from 1. */
static line line_at(lua_State *L, int index, int64_t *first)
{
    int64_t of[5];
    luaL_checktype(L, index, LUA_TTABLE);
    for (int i = 0; i < 5; i++) {
        lua_rawgeti(L, index, i + 1);
        of[i] = luaL_checkinteger(L, -1);
        lua_pop(L, 1);
    }
    line l = {of[0], of[1], of[2], of[3]};
    luaL_argcheck(L, lumat_cyclic_is_valid(&l), index, "is no line");
    *first = of[4];
    return l;
}

/* Does the process have that place, from 0, and as which of its own, from 0? */
static int has_place(const line *l, int64_t place, int64_t *own)
{
    if (place / l->block % l->processes != l->process)
        return 0;
    *own = place / (l->block * l->processes) * l->block + place % l->block;
    return 1;
}

/* shared(n, from, to): of n places, which begin at the first of each line, the
 * numbers from 1 of those that the process of `from` and that of `to` both
 * have, among its own of each: two vectors. */
static int shared(lua_State *L)
{
    int64_t n = luaL_checkinteger(L, 1), first_from, first_to, found = 0, own;
    line from = line_at(L, 2, &first_from), to = line_at(L, 3, &first_to);
    int64_t begin = lumat_cyclic_count(&from, first_from - 1);
    int64_t end = n > 0 ? lumat_cyclic_count(&from, first_from - 1 + n) : begin;
    int64_t shift = first_to - first_from;
    for (int64_t i = begin; i < end; i++)
        found += has_place(&to, lumat_cyclic_place(&from, i) + shift, &own);
    double *there = push_vector(L, found), *here = push_vector(L, found);
    for (int64_t i = begin, k = 0; i < end; i++)
        if (has_place(&to, lumat_cyclic_place(&from, i) + shift, &own)) {
            there[k] = (double)(i + 1);
            here[k++] = (double)(own + 1);
        }
    return 2;
}

/* owned(list, block, process, processes): of a vector of places those that the
 * process has: which of the list they are, from 1, and which, from 1, they are
 * among its own. */
static int owned(lua_State *L)
{
    const gpu_matrix *list = lumat_check_matrix(L, 1);
    line l = {0, luaL_checkinteger(L, 2), luaL_checkinteger(L, 3),
              luaL_checkinteger(L, 4)};
    int64_t n = list->rows * list->cols, count = 0, at;
    const void *bytes;
    luaL_argcheck(L, l.block > 0 && l.processes > 0, 2, "is no layout");
    luaL_argcheck(L, list->dtype == GPU_F64, 1, "is no list of places");
    void *room = lua_newuserdatauv(L, (size_t)n * sizeof(double) + 1, 0);
    lumat_try(L, gpu_look_at_bytes(list, room, &bytes));
    const double *place = bytes;
    for (int64_t i = 0; i < n; i++)
        count += has_place(&l, (int64_t)place[i] - 1, &at);
    double *which = push_vector(L, count);
    double *own = push_vector(L, count);
    for (int64_t i = 0, k = 0; i < n; i++)
        if (has_place(&l, (int64_t)place[i] - 1, &at)) {
            which[k] = (double)(i + 1);
            own[k++] = (double)(at + 1);
        }
    return 2;
}

/* --- parts ---------------------------------------------------------------- */

/* is_plain(A): does it lie without gaps, as parts do? */
static int is_plain(lua_State *L)
{
    const gpu_matrix *m = lumat_check_matrix(L, 1);
    lua_pushboolean(L, gpu_is_contiguous(m) && !m->is_conjugated);
    return 1;
}

/* The line of integers at index and behind. */
static line arguments_line(lua_State *L, int index, int64_t n, int64_t block)
{
    return (line){n, block, luaL_checkinteger(L, index),
                  luaL_checkinteger(L, index + 1)};
}

/* The five arguments from index on: what rand ("uniform") or randn ("normal")
 * draws, its seed and call, and the limits, or mean and deviation. */
static gpu_random arguments_random(lua_State *L, int index)
{
    const char *kind = luaL_checkstring(L, index);
    return (gpu_random){.kind = *kind == 'n' ? GPU_NORMAL : GPU_UNIFORM,
                        .seed = (uint64_t)luaL_checkinteger(L, index + 1),
                        .call = (uint64_t)luaL_checkinteger(L, index + 2),
                        .low = luaL_checknumber(L, index + 3),
                        .high = luaL_checknumber(L, index + 4)};
}

/* draw(A, n, mb, nb, row, rows, col, cols, kind, seed, call, low, high): fills
 * A, by columns and in the host's memory, which is the process's part of a
 * matrix of n columns, with what rand or randn would give the whole. */
static int draw(lua_State *L)
{
    gpu_matrix *m = lumat_check_matrix(L, 1);
    int64_t n = luaL_checkinteger(L, 2);
    line down = arguments_line(L, 5, INT64_MAX, luaL_checkinteger(L, 3));
    line along = arguments_line(L, 7, n, luaL_checkinteger(L, 4));
    gpu_random r = arguments_random(L, 9);
    gpu_dtype real = gpu_dtype_of_parts(m->dtype);
    int pair = m->dtype == real ? 1 : 2;
    r = pair == 2 ? gpu_random_of_parts(&r) : r;
    int64_t bytes = (int64_t)gpu_dtype_size(m->dtype);
    char *to = lumat_part_bytes(L, m);
    char *run = lua_newuserdatauv(L, (size_t)(along.block * bytes) + 1, 0);
    for (int64_t i = 0; i < m->cols; i++) {
        int64_t row = lumat_cyclic_place(&down, i);
        if (gpu_is_interrupted())
            return luaL_error(L, "interrupted");
        for (int64_t j = 0; j < m->rows; j += along.block) {
            int64_t left = m->rows - j;
            int64_t some = left < along.block ? left : along.block;
            gpu_draw(&r, real, (row * n + lumat_cyclic_place(&along, j)) * pair,
                     some * pair, run);
            for (int64_t k = 0; k < some; k++)
                memcpy(to + ((j + k) * m->cols + i) * bytes, run + k * bytes,
                       (size_t)bytes);
        }
    }
    return 0;
}

/* drawn(like, row, rows, n, kind, seed, call, low, high): those rows, from row
 * number `row`, from 0, on, of what rand or randn would give a matrix of n
 * columns: of like's type, where like lies, and drawn there. */
static int drawn(lua_State *L)
{
    const gpu_matrix *like = lumat_check_matrix(L, 1);
    int64_t row = luaL_checkinteger(L, 2), rows = luaL_checkinteger(L, 3);
    int64_t n = luaL_checkinteger(L, 4);
    gpu_random r = arguments_random(L, 5);
    int pair = gpu_dtype_is_complex(like->dtype) ? 2 : 1;
    int64_t lead = row * n * pair % 4 / pair; /* before it: see gpu_random */
    r.first = (row * n - lead) * pair;
    gpu_matrix *whole = lumat_new_matrix(L), *run = lumat_new_matrix(L);
    gpu_matrix *out = lumat_new_matrix(L);
    lumat_try(L, gpu_create_random(whole, gpu_matrix_device(like), like->dtype,
                                   1, lead + rows * n, 1, &r));
    lumat_account(L, whole);
    lumat_try(L, gpu_view_block(whole, (gpu_slice){lead, 1, rows * n},
                                (gpu_slice){0, 1, 1}, run));
    lumat_try(L, gpu_reshape(run, 2, rows, n, out));
    lumat_account(L, out);
    return 1;
}

/* unset(like, rows, cols): a matrix of like's type, where like lies, whose
 * elements are to be written before they are read. */
static int unset(lua_State *L)
{
    const gpu_matrix *like = lumat_check_matrix(L, 1);
    int64_t rows = luaL_checkinteger(L, 2), cols = luaL_checkinteger(L, 3);
    gpu_matrix *m = lumat_new_matrix(L);
    lumat_try(
        L, gpu_create(m, gpu_matrix_device(like), like->dtype, 2, rows, cols));
    lumat_account(L, m);
    return 1;
}

void lumat_open_block_cyclic(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"count", count}, {"places", places},     {"shared", shared},
        {"owned", owned}, {"is_plain", is_plain}, {"draw", draw},
        {"drawn", drawn}, {"unset", unset},       {NULL, NULL}};
    luaL_newlib(L, functions);
    lumat_set_required(L, "block_cyclic");
    lua_createtable(L, 0, GPU_OPS);
    for (gpu_op op = 0; op < GPU_OP_ROW; op++) {
        lua_pushinteger(L, gpu_op_arity(op));
        lua_setfield(L, -2, gpu_op_name(op));
    }
    lumat_set_required(L, "elementwise");
}
