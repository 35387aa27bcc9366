/* What may stand in place of the word before the cursor, by what stands
 * before that. No user code runs, no device is touched. */
#include "cursor_context.h"
#include "value.h"

#include <string.h>

/* --- where the cursor is ----------------------------------------------------
 */

/* A call in whose brackets the cursor directly is. */
static int find_call(lumat_query *q, lumat_calling *call)
{
    const lumat_tokens *t = &q->tokens;
    return t->innermost >= 0 && t->list[t->innermost].kind == '(' &&
           lumat_find_call(q->L, t, t->innermost, q->at, call);
}

static lumat_partner find_partner(lumat_query *q, int has_call,
                                  const lumat_calling *call)
{
    int before = lumat_kind_at(&q->tokens, q->at - 1);
    if ((before == ',' || before == '(') && has_call)
        return lumat_partner_in_call(q->L, &q->tokens, call);
    return lumat_partner_of_sign(q->L, &q->tokens, q->at - 1);
}

/* f( and f(x, without a word yet: how f is used. */
static int offer_signature(lumat_query *q, const lumat_calling *call)
{
    lua_State *L = q->L;
    int before = lumat_kind_at(&q->tokens, q->at - 1);
    if (q->gather.length > 0 || q->wanted != LUMAT_ANYTHING ||
        (before != '(' && before != ',') ||
        !lumat_push_signature(L, &q->tokens, call))
        return 0;
    const char *help = lumat_keep(&q->gather), *usage = lumat_keep(&q->gather);
    lumat_gather_name(&q->gather, usage, help);
    q->place.is_note = 1;
    return 1;
}

static void offer_word(lumat_query *q)
{
    lumat_calling call;
    int has_call = find_call(q, &call);
    lumat_partner partner = find_partner(q, has_call, &call);
    if (partner.fit < 0 && has_call && offer_signature(q, &call))
        return;
    lumat_offer_variables(q, &partner);
}

/* The word of a command that is no Lua. */
static int offer_wanted(lumat_query *q)
{
    lumat_values v = {&q->gather, "", NULL, ""};
    int before = lumat_kind_at(&q->tokens, q->at - 1);
    if (q->wanted == LUMAT_DEVICES)
        return lumat_gather_kind(&v, (lumat_piece){"device", 6});
    if (q->wanted == LUMAT_TOPICS)
        return lumat_gather_kind(&v, (lumat_piece){"topic", 5});
    if (q->wanted == LUMAT_KERNELS && before == '(')
        lumat_gather_kind(&v, (lumat_piece){"kernel", 6});
    return 0;
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
    else if (!offer_wanted(q) && !lumat_offer_index(q) &&
             !lumat_offer_options(q))
        offer_word(q);
}

/* --- the word ---------------------------------------------------------------
 */

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
