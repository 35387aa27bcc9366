/* The one place where errors are printed. */
#ifndef REPORT_H
#define REPORT_H

#include "lumat.h"

/* With which the program ends; the others are in README.md. */
enum { REPL_OUT_OF_MEMORY = 4, REPL_INTERRUPTED = 130 };

/* Errors begin with "error: " from now on, as at a prompt; before, with
 * "lumat: ", as of a script. */
void repl_report_at_prompt(void);

/* Prints a message to standard error, behind what standard output holds. */
void repl_complain(const char *message);

/* The same for what is no error: "note: …". */
void repl_note(const char *message);

/* The same for a warning of the language's: "warning: …". */
void repl_warn(const char *message);

/* How many errors were printed so far. */
unsigned repl_complaint_count(void);

/* Prints the error value on top of the stack, and pops it. */
void repl_report(lua_State *L);
/* The same for one that an entry of some lines raised: its position is left
 * out, or for several lines is the line alone. */
void repl_report_entry(lua_State *L, int lines);

#endif
