/* Names that may stand at the cursor: variables, those first that fit the
 * operand beside the word; fields, methods and keys. */
#include "complete_parts.h"
#include "math_functions.h"

#include <ctype.h>
#include <string.h>

/* --- what a variable has to fit ------------------------------------------- */

static const lumat_partner nobody = {.fit = -1};

static int is_known(lumat_fact fact)
{
    return lumat_is_matrix_fact(fact) && fact.shape.ndim > 0;
}

static int fit_of_sign(int kind)
{
    switch (kind) {
    case '*':
        return LUMAT_FIT_PRODUCT;
    case LUMAT_CONCAT:
        return LUMAT_FIT_ROWS;
    case '+':
    case '-':
    case '%':
    case '/':
    case '&':
    case '|':
    case '~':
    case LUMAT_DIVIDE:
    case LUMAT_COMPARE:
        return LUMAT_FIT_ELEMENTS;
    default:
        return -1;
    }
}

/* The partner of the word behind the operator at token `sign`. */
static lumat_partner partner_of_sign(lua_State *L, const lumat_tokens *t,
                                     int sign)
{
    int kind = lumat_kind_at(t, sign);
    lumat_partner p = {.fit = fit_of_sign(kind),
                       .is_shown = kind == '*',
                       .is_join = kind == LUMAT_CONCAT};
    if (p.fit < 0 || !lumat_is_binary(t, sign))
        return nobody;
    p.fact = lumat_infer(L, t, lumat_expression_start(t, sign), sign);
    if (!is_known(p.fact) || (p.fact.kind == LUMAT_IS_SPARSE && kind != '*'))
        return nobody;
    return p;
}

/* What a row says that two arguments agree in. */
static const struct {
    const char *word;
    int fit, is_join;
} fits_in[] = {
    {"elements", LUMAT_FIT_ELEMENTS, 0}, {"product", LUMAT_FIT_PRODUCT, 0},
    {"rows", LUMAT_FIT_ROWS, 0},         {"columns", LUMAT_FIT_COLUMNS, 0},
    {"lengths", LUMAT_FIT_LENGTHS, 0},   {"beside", LUMAT_FIT_ROWS, 1},
};

/* The argument of the call at the cursor that its row says must fit another
 * one, or what stands for any more of it; 0: there is none. */
static int find_fitting(const lumat_function *f, const lumat_calling *call,
                        lumat_argument *found)
{
    lumat_argument a = {.rest = f->takes}, last = a;
    while (lumat_next_argument(&a)) {
        int is_here = a.is == LUMAT_ARGUMENT && a.place == call->argument;
        int is_more = a.is == LUMAT_ARGUMENT_MORE && a.place <= call->argument;
        *found = is_more ? last : a;
        if ((is_here || is_more) && found->fit.length > 0)
            return 1;
        last = a;
    }
    return 0;
}

/* The argument that the one found has to fit. */
static lumat_argument other_argument(const lumat_function *f,
                                     const lumat_argument *found)
{
    lumat_argument a = {.rest = f->takes};
    while (lumat_next_argument(&a))
        if (a.form == found->form && a.name.length == found->partner.length &&
            memcmp(a.name.start, found->partner.start, a.name.length) == 0)
            break;
    return a;
}

/* That of the call's argument at the cursor, among those before it. */
static lumat_partner partner_in_call(lua_State *L, const lumat_tokens *t,
                                     const lumat_calling *call)
{
    const lumat_function *f = call->row;
    lumat_argument found, other;
    lumat_partner p = {.fit = -1, .is_call = 1};
    if (!f || call->argument < 2 || !find_fitting(f, call, &found))
        return nobody;
    other = other_argument(f, &found);
    for (size_t i = 0; i < sizeof fits_in / sizeof *fits_in; i++)
        if (lumat_is_piece(found.fit, fits_in[i].word)) {
            p.fit = fits_in[i].fit;
            p.is_join = fits_in[i].is_join;
        }
    p.fact = lumat_argument_fact(L, t, call, other.place);
    p.is_shown = p.fit == LUMAT_FIT_PRODUCT &&
                 lumat_is_piece(lumat_result_kind(f, 2), "matrix");
    const gpu_matrix *m = &p.fact.shape;
    if (!is_known(p.fact) || p.fact.kind == LUMAT_IS_SPARSE ||
        (lumat_is_piece(other.kind, "square") && m->rows != m->cols))
        return nobody;
    return p;
}

lumat_partner lumat_find_partner(lumat_query *q, const lumat_calling *call)
{
    int before = lumat_kind_at(&q->tokens, q->at - 1);
    if (call && (before == ',' || before == '('))
        return partner_in_call(q->L, &q->tokens, call);
    return partner_of_sign(q->L, &q->tokens, q->at - 1);
}

/* --- what fits ------------------------------------------------------------ */

static int fits(const lumat_partner *p, const gpu_matrix *m)
{
    const gpu_matrix *other = &p->fact.shape;
    if (p->fact.device && p->fact.device != gpu_matrix_device(m))
        return 0;
    if (p->is_join && other->ndim == 1 && m->ndim == 1)
        return 1;
    return lumat_fits(other, m, (lumat_fit)p->fit);
}

void lumat_push_fit(lua_State *L, const lumat_partner *p, const gpu_matrix *m)
{
    lumat_fact right = {.kind = LUMAT_IS_DENSE, .shape = *m};
    lumat_fact fact = lumat_combine(p->fact, '*', right);
    if (!p->is_shown) {
        lua_pushliteral(L, "fits");
    } else if (fact.kind == LUMAT_IS_NUMBER) {
        lua_pushstring(L, p->is_call ? "gives vector 1" : "gives a number");
    } else {
        lumat_push_shape(L, &fact.shape);
        lua_pushfstring(L, "gives %s", lua_tostring(L, -1));
        lua_remove(L, -2);
    }
}

