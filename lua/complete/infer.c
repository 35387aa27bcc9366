/* What is certain about an expression before it is evaluated: kind, shape and
 * device of what its names hold go through fields, calls, indices and
 * operators, with Lua's precedences. Below, values that are there; then
 * operators, the steps of a chain such as A.T, t.x[1] or ("x"):rep(2), chains,
 * and whole expressions. */
#include "complete_parts.h"

#include <string.h>

static const lumat_fact unknown = {.kind = LUMAT_IS_UNKNOWN};
static const lumat_fact number = {.kind = LUMAT_IS_NUMBER};
static const lumat_fact string = {.kind = LUMAT_IS_STRING};

int lumat_is_matrix_fact(lumat_fact f)
{
    return f.kind == LUMAT_IS_DENSE || f.kind == LUMAT_IS_SPARSE;
}

/* --- values that are there ------------------------------------------------ */

static lumat_fact fact_of_userdata(lua_State *L)
{
    lumat_fact fact = {.kind = LUMAT_IS_VALUE};
    const gpu_matrix *m = lumat_test_matrix(L, -1);
    const gpu_sparse *s = lumat_look_at_sparse(L, -1);
    if (m) {
        fact.kind = LUMAT_IS_DENSE;
        fact.shape = *m;
        fact.device = gpu_matrix_device(m);
        if (!m->storage)
            fact.shape.ndim = 0;
    } else if (s) {
        fact.kind = LUMAT_IS_SPARSE;
        fact.shape.ndim = s->values.storage ? 2 : 0;
        fact.shape.rows = s->rows;
        fact.shape.cols = s->cols;
        fact.device = gpu_matrix_device(&s->values);
    }
    return fact;
}

/* The fact about the value on top. */
static lumat_fact fact_of(lua_State *L)
{
    switch (lua_type(L, -1)) {
    case LUA_TTABLE:
    case LUA_TFUNCTION:
        return (lumat_fact){.kind = LUMAT_IS_VALUE};
    case LUA_TUSERDATA:
        return fact_of_userdata(L);
    case LUA_TSTRING:
        return string;
    case LUA_TNUMBER:
        return number;
    default:
        return unknown;
    }
}

int lumat_next_table(lua_State *L)
{
    if (!lua_getmetatable(L, -1)) {
        lua_pop(L, 1);
        return 0;
    }
    lua_pushliteral(L, "__index");
    lua_rawget(L, -2);
    if (!lua_istable(L, -1)) { /* a function: what the library tells of it */
        lua_pop(L, 1);
        lua_pushliteral(L, "__members");
        lua_rawget(L, -2);
    }
    lua_replace(L, -3);
    lua_pop(L, 1);
    if (lua_istable(L, -1))
        return 1;
    lua_pop(L, 1);
    return 0;
}

void lumat_replace_by_field(lua_State *L, const char *name, size_t length)
{
    for (int i = 0; i < LUMAT_LEVELS; i++) {
        if (lua_istable(L, -1)) {
            lua_pushlstring(L, name, length);
            if (lua_rawget(L, -2) != LUA_TNIL) {
                lua_remove(L, -2);
                return;
            }
            lua_pop(L, 1);
        }
        if (!lumat_next_table(L)) {
            lua_pushnil(L);
            return;
        }
    }
    lua_pop(L, 1);
    lua_pushnil(L);
}

const char *lumat_library_name(lua_State *L)
{
    const char *name = NULL;
    int function = lua_gettop(L);
    if (!lua_isfunction(L, function) && !lua_istable(L, function))
        return NULL;
    lua_getfield(L, LUA_REGISTRYINDEX, "lumat.functions");
    for (lua_pushnil(L); lua_next(L, function + 1); lua_pop(L, 1))
        if (lua_rawequal(L, -1, function))
            name = lua_tostring(L, -2);
    if (!name && lua_getfield(L, LUA_REGISTRYINDEX, "lumat.base")) {
        lua_pushliteral(L, "load"); /* there it is Lua's own as well */
        lua_rawget(L, -2);
        name = lua_rawequal(L, -1, function) ? "load" : NULL;
    }
    lua_settop(L, function);
    return name;
}

/* --- operators ------------------------------------------------------------ */

/* A dense matrix of that shape, where the other one is. */
static lumat_fact shaped(lumat_fact like, int ndim, int64_t rows, int64_t cols)
{
    like.kind = LUMAT_IS_DENSE;
    like.shape.ndim = ndim;
    like.shape.rows = rows;
    like.shape.cols = cols;
    return like;
}

/* What the library says of shapes. That of what it would refuse is not known:
 * one operand may be what is being written. */
