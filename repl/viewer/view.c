/* The full-screen viewer: its keys and its loop. */
#include "terminal.h"
#include "view_parts.h"
#include "viewer.h"

#include <stdio.h>
#include <string.h>

enum { FEWEST_DIGITS = 2, MOST_DIGITS = 17 };

/* --- moving: what every function here gets is how far, or which way --------
 */

static void move_rows(view *v, int by)
{
    v->row += by;
}

static void move_columns(view *v, int by)
{
    v->col += by;
}

/* Both the cursor and what is on the screen. */
static void scroll_rows(view *v, int64_t by)
{
    v->row += by;
    v->top += by;
    if (v->top < 0)
        v->top = 0;
}

static void scroll_columns(view *v, int64_t by)
{
    v->col += by;
    v->left += by;
    if (v->left > v->cols - 1)
        v->left = v->cols - 1;
    if (v->left < 0)
        v->left = 0;
}

static void turn_page(view *v, int way)
{
    scroll_rows(v, way * v->height);
}

static void half_page(view *v, int way)
{
    scroll_rows(v, way * (v->height > 1 ? v->height / 2 : 1));
}

static void half_width(view *v, int way)
{
    scroll_columns(v, way * (v->seen > 1 ? v->seen / 2 : 1));
}

static void go_to_corner(view *v, int last)
{
    v->row = last ? v->rows - 1 : 0;
    v->col = last ? v->cols - 1 : 0;
}

/* To the row's end, and from there to the matrix's. */
static void go_to_end(view *v, int last)
{
    int64_t col = last ? v->cols - 1 : 0;
    if (v->col == col)
        go_to_corner(v, last);
    v->col = col;
}

/* --- showing it otherwise ------------------------------------------------- */

static void swap(int64_t *a, int64_t *b)
{
    int64_t c = *a;
    *a = *b;
    *b = c;
}

static void set_headline(view *v)
{
    lumat_push_window_headline(v->L, v->window);
    v->headline = lua_tostring(v->L, -1);
    lua_replace(v->L, v->headline_at);
}

static void transpose(view *v, int unused)
{
    (void)unused;
    lumat_window_transpose(v->L, v->window);
    v->turned = !v->turned;
    set_headline(v);
    swap(&v->rows, &v->cols);
    swap(&v->row, &v->col);
    swap(&v->top, &v->left);
}

static void set_format(view *v)
{
    lumat_window_format(v->window, v->digits, v->always_e);
    snprintf(v->message, sizeof v->message, "%d digits%s", v->digits,
             v->always_e ? ", e-notation" : "");
}

static void change_digits(view *v, int by)
{
    v->digits += by;
    if (v->digits < FEWEST_DIGITS)
        v->digits = FEWEST_DIGITS;
    if (v->digits > MOST_DIGITS)
        v->digits = MOST_DIGITS;
    set_format(v);
}

static void toggle_e(view *v, int unused)
{
    (void)unused;
    v->always_e = !v->always_e;
    set_format(v);
}

static void redraw(view *v, int unused)
{
    (void)v, (void)unused;
    clearok(curscr, TRUE);
}

static void show_keys(view *v, int unused)
{
    (void)v, (void)unused;
    view_show_keys();
}

/* Keeps Lua for the time after leaving. */
static void note(view *v, int row)
{
    lumat_area cell = {v->row, v->col, 1, 1};
    lumat_push_cells(v->L, v->window, v->name, row ? view_row_part(v) : cell);
    snprintf(v->message, sizeof v->message, "noted %s", lua_tostring(v->L, -1));
    lua_rawseti(v->L, v->notes, ++v->noted);
}

/* --- keys ----------------------------------------------------------------- */

