/* What is typed while an entry runs: the terminal shows it at the next prompt,
 * not amid the output. */
#ifndef ECHO_OFF_H
#define ECHO_OFF_H

/* Once, when the prompt is at a terminal. However the program ends or is
 * stopped, the terminal echoes then as it did. */
void repl_typing_open(void);

/* While an entry runs the terminal does not echo. */
void repl_typing_begin(void);
void repl_typing_end(void);

/* Around whatever reads the terminal meanwhile: it echoes. A program that sets
 * it not to has its way. */
void repl_lend_typing(void);
void repl_take_typing_back(void);

/* Does the terminal show what is typed? */
int repl_is_echoing(void);

/* Safe in a signal handler: ^C for 'C', where the terminal does not show it
 * itself. */
void repl_echo_control(char letter);

#endif
