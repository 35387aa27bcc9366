/* Finding, before an entry runs, the name it is sure to stumble on: one its
 * top level calls, indexes or computes with, that has no value, before
 * anything ran that could have given it one. Where that is not certain
 * nothing is said. */
#include "locals.h"
#include "lumat.h"
#include "strict.h"
#include "reader.h"
#include "undefined.h"

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

/* --- tokens --------------------------------------------------------------- */

static int is_word(const lumat_word *t, const char *words)
{
    return t->kind != LUMAT_WORD_STRING && lumat_word_among(t, words);
}

static int is_suffix(const lumat_word *t)
{
    return t->kind == LUMAT_WORD_STRING || is_word(t, "( { [ . :");
}

static int is_arithmetic(const lumat_word *t)
{
    return is_word(t, "+ - * / // % ^ .. & | ~ << >> #");
}

/* Does an expression that may go on end with the token? */
static int ends_operand(const lumat_word *t)
{
    return t->kind == LUMAT_WORD_NAME || t->kind == LUMAT_WORD_NUMBER ||
           t->kind == LUMAT_WORD_STRING ||
           is_word(t, ") ] } end nil true false ...");
}

/* A name right behind an operand, or a keyword that starts statements. */
static int starts_statement(const lumat_word *before, const lumat_word *t)
{
    if (t->kind == LUMAT_WORD_NAME)
        return !before->start || ends_operand(before) ||
               is_word(before, "; do then else repeat ::");
    return is_word(t, "; local if while for repeat return do goto break ::");
}

static lumat_word next_of(const lumat_reader *r)
{
    lumat_reader copy = *r;
    lumat_next_word(&copy);
    return copy.word;
}

/* --- names the text gives a value ----------------------------------------- */

static void give(checker *c, const lumat_word *name)
{
    lua_pushlstring(c->L, name->start, name->length);
    lua_pushboolean(c->L, 1);
    lua_rawset(c->L, c->given);
}

/* The names up to one of the words that ends them. */
static void give_until(checker *c, lumat_reader r, const char *ends)
{
    for (; r.word.kind != LUMAT_WORD_END && !is_word(&r.word, ends);
         lumat_next_word(&r))
        if (r.word.kind == LUMAT_WORD_NAME)
            give(c, &r.word);
}

/* Past a.b[i], (…) and so on; whether it is a name alone. */
static int skip_target(lumat_reader *r)
{
    int alone = 1;
    lumat_next_word(r);
    for (; is_suffix(&r->word); alone = 0)
        if (is_word(&r->word, ". :"))
            lumat_next_word(r), lumat_next_word(r);
        else
            lumat_skip_operand(r);
    return alone;
}

/* The names among the targets of an assignment that may begin here. */
static void give_targets(checker *c, lumat_reader r)
{
    lumat_reader again = r;
    for (; r.word.kind == LUMAT_WORD_NAME; lumat_next_word(&r)) {
        skip_target(&r);
        if (!lumat_at(&r, ","))
            break;
    }
    if (!lumat_at(&r, "="))
        return;
    for (; again.word.kind == LUMAT_WORD_NAME; lumat_next_word(&again)) {
        lumat_word name = again.word;
        if (skip_target(&again))
            give(c, &name);
        if (!lumat_at(&again, ","))
            return;
    }
}

static void gather_given(checker *c)
{
    lumat_word before = {0};
    lumat_reader r = c->r;
    for (; r.word.kind != LUMAT_WORD_END;
         before = r.word, lumat_next_word(&r)) {
        lumat_word next = next_of(&r);
        c->functions |= is_word(&r.word, "function");
        if (is_word(&r.word, "function"))
            give_until(c, r, ")");
        else if (is_word(&r.word, "for"))
            give_until(c, r, "= in");
        else if (is_word(&before, "local"))
            give(c, &r.word);
        else if (r.word.kind == LUMAT_WORD_NAME && is_word(&before, ",") &&
                 is_word(&next, "< = ,"))
            give(c, &r.word); /* of a local's list, or to be simple */
        else if (r.word.kind == LUMAT_WORD_NAME &&
                 starts_statement(&before, &r.word))
            give_targets(c, r);
    }
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
    lumat_word next = next_of(&c->r);
    if (is_word(&c->r.word, words))
        return 1;
    if (is_given(c))
        return c->functions && (is_suffix(&next) || is_word(&next, ", )"));
    push_value(c);
    int type = lua_type(c->L, -1);
    int risky = type == LUA_TFUNCTION ? !is_base(c)
                : type == LUA_TTABLE  ? is_suffix(&next) && !is_base(c)
                                      : 0;
    lua_pop(c->L, 1);
    return risky;
}

static int has_value(checker *c)
{
    if (is_given(c))
        return 1;
    push_value(c);
    int is_nil = lua_isnil(c->L, -1);
    lua_pop(c->L, 1);
    lumat_word t = c->r.word;
    int is_local = lumat_push_local(c->L, t.start, t.length);
    lua_pop(c->L, 1);
    return !is_nil || is_local;
}

/* --- the walk ------------------------------------------------------------- */

/* Called, indexed, or computed with. */
static int is_used(const checker *c)
{
    lumat_word next = next_of(&c->r);
    return is_suffix(&next) || is_arithmetic(&next) ||
           is_arithmetic(&c->before);
}

static int is_variable(const checker *c)
{
    return c->r.word.kind == LUMAT_WORD_NAME &&
           !is_word(&c->before, ". : :: goto");
}

/* Does the walk end here: who knows what runs behind this? */
static int is_end(const checker *c)
{
    const lumat_word *t = &c->r.word;
    int calls_result = is_word(&c->before, ") ]") &&
                       (t->kind == LUMAT_WORD_STRING || is_word(t, "( {"));
    return t->kind == LUMAT_WORD_END || is_word(t, "goto break") ||
           (c->depth > 0 && is_word(t, "return")) || calls_result;
}

/* Is a name sure to fail? Then the reader stands at it. */
static int find_undefined(checker *c)
{
    while (!is_end(c)) {
        if (starts_statement(&c->before, &c->r.word))
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

/* Someone who gives nil or the globals a metatable has plans of his own. */
static int is_plain(lua_State *L)
{
    int top = lua_gettop(L), plain;
    lua_pushnil(L);
    lua_pushglobaltable(L);
    plain = !lua_getmetatable(L, top + 1) &&
            (lumat_is_strict(L, top + 2) || !lua_getmetatable(L, top + 2));
    lua_settop(L, top);
    return plain;
}

int lumat_check_names(lua_State *L, const char *text, size_t length)
{
    int top = lua_gettop(L);
    checker c = {.L = L, .r = lumat_read_words(text, length)};
    if (!is_plain(L))
        return LUA_OK;
    lua_newtable(L);
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.base");
    c.given = top + 1;
    c.base = top + 2;
    gather_given(&c);
    if (!find_undefined(&c)) {
        lua_settop(L, top);
        return LUA_OK;
    }
    lua_pushlstring(L, c.r.word.start, c.r.word.length);
    lua_pushfstring(L, LUMAT_CHUNK ":%d: ", c.r.word.line);
    lumat_push_undefined(L, lua_tostring(L, -2));
    lua_concat(L, 2);
    lua_replace(L, top);
    lua_settop(L, top);
    return LUA_ERRSYNTAX;
}
