/* What a shape error adds to its message: the operands' names, their shapes,
 * and the transposes that would fit. */
#include "hints.h"

#include <string.h>

/* Does the value on top equal the one at index? Pops it. */
static int is_same(lua_State *L, int index)
{
    int same = lua_rawequal(L, -1, index);
    lua_pop(L, 1);
    return same;
}

/* A local of the function that called us. */
static int push_local_name(lua_State *L, int index)
{
    lua_Debug caller;
    if (!lua_getstack(L, 1, &caller))
        return 0;
    const char *name, *found = NULL;
    for (int i = 1; (name = lua_getlocal(L, &caller, i)); i++)
        if (is_same(L, index) && *name != '(')
            found = name;
    if (found)
        lua_pushstring(L, found);
    return found != NULL;
}

/* An upvalue of the function that called us. */
static int push_upvalue_name(lua_State *L, int index)
{
    lua_Debug caller;
    if (!lua_getstack(L, 1, &caller) || !lua_getinfo(L, "f", &caller))
        return 0;
    int function = lua_gettop(L);
    const char *name, *found = NULL;
    for (int i = 1; (name = lua_getupvalue(L, function, i)); i++)
        if (is_same(L, index) && *name != '\0')
            found = name;
    lua_settop(L, function - 1);
    if (found)
        lua_pushstring(L, found);
    return found != NULL;
}

/* A key of the table on top; pops the table. */
static int push_key(lua_State *L, int index)
{
    int table = lua_gettop(L);
    lua_pushnil(L);
    while (lua_next(L, table)) {
        if (lua_type(L, -2) == LUA_TSTRING && lua_rawequal(L, -1, index) &&
            strcmp(lua_tostring(L, -2), "ans") != 0) {
            lua_pop(L, 1);
            lua_remove(L, table);
            return 1;
        }
        lua_pop(L, 1);
    }
    lua_settop(L, table - 1);
    return 0;
}

const char *lumat_name_of(lua_State *L, int index, const char *otherwise)
{
    index = lua_absindex(L, index);
    if (push_local_name(L, index) || push_upvalue_name(L, index))
        return lua_tostring(L, -1);
    if (lua_getfield(L, LUA_REGISTRYINDEX, "lumat.session") == LUA_TTABLE) {
        if (push_key(L, index))
            return lua_tostring(L, -1);
    } else {
        lua_pop(L, 1);
    }
    lua_pushglobaltable(L);
    if (push_key(L, index))
        return lua_tostring(L, -1);
    return lua_pushstring(L, otherwise);
}

static void add_shape(lua_State *L, luaL_Buffer *b, const gpu_matrix *m)
{
    lumat_push_shape(L, m);
    luaL_addvalue(b);
}

typedef struct factor {
    const char *name;
    int64_t rows, cols;
} factor;

static factor factor_of(const gpu_matrix *m, const char *name, int left)
{
    if (m->ndim == 2)
        return (factor){name, m->rows, m->cols};
    return left ? (factor){name, 1, m->rows} : (factor){name, m->rows, 1};
}

static void suggest_product(lua_State *L, luaL_Buffer *b, factor x, int tx,
                            factor y, int ty)
{
    int64_t rows = tx ? x.cols : x.rows, inner = tx ? x.rows : x.cols;
    int64_t other = ty ? y.cols : y.rows, cols = ty ? y.rows : y.cols;
    if (inner != other)
        return;
    lua_pushfstring(L, "      %s%s * %s%s is %Ix%I", x.name, tx ? ".T" : "",
                    y.name, ty ? ".T" : "", (LUAI_UACINT)rows,
                    (LUAI_UACINT)cols);
    luaL_addvalue(b);
}

static void suggest_elementwise(luaL_Buffer *b, const gpu_matrix *x,
                                const char *xname, const gpu_matrix *y,
                                const char *yname, int is_product)
{
    if (x->ndim != y->ndim)
        return;
    if (is_product && x->rows == y->rows && x->cols == y->cols) {
        luaL_addstring(b, "      ");
        luaL_addstring(b, xname);
        luaL_addstring(b, " % ");
        luaL_addstring(b, yname);
        luaL_addstring(b, " is element by element");
    } else if (!is_product && x->rows == y->cols && x->cols == y->rows) {
        luaL_addstring(b, "      ");
        luaL_addstring(b, yname);
        luaL_addstring(b, ".T would fit");
    }
}

int lumat_raise_shapes(lua_State *L, int left, int right, int is_product)
{
    gpu_matrix *x = lumat_test_matrix(L, left);
    gpu_matrix *y = lumat_test_matrix(L, right);
    lua_pushstring(L, gpu_message());
    const char *message = lua_tostring(L, -1);
    const char *xname = lumat_name_of(L, left, "left");
    const char *yname = lumat_name_of(L, right, "right");
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    luaL_addstring(&b, message);
    luaL_addstring(&b, "\n  ");
    luaL_addstring(&b, xname);
    luaL_addstring(&b, " is ");
    add_shape(L, &b, x);
    luaL_addstring(&b, ", ");
    luaL_addstring(&b, yname);
    luaL_addstring(&b, " is ");
    add_shape(L, &b, y);
    if (is_product && x->ndim + y->ndim >= 3) {
        factor f = factor_of(x, xname, 1), g = factor_of(y, yname, 0);
        suggest_product(L, &b, f, x->ndim == 2, g, 0);
        if (y->ndim == 2) {
            suggest_product(L, &b, f, 0, g, 1);
            if (x->ndim == 2)
                suggest_product(L, &b, f, 1, g, 1);
        }
    }
    suggest_elementwise(&b, x, xname, y, yname, is_product);
    luaL_pushresult(&b);
    return lumat_raise(L, "%s", lua_tostring(L, -1));
}
