/* What may stand at the cursor: gathered with notes, and put in order. */
#ifndef LUMAT_OFFER_LIST_H
#define LUMAT_OFFER_LIST_H

#include "call_at_cursor.h"
#include "value.h"

/* --- offer_list.c
 * ------------------------------------------------------------- */

/* The other operand and what has to fit. */
typedef struct lumat_partner {
    lumat_fact fact;
    int fit;      /* a lumat_fit; -1: nothing is certain */
    int is_shown; /* what the result is: of a product */
    int is_call;  /* that product of vectors is a vector of one */
    int is_join;  /* vectors of any length go end to end */
} lumat_partner;

typedef struct lumat_gather {
    lua_State *L;
    const char *prefix; /* what they begin with */
    size_t length;
    struct lumat_item *items; /* in a userdata at stack index `slot` */
    int slot, kept;           /* kept: a table of the strings made here */
    int count, room;
    lumat_partner partner; /* of those that fit */
} lumat_gather;

/* What fits is listed first; of the rest some would fit transposed; what is
 * hidden hides others of its name. */
enum { LUMAT_FITS, LUMAT_TURNED, LUMAT_LATER, LUMAT_HIDDEN };

/* Pushes what it needs. */
void lumat_open_gather(lumat_gather *g, lua_State *L, const char *prefix,
                       size_t length);
/* A name that lives as long as the gathering does. Note: NULL, or shown. */
void lumat_gather_name(lumat_gather *g, const char *name, const char *note);
/* Copies the name. */
void lumat_gather_copy(lumat_gather *g, const char *name, size_t length,
                       const char *note);
/* Names separated by blanks. */
void lumat_gather_words(lumat_gather *g, const char *words);
/* A variable, the value of which is on top of the stack: the note tells its
 * kind, and how it fits the partner. */
void lumat_gather_value(lumat_gather *g, const char *name, int rank);
/* Keeps the string on top as long as the gathering lives, and pops it. */
const char *lumat_keep(lumat_gather *g);
/* Calls each in order of rank and name, for the first of equal names; returns
 * how many fit. */
int lumat_end_gather(lumat_gather *g, lumat_name_fn *each, void *data);

/* --- offer_values.c, offer_modules.c
 * -------------------------------------------------- */

typedef struct lumat_values {
    lumat_gather *gather;
    const char *function;     /* whose kernels, if it has any of its own */
    const gpu_device *device; /* where they run; NULL: on any that is open */
    const char *quote;        /* put around them; "" inside quotes */
} lumat_values;

/* Offers the values of a kind: a string in quotes, device, dtype, kernel,
 * operation, topic; outside of quotes also true and false. Returns 0 for a kind
 * that has none. */
int lumat_gather_kind(const lumat_values *v, lumat_piece kind);
/* Offers those that an option may have. */
int lumat_gather_option(const lumat_values *v, const lumat_option *option);
/* Modules that require would find. */
void lumat_gather_modules(lumat_gather *g);

/* --- fitting_operands.c
 * -------------------------------------------------------- */

/* The partner of the word behind the operator at token `sign`. */
lumat_partner lumat_partner_of_sign(lua_State *L, const lumat_tokens *t,
                                    int sign);
/* That of the call's argument at the cursor, among those before it. */
lumat_partner lumat_partner_in_call(lua_State *L, const lumat_tokens *t,
                                    const lumat_calling *call);
/* How the value on top of the stack fits: FITS, TURNED or LATER. */
int lumat_rank(lua_State *L, const lumat_partner *p);
/* Pushes a remark on a matrix that fits: what it gives, or that it does. */
void lumat_push_remark(lua_State *L, const lumat_partner *p,
                       const gpu_matrix *m);

#endif
