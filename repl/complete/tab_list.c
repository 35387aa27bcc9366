/* TAB: what may stand in place of a word, as Readline is told it, and the list
 * of it on the screen. */
#include "tab_list.h"

#include "command_completion.h"
#include "terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <readline/readline.h>

static lua_State *language;

/* What may stand in place of the word, in the order of the list. */
static struct {
    struct offer {
        char *text, *note;
    } * items;
    int count, room, has_notes;
    lumat_completion place;
    size_t begin; /* where Readline takes the word to begin */
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
    size_t before = offers.place.start - offers.begin, cut;
    char *fitted = NULL;
    if (offers.place.start >= offers.begin)
        return asprintf(&fitted, "%.*s%s", (int)before,
                        rl_line_buffer + offers.begin, text) < 0
                   ? NULL
                   : fitted;
    cut = offers.begin - offers.place.start;
    if (strncmp(text, rl_line_buffer + offers.place.start, cut) != 0)
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

/* --- the list ----------------------------------------------------------- */

/* The bytes of as much of an UTF-8 text as so many columns hold. */
static int cut(const char *text, int columns)
{
    int length = 0;
    for (; text[length] != '\0'; length++)
        if ((text[length] & 0xC0) != 0x80 && columns-- == 0)
            break;
    return length;
}

static void print_match(const char *match, int width, int room)
{
    const char *note = note_on(match);
    int colour = repl_colour(fileno(rl_outstream));
    if (note[0] != '\0' && room > 0)
        fprintf(rl_outstream, "  %-*s  %s%.*s%s\n", width, match,
                colour ? "\033[2m" : "", cut(note, room), note,
                colour ? "\033[0m" : "");
    else
        fprintf(rl_outstream, "  %s\n", match);
}

/* Names and notes in two columns, as many as the screen has room for. */
static void show_matches(char **matches, int count, int width)
{
    int rows, columns, shown = count;
    rl_get_screen_size(&rows, &columns);
    if (count > rows - 3)
        shown = rows > 6 ? rows - 4 : 3;
    fputc('\n', rl_outstream);
    for (int i = 1; i <= shown && i <= count; i++)
        print_match(matches[i], width, columns - width - 5);
    if (shown < count)
        fprintf(rl_outstream, "  and %d more\n", count - shown);
    rl_forced_update_display();
}

/* Text in lines of so many columns, broken at blanks. */
static void print_wrapped(const char *text, int columns)
{
    while (*text != '\0') {
        int length = cut(text, columns - 3), whole = length;
        while (text[length] != '\0' && length > 0 && text[length] != ' ')
            length--;
        if (length == 0)
            length = whole > 0 ? whole : 1;
        fprintf(rl_outstream, "  %.*s\n", length, text);
        text += length;
        text += strspn(text, " ");
    }
}

/* How what is being called is used; or what forms there are. */
static void show_note(char **matches, int count, int width)
{
    int rows, columns;
    (void)matches, (void)count, (void)width;
    rl_get_screen_size(&rows, &columns);
    fputc('\n', rl_outstream);
    if (offers.count == 1) {
        print_wrapped(offers.items[0].text, columns);
        print_wrapped(offers.items[0].note, columns);
    } else {
        width = 0;
        for (int i = 0; i < offers.count; i++)
            if ((int)strlen(offers.items[i].text) > width)
                width = (int)strlen(offers.items[i].text);
        for (int i = 0; i < offers.count; i++)
            print_match(offers.items[i].text, width, columns - width - 5);
    }
    rl_forced_update_display();
}

/* More matches than the screen has rows are shown without notes, the way
 * Readline does, which asks first when they are very many; unless the first
 * ones fit an operand. */
static void choose_display(void)
{
    int rows, columns;
    rl_get_screen_size(&rows, &columns);
    rl_completion_display_matches_hook = NULL;
    if (offers.place.is_note)
        rl_completion_display_matches_hook = show_note;
    else if (offers.place.fitting > 0 ||
             (offers.has_notes && offers.count < rows - 2))
        rl_completion_display_matches_hook = show_matches;
}

/* --- files -------------------------------------------------------------- */

/* Whether the name ends as one of ".csv .npy" does. */
static int is_of_kind(const char *name, const char *kinds)
{
    const char *dot = strrchr(name, '.');
    size_t length = dot != NULL ? strlen(dot) : 0;
    for (const char *kind = kinds; dot != NULL && *kind != '\0';) {
        size_t n = strcspn(kind, " ");
        if (n == length && strncmp(kind, dot, n) == 0)
            return 1;
        kind += n + strspn(kind + n, " ");
    }
    return kinds[0] == '\0';
}

static int is_folder(const char *name)
{
    struct stat found;
    const char *path = lumat_push_path(language, name);
    int is = stat(path, &found) == 0 && S_ISDIR(found.st_mode);
    lua_pop(language, 1);
    return is;
}

/* Whether the name can stand there as it is. */
static int is_plain(const char *name)
{
    char quote = offers.place.quote;
    if (quote == '\0')
        return strpbrk(name, " \t\"'") == NULL;
    return quote == ']' ||
           (strchr(name, quote) == NULL && strchr(name, '\\') == NULL);
}

/* Offers the files of the wanted kinds, and folders. */
static void add_files(const char *typed, const char *kinds)
{
    char *name;
    for (int i = 0; (name = rl_filename_completion_function(typed, i)) != NULL;
         i++) {
        if (is_plain(name) && (is_of_kind(name, kinds) || is_folder(name)))
            add_offer(NULL, name, NULL);
        free(name);
    }
}

/* Any file when there is none of those. */
static void offer_files(size_t point)
{
    char *typed = strndup(rl_line_buffer + offers.place.start,
                          point - offers.place.start);
    if (typed == NULL)
        return;
    add_files(typed, offers.place.files);
    if (offers.count == 0 && strcmp(offers.place.files, REPL_FOLDERS) != 0)
        add_files(typed, "");
    free(typed);
}

/* --- as Readline asks ----------------------------------------------------- */

/* Two different matches and nothing in common: shown, never put in. */
static char **note_matches(void)
{
    char **matches = calloc(4, sizeof *matches);
    if (matches == NULL)
        return NULL;
    matches[0] = strdup("");
    matches[1] = strdup(offers.items[0].text);
    matches[2] = strdup(" ");
    return matches;
}

/* What goes behind a whole name: the quote, unless a module's is to go on. */
static int appended(void)
{
    char quote = offers.place.quote;
    const char *only = offers.count == 1 ? offers.items[0].text : "";
    size_t length = strlen(only);
    if (quote == '\0')
        return offers.place.files != NULL ? ' ' : '\0';
    if (quote == ']' || (length > 0 && only[length - 1] == '.'))
        return '\0';
    return quote;
}

static char **complete(const char *word, int begin, int end)
{
    (void)end;
    rl_attempted_completion_over = 1;
    rl_completion_append_character = appended();
    offers.begin = (size_t)begin;
    choose_display();
    if (offers.place.is_note && offers.count > 0)
        return note_matches();
    rl_filename_completion_desired = offers.place.files != NULL;
    rl_sort_completion_matches = offers.place.files != NULL;
    return rl_completion_matches(word, next_offer);
}

/* Finds the offers, and lets the word begin where theirs does: behind the one
 * character that breaks words this time. */
static char *word_breaks(void)
{
    static char before[2];
    size_t point = (size_t)rl_point, start;
    forget_offers();
    offers.place =
        repl_complete(language, rl_line_buffer, point, add_offer, NULL);
    if (offers.place.files != NULL)
        offer_files(point);
    start = offers.place.start;
    before[0] = start > 0 ? rl_line_buffer[start - 1] : '\0';
    return before;
}

void repl_offers_open(lua_State *L)
{
    language = L;
    rl_attempted_completion_function = complete;
    rl_completion_word_break_hook = word_breaks;
    rl_basic_quote_characters = "";
    rl_variable_bind("skip-completed-text", "on"); /* in the middle of words */
}
