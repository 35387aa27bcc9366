/* What may stand in place of the word at the cursor, by what stands before it.
 *
 * How a Tab travels; behind a function stands its file or room where that is
 * another.
 *
 *   the key
 *     |
 *     v
 *   word_breaks (repl/complete)       Readline asks where the word begins
 *     +- a :command's name or choices, or what is behind !: offered there
 *     |
 *     v
 *   lumat_complete                    Lua up to the cursor, or the arguments of
 *     |                               a command; completions(line) enters here.
 *     |                               No error comes out, no collector runs
 *     v
 *   lumat_push_tokens (lua/parse)     the line as tokens
 *     |
 *     v
 *   take_word                         the word is taken off them; nothing is
 *     |                               offered in a comment or a number
 *     v
 *   offer                             by what stands before the word:
 *     +- an open quote                lumat_offer_in_string   (offer_values.c)
 *     +- A.                           lumat_offer_fields      (offer_names.c)
 *     +- A:                           lumat_offer_methods     (offer_names.c)
 *     +- a command that is no Lua     lumat_offer_wanted      (offer_values.c)
 *     +- A[  A[{  A[{1, {             lumat_offer_index       (offer_index.c)
 *     +- f(A, {  f(A, {axis=          lumat_offer_options     (offer_values.c)
 *     +- f(  f(A,                     offer_signature, but where an argument
 *     |                               has to fit another one
 *     +- anything else                lumat_offer_variables   (offer_names.c)
 *     |
 *     |  They ask lumat_push_chain and lumat_infer (infer.c) what is known of
 *     |  the A that is indexed, called or operated on: its kind and shape, by
 *     |  the values of variables and the rows of functions.
 *     v
 *   lumat_gather_name and the like    what begins as the word does is kept
 *     |                (offer_list.c)
 *     v
 *   lumat_end_gather (offer_list.c)   in order, no name twice, what fits first;
 *     |                               beside it a note: "f32 3x4 cpu  fits"
 *     v
 *   word_breaks (repl/complete)       adds names of files where one belongs
 *     |
 *     v
 *   complete_word, show_matches (repl/complete): what is common to them, or the
 *   list
 */
#include "complete_parts.h"

#include <stdio.h>
#include <string.h>

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
    int word = call->open - 1, before = lumat_kind_at(t, word - 1);
    if (lumat_kind_at(t, word) != LUMAT_NAME ||
        (before != '.' && before != ':'))
        return 0;
    lumat_push_chain(L, t, call->callee, word - 1);
    const char *owner = lumat_owner_name(L);
    if (owner)
        snprintf(call->name, sizeof call->name, "%s.%.*s", owner,
                 (int)lumat_length_of(t, word), lumat_start_of(t, word));
    lua_pop(L, 1);
    call->row = owner ? lumat_find_row(L, call->name) : NULL;
    return call->row != NULL;
}

/* A:name, of which A is a matrix as far as is known. */
static void name_method(lua_State *L, const lumat_tokens *t,
                        lumat_calling *call)
{
    lumat_fact fact = lumat_push_chain(L, t, call->callee, call->open - 2);
    int may_be_matrix =
        lumat_is_matrix_fact(fact) || fact.kind == LUMAT_IS_UNKNOWN;
    lua_pop(L, 1);
    copy_path(t, call->open - 1, call->open, call->name, sizeof call->name);
    call->row = may_be_matrix ? lumat_find_row(L, call->name) : NULL;
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
    call->row = name ? lumat_find_row(L, name) : NULL;
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
    call->argument = call->is_method + 1 + lumat_count_commas(t, open, at);
    if (name_member(L, t, call))
        return 1;
    if (call->is_method)
        name_method(L, t, call);
    else
        name_function(L, t, call);
    return 1;
}

int lumat_find_call_around(lumat_query *q, lumat_calling *call)
{
    const lumat_tokens *t = &q->tokens;
    return t->innermost >= 0 && t->list[t->innermost].kind == '(' &&
           lumat_find_call(q->L, t, t->innermost, q->at, call);
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
    if (count != argument)
        return (lumat_fact){.kind = LUMAT_IS_UNKNOWN};
    return lumat_infer(L, t, first, end);
}

/* --- how it is used ------------------------------------------------------- */

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

/* Pushes the usage and the help of what is called, or a user's function and
 * where it is; returns 0 and pushes nothing when there is neither. */
static int push_signature(lua_State *L, const lumat_tokens *t,
                          const lumat_calling *call)
{
    int top = lua_gettop(L), name = call->open - 1;
    if (call->row) {
        lumat_push_usage(L, call->row);
        lua_pushstring(L, call->row->help);
        return 1;
    }
    lumat_push_chain(L, t, call->callee, call->open - 2 * call->is_method);
    if (call->is_method)
        lumat_replace_by_field(L, lumat_start_of(t, name),
                               lumat_length_of(t, name));
    if (lumat_kind_at(t, name) != LUMAT_NAME || !lua_isfunction(L, -1) ||
        lua_iscfunction(L, -1)) {
        lua_settop(L, top);
        return 0;
    }
    const char *word = lumat_push_token(L, t, name);
    lua_insert(L, -2);
    push_parameters(L, word);
    lua_remove(L, top + 1);
    lua_remove(L, top + 1);
    return 1;
}