static lumat_fact shaped_like(lumat_fact a, const gpu_matrix *result,
                              gpu_status status)
{
    if (status != GPU_OK)
        return shaped(a, 0, 0, 0);
    return shaped(a, result->ndim, result->rows, result->cols);
}

static lumat_fact multiply(lumat_fact a, lumat_fact b)
{
    gpu_matrix result;
    int x = a.shape.ndim, y = b.shape.ndim;
    if (x == 1 && y == 1)
        return number;
    if (x == 0 || y == 0)
        return x == 2 || y == 2 ? shaped(a, 0, 0, 0) : unknown;
    return shaped_like(a, &result,
                       gpu_product_shape(&a.shape, &b.shape, &result));
}

/* Element by element, or side by side. */
static lumat_fact join(lumat_fact a, lumat_fact b, int sign)
{
    const gpu_matrix *x = &a.shape, *y = &b.shape, *const both[] = {x, y};
    gpu_matrix result;
    if (x->ndim == 0 || x->ndim != y->ndim)
        return shaped(a, 0, 0, 0);
    if (sign == LUMAT_CONCAT)
        return x->ndim == 2 ? shaped(a, 2, x->rows, x->cols + y->cols)
                            : shaped(a, 1, x->rows + y->rows, 1);
    return shaped_like(a, &result, gpu_map_shape("", both, 2, &result));
}

lumat_fact lumat_combine(lumat_fact a, int sign, lumat_fact b)
{
    if (a.kind == LUMAT_IS_STRING && sign == LUMAT_CONCAT)
        return a;
    if (b.kind == LUMAT_IS_STRING && sign == LUMAT_CONCAT)
        return b;
    if (sign == LUMAT_COMPARE || sign == 0)
        return unknown;
    if (a.kind == LUMAT_IS_NUMBER && b.kind == LUMAT_IS_NUMBER) {
        a.kind = sign == LUMAT_CONCAT ? LUMAT_IS_STRING : LUMAT_IS_NUMBER;
        return a;
    }
    if (lumat_is_matrix_fact(a) && b.kind == LUMAT_IS_NUMBER)
        return a;
    if (lumat_is_matrix_fact(b) && a.kind == LUMAT_IS_NUMBER)
        return b;
    if (!lumat_is_matrix_fact(a) || b.kind != LUMAT_IS_DENSE)
        return unknown;
    return sign == '*' ? multiply(a, b) : join(a, b, sign);
}

/* --- precedence ----------------------------------------------------------- */

enum { UNARY = 11, POWER = 12 };

/* 0: not binary. */
static int precedence(int kind)
{
    switch (kind) {
    case LUMAT_COMPARE:
        return 1;
    case '|':
        return 2;
    case '~':
        return 3;
    case '&':
        return 4;
    case LUMAT_CONCAT:
        return 6;
    case '+':
    case '-':
        return 7;
    case '*':
    case '/':
    case '%':
    case LUMAT_DIVIDE:
        return 8;
    default:
        return kind == '^' ? POWER : 0;
    }
}

static int is_unary(int kind)
{
    return kind == '-' || kind == '~' || kind == '#';
}

static int is_operand(int kind)
{
    return kind == LUMAT_NAME || kind == LUMAT_NUMBER || kind == LUMAT_STRING ||
           kind == ')' || kind == ']' || kind == '}';
}

int lumat_is_binary(const lumat_tokens *t, int i)
{
    return precedence(lumat_kind_at(t, i)) > 0 &&
           is_operand(lumat_kind_at(t, i - 1));
}

/* --- a step of a chain ---------------------------------------------------- */
/* .name, :name(…), [key] or (…), by what is certain of the value on top, which
 * it replaces. */

/* What the library's function gives for so many arguments, by its row. */
static lumat_fact result_of(lua_State *L, const char *function, int arguments)
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
    int open, close; /* tokens: of arguments or an index */
} step;

/* Of what is known by its fact alone: nil takes the place of the value. */
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

static lumat_fact read_field(const step *s, lumat_fact fact, int name)
{
    const lumat_tokens *t = s->t;
    if (fact.kind == LUMAT_IS_VALUE) {
        lumat_replace_by_field(s->L, lumat_start_of(t, name),
                               lumat_length_of(t, name));
        return fact_of(s->L);
    }
    forget_value(s->L, fact);
    if (!lumat_is_matrix_fact(fact))
        return unknown;
    if (lumat_at(t, name, "T"))
        return transposed(fact);
    if (lumat_at(t, name, "dtype device"))
        return string;
    return lumat_at(t, name, "rows cols size ndim bytes nnz") ? number
                                                              : unknown;
}

/* s:upper() and the like. */
static lumat_fact call_string(const step *s, int name)
{
    if (lumat_at(s->t, name, "upper lower rep sub format reverse gsub"))
        return string;
    return lumat_at(s->t, name, "len byte find") ? number : unknown;
}

