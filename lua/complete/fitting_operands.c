/* Which variables fit the operand that stands before the cursor. */
#include "offer_list.h"
#include "shape_errors.h"
#include "sparse_matrix.h"

#include <string.h>

static const lumat_partner nobody = {.fit = -1};

static int is_known(lumat_fact fact)
{
    return (fact.kind == LUMAT_IS_DENSE || fact.kind == LUMAT_IS_SPARSE) &&
           fact.shape.ndim > 0;
}

/* --- what has to fit ------------------------------------------------------ */

static int fit_of_sign(int kind)
{
    switch (kind) {
    case '*':
        return LUMAT_FIT_PRODUCT;
    case TOKEN_CONCAT:
        return LUMAT_FIT_ROWS;
    case '+':
    case '-':
    case '%':
    case '/':
    case '&':
    case '|':
    case '~':
    case TOKEN_DIVIDE:
    case TOKEN_COMPARE:
        return LUMAT_FIT_ELEMENTS;
    default:
        return -1;
    }
}

lumat_partner lumat_partner_of_sign(lua_State *L, const lumat_lexemes *t,
                                    int sign)
{
    int kind = lumat_lexeme_kind(t, sign);
    lumat_partner p = {.fit = fit_of_sign(kind),
                       .is_shown = kind == '*',
                       .is_join = kind == TOKEN_CONCAT};
    if (p.fit < 0 || !lumat_is_binary(t, sign))
        return nobody;
    p.fact = lumat_infer(L, t, lumat_expression_start(t, sign), sign, 0);
    lua_pop(L, 1);
    if (!is_known(p.fact) || (p.fact.kind == LUMAT_IS_SPARSE && kind != '*'))
        return nobody;
    return p;
}

/* Functions of several matrices: which argument has to fit which other. Any
 * other function of A and B works element by element. */
static const struct rule {
    const char *function;
    int argument, other; /* argument 0: any but the first */
    int fit, is_join;
} rules[] = {
    {"matmul", 2, 1, LUMAT_FIT_PRODUCT, 0},
    {"race", 2, 1, LUMAT_FIT_PRODUCT, 0},
    {"kernels", 2, 1, LUMAT_FIT_PRODUCT, 0},
    {"kernel_choice", 2, 1, LUMAT_FIT_PRODUCT, 0},
    {"solve", 2, 1, LUMAT_FIT_ROWS, 0},
    {"dot", 2, 1, LUMAT_FIT_LENGTHS, 0},
    {"verify", 2, 1, LUMAT_FIT_ROWS, 0},
    {"verify", 3, 2, LUMAT_FIT_PRODUCT, 0},
    {"hcat", 0, 1, LUMAT_FIT_ROWS, 1},
    {"vcat", 0, 1, LUMAT_FIT_COLUMNS, 0},
    {"kron", 2, 1, -1, 0},
    {"put", 2, 1, -1, 0},
};

static struct rule rule_of(lua_State *L, const lumat_calling *call)
{
    char words[64];
    int is_listed = 0;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (strcmp(rules[i].function, call->name) != 0)
            continue;
        is_listed = 1;
        if (rules[i].argument == call->argument || rules[i].argument == 0)
            return rules[i];
    }
    lumat_argument_words(L, call, words, sizeof words);
    if (is_listed || (!strstr(words, " B ") && !strstr(words, " C ")))
        return (struct rule){.fit = -1};
    return (struct rule){call->name, call->argument, 1, LUMAT_FIT_ELEMENTS, 0};
}

lumat_partner lumat_partner_in_call(lua_State *L, const lumat_lexemes *t,
                                    const lumat_calling *call)
{
    if (!call->is_library || call->argument < 2)
        return nobody;
    struct rule rule = rule_of(L, call);
    lumat_partner p = {.fit = rule.fit, .is_join = rule.is_join, .is_call = 1};
    if (rule.fit < 0)
        return nobody;
    p.fact = lumat_argument_fact(L, t, call, rule.other);
    p.is_shown = strcmp(call->name, "matmul") == 0;
    const gpu_matrix *m = &p.fact.shape;
    if (!is_known(p.fact) || p.fact.kind == LUMAT_IS_SPARSE ||
        (strcmp(call->name, "solve") == 0 && m->rows != m->cols))
        return nobody;
    return p;
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

void lumat_push_remark(lua_State *L, const lumat_partner *p,
                       const gpu_matrix *m)
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

int lumat_rank(lua_State *L, const lumat_partner *p)
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
