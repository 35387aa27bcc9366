/* Names that have no value: what was meant by them and how messages say it,
 * --strict; finding, before an entry runs, the one it is sure to stumble on;
 * and telling, when it has run, of those that it passed on. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "diagnose_parts.h"
#include "lauxlib.h"
#include "scope.h"
#include "parse.h"
#include "value.h"

/* --- what was meant ------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Adds the names that begin with the letter, or the others. */
static void add_names(luaL_Buffer *b, const char **names, int n, char first,
                      int others)
{
    for (int i = 0; i < n; i++) {
        if ((names[i][0] == first) == others)
            continue;
        luaL_addstring(b, names[i]);
        luaL_addchar(b, ' ');
    }
}

/* Pushes "name name name", of the session's locals and the globals in the
 * order in which the nearest is looked for: whoever errs in a letter rarely
 * does so in the first. */
static const char *push_variables(lua_State *L, char first)
{
    int top = lua_gettop(L), n = 0;
    lumat_variables v = lumat_begin_variables(L, LUMAT_WITH_LIBRARY);
    while (lumat_next_variable(&v))
        n++;
    const char **names = lua_newuserdatauv(L, sizeof *names * (size_t)n, 0);
    v = lumat_begin_variables(L, LUMAT_WITH_LIBRARY);
    for (n = 0; lumat_next_variable(&v); n++)
        names[n] = v.name;
    qsort(names, (size_t)n, sizeof *names, by_name);
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    add_names(&b, names, n, first, 0);
    add_names(&b, names, n, first, 1);
    luaL_pushresult(&b);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
    return lua_tostring(L, -1);
}

/* The name of the list that differs from word in case alone, or NULL. */
static const char *push_cased(lua_State *L, const char *word, const char *list)
{
    size_t length = strlen(word);
    for (const char *p = list; *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        if (n == length && strncasecmp(p, word, n) == 0)
            return lua_pushlstring(L, p, n);
        p += n;
    }
    return NULL;
}

/* Pushes the name that has a value and differs in letters, or nil. Two letters
 * are no misspelling, nor is a word without one in common. */
static const char *push_nearest(lua_State *L, const char *name,
                                const char *names)
{
    const char *near = NULL;
    if (strlen(name) > 2 && strlen(name) <= 40)
        near = lumat_nearest(L, name, names);
    if (near && !strpbrk(name, near))
        near = NULL;
    if (!near)
        lua_pushnil(L);
    return near;
}

static int begin_alike(const char *a, const char *b)
{
    return tolower((unsigned char)*a) == tolower((unsigned char)*b);
}

/* Names before words of other languages before names that are spelt alike. */
static const char *look_for_meant(lua_State *L, const char *name, int is_entry,
                                  int *is_likely)
{
    const char *names, *meant;
    *is_likely = 1;
    if (is_entry && lumat_is_command(name, strlen(name)))
        return lua_pushfstring(L, "did you mean :%s?", name);
    names = push_variables(L, name[0]);
    if ((meant = push_cased(L, name, names)))
        return lua_pushfstring(L, "did you mean %s?", meant);
    if ((meant = lumat_push_instead(L, name)))
        return meant;
    if (!(meant = push_nearest(L, name, names)))
        return NULL;
    *is_likely = begin_alike(name, meant);
    return lua_pushfstring(L, "did you mean %s?", meant);
}

/* Pushes and returns how a message goes on about a name without a value: "did
 * you mean sum?" (in an entry a command, too), or a sentence; or pushes nil
 * and returns NULL. *is_likely, unless NULL: is it more than a resemblance? */
static const char *push_meant(lua_State *L, const char *name, int is_entry,
                              int *is_likely)
{
    int top = lua_gettop(L), likely;
    const char *meant =
        look_for_meant(L, name, is_entry, is_likely ? is_likely : &likely);
    lua_replace(L, top + 1);
    lua_settop(L, top + 1);
    return meant;
}

/* Pushes "'matmull' is not defined: did you mean matmul?"; in an entry a
 * command may be meant, too. */
static void push_undefined(lua_State *L, const char *name, int is_entry)
{
    const char *meant = push_meant(L, name, is_entry, NULL);
    if (meant)
        lua_pushfstring(L, "'%s' is not defined: %s", name, meant);
    else
        lua_pushfstring(L, "'%s' is not defined", name);
    lua_remove(L, -2);
}

