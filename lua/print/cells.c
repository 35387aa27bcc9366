/* lumat.cells, for the library's own files that lay out columns of several
 * kinds, such as frames: numbers as a matrix's columns have them, texts in the
 * columns that they take, and objects that show themselves in a style. */
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include "print_parts.h"
#include "value.h"

/* numbers(v): the elements of a vector as texts, aligned with each other where
 * they are put at the right of a column. */
static int format_numbers(lua_State *L)
{
    const gpu_matrix *m = lumat_check_matrix(L, 1);
    char text[LUMAT_CELL];
    lumat_column column;
    luaL_argcheck(L, m->ndim == 1 && !gpu_is_complex(m), 1, "no real vector");
    size_t bytes = (size_t)m->rows * sizeof(double);
    double *values = lua_newuserdatauv(L, bytes + !bytes, 0);
    gpu_pause_trace(1);
    lumat_try(L, gpu_download_unseen(m, values));
    gpu_pause_trace(0);
    lumat_widen(values, m->dtype, m->rows);
    lumat_column_fit(&column, values, m->rows, 1);
    lua_createtable(L, (int)m->rows, 0);
    for (int64_t i = 0; i < m->rows; i++) {
        int length = lumat_column_cell(&column, values[i], text);
        lua_pushlstring(L, text, (size_t)length);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* The columns that the character at the start of text takes, and its bytes.
 * What is shown by a name ("\x1B") is ASCII by then. */
static int columns_of_one(const char *text, size_t length, size_t *bytes)
{
    wchar_t one;
    mbstate_t state = {0};
    size_t n = mbrtowc(&one, text, length, &state);
    *bytes = lumat_shown_length(text, length);
    *bytes = *bytes > 0 ? *bytes : 1;
    int columns = n == *bytes ? wcwidth(one) : 1;
    return columns >= 0 ? columns : 1;
}

int lumat_text_columns(const char *text, size_t length)
{
    size_t bytes;
    int columns = 0;
    for (; length > 0; text += bytes, length -= bytes)
        columns += columns_of_one(text, length, &bytes);
    return columns;
}

/* width(text): the columns that it takes. */
static int measure_text(lua_State *L)
{
    size_t length;
    const char *text = luaL_checklstring(L, 1, &length);
    lua_pushinteger(L, lumat_text_columns(text, length));
    return 1;
}

/* beginning(text, columns): as much of it as fits, and the columns of that. */
static int cut_text(lua_State *L)
{
    size_t length, bytes, at = 0;
    const char *text = luaL_checklstring(L, 1, &length);
    lua_Integer most = luaL_checkinteger(L, 2), columns = 0;
    while (at < length) {
        int width = columns_of_one(text + at, length - at, &bytes);
        if (columns + width > most)
            break;
        columns += width;
        at += bytes;
    }
    lua_pushlstring(L, text, at);
    lua_pushinteger(L, columns);
    return 2;
}

/* distance(a, b): between two words, as of lumat_distance. */
static int measure_distance(lua_State *L)
{
    size_t n, m;
    const char *a = luaL_checklstring(L, 1, &n);
    const char *b = luaL_checklstring(L, 2, &m);
    lua_pushinteger(L, lumat_distance(a, n, b, m));
    return 1;
}

static void push_style(lua_State *L, const lumat_style *style)
{
    int64_t limit = lumat_line_limit(style), head, tail;
    lumat_line_edges(limit, &head, &tail);
    lua_createtable(L, 0, 6);
    lumat_set_count(L, "width", (uint64_t)style->width);
    lumat_set_count(L, "limit", (uint64_t)limit);
    lumat_set_count(L, "head", (uint64_t)head);
    lumat_set_count(L, "tail", (uint64_t)tail);
    lumat_set_truth(L, "ascii", style->ascii);
    lumat_set_truth(L, "colour", style->colour != 0);
    lumat_set_truth(L, "full", style->full);
}

int lumat_push_own_text(lua_State *L, int index, const lumat_style *style)
{
    index = lua_absindex(L, index);
    if (luaL_getmetafield(L, index, "__text") == LUA_TNIL)
        return 0;
    lua_pushvalue(L, index);
    push_style(L, style);
    lua_call(L, 2, 1);
    return 1;
}

/* The metamethod __tostring of objects with a __text. */
static int show_object(lua_State *L)
{
    lumat_style style = lumat_style_now(L);
    if (lumat_is_for_later(L))
        style.colour = 0;
    lua_settop(L, 1);
    return lumat_push_own_text(L, 1, &style);
}

void lumat_open_cells(lua_State *L)
{
    static const luaL_Reg own[] = {
        {"numbers", format_numbers}, {"width", measure_text},
        {"beginning", cut_text},     {"distance", measure_distance},
        {"tostring", show_object},   {NULL, NULL}};
    luaL_newlib(L, own);
    lumat_set_required(L, "cells");
}
