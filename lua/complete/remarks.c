/* What Lua takes otherwise than it may be meant: `A == 1` is one boolean, a
 * mask in a condition is always true, a second result that a function does not
 * give is nil. Only where the operand is a matrix for certain: by the text, and
 * by the values of variables. Those that the entry itself sets are looked at
 * when it has run, if it set them once, before. */
#include "complete_parts.h"
#include "op_list.h"

#include <string.h>

enum { MOST_REMARKS = 3, MOST_QUOTED = 40 };

/* Registry: the last entry's tokens; what there is to say of it. */
static const char tokens_key, remarks_key;

/* --- fewer results than names --------------------------------------------- */
/* a, b = f(…) where the library's f gives one: Lua sets b to nil without a
 * word. By the rows of functions. */

typedef struct assigned_call {
    int names;             /* on the left, two or more */
    int sign, first, name; /* tokens: =, what is called, its last name */
    int open;              /* of the arguments */
    int is_method;
} assigned_call;

/* May a statement begin behind token i? */
static int ends_statement(const lumat_tokens *t, int i)
{
    int kind = lumat_kind_at(t, i);
    return i < 0 || kind == LUMAT_NAME || kind == LUMAT_NUMBER ||
           kind == LUMAT_STRING || kind == LUMAT_KEYWORD || kind == ')' ||
           kind == ']' || kind == '}' || kind == ';';
}

/* The names in front of the = at token `sign`, all of them plain; 0 when there
 * are others, or no =, or they stand in a table. */
static int count_names(const lumat_tokens *t, int sign)
{
    int count = 0, i = sign - 1;
    if (!lumat_at(t, sign, "="))
        return 0;
    for (; lumat_kind_at(t, i) == LUMAT_NAME; i -= 2) {
        count++;
        if (lumat_kind_at(t, i - 1) != ',')
            return ends_statement(t, i - 1) ? count : 0;
    }
    return 0;
}

/* Does an expression go on behind token i? */
static int goes_on(const lumat_tokens *t, int i)
{
    return lumat_is_suffix(t, i) || lumat_is_binary(t, i) ||
           lumat_at(t, i, ", and or");
}

/* Is token i the name of what is called in such a statement? */
static int find_assigned_call(const lumat_tokens *t, int i, assigned_call *call)
{
    *call = (assigned_call){.name = i, .open = i + 1};
    call->is_method = lumat_kind_at(t, i - 1) == ':';
    if (lumat_kind_at(t, i) != LUMAT_NAME || lumat_kind_at(t, i + 1) != '(' ||
        t->list[i + 1].match < 0)
        return 0;
    call->first = call->is_method ? lumat_chain_start(t, i - 1) : i;
    call->sign = call->first - 1;
    call->names = count_names(t, call->sign);
    return call->names > 1 && !goes_on(t, t->list[i + 1].match + 1);
}

/* Is the option in the arguments, or may it be in a variable at their end? */
static int has_option(const lumat_tokens *t, int open, int close,
                      lumat_piece option)
{
    for (int i = open + 1; i < close; i++)
        if (lumat_kind_at(t, i) == LUMAT_NAME &&
            lumat_is_written(t, i, option.start, option.length))
            return 1;
    return lumat_kind_at(t, close - 1) == LUMAT_NAME &&
           lumat_kind_at(t, close - 2) == ',';
}

/* How many results there are, where it is certain: not when options that would
 * give more may come in a variable. */
static int count_results(const lumat_tokens *t, const lumat_function *f,
                         const assigned_call *call)
{
    lumat_piece with = {"", 0};
    int plain = lumat_count_results(f, &with);
    int close = t->list[call->open].match, most = lumat_most_results(f);
    if (most == plain || with.length == 0)
        return most;
    if (lumat_find_option(f, with.start, with.length))
        return has_option(t, call->open, close, with) ? most : plain;
    int given = lumat_count_arguments(t, call->open, close) + call->is_method;
    return given >= lumat_place_of(f, with) ? most : plain;
}