/* --- --strict ------------------------------------------------------------- */
/* Globals that were never set are no nil. */

static const char meta_key; /* registry: the metatable of the globals */

/* Who reads or sets the global: 0 for C, which may look. */
static int find_caller(lua_State *L, lua_Debug *caller)
{
    return lua_getstack(L, 1, caller) && lua_getinfo(L, "Sl", caller) &&
           caller->currentline > 0;
}

static int is_entry(const lua_Debug *caller)
{
    return strcmp(caller->source, "=" LUMAT_CHUNK) == 0;
}

/* Upvalue: the names that were set. */
static int read_unset(lua_State *L)
{
    lua_Debug caller;
    lua_settop(L, 2);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL ||
        lua_type(L, 2) != LUA_TSTRING || !find_caller(L, &caller)) {
        lua_pushnil(L);
        return 1;
    }
    push_undefined(L, lua_tostring(L, 2), is_entry(&caller));
    return luaL_error(L, "%s", lua_tostring(L, -1));
}

/* At the prompt and at a file's top level this is how globals are made. */
static int is_slip(lua_State *L, lua_Debug *caller)
{
    return lua_type(L, 2) == LUA_TSTRING && find_caller(L, caller) &&
           strcmp(caller->what, "main") != 0 && !is_entry(caller);
}

static int set_new(lua_State *L)
{
    lua_Debug caller;
    lua_settop(L, 3);
    lua_pushvalue(L, 2);
    int is_new = lua_rawget(L, lua_upvalueindex(1)) == LUA_TNIL;
    lua_settop(L, 3);
    if (is_new && is_slip(L, &caller)) {
        const char *name = lua_tostring(L, 2);
        fflush(stdout);
        lumat_print_visible(
            stderr,
            "note: %s:%d: a function sets the new global '%s'; 'local %s' "
            "would keep it to itself\n",
            caller.short_src, caller.currentline, name, name);
    }
    lua_pushvalue(L, 2);
    lua_pushboolean(L, 1);
    lua_rawset(L, lua_upvalueindex(1));
    lua_rawset(L, 1);
    return 0;
}

void lumat_make_strict(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"__index", read_unset}, {"__newindex", set_new}, {NULL, NULL}};
    lua_pushglobaltable(L);
    lua_createtable(L, 0, 2);
    lua_newtable(L);
    luaL_setfuncs(L, methods, 1);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &meta_key);
    lua_setmetatable(L, -2);
    lua_pop(L, 1);
}

/* Is the table on top's metatable the one that does so? */
static int is_strict(lua_State *L, int index)
{
    if (!lua_getmetatable(L, index))
        return 0;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &meta_key);
    int same = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return same;
}

int lumat_is_strict(lua_State *L)
{
    lua_pushglobaltable(L);
    int found = is_strict(L, lua_gettop(L));
    lua_pop(L, 1);
    return found;
}

/* --- values --------------------------------------------------------------- */

/* Is it one of the session's locals, or a global that is not nil? */
static int has_value(lua_State *L, const char *name, size_t length)
{
    int found = lumat_push_local(L, name, length);
    lua_pushglobaltable(L);
    lua_pushlstring(L, name, length);
    found |= lua_rawget(L, -2) != LUA_TNIL;
    lua_pop(L, 3);
    return found;
}

/* Have neither nil nor the globals a metatable? Who gives them one has plans
 * of his own; --strict does not count. */
static int are_globals_plain(lua_State *L)
{
    int top = lua_gettop(L), plain;
    lua_pushnil(L);
    lua_pushglobaltable(L);
    plain = !lua_getmetatable(L, top + 1) &&
            (is_strict(L, top + 2) || !lua_getmetatable(L, top + 2));
    lua_settop(L, top);
    return plain;
}

/* --- what Lua says -------------------------------------------------------- */

/* Where "attempt to … a nil value (global 'x')" begins in the message, with
 * the name pushed; or NULL. */
static const char *find_nil_global(lua_State *L, const char *message)
{
    const char *start = lumat_find_said(message, LUMAT_LUA_ATTEMPT);
    const char *name = lumat_behind_said(message, LUMAT_LUA_NIL_GLOBAL);
    if (!start || !name)
        return NULL;
    lua_pushlstring(L, name, strcspn(name, "'"));
    return start;
}

