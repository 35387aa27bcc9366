/* What the viewer puts on the screen: cells between frozen numbers of rows and
 * columns, in colours, and a line about the cell under the cursor. */
#include "view_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- colours -------------------------------------------------------------- */

/* Colours of the 256 of xterm, from cold to hot: over a range that has both
 * signs the middle is zero; else one hue follows another, ever lighter. */
static const short diverging[] = {18,  20,  26,  32,  74,  110, 153, 254,
                                  224, 217, 210, 203, 196, 160, 124};
static const short rising[] = {17, 18, 19,  25,  31,  37,  36, 35,
                               41, 77, 113, 149, 185, 221, 227};
static const short few[] = {COLOR_BLUE, COLOR_CYAN, COLOR_GREEN, COLOR_YELLOW,
                            COLOR_RED};
enum { STEPS = sizeof rising / sizeof rising[0] };
enum { FEW = sizeof few / sizeof few[0] };
enum { RED = 1, YELLOW, HEAT, RISING = HEAT, DIVERGING = HEAT + STEPS };

int view_has_colours(void)
{
    return COLORS >= 8 && COLOR_PAIRS > DIVERGING;
}

static int is_rich(void)
{
    return COLORS >= 256 && COLOR_PAIRS > DIVERGING + STEPS;
}

/* Of a colour of the cube of 6x6x6 or the grey ramp: is black on it better to
 * read than white? */
static int is_light(short colour)
{
    int n = colour - 16, red = n / 36, green = n / 6 % 6, blue = n % 6;
    if (colour >= 232)
        return colour >= 244;
    return 3 * red + 6 * green + blue > 22;
}

static void open_rich(short first, const short *colours)
{
    for (short i = 0; i < STEPS; i++)
        init_pair((short)(first + i), is_light(colours[i]) ? 16 : 231,
                  colours[i]);
}

void view_open_colours(void)
{
    if (!view_has_colours())
        return;
    init_pair(RED, COLOR_RED, -1);
    init_pair(YELLOW, COLOR_YELLOW, -1);
    if (is_rich()) {
        open_rich(RISING, rising);
        open_rich(DIVERGING, diverging);
        return;
    }
    for (short i = 0; i < FEW; i++)
        init_pair((short)(HEAT + i), COLOR_BLACK, few[i]);
}

/* Where x lies between low and high, in 0 … 1; a range over zero is taken the
 * same way to both sides. */
static double share_of(const view *v, double x)
{
    double low = v->low, high = v->high;
    if (low < 0 && high > 0) {
        high = fmax(high, -low);
        low = -high;
    }
    if (isinf(x))
        return x > 0;
    if (high / 2 - low / 2 <= 0)
        return 0.5;
    return (x / 2 - low / 2) / (high / 2 - low / 2);
}

static int heat_pair(const view *v, double x)
{
    int steps = is_rich() ? STEPS : FEW;
    int step = (int)floor(share_of(v, x) * steps);
    step = step < 0 ? 0 : step < steps ? step : steps - 1;
    if (!is_rich())
        return HEAT + step;
    return (v->low < 0 && v->high > 0 ? DIVERGING : RISING) + step;
}

/* What a cell looks like. */
static attr_t attribute_of(const view *v, const lumat_cell *cell)
{
    double x = cell->value;
    int colours = view_has_colours();
    attr_t red = colours ? (attr_t)COLOR_PAIR(RED) : A_NORMAL;
    if (isnan(x))
        return A_BOLD | red;
    if (v->heat)
        return COLOR_PAIR(heat_pair(v, x));
    if (isinf(x))
        return colours ? (attr_t)COLOR_PAIR(YELLOW) : A_NORMAL;
    return x == 0 ? A_DIM : A_NORMAL;
}

/* Columns of the narrowest cell, and between two; lines beside the cells. */
enum { LEAST_CELL = 1, GAP = 2, FRAME = 2 };

/* --- layout --------------------------------------------------------------- */

