/* Names that may stand at the cursor: variables, fields and methods. All
 * tables are read raw. */
#include "cursor_context.h"
#include "math_functions.h"
#include "parse.h"
#include "value.h"

#include <ctype.h>
#include <string.h>

/* Whether the key at index may be written as a name; NULL if not. */
static const char *name_at(lua_State *L, int index)
{
    size_t length;
    if (lua_type(L, index) != LUA_TSTRING)
        return NULL;
    const char *name = lua_tolstring(L, index, &length);
    if (length == 0 || isdigit((unsigned char)*name))
        return NULL;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)name[i]) && name[i] != '_')
            return NULL;
    return lumat_is_keyword(name, length) ? NULL : name;
}

/* --- variables ------------------------------------------------------------ */

static int is_matrix(lua_State *L)
{
    return lumat_test_matrix(L, -1) || lumat_test_sparse(L, -1);
}

/* Beside an operand, and before the first letter, only the user's own. */
static int is_hidden(const lumat_query *q, const lumat_partner *partner,
                     const lumat_variables *v)
{
    int fits = partner->fit >= 0 && q->gather.length == 0;
    if (q->wanted == LUMAT_MATRICES || q->wanted == LUMAT_KERNELS)
        return !is_matrix(q->L);
    return (fits || q->wanted == LUMAT_VARIABLES) &&
           lumat_is_library_variable(v);
}

static void offer_values(lumat_query *q, const lumat_partner *partner)
{
    lua_State *L = q->L;
    lumat_variables v = lumat_begin_variables(L, LUMAT_WITH_LIBRARY);
    while (lumat_next_variable(&v)) {
        const char *name = name_at(L, -2);
        if (!name || strncmp(name, q->gather.prefix, q->gather.length) != 0)
            continue;
        int rank = is_hidden(q, partner, &v) ? LUMAT_HIDDEN
                   : partner->fit >= 0       ? lumat_rank(L, partner)
                                             : LUMAT_LATER;
        lumat_gather_value(&q->gather, name, rank);
    }
}

static void offer_declared(void *data, const char *name, size_t length)
{
    lumat_query *q = data;
    lumat_gather_copy(&q->gather, name, length, NULL);
}

void lumat_offer_variables(lumat_query *q, const lumat_partner *partner)
{
    int any = q->wanted == LUMAT_ANYTHING;
    q->gather.partner = *partner;
    if (any)
        lumat_each_declared(&q->tokens, offer_declared, q);
    offer_values(q, partner);
    if (any && (partner->fit < 0 || q->gather.length > 0))
        lumat_gather_words(&q->gather, lumat_keywords);
}

/* --- behind a dot, a colon, a bracket ---------------------------------------
 */

/* The names in the table on top, and those that its metatables lead to. */
static void offer_members(lumat_query *q, int functions_only)
{
    lua_State *L = q->L;
    int table = lua_gettop(L), more = 1;
    for (int i = 0; more && i < LUMAT_LEVELS; i++) {
        for (lua_pushnil(L); lua_istable(L, table) && lua_next(L, table);
             lua_pop(L, 1)) {
            const char *name = name_at(L, -2);
            if (name && (!functions_only || lua_isfunction(L, -1)))
                lumat_gather_value(&q->gather, name, LUMAT_LATER);
        }
        lua_settop(L, table);
        more = lumat_next_table(L);
    }
    lua_settop(L, table - 1);
}

/* Pushes the value of the chain before the sign before the word. */
static lumat_fact push_object(lumat_query *q)
{
    int end = q->at - 1;
    int first = lumat_chain_start(&q->tokens, end);
    if (first < end)
        return lumat_push_chain(q->L, &q->tokens, first, end);
    lua_pushnil(q->L);
    return (lumat_fact){.kind = LUMAT_IS_UNKNOWN};
}

void lumat_offer_fields(lumat_query *q)
{
    lumat_fact fact = push_object(q);
    if (fact.kind == LUMAT_IS_DENSE)
        lumat_gather_words(&q->gather, lumat_property_names);
    else if (fact.kind == LUMAT_IS_SPARSE)
        lumat_gather_words(&q->gather, lumat_sparse_property_names);
    else if (fact.kind == LUMAT_IS_VALUE) {
        offer_members(q, 0);
        return;
    }
    lua_pop(q->L, 1);
}

/* The methods of which the help knows, of what its metatable names. */
static void offer_known_methods(lumat_query *q)
{
    lua_State *L = q->L;
    const char *owner = lumat_library_name(L) ? NULL : lumat_owner_name(L);
    if (!owner || !lumat_push_members(L, owner, strlen(owner)))
        return;
    int members = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, members); lua_pop(L, 1)) {
        lua_pushliteral(L, "usage");
        lua_rawget(L, -2);
        if (strncmp(lua_tostring(L, -1), "e:", 2) == 0)
            lumat_gather_name(&q->gather, lua_tostring(L, -3), NULL);
        lua_pop(L, 1);
    }
    lua_settop(L, members - 1);
}

void lumat_offer_methods(lumat_query *q)
{
    lua_State *L = q->L;
    lumat_fact fact = push_object(q);
    if (fact.kind == LUMAT_IS_VALUE)
        offer_known_methods(q);
    if (fact.kind == LUMAT_IS_DENSE) {
        lua_getfield(L, LUA_REGISTRYINDEX, "lumat.methods");
        lua_replace(L, -2);
    } else if (fact.kind == LUMAT_IS_SPARSE) {
        for (const luaL_Reg *r = lumat_sparse_methods; r->name; r++)
            lumat_gather_name(&q->gather, r->name, NULL);
    } else if (fact.kind == LUMAT_IS_STRING) {
        lua_pushliteral(L, "");
        lua_replace(L, -2);
    }
    if (fact.kind == LUMAT_IS_UNKNOWN || fact.kind == LUMAT_IS_SPARSE ||
        fact.kind == LUMAT_IS_NUMBER)
        lua_pop(L, 1);
    else
        offer_members(q, 1);
}

/* A key that is written between quotes as it is. */
static const char *plain_key(lua_State *L, int index)
{
    size_t length;
    if (lua_type(L, index) != LUA_TSTRING)
        return NULL;
    const char *key = lua_tolstring(L, index, &length);
    for (size_t i = 0; i < length; i++)
        if (iscntrl((unsigned char)key[i]) || strchr("\"'\\]", key[i]))
            return NULL;
    return length > 0 ? key : NULL;
}

void lumat_offer_keys(lumat_query *q)
{
    lua_State *L = q->L;
    lumat_fact fact = push_object(q);
    int table = lua_gettop(L);
    if (fact.kind == LUMAT_IS_VALUE && lua_istable(L, table))
        for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
            const char *key = plain_key(L, -2);
            if (key)
                lumat_gather_value(&q->gather, key, LUMAT_LATER);
        }
    lua_settop(L, table - 1);
}
