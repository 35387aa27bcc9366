/* What error messages say of values: the names of what holds them, their
 * shapes, and the transposes that would fit; and which word was meant. */
#include "parse.h"
#include "value.h"

#include <string.h>

/* --- names and kinds ------------------------------------------------------ */

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

int lumat_push_holder(lua_State *L, int index)
{
    lumat_variables v = lumat_begin_variables(L, LUMAT_WITH_LIBRARY);
    while (lumat_next_variable(&v)) {
        if (!lua_rawequal(L, -1, index) || strcmp(v.name, "ans") == 0)
            continue;
        lua_pop(L, 1);
        lua_replace(L, v.tables);
        lua_settop(L, v.tables);
        return 1;
    }
    return 0;
}

const char *lumat_name_of(lua_State *L, int index, const char *otherwise)
{
    index = lua_absindex(L, index);
    if (push_local_name(L, index) || push_upvalue_name(L, index) ||
        lumat_push_holder(L, index))
        return lua_tostring(L, -1);
    return lua_pushstring(L, otherwise);
}

const char *lumat_push_brief_number(lua_State *L, double x)
{
    const char *special = lumat_special(x);
    if (special)
        return lua_pushstring(L, special);
    lua_pushnumber(L, x);
    return lua_tostring(L, -1);
}

const char *lumat_push_brief(lua_State *L, int index)
{
    enum { LONGEST = 40 };
    size_t length;
    const char *text;
    const gpu_matrix *m = lumat_test_matrix(L, index);
    if (m)
        return lua_pushstring(L, m->storage ? "a matrix" : "a freed matrix");
    const gpu_sparse *s = lumat_look_at_sparse(L, index);
    if (s && !s->values.storage)
        return lua_pushliteral(L, "a freed sparse matrix");
    switch (lua_type(L, index)) {
    case LUA_TNONE:
    case LUA_TNIL:
        return lua_pushliteral(L, "nil");
    case LUA_TNUMBER:
        if (!lua_isinteger(L, index))
            return lumat_push_brief_number(L, lua_tonumber(L, index));
        lua_pushvalue(L, index);
        return lua_tostring(L, -1);
    case LUA_TSTRING:
        text = lua_tolstring(L, index, &length);
        if (length <= LONGEST)
            return lua_pushfstring(L, "\"%s\"", text);
        return lua_pushfstring(L, "a string of %I characters",
                               (LUAI_UACINT)length);
    default:
        return lua_pushfstring(L, "a %s", lumat_kind_of(L, index));
    }
}

/* --- words that were meant ------------------------------------------------ */

int lumat_distance(const char *a, size_t n, const char *b, size_t m)
{
    int d[32][32];
    if (n > 31 || m > 31)
        return LUMAT_FAR_APART;
    for (size_t i = 0; i <= n; i++)
        d[i][0] = (int)i;
    for (size_t j = 0; j <= m; j++)
        d[0][j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        for (size_t j = 1; j <= m; j++) {
            int best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (d[i - 1][j] + 1 < best)
                best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best)
                best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                if (d[i - 2][j - 2] + 1 < best)
                    best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    }
    return d[n][m];
}

const char *lumat_nearest(lua_State *L, const char *word, const char *list)
{
    size_t length = strlen(word), found = 0;
    int best = length <= 4 ? 2 : 3; /* edits at which words stop being alike */
    const char *nearest = NULL;
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, " ");
        int edits = lumat_distance(word, length, p, n);
        if (edits < best) {
            best = edits;
            nearest = p;
            found = n;
        }
        p += n + strspn(p + n, " ");
    }
    return nearest ? lua_pushlstring(L, nearest, found) : NULL;
}

/* --- what fits ------------------------------------------------------------ */

/* A matrix and its name; in a product a vector is a row on the left and a
 * column on the right. */
typedef struct operand {
    const char *name;
    int ndim;
    int64_t rows, cols;
} operand;

static operand operand_of(const gpu_matrix *m, const char *name, int is_row)
{
    if (m->ndim == 1 && is_row)
        return (operand){name, 1, 1, m->rows};
    return (operand){name, m->ndim, m->rows, m->cols};
}

static int goes_with(int64_t a, int64_t b)
{
    return a == b || a == 1 || b == 1;
}

