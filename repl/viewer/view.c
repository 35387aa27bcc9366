/* The full-screen viewer: its keys, where they take the cursor, its help, and
 * its loop. */
#include "viewer.h"

#include "terminal.h"
#include "view_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { FEWEST_DIGITS = 2, MOST_DIGITS = 17 };

/* --- moving ---------------------------------------------------------------
 * What every function that a key runs gets is how far, or which way. */

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

/* Keeps Lua for the time after leaving. */
static void note(view *v, int row)
{
    lumat_area cell = {v->row, v->col, 1, 1};
    lumat_push_cells(v->L, v->window, v->name, row ? view_row_part(v) : cell);
    snprintf(v->message, sizeof v->message, "noted %s", lua_tostring(v->L, -1));
    lua_rawseti(v->L, v->notes, ++v->noted);
}

/* --- jumping: a place, what matches, extremes ----------------------------- */

static const double PATIENCE = 0.2; /* seconds before a look is told of */

static void say(view *v, const char *text)
{
    snprintf(v->message, sizeof v->message, "%s", text);
}

/* --- places --------------------------------------------------------------- */

static void go_to(view *v, int unused)
{
    char text[64] = "";
    int64_t place[2] = {v->row, v->col};
    (void)unused;
    if (!repl_ask("go to row, column: ", text, sizeof text) || text[0] == '\0')
        return;
    if (!lumat_window_place(v->window, text, place, v->message,
                            sizeof v->message))
        return;
    view_jump(v, place[0], place[1]);
}

/* --- looking at everything ------------------------------------------------ */

static void show_progress(const lumat_scan *s)
{
    char text[64];
    snprintf(text, sizeof text, "looked at %.0f %%; Ctrl-C stops",
             100 * s->share);
    attrset(A_REVERSE);
    repl_put(LINES - 1, 0, COLS, text);
    attrset(A_NORMAL);
    refresh();
}

/* Returns 0 when the user stopped it. */
static int scan(view *v, lumat_scan *s)
{
    double start = lumat_now();
    while (lumat_scan_step(v->L, v->window, s)) {
        if (repl_is_stopped()) {
            say(v, "stopped");
            return 0;
        }
        if (lumat_now() - start > PATIENCE)
            show_progress(s);
    }
    return 1;
}

static void search(view *v, int backwards)
{
    lumat_scan s = v->search;
    s.backwards = backwards;
    s.row = v->row;
    s.col = v->col;
    if (!scan(v, &s))
        return;
    if (!s.found) {
        snprintf(v->message, sizeof v->message, "no element is %s", v->sought);
        return;
    }
    view_jump(v, s.row, s.col);
    if (s.wrapped)
        say(v, backwards ? "went on from the end" : "went on from the start");
}

static void search_again(view *v, int backwards)
{
    if (v->sought[0] == '\0')
        say(v, "nothing has been sought yet; / does");
    else
        search(v, backwards);
}

static void ask_and_search(view *v, int unused)
{
    char text[sizeof v->sought] = "";
    lumat_scan s = {.kind = LUMAT_FIND};
    (void)unused;
    if (!repl_ask("/", text, sizeof text))
        return;
    if (text[0] == '\0') {
        search_again(v, 0);
        return;
    }
    if (!lumat_scan_parse(text, &s)) {
        say(v, "what can be sought: nan inf 0 -2.5 >3 >=3 <3 <=3 ~=3");
        return;
    }
    strcpy(v->sought, text);
    v->search = s;
    search(v, 0);
}

static void find_extreme(view *v, int kind)
{
    lumat_scan s = {.kind = (lumat_scan_kind)kind};
    if (!scan(v, &s))
        return;
    if (!s.found) {
        say(v, "there is nothing but NaN");
        return;
    }
    view_jump(v, s.row, s.col);
    say(v, kind == LUMAT_LARGEST ? "the largest" : "the smallest");
}

/* --- heat ----------------------------------------------------------------- */

/* Stopped before its end, the scale is that of what was seen. */
static void find_range(view *v)
{
    lumat_scan s = {.kind = LUMAT_RANGE};
    scan(v, &s);
    if (!s.found) {
        if (v->message[0] == '\0')
            say(v, "there is nothing finite");
        return;
    }
    v->low = s.low;
    v->high = s.high;
    v->knows_range = 1;
}

static void toggle_heat(view *v, int unused)
{
    (void)unused;
    if (!view_has_colours()) {
        say(v, "there are no colours here");
        return;
    }
    if (!v->heat && !v->knows_range)
        find_range(v);
    v->heat = !v->heat && v->knows_range;
}

/* --- help: what the keys do, laid out for the screen ---------------------- */

