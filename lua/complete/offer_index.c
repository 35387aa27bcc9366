/* What may stand in the brackets of B[…], as notes: the forms of an index that
 * the matrix takes, with its own sizes. */
#include "complete_parts.h"

#include <string.h>

/* Where in the brackets the cursor is. */
typedef enum place {
    NOWHERE,
    IN_INDEX, /* B[ */
    IN_TABLE, /* B[{ or B[{1, */
    IN_RANGE, /* B[{{ or B[{{}, { */
    IN_TEXT   /* B[" */
} place;

typedef struct spot {
    place place;
    int open;            /* the token that is the bracket */
    int axis;            /* of a table's part: 1 or 2 */
    const gpu_matrix *m; /* ndim 0: of unknown shape */
} spot;

/* The bracket around an open table, if nothing stands between them. */
static int bracket_of(const lumat_tokens *t, int table)
{
    int open = table - 1;
    return lumat_kind_at(t, table) == '{' && t->list[table].match == open &&
                   lumat_kind_at(t, open) == '['
               ? open
               : -1;
}

static spot find_index(const lumat_query *q)
{
    const lumat_tokens *t = &q->tokens;
    int in = t->innermost, before = lumat_kind_at(t, q->at - 1);
    int outer = in >= 0 ? t->list[in].match : -1;
    if (in < 0 || (before != '[' && before != '{' && before != ','))
        return (spot){NOWHERE, 0, 0, NULL};
    if (t->list[in].kind == '[')
        return (spot){before != '['         ? NOWHERE
                      : q->place.quote != 0 ? IN_TEXT
                                            : IN_INDEX,
                      in, 0, NULL};
    if (q->place.quote == 0 && bracket_of(t, in) >= 0)
        return (spot){IN_TABLE, bracket_of(t, in),
                      lumat_count_commas(t, in, q->at) + 1, NULL};
    if (q->place.quote == 0 && outer >= 0 && t->list[in].kind == '{' &&
        bracket_of(t, outer) >= 0)
        return (spot){IN_RANGE, bracket_of(t, outer),
                      lumat_count_commas(t, outer, in) + 1, NULL};
    return (spot){NOWHERE, 0, 0, NULL};
}

/* --- what is said --------------------------------------------------------- */

/* Offers a form with its note, a text of lua_pushfstring's on top. */
static void add(lumat_query *q, const char *form)
{
    const char *note = lumat_keep(&q->gather);
    lumat_gather_name(&q->gather, form, note);
}

/* Pushes " 1 to 3, or from the end -1 to -3" of an axis, or "". */
static const char *push_places(lua_State *L, const gpu_matrix *m, int axis)
{
    LUAI_UACINT size = axis == 2 ? m->cols : m->rows;
    if (m->ndim == 0)
        return lua_pushliteral(L, "");
    if (size < 2)
        return lua_pushstring(L, size == 1 ? " 1" : ", of which there is none");
    return lua_pushfstring(L, " 1 to %I, or from the end -1 to -%I", size,
                           size);
}

/* "rows 1 and 2", or "row 1" where there is no other. */
static const char *first_places(const gpu_matrix *m)
{
    int has_two = m->ndim == 0 || m->rows > 1;
    if (m->ndim == 1)
        return has_two ? "elements 1 and 2" : "element 1";
    return has_two ? "rows 1 and 2" : "row 1";
}

static const char *axis_name(const gpu_matrix *m, int axis)
{
    return m->ndim == 1 ? "element" : axis == 1 ? "row" : "column";
}

static void offer_places(lumat_query *q, const gpu_matrix *m, int axis)
{
    int has_two = m->ndim == 0 || (axis == 2 ? m->cols : m->rows) > 1;
    lua_pushfstring(q->L, "%ss by their places, as a copy", axis_name(m, axis));
    add(q, has_two ? "vec{1, 2}" : "vec{1}");
}

/* Pushes " of 3", how long a mask of the axis is. */
static const char *push_length(lua_State *L, const gpu_matrix *m, int axis)
{
    LUAI_UACINT size = axis == 2 ? m->cols : m->rows;
    if (m->ndim == 0)
        return lua_pushliteral(L, " as long");
    return lua_pushfstring(L, " of %I", size);
}

static void offer_mask(lumat_query *q, const gpu_matrix *m, int axis)
{
    lua_pushfstring(q->L, "the %ss that a mask%s chooses", axis_name(m, axis),
                    push_length(q->L, m, axis));
    add(q, "mask");
}