static int digits_of(int64_t n)
{
    char text[32];
    return snprintf(text, sizeof text, "%lld", (long long)n);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t within(int64_t x, int64_t size)
{
    return x < 0 ? 0 : x < size ? x : size - 1;
}

/* More columns than the screen can hold. */
static int64_t most_columns(const view *v)
{
    int room = COLS - v->label;
    return (room > 0 ? room : 0) / (GAP + LEAST_CELL) + 1;
}

static void bring(view *v)
{
    lumat_area area = {v->top, v->left, least(v->height, v->rows - v->top),
                       least(most_columns(v), v->cols - v->left)};
    lumat_window_need(v->L, v->window, area);
}

static int space_of(const view *v, int64_t col)
{
    return GAP + lumat_window_width(v->window, col);
}

/* How many columns fit from the left one on: one at least, cut if need be. */
static int64_t count_columns(const view *v)
{
    int64_t last = least(v->left + most_columns(v), v->cols), col = v->left;
    int room = COLS - v->label;
    while (col < last && (room -= space_of(v, col)) >= 0)
        col++;
    return col > v->left ? col - v->left : 1;
}

static void place_rows(view *v)
{
    v->height = LINES > FRAME ? LINES - FRAME : 1;
    v->label = digits_of(v->rows);
    v->row = within(v->row, v->rows);
    v->col = within(v->col, v->cols);
    if (v->top > v->row)
        v->top = v->row;
    if (v->top + v->height <= v->row)
        v->top = v->row - v->height + 1;
    if (v->top + v->height > v->rows)
        v->top = v->rows > v->height ? v->rows - v->height : 0;
}

/* How many columns the screen would show from there on. */
static int64_t look_from(view *v, int64_t left)
{
    v->left = left;
    bring(v);
    return count_columns(v);
}

/* The cursor's column is the first on the screen, or moves in from the right;
 * behind the matrix's last column no room is left where it could be filled. */
static void place_columns(view *v)
{
    int64_t left = v->left < v->col ? v->left : v->col;
    if (left + most_columns(v) <= v->col)
        left = v->col - most_columns(v) + 1;
    while (left + look_from(v, left) <= v->col)
        left++;
    while (left > 0 && left - 1 + look_from(v, left - 1) == v->cols)
        left--;
    v->seen = look_from(v, left);
}

void view_jump(view *v, int64_t row, int64_t col)
{
    if (row < v->top || row >= v->top + v->height)
        v->top = row > v->height / 2 ? row - v->height / 2 : 0;
    if (col < v->left || col >= v->left + v->seen)
        v->left = col > v->seen / 2 ? col - v->seen / 2 : 0;
    v->row = row;
    v->col = col;
}

lumat_area view_row_part(const view *v)
{
    return (lumat_area){v->row, v->left, 1, v->seen};
}

/* --- cells ---------------------------------------------------------------- */

static void put_number(int line, int column, int width, int64_t n, int is_here)
{
    char text[32];
    snprintf(text, sizeof text, "%*lld", width, (long long)n);
    attrset(is_here ? A_BOLD : A_DIM);
    repl_put(line, column, least(width, COLS - column), text);
    attrset(A_NORMAL);
}

/* Text at the left of the width, or at its right, by the columns it takes. */
static void put_text(int line, int column, int width, const char *text,
                     int is_left)
{
    int blanks = is_left ? 0 : width - repl_columns(text);
    int room = (int)least(width, COLS - column);
    blanks = blanks > 0 ? (int)least(blanks, room) : 0;
    repl_put(line, column, blanks, "");
    if (room > blanks)
        repl_put(line, column + blanks, room - blanks, text);
}

/* A point in place of the first character, where nothing is stored. */
static void put_cell(const view *v, int line, int column, int width,
                     int64_t row, int64_t col)
{
    char text[3 * LUMAT_CELL_ROOM];
    lumat_cell cell;
    attr_t look;
    lumat_window_cell(v->window, row, col, &cell);
    look = attribute_of(v, &cell);
    if (!cell.is_stored && !v->ascii)
        snprintf(text, sizeof text, "·%s", cell.text + 1);
    else
        snprintf(text, sizeof text, "%s", cell.text);
    attrset(row == v->row && col == v->col ? look | A_REVERSE : look);
    put_text(line, column, width, text, cell.is_left);
    attrset(A_NORMAL);
}

static void draw_column(const view *v, int column, int width, int64_t col)
{
    const char *title = lumat_window_title(v->window, col);
    if (title) {
        lumat_cell cell;
        lumat_window_cell(v->window, v->top, col, &cell);
        attrset(col == v->col ? A_BOLD : A_DIM);
        put_text(0, column, width, title, cell.is_left);
        attrset(A_NORMAL);
    } else {
        put_number(0, column, width, col + 1, col == v->col);
    }
    for (int i = 0; i < v->height && v->top + i < v->rows; i++)
        put_cell(v, i + 1, column, width, v->top + i, col);
}

static void draw_cells(const view *v)
{
    int column = v->label;
    for (int i = 0; i < v->height && v->top + i < v->rows; i++)
        put_number(i + 1, 0, v->label, v->top + i + 1, v->top + i == v->row);
    for (int64_t j = v->left; j < v->left + v->seen; j++) {
        int width = lumat_window_width(v->window, j);
        draw_column(v, column + GAP, width, j);
        column += GAP + width;
    }
}

/* --- the last line -------------------------------------------------------- */

static void describe_cell(const view *v, char *text, size_t size)
{
    lumat_cell cell;
    lumat_window_cell(v->window, v->row, v->col, &cell);
    snprintf(text, size, "[%lld, %lld] %s%s", (long long)v->row + 1,
             (long long)v->col + 1, cell.exact,
             cell.is_stored ? "" : " (no entry)");
}

static int percent(const view *v)
{
    int64_t at = v->rows > 1 ? v->row : v->col;
    int64_t last = (v->rows > 1 ? v->rows : v->cols) - 1;
    return last > 0 ? (int)(100.0 * (double)at / (double)last) : 100;
}

static void describe_matrix(const view *v, char *text, size_t size)
{
    int n = snprintf(text, size, "%s%s  %s", v->name, v->turned ? ".T" : "",
                     v->headline);
    if (v->heat && n >= 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, "  heat %.3g to %.3g", v->low,
                 v->high);
}

/* Takes parts away from the end, as long as there are some. */
static void shorten(char *text, int columns)
{
    while (repl_columns(text) > columns) {
        char *part = NULL;
        for (char *p = text; (p = strstr(p, "  ")) != NULL; p++)
            part = p;
        if (part == NULL)
            return;
        *part = '\0';
    }
}

/* The cell matters most, then the place, then what the matrix is. */
static void draw_status(const view *v)
{
    char cell[160], matrix[256], share[16];
    int room = COLS, columns;
    describe_cell(v, cell, sizeof cell);
    describe_matrix(v, matrix, sizeof matrix);
    columns = snprintf(share, sizeof share, " %d%%", percent(v));
    attrset(A_REVERSE);
    repl_put(LINES - 1, 0, COLS, "");
    if (repl_columns(cell) + columns <= room) {
        room -= columns;
        repl_put(LINES - 1, room, columns, share);
    }
    columns = repl_columns(cell) + GAP;
    if (v->message[0] != '\0')
        strcpy(matrix, v->message);
    if (v->message[0] == '\0')
        shorten(matrix, room - columns);
    if (repl_columns(matrix) + columns <= room) {
        repl_put(LINES - 1, 0, repl_columns(matrix), matrix);
        repl_put(LINES - 1, room - columns + GAP, columns - GAP, cell);
    } else
        repl_put(LINES - 1, 0, room, v->message[0] != '\0' ? matrix : cell);
    attrset(A_NORMAL);
}

void view_draw(view *v)
{
    place_rows(v);
    place_columns(v);
    erase();
    draw_cells(v);
    draw_status(v);
}
