/* Which variables fit the operand that stands before the cursor. */
#include "offer_list.h"
#include "value.h"

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

lumat_partner lumat_partner_of_sign(lua_State *L, const lumat_tokens *t,
                                    int sign)
{
    int kind = lumat_kind_at(t, sign);
    lumat_partner p = {.fit = fit_of_sign(kind),
                       .is_shown = kind == '*',
                       .is_join = kind == LUMAT_CONCAT};
    if (p.fit < 0 || !lumat_is_binary(t, sign))
        return nobody;
    p.fact = lumat_infer(L, t, lumat_expression_start(t, sign), sign, 0);
    lua_pop(L, 1);
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
static lumat_argument partner_of(const lumat_function *f,
                                 const lumat_argument *found)
{
    lumat_argument a = {.rest = f->takes};
    while (lumat_next_argument(&a))
        if (a.form == found->form && a.name.length == found->partner.length &&
            memcmp(a.name.start, found->partner.start, a.name.length) == 0)
            break;
    return a;
}

lumat_partner lumat_partner_in_call(lua_State *L, const lumat_tokens *t,
                                    const lumat_calling *call)
{
    const lumat_function *f = lumat_find_row(L, call->name);
    lumat_argument found, other;
    lumat_partner p = {.fit = -1, .is_call = 1};
    if (!call->is_library || call->argument < 2 ||
        !find_fitting(f, call, &found))
        return nobody;
    other = partner_of(f, &found);
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