static int fits(operand x, operand y, lumat_fit fit)
{
    switch (fit) {
    case LUMAT_FIT_PRODUCT:
        return x.cols == y.rows;
    case LUMAT_FIT_ROWS:
        return x.rows == y.rows;
    case LUMAT_FIT_COLUMNS:
        return x.cols == y.cols;
    case LUMAT_FIT_LENGTHS:
        return x.ndim == 1 && y.ndim == 1 && x.rows == y.rows;
    default:
        if (x.ndim != y.ndim)
            return 0;
        if (x.ndim == 1)
            return x.rows == y.rows;
        return goes_with(x.rows, y.rows) && goes_with(x.cols, y.cols);
    }
}

int lumat_fits(const gpu_matrix *left, const gpu_matrix *right, lumat_fit fit)
{
    int is_row = fit == LUMAT_FIT_COLUMNS;
    operand x = operand_of(left, "", is_row || fit == LUMAT_FIT_PRODUCT);
    return fits(x, operand_of(right, "", is_row), fit);
}

static operand turned(operand x)
{
    return (operand){x.name, x.ndim, x.cols, x.rows};
}

static void suggest_product(lua_State *L, luaL_Buffer *b, operand x, int tx,
                            operand y, int ty)
{
    if ((tx && x.ndim == 1) || (ty && y.ndim == 1))
        return;
    operand left = tx ? turned(x) : x, right = ty ? turned(y) : y;
    if (!fits(left, right, LUMAT_FIT_PRODUCT))
        return;
    lua_pushfstring(L, "      %s%s * %s%s is ", x.name, tx ? ".T" : "", y.name,
                    ty ? ".T" : "");
    luaL_addvalue(b);
    if (x.ndim == 2 && y.ndim == 2)
        lua_pushstring(L, gpu_size_text(left.rows, right.cols));
    else
        lua_pushfstring(L, "vector %I",
                        (LUAI_UACINT)(x.ndim == 2 ? left.rows : right.cols));
    luaL_addvalue(b);
}

static void suggest_products(lua_State *L, luaL_Buffer *b, operand x, operand y)
{
    suggest_product(L, b, x, 1, y, 0);
    suggest_product(L, b, x, 0, y, 1);
    suggest_product(L, b, x, 1, y, 1);
    if (x.ndim != 2 || y.ndim != 2 || x.rows != y.rows || x.cols != y.cols)
        return;
    lua_pushfstring(L, "      %s %% %s is element by element", x.name, y.name);
    luaL_addvalue(b);
}

static void suggest(lua_State *L, luaL_Buffer *b, operand x, const char *change)
{
    lua_pushfstring(L, "      %s%s would fit", x.name, change);
    luaL_addvalue(b);
}

/* A vector beside a matrix, element by element. */
static void suggest_vector(lua_State *L, luaL_Buffer *b, operand v, operand m)
{
    if (v.rows == m.cols)
        suggest(L, b, v, ":row()");
    else if (v.rows == m.rows)
        suggest(L, b, v, ":col()");
}

static void suggest_transpose(lua_State *L, luaL_Buffer *b, operand x,
                              operand y, lumat_fit fit)
{
    int elements = fit == LUMAT_FIT_ELEMENTS;
    if (elements && x.ndim + y.ndim == 3) {
        suggest_vector(L, b, x.ndim == 1 ? x : y, x.ndim == 1 ? y : x);
        return;
    }
    if (x.ndim != 2 || y.ndim != 2 || fit == LUMAT_FIT_LENGTHS)
        return;
    /* what broadcasting makes of a turned row or column is no correction */
    if (elements && (x.rows != y.cols || x.cols != y.rows))
        return;
    if (fits(x, turned(y), fit))
        suggest(L, b, y, ".T");
    else if (fits(turned(x), y, fit))
        suggest(L, b, x, ".T");
}

static void add_operand(lua_State *L, luaL_Buffer *b, const char *before,
                        const char *name, const gpu_matrix *m)
{
    luaL_addstring(b, before);
    luaL_addstring(b, name);
    luaL_addstring(b, " is ");
    lumat_push_shape(L, m);
    luaL_addvalue(b);
}

