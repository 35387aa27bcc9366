/* What may stand in place of the word before the cursor. Raw access only: no
 * metamethod runs, no device is touched. */
#include "library.h"
#include "lumat.h"

#include <ctype.h>
#include <string.h>

extern const char lumat_property_names[];

static const char keywords[] =
    "and break do else elseif end false for function goto if in local nil not "
    "or repeat return then true until while";

typedef struct query {
    lua_State *L;
    const char *prefix;
    size_t length;
    lumat_name_fn *each;
    void *data;
} query;

static int is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static size_t start_of_name(const char *line, size_t point)
{
    while (point > 0 && is_name_char(line[point - 1]))
        point--;
    return point;
}

static int starts(const query *q, const char *name)
{
    return strncmp(name, q->prefix, q->length) == 0;
}

/* Shape and place of a matrix, without asking the device. */
static void offer(const query *q, const char *name, int value)
{
    gpu_matrix *m = value ? lumat_test_matrix(q->L, value) : NULL;
    if (!starts(q, name))
        return;
    if (!m || !m->storage) {
        q->each(q->data, name, "");
        return;
    }
    lumat_push_shape(q->L, m);
    lua_pushfstring(q->L, "%s %s %s", gpu_dtype_name(m->dtype),
                    lua_tostring(q->L, -1),
                    gpu_device_name(gpu_matrix_device(m)));
    q->each(q->data, name, lua_tostring(q->L, -1));
    lua_pop(q->L, 2);
}

/* Names in the table on top; pops it. */
static void offer_keys(const query *q)
{
    lua_State *L = q->L;
    int table = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1))
        if (lua_type(L, -2) == LUA_TSTRING)
            offer(q, lua_tostring(L, -2), lua_gettop(L));
    lua_settop(L, table - 1);
}

static void offer_words(const query *q, const char *list)
{
    char word[32];
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, " ");
        if (n < sizeof word) {
            memcpy(word, p, n);
            word[n] = '\0';
            offer(q, word, 0);
        }
        p += n + strspn(p + n, " ");
    }
}

/* Names that are valid after a dot. */
static void offer_fields(const query *q)
{
    lua_State *L = q->L;
    if (lumat_test_matrix(L, -1)) {
        lua_pop(L, 1);
        offer_words(q, lumat_property_names);
    } else if (lua_istable(L, -1)) {
        offer_keys(q);
    } else {
        lua_pop(L, 1);
    }
}

static void offer_methods(const query *q)
{
    lua_State *L = q->L;
    const char *table = NULL;
    if (lumat_test_matrix(L, -1))
        table = "lumat.methods";
    int is_string = lua_type(L, -1) == LUA_TSTRING;
    lua_pop(L, 1);
    if (table)
        lua_getfield(L, LUA_REGISTRYINDEX, table);
    else if (is_string)
        lua_getglobal(L, "string");
    else
        return;
    if (lua_istable(L, -1))
        offer_keys(q);
    else
        lua_pop(L, 1);
}

/* Pushes a variable by raw access: session local or global. */
static void push_variable(lua_State *L, const char *name, size_t length)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.session");
    lua_pushlstring(L, name, length);
    lua_rawget(L, -2);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        lua_pushglobaltable(L);
        lua_pushlstring(L, name, length);
        lua_rawget(L, -2);
        lua_remove(L, -2);
    }
    lua_remove(L, -2);
}

/* Pushes what "a.b.c" names, ending at `end`; 0 when it is no such chain. */
static int push_chain(lua_State *L, const char *line, size_t end)
{
    size_t start = start_of_name(line, end);
    if (start == end || isdigit((unsigned char)line[start]))
        return 0;
    if (start == 0 || line[start - 1] != '.') {
        push_variable(L, line + start, end - start);
        return 1;
    }
    if (!push_chain(L, line, start - 1))
        return 0;
    if (!lua_istable(L, -1)) {
        lua_pop(L, 1);
        return 0;
    }
    lua_pushlstring(L, line + start, end - start);
    lua_rawget(L, -2);
    lua_remove(L, -2);
    return 1;
}

static void offer_variables(const query *q)
{
    lua_State *L = q->L;
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.session");
    offer_keys(q);
    lua_pushglobaltable(L);
    offer_keys(q);
    offer_words(q, keywords);
}

size_t lumat_complete(lua_State *L, const char *line, size_t point,
                      lumat_name_fn *each, void *data)
{
    int top = lua_gettop(L);
    size_t start = start_of_name(line, point);
    char prefix[128];
    size_t length = point - start;
    if (length >= sizeof prefix || !lua_checkstack(L, 64))
        return start;
    memcpy(prefix, line + start, length);
    prefix[length] = '\0';
    query q = {L, prefix, length, each, data};
    char before = start > 0 ? line[start - 1] : ' ';
    if (before != '.' && before != ':')
        offer_variables(&q);
    else if (push_chain(L, line, start - 1))
        (before == '.' ? offer_fields : offer_methods)(&q);
    lua_settop(L, top);
    return start;
}