/* f( and f(x, without a word yet: how f is used. */
static int offer_signature(lumat_query *q, const lumat_calling *call)
{
    lua_State *L = q->L;
    int before = lumat_kind_at(&q->tokens, q->at - 1);
    if (q->gather.length > 0 || q->wanted != LUMAT_ANYTHING ||
        (before != '(' && before != ',') ||
        !push_signature(L, &q->tokens, call))
        return 0;
    const char *help = lumat_keep(&q->gather), *usage = lumat_keep(&q->gather);
    lumat_gather_name(&q->gather, usage, help);
    q->place.is_note = 1;
    return 1;
}

/* --- by what stands before the word --------------------------------------- */

static void offer_word(lumat_query *q)
{
    lumat_calling call;
    int has_call = lumat_find_call_around(q, &call);
    lumat_partner partner = lumat_find_partner(q, has_call ? &call : NULL);
    if (partner.fit < 0 && has_call && offer_signature(q, &call))
        return;
    lumat_offer_variables(q, &partner);
}

static void offer(lumat_query *q)
{
    int before = lumat_kind_at(&q->tokens, q->at - 1);
    if (q->place.quote)
        lumat_offer_in_string(q);
    else if (before == '.')
        lumat_offer_fields(q);
    else if (before == ':')
        lumat_offer_methods(q);
    else if (!lumat_offer_wanted(q) && !lumat_offer_index(q) &&
             !lumat_offer_options(q))
        offer_word(q);
}

/* --- the word ------------------------------------------------------------- */

/* Takes the word that ends at the cursor off the tokens. Returns 0 where no
 * word can be: in a comment or a number. */
static int take_word(lumat_query *q, const char *line, size_t point)
{
    lumat_tokens *t = &q->tokens;
    const lumat_token *last = t->count > 0 ? &t->list[t->count - 1] : NULL;
    q->place.start = point;
    q->at = t->count;
    if (t->in_comment)
        return 0;
    if (!last || last->end != point)
        return 1;
    if (last->kind == LUMAT_NUMBER)
        return 0;
    if (last->kind == LUMAT_STRING && last->open) {
        q->place.quote = line[last->start] == '[' ? ']' : line[last->start];
        q->place.start = last->content;
    } else if (last->kind == LUMAT_NAME || last->kind == LUMAT_KEYWORD) {
        q->place.start = last->start;
    } else {
        return 1;
    }
    q->at = --t->count;
    return 1;
}

/* What lumat_complete is given and gives, for a protected call. */
typedef struct request {
    const char *line;
    size_t point;
    lumat_wanted wanted;
    lumat_name_fn *each;
    void *data;
    lumat_completion place;
} request;

static int complete(lua_State *L)
{
    request *r = lua_touserdata(L, 1);
    lumat_query q = {.L = L, .wanted = r->wanted};
    q.tokens = *lumat_push_tokens(L, r->line, r->point);
    if (!take_word(&q, r->line, r->point))
        return 0;
    lumat_open_gather(&q.gather, L, r->line + q.place.start,
                      r->point - q.place.start);
    offer(&q);
    q.place.fitting = lumat_end_gather(&q.gather, r->each, r->data);
    r->place = q.place;
    return 0;
}

/* The collector stands still: it would run finalizers, and names found in
 * tables are held by nothing else. Without memory there are no offers. */
lumat_completion lumat_complete(lua_State *L, const char *line, size_t point,
                                lumat_wanted wanted, lumat_name_fn *each,
                                void *data)
{
    request r = {line, point, wanted, each, data, {.start = point}};
    int top = lua_gettop(L), collects = lua_gc(L, LUA_GCISRUNNING);
    if (!lua_checkstack(L, 8))
        return r.place;
    lua_gc(L, LUA_GCSTOP);
    lua_pushcfunction(L, complete);
    lua_pushlightuserdata(L, &r);
    lua_pcall(L, 1, 0, 0);
    lua_settop(L, top);
    if (collects)
        lua_gc(L, LUA_GCRESTART);
    return r.place;
}

/* --- for programs --------------------------------------------------------- */

/* What completions(line) gives. lumat_complete calls in a protected call of its
 * own, so what is filled there is in the registry. */
static const char names_key, notes_key;

typedef struct lists {
    lua_State *L;
    lua_Integer count;
} lists;

static void add_to(lua_State *L, const void *key, lua_Integer i,
                   const char *text)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, key);
    lua_pushstring(L, text);
    lua_rawseti(L, -2, i);
    lua_pop(L, 1);
}

static void add(void *data, const char *name, const char *note)
{
    lists *l = data;
    l->count++;
    add_to(l->L, &names_key, l->count, name);
    add_to(l->L, &notes_key, l->count, note);
}

static void push_list(lua_State *L, const void *key)
{
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

static int completions(lua_State *L)
{
    size_t length;
    const char *line = luaL_checklstring(L, 1, &length);
    lists l = {L, 0};
    push_list(L, &names_key);
    push_list(L, &notes_key);
    lumat_completion place =
        lumat_complete(L, line, length, LUMAT_ANYTHING, add, &l);
    lua_pushstring(L, place.files);
    return 3;
}

static const lumat_function functions[] = {
    {"completions", completions, 0, "line: string", "table",
     "What Tab offers at the end of a line of Lua: names, the notes beside "
     "them, and, where a file belongs, the kinds that are wanted first.",
     "completions(\"linsp\")[1]", "\"linspace\"", .group = "asking"},
    {0}};

void lumat_open_completions(lua_State *L)
{
    lumat_register(L, functions);
}
