/* The call that the cursor is in: what is called, with which arguments, and
 * what its row says of them. */
#include "call_at_cursor.h"

#include <stdio.h>
#include <string.h>

/* Replaces the table on top by its field, if it is a table as well. */
static int enter(lua_State *L, const char *name, size_t length)
{
    lua_pushlstring(L, name, length);
    lua_rawget(L, -2);
    lua_remove(L, -2);
    return lua_istable(L, -1);
}

int lumat_push_members(lua_State *L, const char *owner, size_t length)
{
    static const char members[] = "members";
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.help");
    if (enter(L, owner, length) && enter(L, members, sizeof members - 1))
        return 1;
    lua_pop(L, 1);
    return 0;
}

static int has_help(lua_State *L, const char *name)
{
    return lumat_find_row(L, name) != NULL;
}

/* --- what is called ------------------------------------------------------- */

/* "io.open" of the tokens, which are names and dots; else "". */
static void copy_path(const lumat_tokens *t, int first, int end, char *name,
                      size_t room)
{
    size_t used = 0;
    name[0] = '\0';
    for (int i = first; i < end; i++) {
        const lumat_token *part = &t->list[i];
        size_t n = part->end - part->start;
        if ((part->kind != LUMAT_NAME && part->kind != '.') ||
            used + n >= room) {
            name[0] = '\0';
            return;
        }
        memcpy(name + used, t->text + part->start, n);
        used += n;
        name[used] = '\0';
    }
}

const char *lumat_owner_name(lua_State *L)
{
    if (!lua_istable(L, -1) || !lua_getmetatable(L, -1))
        return NULL;
    lua_pushliteral(L, "__name");
    const char *name =
        lua_rawget(L, -2) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
    lua_pop(L, 2); /* the metatable keeps it */
    return name;
}

/* owner.name or owner:name, of which the owner has members in the help. */
static int name_member(lua_State *L, const lumat_tokens *t, lumat_calling *call)
{
    const lumat_token *word = &t->list[call->open - 1];
    int before = lumat_kind_at(t, call->open - 2);
    if (word->kind != LUMAT_NAME || (before != '.' && before != ':'))
        return 0;
    lumat_push_chain(L, t, call->callee, call->open - 2);
    const char *owner = lumat_owner_name(L);
    if (owner)
        snprintf(call->name, sizeof call->name, "%s.%.*s", owner,
                 (int)(word->end - word->start), t->text + word->start);
    lua_pop(L, 1);
    return owner && has_help(L, call->name);
}

/* A:name, of which A is a matrix as far as is known. */
static void name_method(lua_State *L, const lumat_tokens *t,
                        lumat_calling *call)
{
    lumat_fact fact = lumat_push_chain(L, t, call->callee, call->open - 2);
    int may_be_matrix = fact.kind == LUMAT_IS_DENSE ||
                        fact.kind == LUMAT_IS_SPARSE ||
                        fact.kind == LUMAT_IS_UNKNOWN;
    lua_pop(L, 1);
    copy_path(t, call->open - 1, call->open, call->name, sizeof call->name);
    call->is_library = may_be_matrix && has_help(L, call->name);
}

static void name_function(lua_State *L, const lumat_tokens *t,
                          lumat_calling *call)
{
    lumat_push_chain(L, t, call->callee, call->open);
    const char *name = lumat_library_name(L);
    lua_pop(L, 1);
    if (name)
        snprintf(call->name, sizeof call->name, "%s", name);
    else
        copy_path(t, call->callee, call->open, call->name, sizeof call->name);
    call->is_library = name && has_help(L, name);
}

int lumat_find_call(lua_State *L, const lumat_tokens *t, int open, int at,
                    lumat_calling *call)
{
    *call = (lumat_calling){.open = open};
    if (open < 1)
        return 0;
    call->callee = lumat_chain_start(t, open);
    if (call->callee >= open || lumat_at(t, call->callee - 1, "function"))
        return 0;
    call->is_method = lumat_kind_at(t, open - 2) == ':';
    call->argument = call->is_method + 1;
    for (int i = open + 1; i < at; i++) {
        if (t->list[i].match > i)
            i = t->list[i].match;
        call->argument += t->list[i].kind == ',';
    }
    call->is_library = name_member(L, t, call);
    if (call->is_library)
        return 1;
    if (call->is_method)
        name_method(L, t, call);
    else
        name_function(L, t, call);
    return 1;
}

lumat_fact lumat_argument_fact(lua_State *L, const lumat_tokens *t,
                               const lumat_calling *call, int argument)
{
    int first = call->callee, end = call->open - 2;
    int comma = call->open, count = call->is_method;
    while (count < argument && comma < t->count) {
        first = comma + 1;
        for (end = first; end < t->count && t->list[end].kind != ','; end++)
            if (t->list[end].match > end)
                end = t->list[end].match;
        comma = end;
        count++;
    }
    lumat_fact fact = lumat_infer(L, t, first, end, 0);
    lua_pop(L, 1);
    return count == argument ? fact : (lumat_fact){.kind = LUMAT_IS_UNKNOWN};
}

/* --- what its row says ---------------------------------------------------- */

int lumat_argument_kinds(lua_State *L, const lumat_calling *call,
                         lumat_piece *kinds, int most)
{
    const lumat_function *f = lumat_find_row(L, call->name);
    lumat_argument a = {.rest = f ? f->takes : ""};
    int count = 0;
    while (f && lumat_next_argument(&a) && count < most)
        if (a.is == LUMAT_ARGUMENT && a.place == call->argument)
            kinds[count++] = a.kind;
    return count;
}

/* Pushes "f(a, b, ...)" of the Lua function on top, called as `name`. */
static void push_parameters(lua_State *L, const char *name)
{
    luaL_Buffer b;
    lua_Debug ar;
    const char *parameter;
    int function = lua_gettop(L);
    lua_pushvalue(L, function);
    lua_getinfo(L, ">Su", &ar);
    luaL_buffinit(L, &b);
    luaL_addstring(&b, name);
    luaL_addchar(&b, '(');
    for (int i = 1; i <= ar.nparams; i++) {
        lua_pushvalue(L, function);
        parameter = lua_getlocal(L, NULL, i);
        lua_pop(L, 1);
        luaL_addstring(&b, i > 1 ? ", " : "");
        luaL_addstring(&b, parameter ? parameter : "?");
    }
    if (ar.isvararg)
        luaL_addstring(&b, ar.nparams > 0 ? ", ..." : "...");
    luaL_addchar(&b, ')');
    luaL_pushresult(&b);
    lua_pushfstring(L, "a function of %s:%d", ar.short_src, ar.linedefined);
}

int lumat_push_signature(lua_State *L, const lumat_tokens *t,
                         const lumat_calling *call)
{
    int top = lua_gettop(L), name = call->open - 1;
    const lumat_token *n = &t->list[name];
    if (call->is_library) {
        const lumat_function *f = lumat_find_row(L, call->name);
        lumat_push_usage(L, f);
        lua_pushstring(L, f->help);
        return 1;
    }
    lumat_push_chain(L, t, call->callee, call->open - 2 * call->is_method);
    if (call->is_method)
        lumat_replace_by_field(L, t->text + n->start, n->end - n->start);
    if (n->kind != LUMAT_NAME || !lua_isfunction(L, -1) ||
        lua_iscfunction(L, -1)) {
        lua_settop(L, top);
        return 0;
    }
    const char *word =
        lua_pushlstring(L, t->text + n->start, n->end - n->start);
    lua_insert(L, -2);
    push_parameters(L, word);
    lua_remove(L, top + 1);
    lua_remove(L, top + 1);
    return 1;
}