static lumat_fact call_method(const step *s, lumat_fact fact, int name)
{
    const lumat_tokens *t = s->t;
    int count = 1 + lumat_count_arguments(t, s->open, s->close);
    forget_value(s->L, fact);
    if (fact.kind == LUMAT_IS_STRING)
        return call_string(s, name);
    if (!lumat_is_matrix_fact(fact))
        return unknown;
    if (lumat_at(t, name, "f32 f64"))
        return fact;
    fact.device = NULL;
    if (lumat_at(t, name, "to clone"))
        return fact;
    if (fact.kind == LUMAT_IS_SPARSE) {
        fact.kind =
            lumat_at(t, name, "full") ? LUMAT_IS_DENSE : LUMAT_IS_UNKNOWN;
        return fact;
    }
    if (lumat_at(t, name, "t"))
        return transposed(fact);
    fact = result_of(s->L, lumat_push_token(s->L, t, name), count);
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
    lumat_fact fact = lumat_push_fact(s->L, s->t, first, end, 1);
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

/* Is the sign anywhere in the token? */
static int holds(const lumat_tokens *t, int i, char sign)
{
    return memchr(lumat_start_of(t, i), sign, lumat_length_of(t, i)) != NULL;
}

/* A["1:3, end"], A[{{1, 3}, 2}] and A[vec{1, 3}] are matrices, of A's kind;
 * A[{1, 2}] is a number. */
static lumat_fact index_matrix(const step *s, lumat_fact fact)
{
    int key = s->open + 1, kind = lumat_kind_at(s->t, key);
    lumat_fact block = {.kind = fact.kind};
    forget_value(s->L, fact);
    if (kind == LUMAT_NUMBER && key + 1 == s->close)
        return fact.kind == LUMAT_IS_DENSE ? index_by_number(fact) : unknown;
    if (kind == LUMAT_STRING && key + 1 == s->close)
        return holds(s->t, key, ':') ? block : unknown;
    if (kind == '{')
        return has_block(s, key) ? block : unknown;
    return is_list(s, key, s->close) ? block : unknown;
}

/* t[1], t["x"]: a key that is written out. */
static lumat_fact index_table(const step *s)
{
    lua_State *L = s->L;
    int key = s->open + 1, kind = lumat_kind_at(s->t, key);
    const lumat_token *k = &s->t->list[key];
    if (key + 1 != s->close)
        return forget_value(L, unknown);
    if (kind == LUMAT_STRING && !holds(s->t, key, '\\')) {
        lumat_replace_by_field(L, s->t->text + k->content,
                               k->end - 1 - k->content);
        return fact_of(L);
    }
    const char *written = lumat_push_token(L, s->t, key);
    if (kind != LUMAT_NUMBER || !lua_istable(L, -2) ||
        !lua_stringtonumber(L, written)) {
        lua_pop(L, 1);
        return forget_value(L, unknown);
    }
    lua_rawget(L, -3);
    lua_replace(L, -3);
    lua_pop(L, 1);
    return fact_of(L);
}

static lumat_fact read_index(const step *s, lumat_fact fact)
{
    if (lumat_is_matrix_fact(fact))
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
        return result_of(s->L, name, count);
    if (fact.kind == LUMAT_IS_DENSE && count == 1 &&
        lumat_kind_at(s->t, s->open + 1) == LUMAT_NUMBER)
        return index_by_number(fact);
    if (lumat_is_matrix_fact(fact))
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

/* Takes the step of a chain at token i, and returns where it ends: at i when
 * there is none. */
static int take_step(lua_State *L, const lumat_tokens *t, int i, int end,
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

/* --- chains --------------------------------------------------------------- */

int lumat_count_commas(const lumat_tokens *t, int open, int end)
{
    int count = 0;
    for (int i = open + 1; i < end; i++) {
        if (t->list[i].match > i)
            i = t->list[i].match;
        count += t->list[i].kind == ',';
    }
    return count;
}

int lumat_count_arguments(const lumat_tokens *t, int open, int end)
{
    if (lumat_kind_at(t, open) != '(')
        return 1; /* f"x" and f{x} */
    return open + 1 < end ? lumat_count_commas(t, open, end) + 1 : 0;
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
    shadow s = {lumat_start_of(t, i), lumat_length_of(t, i), 0};
    lumat_each_declared(t, compare_name, &s);
    if (s.found)
        lua_pushnil(L);
    else
        lumat_push_variable(L, s.name, s.length);
    return fact_of(L);
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
        return lumat_push_fact(L, t, i + 1, t->list[i].match, depth + 1);
    }
    if ((kind == '{' || kind == '[') && t->list[i].match > i)
        *at = t->list[i].match + 1;
    lua_pushnil(L);
    return kind == LUMAT_STRING   ? string
           : kind == LUMAT_NUMBER ? number
                                  : unknown;
}

/* The fact about the chain from *at on, as far as it goes; depth counts
 * brackets. Pushes its value, or nil. */
static lumat_fact read_chain(lua_State *L, const lumat_tokens *t, int *at,
                             int end, int depth)
{
    int next;
    luaL_checkstack(L, 8, "completion");
    lumat_fact fact = read_primary(L, t, at, depth);
    while (*at < end && (next = take_step(L, t, *at, end, &fact)) > *at)
        *at = next;
    return fact;
}

lumat_fact lumat_push_chain(lua_State *L, const lumat_tokens *t, int first,
                            int end)
{
    lumat_fact fact = read_chain(L, t, &first, end, 0);
    if (first == end)
        return fact;
    lua_pop(L, 1);
    lua_pushnil(L);
    return unknown;
}

/* --- expressions ---------------------------------------------------------- */

enum { LONGEST = 256 }; /* tokens of an expression that is looked into */

/* Operators that wait for their right operands, and their left ones. */
typedef struct machine {
    lumat_fact operand[LUMAT_LEVELS + 1];
    int sign[LUMAT_LEVELS], power[LUMAT_LEVELS];
    int depth; /* operators; there is one operand more */
} machine;

/* Does what binds at least as strongly as an operator that comes. */
static void reduce(machine *m, int power)
{
    while (m->depth > 0) {
        int top = --m->depth,
            is_right = m->power[top] == POWER || m->sign[top] == LUMAT_CONCAT;
        if (m->power[top] < power || (m->power[top] == power && is_right)) {
            m->depth++;
            return;
        }
        lumat_fact *a = &m->operand[top];
        if (m->power[top] != UNARY)
            *a = lumat_combine(*a, m->sign[top], a[1]);
        else if (m->sign[top] == '#')
            *a = number;
        else
            *a = a[1];
    }
}

/* Returns 0 when there are too many. */
static int push_sign(machine *m, int sign, int power)
{
    if (m->depth == LUMAT_LEVELS)
        return 0;
    m->sign[m->depth] = sign;
    m->power[m->depth++] = power;
    return 1;
}

/* Reads an operand with the signs before it; leaves its value. */
static int read_operand(lua_State *L, const lumat_tokens *t, int *at, int end,
                        int depth, machine *m)
{
    for (; *at < end && is_unary(t->list[*at].kind); (*at)++) {
        m->operand[m->depth] = unknown;
        if (!push_sign(m, t->list[*at].kind, UNARY))
            return 0;
    }
    if (*at >= end || t->list[*at].kind == LUMAT_KEYWORD)
        return 0;
    m->operand[m->depth] = read_chain(L, t, at, end, depth);
    return 1;
}

static void push_nothing(lua_State *L, int top)
{
    lua_settop(L, top);
    lua_pushnil(L);
}

/* An operand where an operator belongs begins another statement. */
lumat_fact lumat_push_fact(lua_State *L, const lumat_tokens *t, int first,
                           int end, int depth)
{
    machine m = {.depth = 0};
    int top = lua_gettop(L), at = first;
    push_nothing(L, top);
    if (end - first > LONGEST || end <= first)
        return unknown;
    for (;;) {
        lua_settop(L, top);
        if (!read_operand(L, t, &at, end, depth, &m)) {
            push_nothing(L, top);
            return unknown;
        }
        int kind = at < t->count ? t->list[at].kind : 0;
        int power = precedence(kind);
        if (at < end && power == 0) {
            m.depth = 0;
            continue;
        }
        if (at >= end && m.depth == 0)
            return m.operand[0];
        reduce(&m, power);
        if (at >= end || !push_sign(&m, kind, power))
            break;
        at++;
    }
    push_nothing(L, top);
    return at >= end ? m.operand[m.depth] : unknown;
}

lumat_fact lumat_infer(lua_State *L, const lumat_tokens *t, int first, int end)
{
    lumat_fact fact = lumat_push_fact(L, t, first, end, 0);
    lua_pop(L, 1);
    return fact;
}

int lumat_expression_start(const lumat_tokens *t, int end)
{
    int i = end - 1;
    for (; i >= 0; i--) {
        int kind = t->list[i].kind;
        if (kind == ')' || kind == ']' || kind == '}') {
            if (t->list[i].match < 0)
                break;
            i = t->list[i].match;
        } else if (kind == LUMAT_KEYWORD ||
                   (precedence(kind) == 0 && kind < LUMAT_NAME && kind != '.' &&
                    kind != ':' && kind != '#')) {
            break;
        }
    }
    return i + 1;
}