static int is_global(lua_State *L, const char *name)
{
    lua_pushglobaltable(L);
    lua_pushstring(L, name);
    int found = lua_rawget(L, -2) != LUA_TNIL;
    lua_pop(L, 2);
    return found;
}

void lumat_explain_nil(lua_State *L, int is_entry)
{
    int top = lua_gettop(L);
    if (lua_type(L, top) != LUA_TSTRING)
        return;
    const char *message = lua_tostring(L, top);
    const char *start = find_nil_global(L, message), *name, *meant;
    if (!start || is_global(L, name = lua_tostring(L, -1))) {
        lua_settop(L, top);
        return;
    }
    if (is_entry) {
        lua_pushlstring(L, message, (size_t)(start - message));
        push_undefined(L, name, 1);
        lua_concat(L, 2);
    } else if ((meant = push_meant(L, name, 0, NULL))) {
        lua_pushfstring(L, "%s: %s", message, meant);
    } else {
        lua_pushvalue(L, top);
    }
    lua_replace(L, top);
    lua_settop(L, top);
}

/* --- before an entry runs ------------------------------------------------- */
/* One that its top level calls, indexes or computes with, before anything ran
 * that could have given it a value. Where that is not certain nothing is said.
 */

typedef struct checker {
    lua_State *L;
    const lumat_tokens *t;
    int i;           /* the token at hand */
    int depth;       /* of blocks */
    int unsure;      /* behind `and` or `or`, up to the statement's end */
    int functions;   /* the text makes some */
    int given, base; /* on the stack: the names the text gives a value, and
                        the globals that are not the user's */
} checker;

static int is_arithmetic(const lumat_tokens *t, int i)
{
    return lumat_at(t, i, "+ - * / // % ^ .. & | ~ << >> #");
}

/* --- what a name stands for ----------------------------------------------- */

static int is_given(checker *c)
{
    lumat_push_token(c->L, c->t, c->i);
    int found = lua_rawget(c->L, c->given) != LUA_TNIL;
    lua_pop(c->L, 1);
    return found;
}

/* Is the value on top, of the name at hand, what the library put there? */
static int is_base(checker *c)
{
    lumat_push_token(c->L, c->t, c->i);
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
    int next = c->i + 1;
    if (lumat_at(c->t, c->i, words))
        return 1;
    if (is_given(c))
        return c->functions &&
               (lumat_is_suffix(c->t, next) || lumat_at(c->t, next, ", )"));
    lumat_push_variable(c->L, lumat_start_of(c->t, c->i),
                        lumat_length_of(c->t, c->i));
    int type = lua_type(c->L, -1);
    int risky = type == LUA_TFUNCTION ? !is_base(c)
                : type == LUA_TTABLE
                    ? lumat_is_suffix(c->t, next) && !is_base(c)
                    : 0;
    lua_pop(c->L, 1);
    return risky;
}

static int has_value_here(checker *c)
{
    return is_given(c) || lumat_is_echo(c->t, c->i) ||
           lumat_at(c->t, c->i, "_ENV") ||
           has_value(c->L, lumat_start_of(c->t, c->i),
                     lumat_length_of(c->t, c->i));
}

/* --- the walk ------------------------------------------------------------- */

/* Called, indexed, or computed with. */
static int is_used(const checker *c)
{
    return lumat_is_suffix(c->t, c->i + 1) || is_arithmetic(c->t, c->i + 1) ||
           is_arithmetic(c->t, c->i - 1);
}

static int is_variable(const checker *c)
{
    return lumat_kind_at(c->t, c->i) == LUMAT_NAME &&
           !lumat_at(c->t, c->i - 1, ". : :: goto");
}

/* Does the walk end here: who knows what runs behind this? */
static int is_end(const checker *c)
{
    const lumat_tokens *t = c->t;
    int calls_result =
        lumat_at(t, c->i - 1, ") ]") &&
        (lumat_kind_at(t, c->i) == LUMAT_STRING || lumat_at(t, c->i, "( {"));
    return c->i >= t->count || lumat_at(t, c->i, "goto break") ||
           (c->depth > 0 && lumat_at(t, c->i, "return")) || calls_result;
}

