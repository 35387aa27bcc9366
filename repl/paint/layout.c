/* Where the characters of the line being typed stand on the screen: the rules
 * are those of rl_redisplay in Readline 8.2. A row that is full goes on in the
 * next one at once; a wide character does not begin in the last column. */
#include "layout.h"

#include "entry.h"
#include "paint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

size_t repl_character(const char *text, size_t left, int *width)
{
    unsigned char c = (unsigned char)*text;
    mbstate_t state = {0};
    wchar_t wide;
    size_t count;
    *width = -1;
    if (c < 0x80) {
        if (c >= ' ' && c != 127)
            *width = 1;
        return 1;
    }
    count = mbrtowc(&wide, text, left, &state);
    if (count == 0 || count > left)
        return 1;
    *width = wcwidth(wide);
    return count;
}

/* --- putting characters --------------------------------------------------- */

static int make_room(repl_picture *p, size_t count)
{
    size_t room = 2 * (p->length + count) + 256;
    char *text;
    unsigned char *inks;
    if (p->length + count < p->room)
        return 1;
    text = realloc(p->text, room);
    if (text != NULL)
        p->text = text;
    inks = realloc(p->inks, room);
    if (inks != NULL)
        p->inks = inks;
    p->failed |= text == NULL || inks == NULL;
    if (!p->failed)
        p->room = room;
    return !p->failed;
}

static void begin_row(repl_picture *p)
{
    if (p->row_count == p->row_room) {
        int room = 2 * p->row_room + 64;
        size_t *rows = realloc(p->rows, (size_t)room * sizeof *rows);
        p->failed |= rows == NULL;
        if (rows == NULL)
            return;
        p->rows = rows;
        p->row_room = room;
    }
    p->rows[p->row_count++] = p->length;
    p->column = 0;
}

static void start(repl_picture *p, int columns)
{
    p->length = p->prompt = 0;
    p->row_count = 0;
    p->columns = columns;
    p->point = p->mark = (size_t)-1;
    p->altered = p->marks = p->is_part = p->failed = 0;
    begin_row(p);
}

static void append(repl_picture *p, const char *bytes, size_t count,
                   unsigned char ink)
{
    if (!make_room(p, count))
        return;
    memcpy(p->text + p->length, bytes, count);
    memset(p->inks + p->length, ink, count);
    p->length += count;
}

static void advance(repl_picture *p, int width)
{
    while (width-- > 0)
        if (++p->column >= p->columns)
            begin_row(p);
}

static void put(repl_picture *p, const char *bytes, size_t count, int width,
                unsigned char ink)
{
    append(p, bytes, count, ink);
    p->marks += width == 0;
    advance(p, width);
}

/* With blanks, as Readline does: a terminal that lays rows out anew counts
 * them. */
static void fill_row(repl_picture *p)
{
    for (int left = p->columns - p->column; left > 0; left--)
        put(p, " ", 1, 1, REPL_INK_PLAIN);
}

static void end_row(repl_picture *p)
{
    append(p, "\n", 1, REPL_INK_PLAIN);
    begin_row(p);
}

/* Bytes that are no character as \ooo, the way Readline shows them where it
 * knows no characters. */
static void put_bytes(repl_picture *p, const char *bytes, size_t count,
                      unsigned char ink)
{
    char octal[8];
    for (size_t i = 0; i < count; i++) {
        snprintf(octal, sizeof octal, "\\%03o", (unsigned char)bytes[i]);
        for (const char *c = octal; *c != '\0'; c++)
            put(p, c, 1, 1, ink);
    }
    p->altered = 1;
}

static void put_unprintable(repl_picture *p, const char *bytes, size_t count,
                            unsigned char ink)
{
    char c = *bytes;
    int blanks = 8 - p->column % 8;
    if (c == '\n') {
        end_row(p);
    } else if (c == '\t') {
        while (blanks-- > 0)
            put(p, " ", 1, 1, ink);
    } else if (count == 1 && (unsigned char)c < 0x80) {
        put(p, "^", 1, 1, ink);
        c ^= 64;
        put(p, &c, 1, 1, ink);
    } else {
        put_bytes(p, bytes, count, ink);
    }
}

/* --- putting texts -------------------------------------------------------- */

static void note_places(repl_picture *p, size_t i, size_t point, size_t mark)
{
    if (i == point) {
        p->point = p->length;
        p->point_row = p->row_count - 1;
        p->point_column = p->column;
    }
    if (i == mark)
        p->mark = p->length;
}

