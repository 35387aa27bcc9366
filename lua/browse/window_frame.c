/* A frame in the viewer: lua/frames/frame_text.lua gives columns, numbers as
 * vectors, all else as texts. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "value.h"
#include "window_parts.h"

/* As much of the text as there is room for, without half a character. */
static void copy_text(char *out, const char *text)
{
    size_t length = strlen(text), at = 0;
    while (at < length) {
        size_t n = lumat_shown_length(text + at, length - at);
        n = n > 0 ? n : 1;
        if (at + n >= LUMAT_CELL_ROOM)
            break;
        at += n;
    }
    memcpy(out, text, at);
    out[at] = '\0';
}

/* The numbers of the vector on top, as column j of the values. */
static void take_numbers(lua_State *L, lumat_window *w, const lumat_area *a,
                         int64_t j)
{
    const gpu_matrix *m = lumat_check_matrix(L, -1);
    double *column = lua_newuserdatauv(L, (size_t)a->rows * sizeof *column, 0);
    lumat_try(L, gpu_download(m, column));
    lumat_widen(column, m->dtype, a->rows);
    for (int64_t i = 0; i < a->rows; i++)
        w->values[i * a->cols + j] = column[i];
    w->parts[j].dtype = m->dtype;
    lua_pop(L, 1);
}

/* Those of the list on top; false is what is missing. */
static void take_texts(lua_State *L, lumat_window *w, const lumat_area *a,
                       int64_t j, lumat_cell_text *out)
{
    for (int64_t i = 0; i < a->rows; i++) {
        int64_t at = i * a->cols + j;
        lua_rawgeti(L, -1, i + 1);
        int is_there = lua_isstring(L, -1);
        copy_text(out[at], is_there ? lua_tostring(L, -1) : "-");
        w->values[at] = is_there ? 1 : NAN;
        int width = lumat_text_columns(out[at], strlen(out[at]));
        if (out == w->texts && width > w->parts[j].width)
            w->parts[j].width = width;
        lua_pop(L, 1);
    }
}

/* The column on top: {title =, left =, values = or texts =, exact =}. */
static void take_column(lua_State *L, lumat_window *w, const lumat_area *a,
                        int64_t j)
{
    lumat_frame_part *p = &w->parts[j];
    lua_getfield(L, -1, "title");
    copy_text(p->title, lua_tostring(L, -1));
    p->width = lumat_text_columns(p->title, strlen(p->title));
    lua_getfield(L, -2, "left");
    p->is_left = lua_toboolean(L, -1);
    p->is_text = lua_getfield(L, -3, "values") == LUA_TNIL;
    if (p->is_text) {
        lua_getfield(L, -4, "texts");
        take_texts(L, w, a, j, w->texts);
        lua_getfield(L, -5, "exact");
        take_texts(L, w, a, j, w->exacts);
        lua_pop(L, 2);
    } else {
        take_numbers(L, w, a, j);
    }
    lua_pop(L, 3);
}

void lumat_fetch_frame(lua_State *L, lumat_window *w, int index,
                       const lumat_area *a)
{
    size_t cells = (size_t)(a->rows * a->cols), cols = (size_t)a->cols;
    size_t bytes = cells * (sizeof *w->values + 2 * sizeof *w->texts) +
                   cols * sizeof *w->parts;
    w->values = lua_newuserdatauv(L, bytes, 0);
    void *parts = w->values + cells, *texts;
    w->parts = parts;
    texts = w->parts + cols;
    w->texts = texts;
    w->exacts = w->texts + cells;
    lumat_push_required(L, "frame_text");
    lua_getfield(L, -1, "window");
    lua_pushvalue(L, index);
    const int64_t numbers[] = {a->row + 1, a->col + 1, a->rows, a->cols};
    for (int i = 0; i < 4; i++)
        lua_pushinteger(L, numbers[i]);
    lua_call(L, 5, 1);
    for (int64_t j = 0; j < a->cols; j++) {
        lua_rawgeti(L, -1, j + 1);
        take_column(L, w, a, j);
        lua_pop(L, 1);
    }
    lua_pop(L, 2);
}

/* --- as Lua --------------------------------------------------------------- */

static int is_name(const char *s)
{
    size_t length = strlen(s), i = 0;
    while (i < length && (isalnum((unsigned char)s[i]) || s[i] == '_'))
        i++;
    return length > 0 && i == length && !isdigit((unsigned char)*s);
}

/* What Lua reads as the value of the cell. */
static void add_value(lua_State *L, luaL_Buffer *b, const lumat_window *w,
                      const lumat_cell *cell, int64_t col)
{
    if (!w->parts[col - w->here.col].is_text)
        lua_pushstring(L, isnan(cell->value) ? "0/0"
                          : isinf(cell->value)
                              ? cell->value < 0 ? "-1/0" : "1/0"
                              : cell->exact);
    else if (isnan(cell->value))
        lua_pushliteral(L, "nil");
    else
        lua_pushfstring(L, "\"%s\"", cell->exact);
    luaL_addvalue(b);
}

void lumat_push_frame_cells(lua_State *L, const lumat_window *w,
                            const char *name, lumat_area area)
{
    luaL_Buffer b;
    lumat_cell cell;
    int is_one = area.cols == 1;
    luaL_buffinit(L, &b);
    luaL_addstring(&b, is_one ? name : "{");
    for (int64_t j = area.col; j < area.col + area.cols; j++) {
        const char *title = lumat_window_title(w, j);
        lumat_window_cell(w, area.row, j, &cell);
        luaL_addstring(&b, j > area.col ? ", " : "");
        if (is_name(title))
            lua_pushfstring(L, "%s%s", is_one ? "." : "", title);
        else
            lua_pushfstring(L, "[\"%s\"]", title);
        luaL_addvalue(&b);
        if (is_one)
            lua_pushfstring(L, "[%I] = ", (LUAI_UACINT)area.row + 1);
        else
            lua_pushliteral(L, " = ");
        luaL_addvalue(&b);
        add_value(L, &b, w, &cell, j);
    }
    if (!is_one)
        lua_pushfstring(L, "}  -- %s[%I]", name, (LUAI_UACINT)area.row + 1);
    else
        lua_pushliteral(L, "");
    luaL_addvalue(&b);
    luaL_pushresult(&b);
}
