/* The names of options, and their values, inside a call's table of them. */
#include "cursor_context.h"

#include <string.h>

typedef struct reading {
    lumat_query *q;
    const lumat_calling *call;
    int table; /* the token that opens it */
    const lumat_token *key;
    int count;
} reading;

static int is_same(const lumat_tokens *t, const lumat_token *key,
                   const lumat_option *option)
{
    lumat_piece word = {t->text + key->start, key->end - key->start};
    return lumat_is_piece(word, option->name);
}

/* Whether the table has the option already. */
static int is_given(const reading *r, const lumat_option *option)
{
    const lumat_tokens *t = &r->q->tokens;
    for (int i = r->table + 1; i + 1 < t->count; i++) {
        if (t->list[i].match > i)
            i = t->list[i].match;
        else if (t->list[i + 1].kind == '=' && is_same(t, &t->list[i], option))
            return 1;
    }
    return 0;
}

static void offer_name(void *data, const lumat_option *option)
{
    reading *r = data;
    lua_State *L = r->q->L;
    r->count++;
    if (is_given(r, option))
        return;
    const char *text = lua_pushfstring(L, "%s=", option->name);
    lumat_gather_copy(&r->q->gather, text, strlen(text), NULL);
    lua_pop(L, 1);
}

/* Matrices for out; what the help lists; else any variable. */
static void offer_value(void *data, const lumat_option *option)
{
    reading *r = data;
    lumat_query *q = r->q;
    char quote[2] = {q->place.quote ? '\0' : '"', '\0'};
    lumat_fact fact = {.kind = LUMAT_IS_UNKNOWN};
    if (!is_same(&q->tokens, r->key, option))
        return;
    r->count++;
    if (r->call->argument > 1)
        fact = lumat_argument_fact(q->L, &q->tokens, r->call,
                                   r->call->argument - 1);
    lumat_values v = {&q->gather, r->call->name, fact.device, quote};
    int listed = lumat_gather_option(&v, option);
    if (q->place.quote || (listed && q->gather.length == 0))
        return;
    if (strcmp(option->kind, "matrix") == 0)
        q->wanted = LUMAT_MATRICES;
    lumat_offer_variables(q, &(lumat_partner){.fit = -1});
}

/* Is what is called used as "name{field=, …}"? */
static int takes_fields(lua_State *L, const lumat_calling *call)
{
    const lumat_function *f = lumat_find_row(L, call->name);
    lumat_argument a = {.rest = f ? f->takes : ""};
    while (lumat_next_argument(&a))
        if (a.is == LUMAT_ARGUMENT_OPTIONS && a.place == call->argument)
            return 1;
    return 0;
}

/* The call of which the table is an argument, behind what it works on, or the
 * only one. */
static int find_options(lumat_query *q, int table, lumat_calling *call)
{
    const lumat_tokens *t = &q->tokens;
    int before = lumat_kind_at(t, table - 1);
    int open = before == ',' || before == '(' ? t->list[table].match : table;
    if (lumat_kind_at(t, table) != '{' ||
        !lumat_find_call(q->L, t, open, table, call) || !call->is_library)
        return 0;
    return call->argument > 1 ? open != table || call->is_method
                              : takes_fields(q->L, call);
}

int lumat_offer_options(lumat_query *q)
{
    const lumat_tokens *t = &q->tokens;
    lumat_calling call;
    reading r = {.q = q, .call = &call, .table = t->innermost};
    int before = lumat_kind_at(t, q->at - 1);
    int is_value = before == '=', first = is_value ? q->at - 3 : q->at - 1;
    int kind = lumat_kind_at(t, first);
    if (kind != ',' && kind != ';' && (kind != '{' || first != r.table))
        return 0;
    if (!find_options(q, r.table, &call))
        return 0;
    if (is_value)
        r.key = &t->list[q->at - 2];
    const lumat_function *f = lumat_find_row(q->L, call.name);
    if (f)
        lumat_each_option(f, is_value ? offer_value : offer_name, &r);
    return r.count > 0;
}