static const struct binding {
    int key;
    void (*run)(view *v, int argument);
    int argument;
} bindings[] = {
    {KEY_UP, move_rows, -1},
    {'k', move_rows, -1},
    {KEY_DOWN, move_rows, 1},
    {'j', move_rows, 1},
    {KEY_LEFT, move_columns, -1},
    {'h', move_columns, -1},
    {KEY_RIGHT, move_columns, 1},
    {'l', move_columns, 1},
    {KEY_PPAGE, turn_page, -1},
    {'b', turn_page, -1},
    {KEY_NPAGE, turn_page, 1},
    {' ', turn_page, 1},
    {REPL_KEY_HALF_UP, half_page, -1},
    {REPL_KEY_HALF_DOWN, half_page, 1},
    {REPL_KEY_HALF_LEFT, half_width, -1},
    {REPL_KEY_HALF_RIGHT, half_width, 1},
    {KEY_HOME, go_to_end, 0},
    {KEY_END, go_to_end, 1},
    {REPL_KEY_FIRST, go_to_corner, 0},
    {REPL_KEY_LAST, go_to_corner, 1},
    {'g', view_go_to, 0},
    {':', view_go_to, 0},
    {'/', view_search, 0},
    {'n', view_search_again, 0},
    {'N', view_search_again, 1},
    {'>', view_find_extreme, LUMAT_LARGEST},
    {'<', view_find_extreme, LUMAT_SMALLEST},
    {'c', view_toggle_heat, 0},
    {'t', transpose, 0},
    {'+', change_digits, 1},
    {'-', change_digits, -1},
    {'e', toggle_e, 0},
    {'y', note, 0},
    {'Y', note, 1},
    {'?', show_keys, 0},
    {'L' - '@', redraw, 0},
};

enum { BINDINGS = sizeof bindings / sizeof bindings[0] };

static void act(view *v, int key)
{
    v->message[0] = '\0';
    for (int i = 0; i < BINDINGS; i++)
        if (bindings[i].key == key)
            bindings[i].run(v, bindings[i].argument);
}

static int leaves(int key)
{
    return key == 'q' || key == REPL_KEY_ESCAPE || key == REPL_KEY_INTERRUPT ||
           key == REPL_KEY_LEAVE;
}

/* --- the loop ------------------------------------------------------------- */

/* With the matrix, its name and the table of notes on the stack. */
static void start(lua_State *L, view *v)
{
    lumat_style style;
    lumat_area size;
    *v = (view){.L = L, .name = lua_tostring(L, 2), .notes = 3};
    repl_prompt_style(&style);
    v->ascii = style.ascii;
    lua_pushnil(L);
    v->headline_at = lua_gettop(L);
    v->window = lumat_push_window(L, 1);
    v->digits = lumat_window_digits(v->window);
    set_headline(v);
    size = lumat_window_size(v->window);
    v->rows = size.rows;
    v->cols = size.cols;
    view_open_colours();
}

/* Called protected. */
static int look(lua_State *L)
{
    view v;
    int key;
    start(L, &v);
    for (;;) {
        view_draw(&v);
        key = repl_get_key();
        if (leaves(key))
            return 0;
        act(&v, key);
    }
}

static void print_notes(lua_State *L, int notes)
{
    for (int i = 1; lua_rawgeti(L, notes, i) == LUA_TSTRING; i++) {
        puts(lua_tostring(L, -1));
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

static int refuse(lua_State *L)
{
    lumat_area size = lumat_window_size(lumat_push_window(L, 1));
    int rows = size.rows < 20 ? (int)size.rows : 20;
    int cols = size.cols < 8 ? (int)size.cols : 8;
    const char *across = cols > 1 ? lua_pushfstring(L, ", 1:%d", cols) : "";
    lua_pushfstring(L,
                    ":view needs a terminal that can move its cursor; "
                    "%s[\"1:%d%s\"] prints a part",
                    lua_tostring(L, 2), rows, across);
    return lua_error(L);
}

int repl_view(lua_State *L)
{
    int status;
    if (!repl_has_full_screen())
        return refuse(L);
    lua_newtable(L);
    lua_pushcfunction(L, look);
    for (int i = 1; i <= 3; i++)
        lua_pushvalue(L, i);
    status = repl_with_full_screen(L, 3);
    if (status != LUA_OK)
        return lua_error(L);
    print_notes(L, 3);
    return 0;
}
