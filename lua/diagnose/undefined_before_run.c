/* Finding, before an entry runs, the name it is sure to stumble on: one its
 * top level calls, indexes or computes with, that has no value, before
 * anything ran that could have given it one. Where that is not certain
 * nothing is said. */
#include "parse.h"
#include "locals.h"
#include "nearest_name.h"

#include "lauxlib.h"
#include <string.h>

typedef struct checker {
    lua_State *L;
    lumat_reader r;
    lumat_word before;
    int depth;       /* of blocks */
    int unsure;      /* behind `and` or `or`, up to the statement's end */
    int functions;   /* the text makes some */
    int given, base; /* on the stack: the names the text gives a value, and
                        the globals that are not the user's */
} checker;

static int is_arithmetic(const lumat_word *t)
{
    return lumat_is_one_of(t, "+ - * / // % ^ .. & | ~ << >> #");
}

/* --- what a name stands for ----------------------------------------------- */

static int is_given(checker *c)
{
    lua_pushlstring(c->L, c->r.word.start, c->r.word.length);
    int found = lua_rawget(c->L, c->given) != LUA_TNIL;
    lua_pop(c->L, 1);
    return found;
}

/* Pushes the value before the entry runs. */
static void push_value(checker *c)
{
    lua_State *L = c->L;
    if (lumat_push_local(L, c->r.word.start, c->r.word.length)) {
        lua_getupvalue(L, -1, 1);
    } else {
        lua_pushglobaltable(L);
        lua_pushlstring(L, c->r.word.start, c->r.word.length);
        lua_rawget(L, -2);
        lua_remove(L, -2);
    }
    lua_remove(L, -2);
}

/* Is the value on top, of the name at hand, what the library put there? */
static int is_base(checker *c)
{
    lua_pushlstring(c->L, c->r.word.start, c->r.word.length);
    lua_rawget(c->L, c->base);
    int same = lua_rawequal(c->L, -1, -2);
    lua_pop(c->L, 1);
    return same;
}

/* May a mention of the name lead to code that sets globals? What the text
 * itself made is a function of the user's only if it makes functions. */
static int is_risky(checker *c)
{
    static const char words[] = "_G _ENV require dofile load loadfile pcall "
                                "xpcall setmetatable rawset debug coroutine "
                                "package";
    lumat_word next = lumat_word_behind(&c->r);
    if (lumat_is_one_of(&c->r.word, words))
        return 1;
    if (is_given(c))
        return c->functions &&
               (lumat_is_suffix(&next) || lumat_is_one_of(&next, ", )"));
    push_value(c);
    int type = lua_type(c->L, -1);
    int risky = type == LUA_TFUNCTION ? !is_base(c)
                : type == LUA_TTABLE  ? lumat_is_suffix(&next) && !is_base(c)
                                      : 0;
    lua_pop(c->L, 1);
    return risky;
}

static int has_value(checker *c)
{
    return is_given(c) || lumat_is_echo(&c->r.word) ||
           lumat_is_one_of(&c->r.word, "_ENV") ||
           lumat_has_value(c->L, c->r.word.start, c->r.word.length);
}

/* --- the walk ------------------------------------------------------------- */

/* Called, indexed, or computed with. */
static int is_used(const checker *c)
{
    lumat_word next = lumat_word_behind(&c->r);
    return lumat_is_suffix(&next) || is_arithmetic(&next) ||
           is_arithmetic(&c->before);
}

static int is_variable(const checker *c)
{
    return c->r.word.kind == LUMAT_WORD_NAME &&
           !lumat_is_one_of(&c->before, ". : :: goto");
}

/* Does the walk end here: who knows what runs behind this? */
static int is_end(const checker *c)
{
    const lumat_word *t = &c->r.word;
    int calls_result =
        lumat_is_one_of(&c->before, ") ]") &&
        (t->kind == LUMAT_WORD_STRING || lumat_is_one_of(t, "( {"));
    return t->kind == LUMAT_WORD_END || lumat_is_one_of(t, "goto break") ||
           (c->depth > 0 && lumat_is_one_of(t, "return")) || calls_result;
}

/* Is a name sure to fail? Then the reader stands at it. */
static int find_undefined(checker *c)
{
    while (!is_end(c)) {
        if (lumat_starts_statement(&c->before, &c->r.word))
            c->unsure = 0;
        if (lumat_at(&c->r, "and") || lumat_at(&c->r, "or"))
            c->unsure = 1;
        if (is_variable(c)) {
            if (c->depth == 0 && !c->unsure && is_used(c) && !has_value(c))
                return 1;
            if (is_risky(c))
                return 0;
        }
        c->before = c->r.word;
        if (lumat_at(&c->r, "function")) {
            lumat_skip_operand(&c->r);
            c->before = (lumat_word){LUMAT_WORD_KEYWORD, "end", 3, 0};
            continue;
        }
        c->depth += lumat_block_step(&c->r.word);
        lumat_next_word(&c->r);
    }
    return 0;
}

int lumat_check_names(lua_State *L, const char *text, size_t length)
{
    int top = lua_gettop(L);
    checker c = {.L = L, .r = lumat_read_words(text, length)};
    if (!lumat_are_globals_plain(L))
        return LUA_OK;
    c.functions = lumat_push_given(L, c.r);
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.base");
    c.given = top + 1;
    c.base = top + 2;
    if (!find_undefined(&c)) {
        lua_settop(L, top);
        return LUA_OK;
    }
    lua_pushlstring(L, c.r.word.start, c.r.word.length);
    lua_pushfstring(L, LUMAT_CHUNK ":%d: ", c.r.word.line);
    lumat_push_undefined(L, lua_tostring(L, -2), 1);
    lua_concat(L, 2);
    lua_replace(L, top);
    lua_settop(L, top);
    return LUA_ERRSYNTAX;
}