/* "one result; with {places=…} it gives 2" */
static void push_results(lua_State *L, const lumat_function *f, int results)
{
    lumat_piece with = {"", 0};
    int plain = lumat_count_results(f, &with), most = lumat_most_results(f);
    if (results == 0)
        lua_pushliteral(L, "no result");
    else if (results == 1 && lumat_is_piece(lumat_result_kind(f, 1), "factors"))
        lua_pushfstring(L, "one object; its parts: %s(A):unpack()", f->name);
    else if (results == 1)
        lua_pushliteral(L, "one result");
    else
        lua_pushfstring(L, "%d results", results);
    if (results != plain || most <= plain || with.length == 0)
        return;
    const char *name = lua_pushlstring(L, with.start, with.length);
    int is_option = lumat_find_option(f, with.start, with.length) != NULL;
    lua_pushfstring(
        L, is_option ? "; with {%s=true} it gives %d" : "; with %s it gives %d",
        name, most);
    lua_remove(L, -2);
    lua_concat(L, 2);
}

/* Pushes "sort gives one result; with {places=true} it gives 2" when f gives
 * fewer results than there are names; else pushes nothing and returns 0. */
static int push_fewer_results(lua_State *L, const lumat_tokens *t,
                              const lumat_function *f,
                              const assigned_call *call)
{
    int results = count_results(t, f, call);
    if (results >= call->names)
        return 0;
    push_results(L, f, results);
    lua_pushfstring(L, "%s gives %s", f->name, lua_tostring(L, -1));
    lua_remove(L, -2);
    return 1;
}

/* --- the same before the entry runs --------------------------------------- */

/* Are the two tokens written alike? */
static int are_same(const lumat_tokens *t, int i, int k)
{
    return lumat_is_written(t, i, lumat_start_of(t, k), lumat_length_of(t, k));
}

/* Pushes the value of the variable that the token names, or nil. */
static void push_named(lua_State *L, const lumat_tokens *t, int i)
{
    lumat_push_variable(L, lumat_start_of(t, i), lumat_length_of(t, i));
}

/* May the text set the name, or name a parameter or local so? */
static int may_set(const lumat_tokens *t, int name)
{
    for (int i = 0; i < t->count; i++) {
        if (lumat_kind_at(t, i) != LUMAT_NAME || !are_same(t, i, name))
            continue;
        int before = lumat_kind_at(t, i - 1);
        if (before != '.' && before != ':' && lumat_kind_at(t, i + 1) != '(')
            return 1;
        if (lumat_at(t, i - 1, "function"))
            return 1;
    }
    return 0;
}

/* The library's function of the name, if that is what it stands for. */
static const lumat_function *function_of(lua_State *L, const lumat_tokens *t,
                                         const assigned_call *call)
{
    if (call->is_method || may_set(t, call->name))
        return NULL;
    push_named(L, t, call->name);
    const char *found = lumat_library_name(L);
    lua_pop(L, 1);
    return found ? lumat_find_row(L, found) : NULL;
}

int lumat_push_missing_result(lua_State *L, const lumat_tokens *t)
{
    int top = lua_gettop(L);
    assigned_call call;
    for (int i = 0; i < t->count; i++) {
        if (!find_assigned_call(t, i, &call))
            continue;
        const lumat_function *f = function_of(L, t, &call);
        if (!f || !push_fewer_results(L, t, f, &call))
            continue;
        lua_pushfstring(L, "%d names are set, but %s", call.names,
                        lua_tostring(L, -1));
        lua_replace(L, top + 1);
        lua_settop(L, top + 1);
        return t->list[i].line;
    }
    lua_settop(L, top);
    return 0;
}

/* --- names that the entry sets -------------------------------------------- */

typedef struct finder {
    lua_State *L;
    const lumat_tokens *t;
    int given;    /* on the stack: name -> where the one statement ends that
                     sets it, 0 when there are more */
    int remarks;  /* on the stack: a list */
    int has_run;  /* the entry has: its variables have their values */
    int is_fresh; /* what is looked at has a variable that the entry set */
} finder;

