/* What the library's functions give, by the examples in their help. */
#include "call_at_cursor.h"

#include <string.h>

/* Whether text is one call of the function: "sum(A)", "vec{1}"; how many
 * arguments it has. */
static int is_call_of(lua_State *L, const char *text, const char *function,
                      int *arguments)
{
    lumat_lexemes t;
    lumat_push_lexemes(L, text, strlen(text), &t);
    int is_call = t.count > 2 && lumat_is_lexeme(&t, 0, function) &&
                  t.list[1].match == t.count - 1;
    if (is_call)
        *arguments = lumat_count_arguments(&t, 1, t.count - 1);
    lua_pop(L, 1);
    return is_call;
}

/* The example tells: a table stands for a matrix. With an axis a reduction
 * gives a matrix, without one a number. */
static lumat_fact_kind kind_of_example(lua_State *L, const char *function,
                                       int arguments)
{
    const char *usage = lumat_push_help_field(L, function, "usage");
    const char *example = lumat_push_help_field(L, function, "example");
    const char *result = lumat_push_help_field(L, function, "result");
    int has_axis = strstr(usage, "[, axis]") != NULL;
    int gives_matrix = *result == '{', shown = 0;
    if (!is_call_of(L, example, function, &shown))
        return LUMAT_IS_UNKNOWN;
    if (gives_matrix && (!has_axis || shown == 1))
        return LUMAT_IS_DENSE;
    if (has_axis)
        return arguments > 1 ? LUMAT_IS_DENSE : LUMAT_IS_UNKNOWN;
    if (strchr("tf", *result))
        return LUMAT_IS_UNKNOWN;
    return *result == '"' ? LUMAT_IS_STRING : LUMAT_IS_NUMBER;
}

/* Those that give a matrix although their examples do not show it. */
static const char makers[] = " rand randn randint randperm clone f32 f64 to ";

lumat_fact lumat_result_of(lua_State *L, const char *function, int arguments)
{
    lumat_fact fact = {.kind = LUMAT_IS_UNKNOWN};
    int top = lua_gettop(L);
    fact.kind = kind_of_example(L, function, arguments);
    lua_pushfstring(L, " %s ", function);
    if (strstr(makers, lua_tostring(L, -1)))
        fact.kind = LUMAT_IS_DENSE;
    if (strcmp(function, "sparse") == 0)
        fact.kind = LUMAT_IS_SPARSE;
    lua_settop(L, top);
    return fact;
}
