/* Chains such as A.T, t.x[1] or ("x"):rep(2): where they begin, and what is
 * certain about them. */
#include "known_value.h"

#include <string.h>

int lumat_count_arguments(const lumat_tokens *t, int open, int end)
{
    int count = 1;
    if (lumat_kind_at(t, open) != '(')
        return 1; /* f"x" and f{x} */
    for (int i = open + 1; i < end; i++) {
        if (t->list[i].match > i)
            i = t->list[i].match;
        count += lumat_kind_at(t, i) == ',';
    }
    return open + 1 < end ? count : 0;
}

/* Whether token i ends what can be called or indexed. */
static int ends_primary(const lumat_tokens *t, int i)
{
    int kind = lumat_kind_at(t, i);
    return kind == LUMAT_NAME || kind == LUMAT_STRING ||
           ((kind == ')' || kind == ']' || kind == '}') &&
            t->list[i].match >= 0);
}

int lumat_chain_start(const lumat_tokens *t, int end)
{
    int i = end - 1;
    while (i >= 0) {
        int kind = lumat_kind_at(t, i), before;
        if (!ends_primary(t, i) && kind != LUMAT_NUMBER)
            return i + 1;
        if (kind == ')' || kind == ']' || kind == '}')
            i = t->list[i].match;
        before = lumat_kind_at(t, i - 1);
        if (kind == LUMAT_NAME && (before == '.' || before == ':'))
            i -= 2;
        else if (kind != LUMAT_NAME && kind != LUMAT_NUMBER &&
                 ends_primary(t, i - 1))
            i--;
        else
            return i;
    }
    return end;
}

typedef struct shadow {
    const char *name;
    size_t length;
    int found;
} shadow;

static void compare_name(void *data, const char *name, size_t length)
{
    shadow *s = data;
    s->found |= length == s->length && memcmp(name, s->name, length) == 0;
}

/* Of a name that the line itself declares nothing is certain. */
static lumat_fact push_name(lua_State *L, const lumat_tokens *t, int i)
{
    const lumat_token *n = &t->list[i];
    shadow s = {t->text + n->start, n->end - n->start, 0};
    lumat_each_declared(t, compare_name, &s);
    if (s.found)
        lua_pushnil(L);
    else
        lumat_push_variable(L, s.name, s.length);
    return lumat_fact_of(L);
}

/* What a chain begins with; *at goes behind it. */
static lumat_fact read_primary(lua_State *L, const lumat_tokens *t, int *at,
                               int depth)
{
    int i = (*at)++, kind = lumat_kind_at(t, i);
    if (kind == LUMAT_NAME)
        return push_name(L, t, i);
    if (kind == '(' && t->list[i].match > i && depth < LUMAT_LEVELS) {
        *at = t->list[i].match + 1;
        return lumat_infer(L, t, i + 1, t->list[i].match, depth + 1);
    }
    if ((kind == '{' || kind == '[') && t->list[i].match > i)
        *at = t->list[i].match + 1;
    lua_pushnil(L);
    return (lumat_fact){.kind = kind == LUMAT_STRING   ? LUMAT_IS_STRING
                                : kind == LUMAT_NUMBER ? LUMAT_IS_NUMBER
                                                       : LUMAT_IS_UNKNOWN};
}

lumat_fact lumat_read_chain(lua_State *L, const lumat_tokens *t, int *at,
                            int end, int depth)
{
    int next;
    luaL_checkstack(L, 8, "completion");
    lumat_fact fact = read_primary(L, t, at, depth);
    while (*at < end && (next = lumat_take_step(L, t, *at, end, &fact)) > *at)
        *at = next;
    return fact;
}

lumat_fact lumat_push_chain(lua_State *L, const lumat_tokens *t, int first,
                            int end)
{
    lumat_fact fact = lumat_read_chain(L, t, &first, end, 0);
    if (first == end)
        return fact;
    lua_pop(L, 1);
    lua_pushnil(L);
    return (lumat_fact){.kind = LUMAT_IS_UNKNOWN};
}