enum { KEY_COLUMNS = 21, INDENT = 2, MOST_LINES = 128, MOST_TEXT = 2048 };

static const struct key {
    const char *names, *what;
} keys[] = {
    {"arrows, h j k l", "by a cell"},
    {"PgUp PgDn", "by a screen"},
    {"Ctrl-arrows", "by half a screen"},
    {"Home End", "the row's ends, then the matrix's"},
    {"g or : 2071,88", "go there; end and -1 count too"},
    {"/nan /inf /0 />3.5", "find it; n the next, N the one before"},
    {"< >", "the smallest, the largest"},
    {"t", "transposed"},
    {"c", "heat colours"},
    {"+ - e", "more digits, fewer, e-notation"},
    {"y Y", "note cell or row as Lua, for after leaving"},
    {"q Esc Ctrl-C", "leave; Ctrl-C stops a search, too"},
};

enum { KEYS = sizeof keys / sizeof keys[0] };

typedef struct help {
    view_pages pages;
    const char *lines[MOST_LINES];
    char text[MOST_TEXT];
    int used; /* of the text */
} help;

static void begin_line(help *h)
{
    if (h->pages.count < MOST_LINES)
        h->lines[h->pages.count++] = h->text + h->used;
}

static void put(help *h, int width, const char *text, int length)
{
    int room = MOST_TEXT - 1 - h->used;
    int n = snprintf(h->text + h->used, (size_t)room, "%-*.*s", width, length,
                     text);
    h->used += n < room ? n : room - 1;
}

static void end_line(help *h)
{
    int columns = repl_columns(h->lines[h->pages.count - 1]);
    if (columns > h->pages.widest)
        h->pages.widest = columns;
    h->text[++h->used] = '\0';
}

/* The words, in as many lines as they need. */
static void put_words(help *h, const char *words, int indent)
{
    int column = 0;
    while (*words != '\0') {
        int length = (int)strcspn(words, " ");
        if (column > 0 && column + 1 + length > COLS) {
            end_line(h);
            column = 0;
        }
        if (column == 0)
            begin_line(h);
        put(h, column > 0 ? 1 : indent, "", 0);
        column += (column > 0 ? 1 : indent) + length;
        put(h, 0, words, length);
        words += length;
        words += strspn(words, " ");
    }
    end_line(h);
}

/* Where both columns fit. */
static int is_wide(void)
{
    for (int i = 0; i < KEYS; i++)
        if (KEY_COLUMNS + (int)strlen(keys[i].what) > COLS)
            return 0;
    return 1;
}

static void lay_out(help *h)
{
    int wide = is_wide();
    h->pages.count = h->pages.widest = h->used = 0;
    h->pages.lines = h->lines;
    for (int i = 0; i < KEYS; i++) {
        if (wide) {
            begin_line(h);
            put(h, KEY_COLUMNS, keys[i].names, (int)strlen(keys[i].names));
            put(h, 0, keys[i].what, (int)strlen(keys[i].what));
            end_line(h);
        } else {
            put_words(h, keys[i].names, 0);
            put_words(h, keys[i].what, INDENT);
        }
    }
}

static void show_keys(view *v, int unused)
{
    help h = {.used = 0};
    (void)v, (void)unused;
    do
        lay_out(&h);
    while (view_turn(&h.pages));
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
    {'g', go_to, 0},
    {':', go_to, 0},
    {'/', ask_and_search, 0},
    {'n', search_again, 0},
    {'N', search_again, 1},
    {'>', find_extreme, LUMAT_LARGEST},
    {'<', find_extreme, LUMAT_SMALLEST},
    {'c', toggle_heat, 0},
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

/* Keys of what is of matrices alone. */
static int is_for_matrices(int key)
{
    return strchr("/nN<>ct", key) != NULL && key != 0;
}

/* Keys of what looks at all elements. */
static int is_of_all(int key)
{
    return strchr("/nN<>c", key) != NULL && key != 0;
}

static void act(view *v, int key)
{
    v->message[0] = '\0';
    if (lumat_window_is_frame(v->window) && is_for_matrices(key)) {
        say(v, "of matrices alone; T[T.a:gt(3)] and T:sort \"a\" make frames");
        return;
    }
    if (lumat_window_is_distributed(v->window) && is_of_all(key)) {
        say(v, "goes through all elements: D:argmax(), D:argmin(), "
               "D:gt(1):any() ask the processes");
        return;
    }
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
    const lumat_window *w = lumat_push_window(L, 1);
    lumat_area size = lumat_window_size(w);
    if (lumat_window_is_frame(w))
        return luaL_error(L,
                          ":view needs a terminal that can move its cursor; "
                          "%s:head(20) is a part",
                          lua_tostring(L, 2));
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
