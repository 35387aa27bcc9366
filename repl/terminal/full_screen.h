/* The whole screen, through ncurses, which only the files that include this
 * know: those of viewer/. It is opened for the viewer or the pager, and closed
 * before anything else is printed: the terminal is then as it was. */
#ifndef FULL_SCREEN_H
#define FULL_SCREEN_H

/* The names of ncurses' macros that are too common to have about. */
#define NCURSES_NOMACROS 1
#include <curses.h>

#include <termios.h>

#include "lumat.h"

/* Keys beside those of curses.h. */
enum {
    REPL_KEY_ESCAPE = 27,
    REPL_KEY_INTERRUPT = 3, /* Ctrl-C: no signal while the screen is open */
    REPL_KEY_LEAVE = KEY_MAX + 1, /* a signal ends the program, or no input */
    REPL_KEY_HALF_UP,             /* Ctrl with an arrow */
    REPL_KEY_HALF_DOWN,
    REPL_KEY_HALF_LEFT,
    REPL_KEY_HALF_RIGHT,
    REPL_KEY_FIRST, /* Ctrl-Home */
    REPL_KEY_LAST   /* Ctrl-End */
};

/* Around whatever has the terminal for a while: it is as it was afterwards, and
 * nothing else is drawn on it meanwhile. */
typedef struct repl_terminal {
    struct termios modes;
    int is_known;
} repl_terminal;
void repl_take_terminal(repl_terminal *t);
void repl_return_terminal(lua_State *L, const repl_terminal *t);

/* Whether standard input and output are a terminal that can move its cursor. */
int repl_has_full_screen(void);

/* Calls the function with the arguments on top of it on the stack, in
 * protected mode, between opening and closing the screen. Returns Lua's
 * status, with the error value on the stack. */
int repl_with_full_screen(lua_State *L, int nargs);

/* Waits for a key. KEY_RESIZE: the size changed, or the screen was another's
 * for a while; everything has to be drawn. */
int repl_get_key(void);

/* Whether Ctrl-C or Escape has been typed, for long work; forgets what was
 * typed before them. */
int repl_is_stopped(void);

/* Lets the user edit a text of at most size - 1 characters behind a label, in
 * the last line. Returns 0 when it was given up. */
int repl_ask(const char *label, char *text, int size);

int repl_columns(const char *text); /* that it takes */
/* Puts text at a place: cut, which shows, to so many columns, or followed by
 * blanks. */
void repl_put(int line, int column, int width, const char *text);

#endif