/* Notes the names of the statement first .. end - 1. */
static void note_given(lua_State *L, int given, const lumat_tokens *t,
                       int first, int end)
{
    int is_plain = lumat_kind_at(t, first) == LUMAT_NAME;
    lua_Integer place = lumat_behind(t, end) - t->text;
    lumat_push_given(L, t, first, end);
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        lua_pushvalue(L, -2);
        int is_known = lua_rawget(L, given) != LUA_TNIL;
        lua_pop(L, 1);
        lua_pushvalue(L, -2);
        lua_pushinteger(L, is_plain && !is_known ? place : 0);
        lua_rawset(L, given);
    }
    lua_pop(L, 1);
}

static void push_given(lua_State *L, const lumat_tokens *t)
{
    lua_newtable(L);
    int given = lua_gettop(L);
    for (int i = 0, end; i < t->count; i = end) {
        end = lumat_skip_statement(t, i);
        note_given(L, given, t, i, end);
    }
}

/* May the variable's value be looked at for what stands at token i? */
static int is_trusted(finder *f, int i)
{
    const lumat_token *name = &f->t->list[i];
    lumat_push_token(f->L, f->t, i);
    int is_given = lua_rawget(f->L, f->given) != LUA_TNIL;
    lua_Integer end = lua_tointeger(f->L, -1);
    lua_pop(f->L, 1);
    if (!is_given)
        return 1;
    f->is_fresh = 1;
    return f->has_run && end > 0 && (size_t)end <= name->start;
}

static int are_trusted(finder *f, int first, int end)
{
    f->is_fresh = 0;
    for (int i = first; i < end; i++) {
        int before = i > first ? lumat_kind_at(f->t, i - 1) : 0;
        if (f->t->list[i].kind == LUMAT_NAME && before != '.' &&
            before != ':' && !is_trusted(f, i))
            return 0;
    }
    return 1;
}

/* --- expressions ---------------------------------------------------------- */

/* Behind the operand that begins at token i, without the signs in front of it;
 * i when there is none that is looked into. */
static int operand_end(const lumat_tokens *t, int i)
{
    int kind = lumat_kind_at(t, i);
    if (kind == LUMAT_NUMBER || kind == LUMAT_STRING)
        return i + 1;
    if (kind != LUMAT_NAME && kind != '(')
        return i;
    i = kind == '(' ? t->list[i].match + 1 : i + 1;
    for (;;) {
        kind = lumat_kind_at(t, i);
        if ((kind == '.' || kind == ':') &&
            lumat_kind_at(t, i + 1) == LUMAT_NAME)
            i += 2;
        else if (lumat_at(t, i, "( [ {"))
            i = t->list[i].match + 1;
        else if (kind == LUMAT_STRING)
            i++;
        else
            return i;
    }
}

/* Behind the arithmetic expression that begins at token i. */
static int expression_end(const lumat_tokens *t, int i)
{
    for (;;) {
        int start = i;
        while (lumat_at(t, i, "- ~ #"))
            i++;
        int end = operand_end(t, i);
        if (end <= i)
            return start;
        i = end;
        if (!lumat_is_binary(t, i) || lumat_kind_at(t, i) == LUMAT_COMPARE)
            return i;
        i++;
    }
}

/* Of what begins a row, or goes on in it, the beginning is not certain. */
static int expression_start(const lumat_tokens *t, int end)
{
    int i = lumat_expression_start(t, end);
    return expression_end(t, i) == end ? i : end;
}

/* Does the operand end in a call of what compares element by element? */
static int ends_in_test(const lumat_tokens *t, int first, int end)
{
    int close = end - 1;
    if (!lumat_at(t, close, ")") || t->list[close].match <= first)
        return 0;
    int name = t->list[close].match - 1;
    for (int op = 0; op < GPU_OPS; op++)
        if (gpu_op_is_test((gpu_op)op) &&
            lumat_at(t, name, gpu_op_name((gpu_op)op)))
            return lumat_kind_at(t, name) == LUMAT_NAME;
    return 0;
}