/* Is a name sure to fail? Then it is the token at hand. */
static int find_undefined(checker *c)
{
    while (!is_end(c)) {
        if (lumat_starts_statement(c->t, c->i))
            c->unsure = 0;
        if (lumat_at(c->t, c->i, "and or"))
            c->unsure = 1;
        if (is_variable(c)) {
            if (c->depth == 0 && !c->unsure && is_used(c) && !has_value_here(c))
                return 1;
            if (is_risky(c))
                return 0;
        }
        if (lumat_at(c->t, c->i, "function"))
            c->i = lumat_skip_operand(c->t, c->i);
        else
            c->depth += lumat_block_step(c->t, c->i++);
    }
    return 0;
}

int lumat_check_names(lua_State *L, const lumat_tokens *t)
{
    int top = lua_gettop(L);
    checker c = {.L = L, .t = t};
    if (!are_globals_plain(L))
        return LUA_OK;
    c.functions = lumat_push_given(L, t, 0, t->count);
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.base");
    c.given = top + 1;
    c.base = top + 2;
    if (!find_undefined(&c)) {
        lua_settop(L, top);
        return LUA_OK;
    }
    lumat_push_token(L, t, c.i);
    lua_pushfstring(L, LUMAT_CHUNK ":%d: ", t->list[c.i].line);
    push_undefined(L, lua_tostring(L, -2), 1);
    lua_concat(L, 2);
    lua_replace(L, top);
    lua_settop(L, top);
    return LUA_ERRSYNTAX;
}

/* --- names that are passed on --------------------------------------------- */
/* Printed, passed to a function, or put somewhere: Lua takes each for nil, so
 * what is meant is told afterwards. Whoever tests or compares a name knows that
 * it may be nil. */

enum { MOST_NOTES = 3 };

/* Registry: the last entry's names, in order, and at 0 what is to be told of
 * it as a whole; those that need no note. */
static const char found_key, known_key;

typedef struct finder {
    lua_State *L;
    const lumat_tokens *t;
    int i;            /* the token at hand */
    int found, known; /* tables on the stack */
    int count;
    int index; /* how deep in the braces of A[{…}] */
} finder;

/* --- finding them --------------------------------------------------------- */

static int is_known(const finder *f)
{
    lumat_push_token(f->L, f->t, f->i);
    int known = lua_rawget(f->L, f->known) != LUA_TNIL;
    lua_pop(f->L, 1);
    return known;
}

/* An argument, an element, what is assigned or returned: all of an
 * expression. */
static int is_passed_on(const finder *f)
{
    int next = f->i + 1;
    if (lumat_kind_at(f->t, f->i) != LUMAT_NAME ||
        !lumat_at(f->t, f->i - 1, "( , { [ = return in"))
        return 0;
    return next == f->t->count ||
           lumat_at(f->t, next, ", ) } ] ; do end else elseif until") ||
           lumat_starts_statement(f->t, next);
}

/* The whole entry; "return" was put in front of it. */
static int is_alone(const finder *f)
{
    return f->i == 1 && f->t->count == 2 && f->t->list[0].line == 1 &&
           lumat_at(f->t, 0, "return");
}

static void look_at_word(finder *f)
{
    const char *name = lumat_start_of(f->t, f->i);
    size_t length = lumat_length_of(f->t, f->i);
    if (!is_passed_on(f) || is_known(f))
        return;
    if (has_value(f->L, name, length) &&
        !(is_alone(f) && lumat_is_command(name, length)))
        return;
    lua_pushlstring(f->L, name, length);
    if (f->index > 0) {
        lua_pushvalue(f->L, -1);
        lua_pushboolean(f->L, 1);
        lua_rawset(f->L, f->found);
    }
    lua_rawseti(f->L, f->found, ++f->count);
}

/* A[{1, nil}] is A[{1}], a row: no error, and not what was meant. */
static void follow_index(finder *f)
{
    int begins = lumat_at(f->t, f->i, "{") && lumat_at(f->t, f->i - 1, "[");
    if (begins || (f->index > 0 && lumat_at(f->t, f->i, "{")))
        f->index++;
    else if (f->index > 0 && lumat_at(f->t, f->i, "}"))
        f->index--;
}

/* Functions run later, and these want to know whether it is nil. */
static int is_skipped(const finder *f)
{
    return lumat_at(f->t, f->i, "function") ||
           (lumat_at(f->t, f->i, "(") &&
            lumat_at(f->t, f->i - 1, "type assert"));
}

