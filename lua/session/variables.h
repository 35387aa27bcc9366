/* What variables.c finds out about the user's variables and who_text.c writes.
 */
#ifndef LUMAT_VARIABLES_H
#define LUMAT_VARIABLES_H

#include "print.h"

/* Every storage has one owner among the variables, which its bytes are counted
 * for; the others are views of it, or the same. */
typedef struct lumat_variable {
    const char *name, *type;
    const gpu_matrix *dense; /* one of the two, or neither: another value */
    const gpu_sparse *sparse;
    int parts_owned;          /* storages */
    size_t owned, kept;       /* bytes of these, and kept about them */
    const char *sharing;      /* who owns the others; NULL: there are none */
    const gpu_matrix *shared; /* its matrix, when dense */
    int entry; /* at the prompt, that made what it owns; 0: not known */
    char shape[64], bytes[24];
} lumat_variable;

typedef struct lumat_listing {
    int names;        /* stack place of the table of all variables */
    int count, shown; /* those to be shown come first */
    lumat_variable *items;
    const char *heading; /* NULL: words above the columns, devices below */
} lumat_listing;

/* A matrix of it that tells its device, or NULL. */
const gpu_matrix *lumat_variable_part(const lumat_variable *v);

enum { LUMAT_MOST_LISTED = 20 }; /* under a heading */

/* Pushes the text. pattern is for the message when it matches nothing. */
void lumat_push_listing(lua_State *L, const lumat_listing *l,
                        const char *pattern);

#endif
