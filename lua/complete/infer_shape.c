/* What is certain about an expression: kinds and shapes of its operands go
 * through its operators, with Lua's precedences. */
#include "known_value.h"

#include <string.h>

enum { LONGEST = 256 }; /* tokens of an expression that is looked into */

static const lumat_fact unknown = {.kind = LUMAT_IS_UNKNOWN};

/* --- operators ------------------------------------------------------------ */

static int is_matrix(lumat_fact f)
{
    return f.kind == LUMAT_IS_DENSE || f.kind == LUMAT_IS_SPARSE;
}

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
        return (lumat_fact){.kind = LUMAT_IS_NUMBER};
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
    if (is_matrix(a) && b.kind == LUMAT_IS_NUMBER)
        return a;
    if (is_matrix(b) && a.kind == LUMAT_IS_NUMBER)
        return b;
    if (!is_matrix(a) || b.kind != LUMAT_IS_DENSE)
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
            *a = (lumat_fact){.kind = LUMAT_IS_NUMBER};
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
    m->operand[m->depth] = lumat_read_chain(L, t, at, end, depth);
    return 1;
}

static void push_nothing(lua_State *L, int top)
{
    lua_settop(L, top);
    lua_pushnil(L);
}

/* An operand where an operator belongs begins another statement. */
lumat_fact lumat_infer(lua_State *L, const lumat_tokens *t, int first, int end,
                       int depth)
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
