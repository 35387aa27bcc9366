/* The terminal: what it can show, who has it, Ctrl-C, errors, and leaving. The
 * lowest room of repl/; every other one may include this. The whole screen, for
 * which ncurses is needed, has full_screen.h. */
#ifndef TERMINAL_H
#define TERMINAL_H

#include "lumat.h"

#include <stddef.h>

/* --- errors: report.c ----------------------------------------------------- */

/* With which the program ends; the others are in README.md. */
enum { REPL_OUT_OF_MEMORY = 4, REPL_INTERRUPTED = 130 };

/* Errors begin with "error: " from now on, as at a prompt; before, with
 * "lumat: ", as of a script. */
void repl_report_at_prompt(void);

/* The one place where errors are printed: a message of one or more lines,
 * without a newline at its end, goes to standard error, in a row of its own
 * behind what standard output holds. Counts it, and forgets a Ctrl-C. */
void repl_complain(const char *message);

/* Is asked before each error with its message: what is to stand in front of it,
 * as "rank 2 of 4: ". It need not return, where others tell it. */
void repl_set_speaker(const char *(*speaker)(const char *message));

/* How many errors were printed so far. */
unsigned repl_complaint_count(void);

/* The same for what is no error, and not counted: "note: …". */
void repl_note(const char *message);

/* The same for a warning of the language's: "warning: …". */
void repl_warn(const char *message);

/* Prints the error value on top of the stack, whatever its type, and pops it.
 * Raises nothing but for lack of memory. */
void repl_report(lua_State *L);
/* The same for one that an entry of so many lines raised: its position is left
 * out, or for several lines is the line alone. */
void repl_report_entry(lua_State *L, int lines);

/* --- the screen: screen.c ------------------------------------------------- */

/* Whether colours go to a file descriptor: with --color=auto, only to a
 * terminal that knows them, and never against NO_COLOR. */
int repl_colour(int descriptor);

/* Whether $TERM names a terminal that knows more than to print. */
int repl_can_move_cursor(void);

/* Whether … and the like cannot be shown: the locale is not one of UTF-8. */
int repl_ascii(void);

/* The style of scripts: the same text wherever it goes, so 80 columns or
 * $COLUMNS, and colour only when asked for. Fills in all of it. */
void repl_script_style(lumat_style *style);
/* The style of the prompt: the terminal as it is now. */
void repl_prompt_style(lumat_style *style);

/* The descriptor of the terminal that shows what is printed, or -1. */
int repl_terminal_file(void);

/* Writes out what standard output holds and, on a terminal, ends a row that
 * output, another program or the terminal's ^C has begun, so that what follows
 * has its own. */
void repl_end_output(void);

/* --- pictures: pictures.c ------------------------------------------------- */

/* Asks the terminal what pictures it shows; where standard input or output is
 * none, none. Waits for its answers, a second where it gives none. keys, of
 * size bytes, gets what was typed meanwhile. */
void repl_ask_pictures(lumat_screen *screen, char *keys, size_t size);

/* --- the echo: echo_off.c -------------------------------------------------
 * What is typed while an entry runs the terminal shows at the next prompt, not
 * amid the output. It does not echo in between either: a ^C has no moment then
 * in which neither the terminal nor the program shows it. */

/* Once, when the prompt is at a terminal. However the program ends or is
 * stopped, the terminal echoes then as it did. */
void repl_typing_open(void);

/* From now on the terminal does not echo. Returns 0 where it did not anyway. */
int repl_typing_hide(void);
/* Whether repl_echo_control is to show what is pressed: while an entry runs.
 * Readline shows it in its own way. */
void repl_typing_tell(int is_told);
/* The terminal echoes again. Safe in a signal handler, and when nothing was
 * hidden. */
void repl_typing_end(void);

/* Around whatever reads the terminal meanwhile, also one in the other: it
 * echoes. A program that sets it not to has its way. */
void repl_lend_typing(void);
void repl_take_typing_back(void);

/* Whether what is typed is shown, by the terminal or for it; so it is where
 * there is none. */
int repl_is_echoing(void);

/* Safe in a signal handler: ^C for 'C', where the terminal does not show it
 * itself. */
void repl_echo_control(char letter);

/* --- Ctrl-C and --time: interrupt.c ---------------------------------------
 * A mark while a line is typed, a stop for what runs. */

/* At a prompt: from now on Ctrl-C never ends the program. */
void repl_keep_interrupts(void);

/* Calls as lumat_call does, and lets Ctrl-C stop it. In a script a second
 * Ctrl-C ends the program. Returns Lua's status; the results, or the error
 * value, take the place of the function and its arguments. */
int repl_call(lua_State *L, int nargs);

/* From now on a call that lasts longer, in seconds, is stopped, as by Ctrl-C;
 * the program ends where a script's does not stop. */
void repl_limit_time(double seconds);
/* Around what else a script makes the program do: compiling it, showing what
 * it gives, ending. */
void repl_begin_time(void);
void repl_end_time(void);

/* For work that is not a call, such as showing a value: from now on Ctrl-C
 * stops what L does; NULL ends it. */
void repl_interrupts_stop(lua_State *L);

/* Whether Ctrl-C came since the last clearing. */
int repl_interrupted(void);
void repl_clear_interrupt(void);
/* Whether the terminal has shown a ^C that stands at the end of its row; from
 * now on it does not. */
int repl_take_echo(void);
/* How often it came since the start. */
unsigned repl_interrupt_count(void);

/* --- leaving, and memory for it: leave.c ---------------------------------- */

/* At a prompt, first: finds out where the variables would go. */
void repl_prepare_leaving(void);

/* In the signal handler of Ctrl-C, each time it did not stop what runs: the
 * third offers to leave, and another one does, with the variables saved. */
void repl_count_press(void);
/* What ran has stopped, or begins. */
void repl_forget_presses(void);

/* At a prompt that there is no memory for: the variables are saved, if that is
 * possible, and the program ends. */
_Noreturn void repl_leave_short(void);

/* SIGALRM comes after so many seconds; 0: not any more. Who handles it is the
 * caller's business. */
void repl_set_alarm(double seconds);

/* Before each line: keeps some memory for when there is no other; where there
 * is not enough gives what was kept to the next entry, and says so once. */
void repl_keep_reserve(void);

/* --- beside an entry that runs -------------------------------------------- */

/* progress_line.c: from now on a line says how far an operation is which takes
 * longer than a second, where standard error is a terminal that can take it
 * back and standard output is no pipe. Once. */
void repl_show_progress(void);
/* While the whole screen is another's: keeps quiet from 1 to 0. */
void repl_pause_progress(int paused);

/* watch_screen.c: from now on a picture of what is watched is drawn, where
 * there is a terminal that can. */
void repl_watch_at_prompt(void);
/* Around the call of an entry; end leaves the screen as it would be without. */
void repl_watch_start(lua_State *L);
void repl_watch_end(void);

/* --- the user's own files: user_files.c ----------------------------------- */

/* After the XDG Base Directory Specification: writes variable's folder, or else
 * $HOME and fallback, with "/lumat" and "/name" behind it. Returns 0 when
 * neither variable holds an absolute path, or the room (bytes) is too small. */
int repl_user_path(char *path, size_t room, const char *variable,
                   const char *fallback, const char *name);

/* Makes the folders that lead to path, for the user alone; path is as it was
 * afterwards. Returns 0, or -1 with errno set. */
int repl_make_folders(char *path);

/* Opens $VISUAL, $EDITOR or vi on the text. Returns what was saved, without
 * newlines at its end, which the caller frees; or NULL, after saying why. */
char *repl_edit_text(const char *text);

#endif
