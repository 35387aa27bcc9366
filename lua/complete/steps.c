/* One step of a chain: .name, :name(…), [key] or (…), by what is certain of
 * the value on top, which it replaces. */
#include "function.h"
#include "known_value.h"

#include <string.h>

static const lumat_fact unknown = {.kind = LUMAT_IS_UNKNOWN};
static const lumat_fact number = {.kind = LUMAT_IS_NUMBER};
static const lumat_fact string = {.kind = LUMAT_IS_STRING};

lumat_fact lumat_result_of(lua_State *L, const char *function, int arguments)
{
    static const struct {
        const char *kind;
        lumat_fact_kind is;
    } kinds[] = {{"matrix", LUMAT_IS_DENSE},   {"same", LUMAT_IS_DENSE},
                 {"sparse", LUMAT_IS_SPARSE},  {"number", LUMAT_IS_NUMBER},
                 {"integer", LUMAT_IS_NUMBER}, {"string", LUMAT_IS_STRING}};
    const lumat_function *f = lumat_find_row(L, function);
    for (size_t i = 0; f && i < sizeof kinds / sizeof *kinds; i++)
        if (lumat_is_piece(lumat_result_kind(f, arguments), kinds[i].kind))
            return (lumat_fact){.kind = kinds[i].is};
    return unknown;
}

typedef struct step {
    lua_State *L;
    const lumat_tokens *t;
    int open, close; /* of arguments or an index */
} step;

static lumat_fact forget_value(lua_State *L, lumat_fact fact)
{
    lua_pop(L, 1);
    lua_pushnil(L);
    return fact;
}

static lumat_fact transposed(lumat_fact fact)
{
    int64_t rows = fact.shape.rows;
    if (fact.shape.ndim == 2) {
        fact.shape.rows = fact.shape.cols;
        fact.shape.cols = rows;
    }
    return fact;
}

static int is_name(const lumat_token *name, const char *text, const char *list)
{
    size_t length = name->end - name->start;
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, " ");
        if (n == length && memcmp(p, text + name->start, n) == 0)
            return 1;
        p += n + strspn(p + n, " ");
    }
    return 0;
}

static lumat_fact read_field(const step *s, lumat_fact fact, int name)
{
    const lumat_token *n = &s->t->list[name];
    const char *text = s->t->text;
    if (fact.kind == LUMAT_IS_VALUE) {
        lumat_replace_by_field(s->L, text + n->start, n->end - n->start);
        return lumat_fact_of(s->L);
    }
    forget_value(s->L, fact);
    if (fact.kind != LUMAT_IS_DENSE && fact.kind != LUMAT_IS_SPARSE)
        return unknown;
    if (is_name(n, text, "T"))
        return transposed(fact);
    if (is_name(n, text, "dtype device"))
        return string;
    return is_name(n, text, "rows cols size ndim bytes nnz") ? number : unknown;
}

static lumat_fact call_method(const step *s, lumat_fact fact, int name)
{
    const lumat_token *n = &s->t->list[name];
    const char *text = s->t->text;
    int count = 1 + lumat_count_arguments(s->t, s->open, s->close);
    forget_value(s->L, fact);
    if (fact.kind == LUMAT_IS_STRING)
        return is_name(n, text, "upper lower rep sub format reverse gsub")
                   ? string
               : is_name(n, text, "len byte find") ? number
                                                   : unknown;
    if (fact.kind != LUMAT_IS_DENSE && fact.kind != LUMAT_IS_SPARSE)
        return unknown;
    if (is_name(n, text, "f32 f64"))
        return fact;
    fact.device = NULL;
    if (is_name(n, text, "to") || is_name(n, text, "clone"))
        return fact;
    if (fact.kind == LUMAT_IS_SPARSE) {
        fact.kind =
            is_name(n, text, "full") ? LUMAT_IS_DENSE : LUMAT_IS_UNKNOWN;
        return fact;
    }
    if (is_name(n, text, "t"))
        return transposed(fact);
    lua_pushlstring(s->L, text + n->start, n->end - n->start);
    fact = lumat_result_of(s->L, lua_tostring(s->L, -1), count);
    lua_pop(s->L, 1);
    return fact;
}

/* A[1], a row or an element; A(1) as well. */
static lumat_fact index_by_number(lumat_fact fact)
{
    if (fact.shape.ndim == 0)
        return unknown;
    if (fact.shape.ndim == 1)
        return number;
    fact.shape.ndim = 1;
    fact.shape.rows = fact.shape.cols;
    fact.shape.cols = 1;
    return fact;
}

/* Is it certain that tokens first .. end - 1 are a matrix: places or a mask? */
static int is_list(const step *s, int first, int end)
{
    lumat_fact fact = lumat_infer(s->L, s->t, first, end, 1);
    lua_pop(s->L, 1);
    return fact.kind == LUMAT_IS_DENSE;
}