static void find(finder *f)
{
    while (f->i < f->t->count) {
        look_at_word(f);
        follow_index(f);
        f->i = is_skipped(f) ? lumat_skip_operand(f->t, f->i) : f->i + 1;
    }
}

/* Names that the text sets are known from now on. */
static void learn_given(finder *f)
{
    lua_State *L = f->L;
    lumat_push_given(L, f->t, 0, f->t->count);
    for (lua_pushnil(L); lua_next(L, -2);) {
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, f->known);
    }
    lua_pop(L, 1);
}

static void push_known(lua_State *L)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &known_key) == LUA_TTABLE)
        return;
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushboolean(L, 1);
    lua_setfield(L, -2, "ans");
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &known_key);
}

/* Where globals are is the text's own business then. */
static int has_env(const lumat_tokens *t)
{
    int i = 0;
    while (i < t->count && !lumat_at(t, i, "_ENV"))
        i++;
    return i < t->count;
}

void lumat_find_unset(lua_State *L, const lumat_tokens *t)
{
    int top = lua_gettop(L);
    finder f = {.L = L, .t = t};
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &found_key);
    push_known(L);
    f.found = top + 1;
    f.known = top + 2;
    learn_given(&f);
    if (are_globals_plain(L) && !has_env(t))
        find(&f);
    lua_settop(L, top);
}

void lumat_find_misread(lua_State *L, const char *text, size_t length)
{
    int top = lua_gettop(L);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &found_key) == LUA_TTABLE &&
        lumat_push_misread(L, text, length))
        lua_rawseti(L, top + 1, 0);
    lua_settop(L, top);
}

/* --- telling of them ------------------------------------------------------ */

/* Pushes what there is to say, or returns NULL. A misspelling keeps the first
 * letter as a rule; where nil was no error others are not worth a word. */
static const char *push_note(lua_State *L, const char *name, int got_nil)
{
    int is_likely;
    const char *meant = push_meant(L, name, 1, &is_likely);
    if (has_value(L, name, strlen(name)))
        return lumat_is_command(name, strlen(name))
                   ? lua_pushfstring(L, "%s is a function; :%s is the command",
                                     name, name)
                   : NULL;
    if (meant && (got_nil || is_likely))
        return lua_pushfstring(L, "%s is nil; %s", name, meant);
    return got_nil ? lua_pushfstring(L, "%s is nil: nothing has set it", name)
                   : NULL;
}

/* The error as a string, "" when it is none. */
static const char *message_of(lua_State *L, int error)
{
    return error && lua_type(L, error) == LUA_TSTRING ? lua_tostring(L, error)
                                                      : "";
}

static int is_named(lua_State *L, const char *message, const char *name)
{
    int found = strstr(message, lua_pushfstring(L, "'%s'", name)) != NULL;
    lua_pop(L, 1);
    return found;
}

/* Each name is told of once. */
static int was_told(lua_State *L, const char *name)
{
    push_known(L);
    int known = lua_getfield(L, -1, name) != LUA_TNIL;
    lua_pop(L, 1);
    lua_pushboolean(L, 1);
    lua_setfield(L, -2, name);
    lua_pop(L, 1);
    return known;
}

void lumat_each_unset(lua_State *L, int error, lumat_name_fn *each, void *data)
{
    int top = lua_gettop(L), told = 0;
    const char *message = message_of(L, error);
    int got_nil = strstr(message, lua_typename(L, LUA_TNIL)) != NULL;
    int found = lua_rawgetp(L, LUA_REGISTRYINDEX, &found_key) == LUA_TTABLE;
    if (found && !error && lua_rawgeti(L, -1, 0) == LUA_TSTRING)
        each(data, "", lua_tostring(L, -1));
    for (int i = 1; found && told < MOST_NOTES; i++) {
        lua_settop(L, top + 1);
        if (lua_rawgeti(L, -1, i) != LUA_TSTRING)
            break;
        const char *name = lua_tostring(L, -1);
        int is_index = lua_getfield(L, top + 1, name) != LUA_TNIL;
        const char *note = push_note(L, name, got_nil || is_index);
        if (!note || is_named(L, message, name) || was_told(L, name))
            continue;
        each(data, name, note);
        told++;
    }
    lua_settop(L, top);
}