static void offer_whole(lumat_query *q, const gpu_matrix *m)
{
    lua_State *L = q->L;
    int has_two = m->ndim == 0 || m->rows > 1;
    const char *first = first_places(m);
    if (m->ndim == 1) {
        lua_pushfstring(L, "an element:%s", push_places(L, m, 1));
        add(q, "i");
        lua_pushfstring(L, "a part: %s; {{first, last, step}}", first);
        add(q, has_two ? "{{1, 2}}" : "{{1, 1}}");
        lua_pushliteral(L, "the same as text: first:last:step");
        add(q, has_two ? "\"1:2\"" : "\"1:1\"");
    } else {
        lua_pushfstring(L, "a row:%s", push_places(L, m, 1));
        add(q, "i");
        lua_pushfstring(L, "an element: column%s", push_places(L, m, 2));
        add(q, "{i, j}");
        lua_pushfstring(L, "a block: %s, all columns; {first, last, step}",
                        first);
        add(q, has_two ? "{{1, 2}, {}}" : "{{1, 1}, {}}");
        lua_pushfstring(L, "as text, first:last:step: %s, last column", first);
        add(q, has_two ? "\"1:2, end\"" : "\"1:1, end\"");
    }
    if (m->ndim == 1)
        lua_pushliteral(L, "the elements that a mask of its shape chooses");
    else
        lua_pushfstring(L, "elements by a mask of its shape, rows by one%s",
                        push_length(L, m, 1));
    add(q, "mask");
    offer_places(q, m, 1);
}

static void offer_text(lumat_query *q, const gpu_matrix *m, int is_sparse)
{
    lua_State *L = q->L;
    int is_vector = m->ndim == 1;
    lua_pushstring(L, first_places(m));
    add(q, m->ndim == 0 || m->rows > 1 ? "1:2" : "1:1");
    lua_pushstring(L, is_vector ? "every second one" : "every second row");
    add(q, "1:end:2");
    if (is_vector || is_sparse)
        return;
    lua_pushliteral(L, "all rows of column 1");
    add(q, ":, 1");
    lua_pushliteral(L, "all columns of the last row");
    add(q, "end, :");
}

static void offer_part(lumat_query *q, const spot *x)
{
    lua_State *L = q->L;
    const char *what = axis_name(x->m, x->axis);
    const char *places = push_places(L, x->m, x->axis);
    if (x->place == IN_RANGE) {
        lua_pushfstring(L, "%ss%s; a third number is the step", what, places);
        add(q, "first, last");
        return;
    }
    lua_pushfstring(L, "%s%s", what, places);
    add(q, "i");
    lua_pushfstring(L, "%ss from one to another; a third number is the step",
                    what);
    add(q, "{first, last}");
    lua_pushfstring(L, "every %s", what);
    add(q, "{}");
    offer_places(q, x->m, x->axis);
    offer_mask(q, x->m, x->axis);
}

/* What a sparse matrix gives is one as well: there are no rows as vectors. */
static void offer_sparse(lumat_query *q, const gpu_matrix *m)
{
    lua_State *L = q->L;
    lua_pushfstring(L, "an element: column%s", push_places(L, m, 2));
    add(q, "{i, j}");
    lua_pushfstring(L, "a block, sparse: %s, all columns", first_places(m));
    add(q, m->rows > 1 ? "{{1, 2}, {}}" : "{{1, 1}, {}}");
    offer_mask(q, m, 1);
    offer_places(q, m, 1);
}

static void offer_forms(lumat_query *q, const spot *x, int is_sparse)
{
    if (x->m->ndim > 0 && gpu_size(x->m) == 0) {
        lua_pushliteral(q->L, "it is empty: there is nothing to index");
        lumat_push_shape(q->L, x->m);
        const char *shape = lumat_keep(&q->gather);
        add(q, shape);
    } else if (x->place == IN_INDEX && is_sparse)
        offer_sparse(q, x->m);
    else if (x->place == IN_INDEX)
        offer_whole(q, x->m);
    else if (x->place == IN_TEXT)
        offer_text(q, x->m, is_sparse);
    else if (x->axis == 1 || (x->axis == 2 && x->m->ndim != 1))
        offer_part(q, x);
}

int lumat_offer_index(lumat_query *q)
{
    lua_State *L = q->L;
    const lumat_tokens *t = &q->tokens;
    spot x = find_index(q);
    int start = x.place != NOWHERE ? lumat_chain_start(t, x.open) : 0;
    if (x.place == NOWHERE || q->gather.length > 0 || start >= x.open)
        return 0;
    lumat_fact fact = lumat_push_chain(L, t, start, x.open);
    lua_pop(L, 1);
    x.m = &fact.shape;
    if (!lumat_is_matrix_fact(fact))
        return 0;
    offer_forms(q, &x, fact.kind == LUMAT_IS_SPARSE);
    q->place.is_note = 1;
    return 1;
}
