/* Where the cursor is, for the files that offer what may stand there. */
#ifndef LUMAT_CURSOR_CONTEXT_H
#define LUMAT_CURSOR_CONTEXT_H

#include "completion.h"
#include "offer_list.h"

typedef struct lumat_query {
    lua_State *L;
    lumat_wanted wanted;
    lumat_tokens tokens; /* before the word */
    lumat_gather gather; /* its prefix is the word */
    lumat_completion place;
    int at; /* the token that the word would be */
} lumat_query;

/* --- offer_names.c
 * -------------------------------------------------------------- */

/* Variables, the fitting ones first when there is a partner, and keywords. */
void lumat_offer_variables(lumat_query *q, const lumat_partner *partner);
/* What may follow the . or : before the word. */
void lumat_offer_fields(lumat_query *q);
void lumat_offer_methods(lumat_query *q);
/* The string keys of the table before the [ and quote before the word. */
void lumat_offer_keys(lumat_query *q);

/* --- offer_options.c ------------------------------------------------------ */

/* Whether the cursor is in a call's table of options, behind { , or =. If so,
 * offers names or values. */
int lumat_offer_options(lumat_query *q);

/* --- index_forms.c -------------------------------------------------------- */

/* Whether the cursor is where an index of a matrix begins, or a part of one. If
 * so, offers its forms, to be read. */
int lumat_offer_index(lumat_query *q);

/* --- offer_strings.c
 * ------------------------------------------------------------ */

/* What may stand in the quotes that are open. */
void lumat_offer_in_string(lumat_query *q);

void lumat_open_completions(lua_State *L);

#endif
