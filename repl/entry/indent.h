/* How far the rows of an entry are moved in. Pure functions over its text. */
#ifndef INDENT_H
#define INDENT_H

#include <stddef.h>

/* The blanks in front of a row that begins at point. */
int repl_next_indent(const char *text, size_t point);

/* The blanks in front of the row at start if it begins with a word or bracket
 * that closes an earlier row's construct, or goes on with its next part; else
 * -1. */
int repl_closing_indent(const char *text, size_t start, size_t length);

#endif