/* Are masks joined in it, and nothing else computed? */
static int joins_masks(const lumat_tokens *t, int first, int end)
{
    int joins = 0;
    for (int i = first; i < end; i++) {
        int kind = lumat_kind_at(t, i);
        joins |= kind == '&' || kind == '|';
        if (kind < LUMAT_NAME && strchr("+-*/%^", kind))
            return 0;
    }
    return joins;
}

static lumat_fact_kind kind_of(finder *f, int first, int end)
{
    if (end <= first || !are_trusted(f, first, end))
        return LUMAT_IS_UNKNOWN;
    return lumat_infer(f->L, f->t, first, end).kind;
}

/* Is it a column of text or dates? */
static int is_column(finder *f, int first, int end)
{
    if (end <= first || !are_trusted(f, first, end))
        return 0;
    lumat_push_fact(f->L, f->t, first, end, 0);
    const char *name = lumat_owner_name(f->L);
    int is_so = name && (strcmp(name, "text column") == 0 ||
                         strcmp(name, "date column") == 0);
    lua_pop(f->L, 1);
    return is_so;
}

static int is_mask(finder *f, int first, int end)
{
    if (end <= first || !are_trusted(f, first, end))
        return 0;
    lumat_fact fact = lumat_push_fact(f->L, f->t, first, end, 0);
    const gpu_matrix *m = lumat_test_matrix(f->L, -1);
    lua_pop(f->L, 1);
    return fact.kind == LUMAT_IS_DENSE &&
           (m ? m->dtype == GPU_BOOL
              : ends_in_test(f->t, first, end) ||
                    joins_masks(f->t, first, end));
}

/* --- remarks -------------------------------------------------------------- */

/* Adds the text on top. What was seen before the entry ran is not told again.
 */
static void add_remark(finder *f, int is_new)
{
    lua_Integer count = (lua_Integer)lua_rawlen(f->L, f->remarks);
    if (is_new && count < MOST_REMARKS)
        lua_rawseti(f->L, f->remarks, count + 1);
    else
        lua_pop(f->L, 1);
}

/* Pushes the tokens as they are written, or otherwise when they are many. */
static const char *push_source(finder *f, int first, int end,
                               const char *otherwise)
{
    size_t start = f->t->list[first].start;
    size_t length = f->t->list[end - 1].end - start;
    const char *text = f->t->text + start;
    if (length > MOST_QUOTED || memchr(text, '\n', length))
        return lua_pushstring(f->L, otherwise);
    return lua_pushlstring(f->L, text, length);
}

/* The same for what a method is called of. */
static const char *push_object(finder *f, int first, int end)
{
    const char *text = push_source(f, first, end, "A");
    if (operand_end(f->t, first) == end || strcmp(text, "A") == 0)
        return text;
    return lua_pushfstring(f->L, "(%s)", text);
}

/* A == 1, 1 ~= A, T.s == "x": Lua asks nobody, for they are of two types. */
static void look_at_comparison(finder *f, int i)
{
    lua_State *L = f->L;
    int is_equal = lumat_at(f->t, i, "==");
    int left = expression_start(f->t, i), end = expression_end(f->t, i + 1);
    int top = lua_gettop(L);
    if (!is_equal && !lumat_at(f->t, i, "~="))
        return;
    int a = kind_of(f, left, i), is_fresh = f->is_fresh;
    int b = kind_of(f, i + 1, end);
    is_fresh |= f->is_fresh;
    int is_left = a == LUMAT_IS_DENSE && b == LUMAT_IS_NUMBER;
    int is_text = (b == LUMAT_IS_STRING && is_column(f, left, i)) ||
                  (a == LUMAT_IS_STRING && is_column(f, i + 1, end));
    if (!is_left && !is_text && (a != LUMAT_IS_NUMBER || b != LUMAT_IS_DENSE))
        return;
    is_left |= is_text && b == LUMAT_IS_STRING;
    const char *all =
        push_source(f, left, end,
                    is_text ? "a column == a string" : "a matrix == a number");
    const char *object =
        is_left ? push_object(f, left, i) : push_object(f, i + 1, end);
    const char *number = is_left ? push_source(f, i + 1, end, "x")
                                 : push_source(f, left, i, "x");
    lua_pushfstring(L, "%s is %s, one boolean: a %s; %s:%s(%s) is the mask",
                    all, is_equal ? "false" : "true",
                    is_text ? "column is no string" : "matrix is no number",
                    object, is_equal ? "eq" : "ne", number);
    add_remark(f, is_fresh == f->has_run);
    lua_settop(L, top);
}

