/* Pictures as Lua values: what they are made of, their options, files. */
#include <string.h>
#include "constructors.h"
#include "print.h"
#include "picture.h"
#include "shape_errors.h"
#include "sparse_matrix.h"
#include "visible.h"

static const char METATABLE[] = "lumat.picture";

/* --- text ----------------------------------------------------------------- */

void lumat_new_text(lua_State *L, lumat_text *t, size_t room)
{
    *t = (lumat_text){lua_newuserdatauv(L, room, 0), 0, room};
    t->at[0] = '\0';
}

static int text_of(lua_State *L)
{
    lua_settop(L, 1);
    lua_pushstring(L, lumat_is_for_later(L) ? "text" : "coloured");
    lua_rawget(L, 1);
    return 1;
}

void lumat_show_as(lua_State *L, const lumat_text *t, const lumat_text *plain)
{
    lua_pushlstring(L, t->at, t->length);
    lua_setfield(L, -2, "coloured");
    if (!plain)
        lumat_strip_colours(t->at);
    lua_pushstring(L, plain ? plain->at : t->at);
    lua_setfield(L, -2, "text");
    if (luaL_newmetatable(L, METATABLE)) {
        lua_pushcfunction(L, text_of);
        lua_setfield(L, -2, "__tostring");
        lua_pushliteral(L, "picture");
        lua_setfield(L, -2, "__name");
    }
    lua_setmetatable(L, -2);
}

void lumat_put_headline(lua_State *L, int index, lumat_text *t)
{
    lumat_push_headline(L, index);
    lumat_put(t, lua_tostring(L, -1));
    lumat_put(t, "\n");
    lua_pop(L, 1);
}

/* --- what it is made of --------------------------------------------------- */

static void take_table(lua_State *L, int arg)
{
    gpu_device *cpu;
    lumat_try(L, gpu_open("cpu", &cpu));
    lumat_push_from_table(L, arg, "the table", GPU_F64, cpu);
    lua_replace(L, arg);
}

void lumat_check_subject(lua_State *L, int arg, lumat_subject *out)
{
    *out = (lumat_subject){.sparse = NULL};
    if (lua_istable(L, arg))
        take_table(L, arg);
    const gpu_sparse *s = lumat_test_sparse(L, arg);
    if (s) {
        if (!s->values.storage)
            luaL_argerror(L, arg, "the matrix has been freed");
        out->sparse = s;
        out->m = s->rows;
        out->n = s->cols;
    } else {
        out->dense = lumat_as_rows(lumat_check_matrix(L, arg));
        out->m = out->dense.rows;
        out->n = out->dense.cols;
    }
    if (out->m == 0 || out->n == 0)
        luaL_argerror(L, arg, "the matrix has no elements");
}

double *lumat_push_blocks(lua_State *L, const lumat_subject *s,
                          gpu_block_kind kind, int64_t rows, int64_t cols)
{
    size_t count = (size_t)(rows * cols);
    double *values = lua_newuserdatauv(L, count * sizeof *values, 0);
    if (s->sparse) {
        int64_t *counts = lua_newuserdatauv(L, count * sizeof *counts, 0);
        lumat_try(L, gpu_sparse_blocks(s->sparse, rows, cols, counts, values));
        for (size_t k = 0; kind == GPU_BLOCK_LARGEST && k < count; k++)
            values[k] = (double)counts[k];
        lua_pop(L, 1);
        return values;
    }
    gpu_matrix *blocks = lumat_new_matrix(L);
    lumat_try(L, gpu_blocks(&s->dense, kind, rows, cols, blocks));
    lumat_try(L, gpu_download(blocks, values));
    gpu_release(blocks);
    lua_pop(L, 1);
    return values;
}

/* --- options -------------------------------------------------------------- */

static int option_size(lua_State *L, int arg, const char *key, int least,
                       int otherwise)
{
    enum { MOST = 10000 };
    double size = lumat_option_number(L, arg, key, otherwise);
    if (!(size >= least && size <= MOST))
        lumat_raise(L, "%s: needs %d to %d characters, not %s", key, least,
                    MOST, lumat_push_brief_number(L, size));
    return (int)size;
}

/* A file's name alone stands for {file = name}. */
static void take_file_name(lua_State *L, int arg)
{
    if (lua_type(L, arg) != LUA_TSTRING)
        return;
    lua_createtable(L, 0, 1);
    lua_pushvalue(L, arg);
    lua_setfield(L, -2, "file");
    lua_replace(L, arg);
}

lumat_style lumat_picture_style(lua_State *L, int arg, const char *allowed)
{
    /* of a screen, around a picture */
    enum { LEAST_WIDTH = 10, LEAST_HEIGHT = 4, OTHER_LINES = 9 };
    lumat_style s = lumat_style_now(L);
    take_file_name(L, arg);
    lumat_check_options(L, arg, allowed);
    if (s.width < LEAST_WIDTH)
        s.width = LEAST_WIDTH;
    s.width = option_size(L, arg, "width", LEAST_WIDTH, s.width);
    if (lumat_option_number(L, arg, "height", -1) != -1)
        s.height =
            OTHER_LINES + option_size(L, arg, "height", LEAST_HEIGHT, s.height);
    return s;
}

/* --- files ---------------------------------------------------------------- */

int lumat_wants_file(lua_State *L, int arg, const char *kind)
{
    if (!lua_istable(L, arg) || lua_getfield(L, arg, "file") == LUA_TNIL)
        return 0;
    if (lua_type(L, -1) != LUA_TSTRING)
        lumat_raise(L, "%s: file: needs a name, not %s", kind,
                    lumat_push_brief(L, -1));
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.gnuplot");
    lua_pushstring(L, kind);
    lua_pushvalue(L, -3);
    lua_remove(L, -4);
    return 1;
}

/* Errors come without a place, which is that of whoever called us. */
void lumat_write_picture(lua_State *L, int nargs)
{
    if (lua_pcall(L, nargs + 2, 1, 0) != LUA_OK)
        lumat_raise(L, "%s", lua_tostring(L, -1));
}

void lumat_push_numbers(lua_State *L, const double *x, int64_t count)
{
    lua_createtable(L, (int)(count < 1 << 24 ? count : 0), 0);
    for (int64_t i = 0; i < count; i++) {
        lua_pushnumber(L, x[i]);
        lua_rawseti(L, -2, i + 1);
    }
}
