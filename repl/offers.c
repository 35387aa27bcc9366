/* TAB: what may stand in place of a word, as Readline is told it, and the list
 * of it on the screen. */
#include "offers.h"

#include "complete.h"
#include "screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <readline/readline.h>

static lua_State *language;

/* What may stand in place of the word. */
static struct {
    struct offer {
        char *text, *note;
    } * items;
    int count, room, has_notes;
    size_t start; /* where the word begins in the line */
    size_t begin; /* where Readline takes it to begin */
} offers;

static void forget_offers(void)
{
    for (int i = 0; i < offers.count; i++) {
        free(offers.items[i].text);
        free(offers.items[i].note);
    }
    offers.count = offers.has_notes = 0;
}

static void add_offer(void *data, const char *text, const char *note)
{
    (void)data;
    if (offers.count == offers.room) {
        int room = offers.room * 2 + 64;
        void *items =
            realloc(offers.items, (size_t)room * sizeof *offers.items);
        if (items == NULL)
            return;
        offers.items = items;
        offers.room = room;
    }
    offers.items[offers.count].text = strdup(text);
    offers.items[offers.count++].note = strdup(note != NULL ? note : "");
    offers.has_notes |= note != NULL && note[0] != '\0';
}

/* An offer in place of Readline's word, which may begin before or behind the
 * one that was completed; NULL when it does not fit there. */
static char *fit(const char *text)
{
    size_t before = offers.start - offers.begin, cut;
    char *fitted = NULL;
    if (offers.start >= offers.begin)
        return asprintf(&fitted, "%.*s%s", (int)before,
                        rl_line_buffer + offers.begin, text) < 0
                   ? NULL
                   : fitted;
    cut = offers.begin - offers.start;
    if (strncmp(text, rl_line_buffer + offers.start, cut) != 0)
        return NULL;
    return strdup(text + cut);
}

static char *next_offer(const char *word, int state)
{
    static int next;
    (void)word;
    if (state == 0)
        next = 0;
    while (next < offers.count) {
        const char *text = offers.items[next++].text;
        char *fitted = text != NULL ? fit(text) : NULL;
        if (fitted != NULL)
            return fitted;
    }
    return NULL;
}

static const char *note_on(const char *match)
{
    for (int i = 0; i < offers.count; i++) {
        char *fitted = fit(offers.items[i].text);
        int same = fitted != NULL && strcmp(fitted, match) == 0;
        free(fitted);
        if (same)
            return offers.items[i].note;
    }
    return "";
}

/* Names and notes in two columns. */
static void print_matches(char **matches, int count, int width)
{
    const char *dim = repl_colour(fileno(rl_outstream)) ? "\033[2m" : "";
    int columns, rows, room;
    rl_get_screen_size(&rows, &columns);
    room = columns - width - 5;
    for (int i = 1; i <= count; i++) {
        const char *note = note_on(matches[i]);
        if (note[0] != '\0' && room > 0)
            fprintf(rl_outstream, "  %-*s  %s%.*s%s\n", width, matches[i], dim,
                    room, note, dim[0] != '\0' ? "\033[0m" : "");
        else
            fprintf(rl_outstream, "  %s\n", matches[i]);
    }
}

static void show_matches(char **matches, int count, int width)
{
    fputc('\n', rl_outstream);
    print_matches(matches, count, width);
    rl_forced_update_display();
}

/* More matches than the screen has rows are shown without notes, the way
 * Readline does, which asks first when they are very many. */
static void choose_display(void)
{
    int rows, columns;
    rl_get_screen_size(&rows, &columns);
    rl_completion_display_matches_hook =
        offers.has_notes && offers.count < rows - 2 ? show_matches : NULL;
}

static char **complete(const char *word, int begin, int end)
{
    forget_offers();
    rl_attempted_completion_over = 1;
    rl_completion_display_matches_hook = NULL;
    if (rl_completion_quote_character != 0 ||
        repl_completes_files(rl_line_buffer, (size_t)end))
        return rl_completion_matches(word, rl_filename_completion_function);
    rl_completion_append_character = '\0';
    offers.begin = (size_t)begin;
    offers.start =
        repl_complete(language, rl_line_buffer, (size_t)end, add_offer, NULL);
    choose_display();
    return rl_completion_matches(word, next_offer);
}

/* A file's name ends at blanks, a word of Lua at every other character. */
static char *word_breaks(void)
{
    static char blanks[] = " \t\n";
    static char others[] = " \t\n\"'`!#$%&()*+,-./:;<=>?@[\\]^{|}~";
    int files = repl_completes_files(rl_line_buffer, (size_t)rl_point);
    return files ? blanks : others;
}

void repl_offers_open(lua_State *L)
{
    language = L;
    rl_attempted_completion_function = complete;
    rl_completion_word_break_hook = word_breaks;
    rl_completer_quote_characters = "\"'";
}