/* Puts the character at text[i], and returns its bytes. */
static size_t put_character(repl_picture *p, const repl_line_state *line,
                            size_t i)
{
    unsigned char ink = line->inks != NULL ? line->inks[i] : REPL_INK_PLAIN;
    int width;
    size_t count = repl_character(line->text + i, line->length - i, &width);
    if (width > 1 && p->column + width > p->columns)
        fill_row(p);
    note_places(p, i, line->point, line->mark);
    if (width >= 0)
        put(p, line->text + i, count, width, ink);
    else
        put_unprintable(p, line->text + i, count, ink);
    return count;
}

/* Text that is no part of the line. */
static void put_beside(repl_picture *p, const char *text, unsigned char ink)
{
    int width;
    for (size_t left = strlen(text), count; left > 0; left -= count) {
        count = repl_character(text, left, &width);
        put(p, text, count, width > 0 ? width : 0, ink);
        text += count;
    }
}

/* The prompt of a row behind a newline. */
static void put_continuation(repl_picture *p, const repl_line_state *line,
                             const char *open)
{
    char prompt[128];
    repl_continuation_prompt(line->primary, open, line->ascii, prompt,
                             sizeof prompt);
    put_beside(p, prompt, REPL_INK_PROMPT);
    p->altered = 1;
}

static void put_line(repl_picture *p, const repl_line_state *line)
{
    const char *const *open = line->opens;
    for (size_t i = 0; i < line->length;) {
        i += put_character(p, line, i);
        if (open != NULL && line->text[i - 1] == '\n')
            put_continuation(p, line, *open++);
    }
    note_places(p, line->length, line->point, line->mark);
    append(p, "", 1, REPL_INK_PLAIN);
    p->length--;
}

void repl_draw(repl_picture *p, const repl_line_state *line, int columns)
{
    start(p, columns);
    put_beside(p, line->prompt, REPL_INK_PROMPT);
    p->prompt = p->length;
    put_line(p, line);
}

/* --- a part of one -------------------------------------------------------- */

static void put_note(repl_picture *p, int rows, const char *where, int ascii)
{
    char note[64];
    int room = p->columns - p->column - 1;
    snprintf(note, sizeof note, "%s %d row%s %s", ascii ? "..." : "…", rows,
             rows == 1 ? "" : "s", where);
    if (room < (int)strlen(note))
        snprintf(note, sizeof note, "%.*s", room > 0 ? room : 0, "...");
    put_beside(p, note, REPL_INK_NOTE);
}

static size_t row_end(const repl_picture *p, int row)
{
    return row + 1 < p->row_count ? p->rows[row + 1] : p->length;
}

static void put_slice(repl_picture *part, const repl_picture *whole,
                      size_t begin, size_t end)
{
    repl_line_state slice = {.text = whole->text + begin,
                             .inks = whole->inks + begin,
                             .length = end - begin,
                             .point = whole->point - begin,
                             .mark = whole->mark - begin};
    put_line(part, &slice);
}

static void put_rows(repl_picture *part, const repl_picture *whole, int first,
                     int count)
{
    size_t begin = first > 0 ? whole->rows[first] : whole->prompt;
    size_t end = row_end(whole, first + count - 1);
    if (end > begin && whole->text[end - 1] == '\n')
        end--;
    put_slice(part, whole, begin, end);
}

void repl_draw_part(repl_picture *part, const repl_picture *whole, int height,
                    int ascii, int *first)
{
    int count = height > 3 ? height - 2 : 1, below;
    if (*first > whole->row_count - count)
        *first = whole->row_count - count;
    if (whole->point_row >= *first + count)
        *first = whole->point_row - count + 1;
    if (whole->point_row < *first)
        *first = whole->point_row;
    below = whole->row_count - *first - count;
    start(part, whole->columns);
    put_slice(part, whole, 0, whole->prompt);
    part->prompt = part->length;
    if (*first > 0) {
        put_note(part, *first, "above", ascii);
        end_row(part);
    }
    put_rows(part, whole, *first, count);
    if (below > 0) {
        if (part->column > 0)
            end_row(part);
        put_note(part, below, "below", ascii);
        append(part, "", 1, REPL_INK_PLAIN);
        part->length--;
    }
    part->altered = part->is_part = 1;
}

int repl_point_row_at(const repl_picture *picture, int columns)
{
    repl_picture other = {0};
    repl_line_state line = {.text = picture->text,
                            .length = picture->length,
                            .point = picture->point,
                            .mark = picture->mark};
    int row;
    start(&other, columns);
    put_line(&other, &line);
    row = other.failed ? picture->point_row : other.point_row;
    repl_free_picture(&other);
    return row;
}

void repl_free_picture(repl_picture *picture)
{
    free(picture->text);
    free(picture->inks);
    free(picture->rows);
    *picture = (repl_picture){0};
}