static void add_condition(finder *f, int first, int end)
{
    int top = lua_gettop(f->L);
    const char *mask = push_source(f, first, end, "m");
    lua_pushfstring(f->L,
                    "%s is a matrix, and so always true: any(%s) or all(%s) "
                    "asks for its elements",
                    mask, mask, mask);
    add_remark(f, f->is_fresh == f->has_run);
    lua_settop(f->L, top);
}

static int ends_condition(finder *f, int i)
{
    return lumat_at(f->t, i, "then do");
}

/* if A:gt(5) then, while …, until …; `and` and `or` look for themselves. */
static void look_at_condition(finder *f, int i)
{
    int first = i + 1, end = expression_end(f->t, first);
    int is_alone = ends_condition(f, end) || lumat_at(f->t, i, "until");
    if (is_alone && lumat_kind_at(f->t, end) != LUMAT_COMPARE &&
        is_mask(f, first, end))
        add_condition(f, first, end);
}

/* m1 and m2, m1 or m2. `m and x` may ask whether there is an m; what a call
 * gives is there. `x and m1 or m2` chooses between the two. */
static void look_at_junction(finder *f, int i)
{
    lua_State *L = f->L;
    int is_and = lumat_at(f->t, i, "and"), top = lua_gettop(L);
    int left = expression_start(f->t, i), end = expression_end(f->t, i + 1);
    if (ends_condition(f, end) && ends_in_test(f->t, i + 1, end) &&
        is_mask(f, i + 1, end))
        add_condition(f, i + 1, end);
    if (lumat_kind_at(f->t, left - 1) == LUMAT_COMPARE ||
        lumat_at(f->t, left - 1, "not and") || !is_mask(f, left, i))
        return;
    int is_fresh = f->is_fresh;
    if (lumat_kind_at(f->t, end) == LUMAT_COMPARE || !is_mask(f, i + 1, end)) {
        f->is_fresh = is_fresh;
        if (ends_in_test(f->t, left, i))
            add_condition(f, left, i);
        return;
    }
    const char *a = push_source(f, left, i, "m1");
    const char *b = push_source(f, i + 1, end, "m2");
    lua_pushfstring(L,
                    "%s %s %s is %s: a matrix is always true; %s %s %s joins "
                    "masks",
                    a, is_and ? "and" : "or", b, is_and ? b : a, a,
                    is_and ? "&" : "|", b);
    add_remark(f, (is_fresh | f->is_fresh) == f->has_run);
    lua_settop(L, top);
}

static void look_at_negation(finder *f, int i)
{
    lua_State *L = f->L;
    int end = operand_end(f->t, i + 1), top = lua_gettop(L);
    if (!is_mask(f, i + 1, end))
        return;
    const char *mask = push_source(f, i + 1, end, "m");
    lua_pushfstring(L,
                    "not %s is false: a matrix is always true; ~%s turns a "
                    "mask",
                    mask, mask);
    add_remark(f, f->is_fresh == f->has_run);
    lua_settop(L, top);
}

/* Is what the token names called of a matrix, or the library's? */
static int is_library(finder *f, int first, int i)
{
    lua_State *L = f->L;
    if (first < i)
        return lumat_infer(L, f->t, first, i - 1).kind == LUMAT_IS_DENSE;
    push_named(L, f->t, i);
    const char *found = lumat_library_name(L);
    lua_pop(L, 1);
    return found && lumat_is_written(f->t, i, found, strlen(found));
}

