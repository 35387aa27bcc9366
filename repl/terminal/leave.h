/* Leaving with the variables saved, when the program cannot go on. */
#ifndef LEAVE_H
#define LEAVE_H

/* At a prompt, first: finds out where the variables would go. */
void repl_prepare_leaving(void);

/* In the signal handler of Ctrl-C, each time it did not stop what runs: the
 * third offers to leave, and another one does. */
void repl_count_press(void);
/* What ran has stopped, or begins. */
void repl_forget_presses(void);

/* At a prompt that there is no memory for: the variables are saved, if that is
 * possible, and the program ends. */
_Noreturn void repl_leave_short(void);

/* SIGALRM comes after so many seconds; 0: not any more. */
void repl_set_alarm(double seconds);

#endif
