/* The keys of the prompt: Readline commands with names that the user's
 * inputrc can bind under "$if lumat", and the keys they have at first. */
#ifndef KEYS_H
#define KEYS_H

/* Names the commands and binds their keys; the user's inputrc, which Readline
 * reads later, has the last word. */
void repl_keys_open(void);

/* Before each line: keys that are bound to what Readline does with a line do
 * the same with its rows. */
void repl_keys_begin(void);

/* The list of keys. */
void repl_print_keys(void);

#endif