int lumat_raise_shapes(lua_State *L, int left, int right, lumat_fit fit)
{
    const gpu_matrix *l = lumat_test_matrix(L, left);
    const gpu_matrix *r = lumat_test_matrix(L, right);
    int is_product = fit == LUMAT_FIT_PRODUCT;
    int is_row = is_product || fit == LUMAT_FIT_COLUMNS;
    const char *message = lua_pushstring(L, gpu_message());
    operand x = operand_of(l, "left", is_row);
    operand y = operand_of(r, "right", is_row && !is_product);
    if (fits(x, y, fit))
        return lumat_raise(L, "%s", message);
    x.name = lumat_name_of(L, left, x.name);
    y.name = lumat_name_of(L, right, y.name);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    luaL_addstring(&b, message);
    add_operand(L, &b, "\n  ", x.name, l);
    add_operand(L, &b, ", ", y.name, r);
    if (is_product)
        suggest_products(L, &b, x, y);
    else
        suggest_transpose(L, &b, x, y, fit);
    luaL_pushresult(&b);
    return lumat_raise(L, "%s", lua_tostring(L, -1));
}

int lumat_raise_shape(lua_State *L, int index)
{
    const char *message = lua_pushstring(L, gpu_message());
    const char *name = lumat_name_of(L, index, "the matrix");
    lumat_push_shape(L, lumat_test_matrix(L, index));
    return lumat_raise(L, "%s (%s is %s)", message, name, lua_tostring(L, -1));
}

/* --- what no operator takes ----------------------------------------------- */

static const char *sign_of(const char *event)
{
    static const char *const signs[][2] = {
        {"add", "+"}, {"sub", "-"},  {"mul", "*"},   {"div", "/"},
        {"mod", "%"}, {"pow", "^"},  {"idiv", "//"}, {"band", "&"},
        {"bor", "|"}, {"bxor", "~"}, {"shl", "<<"},  {"shr", ">>"},
    };
    for (size_t i = 0; event && i < sizeof signs / sizeof *signs; i++)
        if (strcmp(event, signs[i][0]) == 0)
            return signs[i][1];
    return "and";
}

/* What the running operator is called: by the function itself, or by that of
 * strings, which hands it on. */
static const char *running_sign(lua_State *L)
{
    for (int level = 0; level < 2; level++) {
        lua_Debug ar = {.name = NULL};
        if (lua_getstack(L, level, &ar) && lua_getinfo(L, "n", &ar) && ar.name)
            return sign_of(ar.name);
    }
    return sign_of(NULL);
}

/* What an object of the library's that is no operand says of itself, pushed; or
 * NULL. */
static const char *push_refusal(lua_State *L, int arg)
{
    if (!lua_istable(L, arg) || luaL_getmetafield(L, arg, "__name") == LUA_TNIL)
        return NULL;
    int is_factors = lua_type(L, -1) == LUA_TSTRING &&
                     strcmp(lua_tostring(L, -1), "factorisation") == 0;
    lua_pop(L, 1);
    if (!is_factors)
        return NULL;
    luaL_getmetafield(L, arg, "__unm");
    lua_pushvalue(L, arg);
    if (lua_pcall(L, 1, 0, 0) != LUA_OK && lua_type(L, -1) == LUA_TSTRING)
        return lua_tostring(L, -1);
    return NULL;
}

int lumat_call_right(lua_State *L, const char *event)
{
    if (lua_type(L, 2) != LUA_TTABLE ||
        luaL_getmetafield(L, 2, event) == LUA_TNIL)
        return 0;
    lua_pushvalue(L, 1);
    lua_pushvalue(L, 2);
    lua_call(L, 2, 1);
    return 1;
}

int lumat_refuse_operand(lua_State *L, int arg)
{
    const char *refusal = push_refusal(L, arg);
    if (refusal)
        return lumat_raise(L, "%s", refusal);
    const char *sign = running_sign(L), *got = lumat_push_brief(L, arg);
    const char *other = lumat_name_of(L, 3 - arg, "A");
    const char *it = lumat_name_of(L, arg, *other == 'B' ? "A" : "B");
    return lumat_raise(L, "%s %s %s: %s is %s, expected a matrix or a number",
                       arg == 1 ? it : other, sign, arg == 1 ? other : it, it,
                       got);
}
