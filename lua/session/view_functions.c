/* view(A) and last(): what they show is found here, the screen is another's. */
#include "print.h"
#include "complex_numbers.h"
#include "function.h"
#include "session.h"
#include "value.h"

#include <stdio.h>

enum { MOST_PRINTED = 1000000 };

static lua_CFunction view_screen, page_screen;

void lumat_set_screens(lua_State *L, lua_CFunction view, lua_CFunction page)
{
    (void)L;
    view_screen = view;
    page_screen = page;
}

/* Without an argument the last result is meant: leaves one value. */
static void take_value(lua_State *L, const char *name)
{
    int is_given = !lua_isnone(L, 1);
    lua_settop(L, 1);
    if (is_given)
        return;
    lua_getglobal(L, "ans");
    lua_replace(L, 1);
    if (lua_isnil(L, 1))
        lumat_raise(L, "%s: there is no result yet: name a value", name);
}

/* --- view ----------------------------------------------------------------- */

/* Of the frame at 1. */
static int64_t count_cells(lua_State *L)
{
    lua_getfield(L, 1, "rows");
    lua_getfield(L, 1, "cols");
    int64_t count = lua_tointeger(L, -1) * lua_tointeger(L, -2);
    lua_pop(L, 2);
    return count;
}

static void check_real(lua_State *L, gpu_dtype dtype)
{
    if (gpu_dtype_is_complex(dtype))
        lumat_raise(L, "view: shows real matrices: view(A:real()), A:imag() or "
                       "A:abs()");
}

/* Of the distributed matrix at 1. */
static gpu_dtype distributed_dtype(lua_State *L)
{
    gpu_dtype dtype = GPU_F64;
    lua_getfield(L, 1, "dtype");
    gpu_dtype_find(lua_tostring(L, -1), &dtype);
    lua_pop(L, 1);
    return dtype;
}

/* 1 when the matrix or frame at 1 has something to be seen, else its headline
 * is pushed; raises for what is neither. */
static int is_visible(lua_State *L)
{
    int is_distributed = lumat_is_distributed(L, 1);
    if (is_distributed || lumat_is_frame(L, 1)) {
        if (is_distributed)
            check_real(L, distributed_dtype(L));
        if (count_cells(L) > 0)
            return 1;
        lumat_push_headline(L, 1);
        return 0;
    }
    const gpu_matrix *m = lumat_test_matrix(L, 1);
    const gpu_sparse *s = lumat_test_sparse(L, 1);
    if (!m && !s)
        lumat_raise(L, "view: needs a matrix, not %s", lumat_push_brief(L, 1));
    const gpu_matrix *part = m ? m : &s->values;
    if (!part->storage)
        lumat_raise(L, "view: the matrix has been freed");
    check_real(L, part->dtype);
    if (m ? gpu_size(m) > 0 : s->rows > 0 && s->cols > 0)
        return 1;
    lumat_push_headline(L, 1);
    return 0;
}

/* A value without a name becomes `ans`, so that the places seen in it can be
 * named afterwards. */
static void push_name(lua_State *L)
{
    if (*lumat_name_of(L, 1, "") != '\0')
        return;
    lua_pop(L, 1);
    lumat_set_ans(L, 1);
    lua_pushliteral(L, "ans");
}

static int view(lua_State *L)
{
    lumat_refuse_kind(L, 1);
    take_value(L, "view");
    if (!is_visible(L)) {
        puts(lua_tostring(L, -1));
        return 0;
    }
    push_name(L);
    if (!view_screen)
        return lumat_raise(L, "view: there is no screen here");
    lua_pushcfunction(L, view_screen);
    lua_insert(L, 1);
    lua_call(L, 2, 0);
    return 0;
}

/* --- last ----------------------------------------------------------------- */

static void check_amount(lua_State *L, int64_t count, const char *what)
{
    luaL_Buffer b;
    if (count <= MOST_PRINTED)
        return;
    luaL_buffinit(L, &b);
    luaL_addstring(&b, "last: ");
    lumat_add_count(&b, count);
    luaL_addstring(&b, what);
    luaL_addstring(&b, ", and in full at most ");
    lumat_add_count(&b, MOST_PRINTED);
    luaL_addstring(&b, " are printed; :view shows any part of it");
    luaL_pushresult(&b);
    lumat_raise(L, "%s", lua_tostring(L, -1));
}

static int last(lua_State *L)
{
    lumat_style style = lumat_style_now(L);
    take_value(L, "last");
    const gpu_matrix *m = lumat_test_matrix(L, 1);
    const gpu_sparse *s = lumat_test_sparse(L, 1);
    if (m && m->storage)
        check_amount(L, gpu_size(m), " elements");
    if (s && s->values.storage)
        check_amount(L, s->count, " entries");
    if (lumat_is_frame(L, 1))
        check_amount(L, count_cells(L), " elements");
    style.full = 1;
    lumat_push_text(L, 1, &style);
    if (!page_screen) {
        lumat_write_visible(stdout, lua_tostring(L, -1), lua_rawlen(L, -1), 1);
        putchar('\n');
        return 0;
    }
    lua_pushcfunction(L, page_screen);
    lua_insert(L, -2);
    lua_call(L, 1, 0);
    return 0;
}

static const lumat_function functions[] = {
    {"view", view, 1, "[A: matrix|sparse|frame|distributed]", "nothing",
     "Walks through a matrix of any size, dense, sparse or distributed (of "
     "which "
     "only what is shown comes here), or a frame, on the "
     "whole screen; without A, through the last result. ? there lists the "
     "keys. Also "
     ":view.",
     "type(view)", "\"function\"", .group = "asking"},
    {"last", last, 0, "[value: value]", "nothing",
     "Prints the last result, or the value, with nothing left out; on a "
     "terminal, when it is more than a screen, through $PAGER. Also :last.",
     "type(last)", "\"function\"", .group = "asking"},
    {0}};

void lumat_open_screens(lua_State *L)
{
    lumat_register(L, functions);
}