/* Is a side of A[{…}] a range or a list? */
static int has_block(const step *s, int table)
{
    int end = s->t->list[table].match, first = table + 1;
    for (int i = first; i < end; i++)
        if (s->t->list[i].kind == '{')
            return 1;
    for (int i = first; i < end; i++) {
        if (s->t->list[i].match > i)
            i = s->t->list[i].match;
        if (i + 1 < end && s->t->list[i + 1].kind != ',')
            continue;
        if (is_list(s, first, i + 1))
            return 1;
        first = i + 2;
    }
    return 0;
}

/* A["1:3, end"], A[{{1, 3}, 2}] and A[vec{1, 3}] are matrices, of A's kind;
 * A[{1, 2}] is a number. */
static lumat_fact index_matrix(const step *s, lumat_fact fact)
{
    int key = s->open + 1, kind = lumat_kind_at(s->t, key);
    const lumat_token *k = &s->t->list[key];
    lumat_fact block = {.kind = fact.kind};
    forget_value(s->L, fact);
    if (kind == LUMAT_NUMBER && key + 1 == s->close)
        return fact.kind == LUMAT_IS_DENSE ? index_by_number(fact) : unknown;
    if (kind == LUMAT_STRING && key + 1 == s->close)
        return memchr(s->t->text + k->start, ':', k->end - k->start) ? block
                                                                     : unknown;
    if (kind == '{')
        return has_block(s, key) ? block : unknown;
    return is_list(s, key, s->close) ? block : unknown;
}

/* t[1], t["x"]: a key that is written out. */
static lumat_fact index_table(const step *s)
{
    lua_State *L = s->L;
    const lumat_token *k = &s->t->list[s->open + 1];
    const char *text = s->t->text;
    if (s->open + 2 != s->close)
        return forget_value(L, unknown);
    if (k->kind == LUMAT_STRING &&
        !memchr(text + k->start, '\\', k->end - k->start)) {
        lumat_replace_by_field(L, text + k->content, k->end - 1 - k->content);
        return lumat_fact_of(L);
    }
    lua_pushlstring(L, text + k->start, k->end - k->start);
    if (k->kind != LUMAT_NUMBER || !lua_istable(L, -2) ||
        !lua_stringtonumber(L, lua_tostring(L, -1))) {
        lua_pop(L, 1);
        return forget_value(L, unknown);
    }
    lua_rawget(L, -3);
    lua_replace(L, -3);
    lua_pop(L, 1);
    return lumat_fact_of(L);
}

static lumat_fact read_index(const step *s, lumat_fact fact)
{
    if (fact.kind == LUMAT_IS_DENSE || fact.kind == LUMAT_IS_SPARSE)
        return index_matrix(s, fact);
    return fact.kind == LUMAT_IS_VALUE ? index_table(s)
                                       : forget_value(s->L, unknown);
}

static lumat_fact read_call(const step *s, lumat_fact fact)
{
    int count = lumat_count_arguments(s->t, s->open, s->close);
    const char *name = lumat_library_name(s->L);
    forget_value(s->L, fact);
    if (name)
        return lumat_result_of(s->L, name, count);
    if (fact.kind == LUMAT_IS_DENSE && count == 1 &&
        lumat_kind_at(s->t, s->open + 1) == LUMAT_NUMBER)
        return index_by_number(fact);
    if (fact.kind == LUMAT_IS_DENSE || fact.kind == LUMAT_IS_SPARSE)
        return count == 2 ? number : unknown;
    return unknown;
}

/* A method's name and its arguments; 0 when they are not all there. */
static int is_method_call(const lumat_tokens *t, int i, int end)
{
    int open = i + 2, kind = lumat_kind_at(t, open);
    if (open >= end || lumat_kind_at(t, i + 1) != LUMAT_NAME)
        return 0;
    return kind == LUMAT_STRING ||
           ((kind == '(' || kind == '{') && t->list[open].match > open);
}

int lumat_take_step(lua_State *L, const lumat_tokens *t, int i, int end,
                    lumat_fact *fact)
{
    int kind = lumat_kind_at(t, i);
    step s = {L, t, i, t->list[i].match > i ? t->list[i].match : i};
    if (kind == '.' && i + 1 < end && lumat_kind_at(t, i + 1) == LUMAT_NAME) {
        *fact = read_field(&s, *fact, i + 1);
        return i + 2;
    }
    if (kind == ':' && is_method_call(t, i, end)) {
        s.open = i + 2;
        s.close =
            t->list[s.open].match > s.open ? t->list[s.open].match : s.open;
        *fact = call_method(&s, *fact, i + 1);
        return s.close + 1;
    }
    if (kind != LUMAT_STRING && s.close == i)
        return i;
    if (kind == '[')
        *fact = read_index(&s, *fact);
    else if (kind == '(' || kind == '{' || kind == LUMAT_STRING)
        *fact = read_call(&s, *fact);
    else
        return i;
    return s.close + 1;
}
