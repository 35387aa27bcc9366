/* Statements of Lua text: where they end, what they declare and set. */
#include <string.h>
#include "parse.h"

static int not_beyond(const lumat_tokens *t, int i)
{
    return i < t->count ? i : t->count;
}

/* --- declared names ------------------------------------------------------- */

/* "a, b <const>, c" from token i on. Returns the token behind it. */
static int read_names(const lumat_tokens *t, int i, lumat_declaration *out)
{
    out->count = 0;
    while (lumat_kind_at(t, i) == LUMAT_NAME && out->count < LUMAT_MOST_NAMES) {
        int has_attribute = lumat_at(t, i + 1, "<");
        int closes = has_attribute && lumat_at(t, i + 2, "close");
        out->list[out->count].name = i;
        out->list[out->count].closes = closes;
        out->list[out->count++].constant = has_attribute && !closes;
        i += has_attribute ? 4 : 1;
        if (!lumat_at(t, i, ","))
            break;
        i++;
    }
    return not_beyond(t, i);
}

/* Behind "function": past a name such as a.b:c, or none. */
static int skip_path(const lumat_tokens *t, int i)
{
    while (lumat_kind_at(t, i) == LUMAT_NAME || lumat_at(t, i, ". :"))
        i++;
    return i;
}

/* The names that the keyword at token i declares, if it does. */
static void read_declared(const lumat_tokens *t, int i, lumat_declaration *out)
{
    int open;
    out->count = 0;
    if (lumat_kind_at(t, i) != LUMAT_KEYWORD)
        return;
    if (lumat_at(t, i, "for"))
        read_names(t, i + 1, out);
    else if (lumat_at(t, i, "local"))
        read_names(t, i + 1 + lumat_at(t, i + 1, "function"), out);
    else if (lumat_at(t, i, "function") &&
             lumat_at(t, open = skip_path(t, i + 1), "("))
        read_names(t, open + 1, out);
}

void lumat_each_declared(const lumat_tokens *t, lumat_declared_fn *each,
                         void *data)
{
    lumat_declaration names;
    for (int i = 0; i < t->count; i++) {
        read_declared(t, i, &names);
        for (int n = 0; n < names.count; n++)
            each(data, lumat_start_of(t, names.list[n].name),
                 lumat_length_of(t, names.list[n].name));
    }
}

/* --- statements ----------------------------------------------------------- */

int lumat_read_local(const lumat_tokens *t, int i, lumat_declaration *out)
{
    if (lumat_at(t, i + 1, "function")) {
        read_names(t, i + 2, out);
        return lumat_skip_operand(t, i + 1);
    }
    i = read_names(t, i + 1, out);
    return lumat_at(t, i, "=") ? lumat_skip_expressions(t, i + 1) : i;
}

/* From the keyword that opens a block to behind the one that ends it. A loop's
 * head may hold functions of its own. */
static int skip_block(const lumat_tokens *t, int i)
{
    int is_loop = lumat_at(t, i, "for while"), depth = 0;
    int repeats = lumat_at(t, i, "repeat");
    while (is_loop && !lumat_at(t, i, "do") && i < t->count)
        i = lumat_skip_operand(t, i);
    do
        depth += lumat_block_step(t, i++);
    while (depth > 0 && i < t->count);
    i = not_beyond(t, i);
    return repeats ? lumat_skip_expressions(t, i) : i;
}

/* A call, or an assignment. */
static int skip_plain(const lumat_tokens *t, int i)
{
    i = lumat_skip_expressions(t, i);
    return lumat_at(t, i, "=") ? lumat_skip_expressions(t, i + 1) : i;
}

/* "goto name" and "::name::" */
static int skip_label(const lumat_tokens *t, int i)
{
    int is_label = lumat_at(t, i++, "::");
    i += lumat_kind_at(t, i) == LUMAT_NAME;
    return i + (is_label && lumat_at(t, i, "::"));
}

/* Behind `return` there are no more. */
int lumat_skip_statement(const lumat_tokens *t, int i)
{
    lumat_declaration names;
    if (lumat_at(t, i, "local"))
        return lumat_read_local(t, i, &names);
    if (lumat_at(t, i, "do for while if repeat function"))
        return skip_block(t, i);
    if (lumat_at(t, i, "return"))
        return t->count;
    if (lumat_at(t, i, "goto ::"))
        return skip_label(t, i);
    if (lumat_kind_at(t, i) == LUMAT_KEYWORD || lumat_at(t, i, ";"))
        return i + 1;
    return skip_plain(t, i);
}

int lumat_is_suffix(const lumat_tokens *t, int i)
{
    return lumat_kind_at(t, i) == LUMAT_STRING || lumat_at(t, i, "( { [ . :");
}

int lumat_ends_operand(const lumat_tokens *t, int i)
{
    int kind = lumat_kind_at(t, i);
    return kind == LUMAT_NAME || kind == LUMAT_NUMBER || kind == LUMAT_STRING ||
           lumat_at(t, i, ") ] } end nil true false ...");
}

/* A name right behind an operand, or a keyword that starts statements. */
int lumat_starts_statement(const lumat_tokens *t, int i)
{
    if (lumat_kind_at(t, i) == LUMAT_NAME)
        return i == 0 || lumat_ends_operand(t, i - 1) ||
               lumat_at(t, i - 1, "; do then else repeat ::");
    return lumat_at(t, i,
                    "; local if while for repeat return do goto break ::");
}

/* --- names the text gives a value ----------------------------------------- */

static void give(lua_State *L, int given, const lumat_tokens *t, int i)
{
    lumat_push_token(L, t, i);
    lua_pushboolean(L, 1);
    lua_rawset(L, given);
}

/* Past a.b[i], (…) and so on; *is_alone: it is a name alone. */
static int skip_target(const lumat_tokens *t, int i, int *is_alone)
{
    int start = i++;
    while (lumat_is_suffix(t, i))
        i = lumat_at(t, i, ". :") ? i + 2 : lumat_skip_operand(t, i);
    *is_alone = i == start + 1;
    return i;
}

/* The names among the targets of an assignment that may begin here. */
static void give_targets(lua_State *L, int given, const lumat_tokens *t, int i)
{
    int first = i, is_alone;
    while (lumat_kind_at(t, i) == LUMAT_NAME) {
        i = skip_target(t, i, &is_alone);
        if (!lumat_at(t, i, ","))
            break;
        i++;
    }
    if (!lumat_at(t, i, "="))
        return;
    for (int next; first < i; first = next + 1) {
        next = skip_target(t, first, &is_alone);
        if (is_alone)
            give(L, given, t, first);
    }
}

int lumat_push_given(lua_State *L, const lumat_tokens *t, int first, int end)
{
    lumat_declaration names;
    int functions = 0;
    lua_newtable(L);
    int given = lua_gettop(L);
    for (int i = first; i < end; i++) {
        int is_function = lumat_at(t, i, "function");
        int path = is_function ? skip_path(t, i + 1) : i;
        functions |= is_function;
        for (int n = i + 1; n < path; n++)
            if (lumat_kind_at(t, n) == LUMAT_NAME)
                give(L, given, t, n);
        read_declared(t, i, &names);
        for (int n = 0; n < names.count; n++)
            give(L, given, t, names.list[n].name);
        if (lumat_kind_at(t, i) == LUMAT_NAME &&
            (i == first || lumat_starts_statement(t, i)))
            give_targets(L, given, t, i);
    }
    return functions;
}