/* v, p = sort(A), v, p = A:sort(): at its name, when it has run. */
static void look_at_call(finder *f, int i)
{
    const lumat_tokens *t = f->t;
    assigned_call call;
    lua_State *L = f->L;
    int top = lua_gettop(L);
    if (!f->has_run || !find_assigned_call(t, i, &call))
        return;
    push_named(L, t, call.sign - 1);
    if (lua_isnil(L, -1) && is_library(f, call.first, i)) {
        const char *name = lumat_push_token(L, t, call.sign - 1);
        const char *function = lumat_push_token(L, t, call.name);
        const lumat_function *row = lumat_find_row(L, function);
        if (row && push_fewer_results(L, t, row, &call)) {
            lua_pushfstring(L, "%s is nil, for %s", name, lua_tostring(L, -1));
            add_remark(f, 1);
        }
    }
    lua_settop(L, top);
}

/* --- what is closed ------------------------------------------------------- */

/* Is the name anywhere from token i on? */
static int is_mentioned(const lumat_tokens *t, int i, int name)
{
    while (i < t->count && !are_same(t, i, name))
        i++;
    return i < t->count;
}

/* local k <close> of the top level that nothing behind it uses. */
static void look_at_closed(finder *f)
{
    lua_State *L = f->L;
    const lumat_tokens *t = f->t;
    lumat_declaration n;
    for (int i = 0; i < t->count;) {
        int is_local = lumat_at(t, i, "local");
        i = is_local ? lumat_read_local(t, i, &n) : lumat_skip_statement(t, i);
        for (int k = 0; is_local && k < n.count; k++) {
            int name = n.list[k].name;
            if (!n.list[k].closes || is_mentioned(t, i, name))
                continue;
            const char *text = lumat_push_token(L, t, name);
            lua_pushfstring(L,
                            "%s was closed at the end of its entry: do local "
                            "%s <close> = ... end, with what uses it inside",
                            text, text);
            lua_remove(L, -2);
            add_remark(f, 1);
        }
    }
}

/* --- finding and telling -------------------------------------------------- */

static void look_at(finder *f, int i)
{
    int kind = f->t->list[i].kind;
    if (kind == LUMAT_COMPARE)
        look_at_comparison(f, i);
    else if (kind == LUMAT_NAME)
        look_at_call(f, i);
    else if (kind != LUMAT_KEYWORD)
        return;
    else if (lumat_at(f->t, i, "and or"))
        look_at_junction(f, i);
    else if (lumat_at(f->t, i, "not"))
        look_at_negation(f, i);
    else if (lumat_at(f->t, i, "if elseif while until"))
        look_at_condition(f, i);
}

/* Adds to the list on top what is seen now. */
static void find(lua_State *L, const lumat_tokens *t, int has_run)
{
    finder f = {.L = L, .t = t, .has_run = has_run, .remarks = lua_gettop(L)};
    push_given(L, t);
    f.given = lua_gettop(L);
    for (int i = 0; i < t->count; i++)
        look_at(&f, i);
    if (!has_run)
        look_at_closed(&f);
    lua_settop(L, f.remarks);
}

void lumat_find_remarks(lua_State *L, int tokens)
{
    lua_pushvalue(L, tokens);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &tokens_key);
    lua_newtable(L);
    find(L, lua_touserdata(L, tokens), 0);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &remarks_key);
}

void lumat_each_remark(lua_State *L, lumat_name_fn *each, void *data)
{
    int top = lua_gettop(L);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &tokens_key) == LUA_TUSERDATA &&
        lua_rawgetp(L, LUA_REGISTRYINDEX, &remarks_key) == LUA_TTABLE) {
        find(L, lua_touserdata(L, top + 1), 1);
        for (int i = 1; lua_rawgeti(L, top + 2, i) == LUA_TSTRING; i++) {
            each(data, "", lua_tostring(L, -1));
            lua_pop(L, 1);
        }
    }
    lua_settop(L, top);
}