/* How the value on top of the stack fits: FITS, TURNED or LATER. */
static int rank_of(lua_State *L, const lumat_partner *p)
{
    const gpu_matrix *m = lumat_test_matrix(L, -1);
    if (!m || !m->storage)
        return LUMAT_LATER;
    if (fits(p, m))
        return LUMAT_FITS;
    gpu_matrix turned = *m;
    turned.rows = m->cols;
    turned.cols = m->rows;
    return m->ndim == 2 && fits(p, &turned) ? LUMAT_TURNED : LUMAT_LATER;
}

/* --- variables ------------------------------------------------------------ */

/* The key at index, if it may be written as a name; else NULL. */
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

static int is_matrix(lua_State *L)
{
    return lumat_test_matrix(L, -1) || lumat_look_at_sparse(L, -1);
}

/* Beside an operand, and before the first letter, only the user's own. */
static int is_hidden(const lumat_query *q, const lumat_partner *partner,
                     const lumat_variables *v)
{
    int is_beside = partner->fit >= 0 && q->gather.length == 0;
    if (q->wanted == LUMAT_SHOWN)
        return !is_matrix(q->L) && !lumat_is_frame(q->L, -1);
    if (q->wanted == LUMAT_MATRICES || q->wanted == LUMAT_KERNELS)
        return !is_matrix(q->L);
    return (is_beside || q->wanted == LUMAT_VARIABLES) &&
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
                   : partner->fit >= 0       ? rank_of(L, partner)
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
    partner = partner ? partner : &nobody;
    q->gather.partner = *partner;
    if (any)
        lumat_each_declared(&q->tokens, offer_declared, q);
    offer_values(q, partner);
    if (any && (partner->fit < 0 || q->gather.length > 0))
        lumat_gather_words(&q->gather, lumat_keywords);
}

/* --- behind a dot, a colon, a bracket ------------------------------------- */

/* The names in the table on top. */
static void offer_entries(lumat_query *q, int functions_only)
{
    lua_State *L = q->L;
    int table = lua_gettop(L);
    for (lua_pushnil(L); lua_istable(L, table) && lua_next(L, table);
         lua_pop(L, 1)) {
        const char *name = name_at(L, -2);
        if (name && (!functions_only || lua_isfunction(L, -1)))
            lumat_gather_value(&q->gather, name, LUMAT_LATER);
    }
    lua_settop(L, table);
}

/* Those that a metatable tells of, whose __index is a function. */
static void offer_told(lumat_query *q, int functions_only)
{
    lua_State *L = q->L;
    if (!lua_getmetatable(L, -1))
        return;
    lua_pushliteral(L, "__members");
    lua_rawget(L, -2);
    offer_entries(q, functions_only);
    lua_pop(L, 2);
}

/* The names in the table on top, and those that its metatables lead to. */
static void offer_members(lumat_query *q, int functions_only)
{
    lua_State *L = q->L;
    int table = lua_gettop(L), more = 1;
    for (int i = 0; more && i < LUMAT_LEVELS; i++) {
        offer_entries(q, functions_only);
        offer_told(q, functions_only);
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

/* Replaces the table on top by its field, if it is a table as well. */
static int enter(lua_State *L, const char *name, size_t length)
{
    lua_pushlstring(L, name, length);
    lua_rawget(L, -2);
    lua_remove(L, -2);
    return lua_istable(L, -1);
}

/* Pushes what the help has on the members of what is called so; returns 0 and
 * pushes nothing when it has none. */
static int push_members(lua_State *L, const char *owner, size_t length)
{
    static const char members[] = "members";
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.help");
    if (enter(L, owner, length) && enter(L, members, sizeof members - 1))
        return 1;
    lua_pop(L, 1);
    return 0;
}

/* The methods of which the help knows, of what its metatable names. */
static void offer_known_methods(lumat_query *q)
{
    lua_State *L = q->L;
    const char *owner = lumat_library_name(L) ? NULL : lumat_owner_name(L);
    if (!owner || !push_members(L, owner, strlen(owner)))
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
        lua_getfield(L, LUA_REGISTRYINDEX, "lumat.sparse_methods");
        lua_replace(L, -2);
    } else if (fact.kind == LUMAT_IS_STRING) {
        lua_pushliteral(L, "");
        lua_replace(L, -2);
    }
    if (fact.kind == LUMAT_IS_UNKNOWN || fact.kind == LUMAT_IS_NUMBER)
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

void lumat_push_columns(lua_State *L)
{
    const char *owner = lumat_owner_name(L);
    if (!owner || strcmp(owner, "frame") != 0 || !lua_getmetatable(L, -1)) {
        lua_pushnil(L);
        return;
    }
    lua_pushliteral(L, "__columns");
    lua_rawget(L, -2);
    lua_remove(L, -2);
}

void lumat_gather_keys(lumat_gather *g, int index)
{
    lua_State *L = g->L;
    if (index == 0 || !lua_istable(L, index))
        return;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        const char *key = plain_key(L, -2);
        if (key)
            lumat_gather_value(g, key, LUMAT_LATER);
    }
}

void lumat_offer_keys(lumat_query *q)
{
    lua_State *L = q->L;
    lumat_fact fact = push_object(q);
    int table = lua_gettop(L);
    if (fact.kind == LUMAT_IS_VALUE) {
        lumat_gather_keys(&q->gather, table);
        lumat_push_columns(L);
        lumat_gather_keys(&q->gather, table + 1);
    }
    lua_settop(L, table - 1);
}
