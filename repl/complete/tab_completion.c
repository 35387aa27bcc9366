/* Tab: what may stand where the cursor is, by what stands before it; as
 * Readline is told it; and its list on the screen. Of the files that know
 * Readline, the one for completion. */
#include "tab_completion.h"

#include "entry.h"
#include "terminal.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <readline/readline.h>

#define FOLDERS_ONLY "/" /* kinds of files: no file's, but folders */

/* --- a command's line ----------------------------------------------------- */

/* A line that begins with a command's name, up to point. */
typedef struct command_line {
    const repl_command *command; /* NULL: unknown */
    size_t name, rest;           /* where they begin; rest > point: not yet */
} command_line;

/* Whether the line is a command's, and how far it has come. */
static int read_command(const char *line, size_t point, command_line *read)
{
    const char *start = repl_skip_blanks(line);
    size_t length;
    if (start[0] != ':' || start[1] == ':')
        return 0;
    length = strcspn(start + 1, " \t");
    read->name = (size_t)(start + 1 - line);
    read->rest = (size_t)(repl_skip_blanks(start + 1 + length) - line);
    read->command = repl_find_command(start + 1, length);
    if (point <= read->name + length)
        read->rest = point + 1;
    return point >= read->name;
}

/* The first command by name behind `last`, or NULL. */
static const repl_command *command_behind(const char *last)
{
    const repl_command *command, *next = NULL;
    for (int i = 0; (command = repl_command_at(i)) != NULL; i++)
        if (strcmp(command->name, last) > 0 &&
            (next == NULL || strcmp(command->name, next->name) < 0))
            next = command;
    return next;
}

/* In order of name, with a blank behind those that take an argument. */
static void offer_commands(const char *typed, size_t length,
                           lumat_name_fn *each, void *data)
{
    const repl_command *command = command_behind("");
    char name[32];
    for (; command != NULL; command = command_behind(command->name)) {
        if (strncmp(command->name, typed, length) != 0)
            continue;
        snprintf(name, sizeof name, "%s%s", command->name,
                 command->form[0] != '\0' ? " " : "");
        each(data, name, command->help);
    }
}

/* Offers the words of a list, such as "on off", that begin as typed. */
static void offer_words(const char *words, const char *typed, size_t length,
                        lumat_name_fn *each, void *data)
{
    while (*words != '\0') {
        char word[32] = "";
        size_t size = strcspn(words, " ");
        if (size < sizeof word && strncmp(words, typed, length) == 0)
            each(data, memcpy(word, words, size), "");
        words += size + (words[size] == ' ');
    }
}

/* --- arguments ---------------------------------------------------------- */

typedef struct request {
    lua_State *L;
    const char *line;
    size_t point;
    lumat_name_fn *each;
    void *data;
} request;

/* Completes what follows a mark as if the line began there. */
static lumat_completion complete_behind(const request *r, size_t mark,
                                        lumat_wanted wanted)
{
    lumat_completion place = lumat_complete(
        r->L, r->line + mark, r->point - mark, wanted, r->each, r->data);
    place.start += mark;
    return place;
}

/* The same, as the arguments of a function. */
static lumat_completion complete_arguments(const request *r, size_t mark,
                                           const char *function,
                                           lumat_wanted wanted)
{
    size_t length = strlen(function) + 1, rest = r->point - mark;
    char *text = malloc(length + rest + 1);
    lumat_completion place = {.start = r->point};
    if (text == NULL)
        return place;
    snprintf(text, length + rest + 1, "%s(%.*s", function, (int)rest,
             r->line + mark);
    place = lumat_complete(r->L, text, length + rest, wanted, r->each, r->data);
    place.start = place.start < length ? r->point : place.start - length + mark;
    free(text);
    return place;
}

/* The word at point among those from rest on, in which quotes keep blanks;
 * words gets how many stand before it. */
static lumat_completion file_place(const request *r, size_t rest,
                                   const char *kinds, int *words)
{
    lumat_completion place = {.files = kinds != NULL ? kinds : ""};
    size_t start = rest, i = rest;
    for (; i < r->point; i++) {
        char c = r->line[i];
        if (place.quote != '\0')
            place.quote = c == place.quote ? '\0' : place.quote;
        else if (i == start && (c == '"' || c == '\''))
            place.quote = c, start = i + 1;
        else if (c == ' ' || c == '\t')
            start = i + 1, place.files = "", ++*words;
    }
    place.start = start;
    return place;
}

/* Behind :save's file the names of variables. */
static lumat_completion complete_file(const request *r,
                                      const command_line *read)
{
    int words = 0;
    lumat_completion place = file_place(r, read->rest,
                                        read->command->argument == REPL_FOLDER
                                            ? FOLDERS_ONLY
                                            : read->command->choices,
                                        &words);
    if (words > 0 && read->command->argument == REPL_FILE_NAMES)
        return complete_behind(r, place.start, LUMAT_VARIABLES);
    return place;
}

static lumat_completion complete_lua(const request *r, const command_line *read,
                                     lumat_wanted wanted)
{
    const repl_command *command = read->command;
    const char *function = command->choices;
    if (function == NULL && command->is_twin)
        function = command->name;
    return function != NULL
               ? complete_arguments(r, read->rest, function, wanted)
               : complete_behind(r, read->rest, wanted);
}

static lumat_completion complete_choice(const request *r,
                                        const command_line *read)
{
    offer_words(read->command->choices, r->line + read->rest,
                r->point - read->rest, r->each, r->data);
    return (lumat_completion){.start = read->rest};
}

/* A setting, and behind it the words that it may be. */
static lumat_completion complete_setting(const request *r,
                                         const command_line *read)
{
    const char *name = r->line + read->rest, *value;
    size_t length = strcspn(name, " \t=");
    if (read->rest + length >= r->point) {
        lumat_each_setting(name, r->point - read->rest, r->each, r->data);
        return (lumat_completion){.start = read->rest};
    }
    value = name + length + strspn(name + length, " \t=");
    if (value > r->line + r->point)
        value = r->line + r->point;
    lumat_each_setting_word(name, length, value,
                            (size_t)(r->line + r->point - value), r->each,
                            r->data);
    return (lumat_completion){.start = (size_t)(value - r->line)};
}

/* Where the word at point begins, behind a blank. */
static size_t word_start(const request *r, size_t rest)
{
    size_t start = r->point;
    while (start > rest && strchr(" \t", r->line[start - 1]) == NULL)
        start--;
    return start;
}

/* Is there a word, and no option, in front of the one at start? */
static int follows_word(const request *r, size_t rest, size_t start)
{
    size_t at = rest;
    while (at < start && r->line[at] == '-') {
        at += strcspn(r->line + at, " \t");
        at += strspn(r->line + at, " \t");
    }
    return at < start;
}

/* Offers what of the command's form is an option, is not there yet and begins
 * as the word at start; returns how many. */
static int offer_options(const request *r, const command_line *read,
                         size_t start)
{
    repl_part part = {.text = read->command->form};
    int count = 0;
    char option[8];
    while (repl_next_part(&part)) {
        if (part.is != REPL_OPTION ||
            strncmp(part.text, r->line + start, r->point - start) != 0 ||
            memmem(r->line + read->rest, start - read->rest, part.text,
                   part.length) != NULL)
            continue;
        snprintf(option, sizeof option, "%.*s", (int)part.length, part.text);
        r->each(r->data, option, "");
        count++;
    }
    return count;
}

static lumat_completion complete_argument(const request *r,
                                          const command_line *read)
{
    const repl_command *command = read->command;
    size_t start = word_start(r, read->rest);
    if (repl_reads_words(command) && offer_options(r, read, start) > 0 &&
        start < r->point)
        return (lumat_completion){.start = start};
    switch (command->argument) {
    case REPL_NOTHING:
    case REPL_TEXT:
        return (lumat_completion){.start = r->point};
    case REPL_CHOICE:
        return complete_choice(r, read);
    case REPL_SETTING:
        return complete_setting(r, read);
    case REPL_FILE:
    case REPL_FOLDER:
    case REPL_FILE_NAMES:
        return complete_file(r, read);
    case REPL_VARIABLE:
        if (follows_word(r, read->rest, start))
            return (lumat_completion){.start = start};
        return complete_lua(r, read, LUMAT_VARIABLES);
    case REPL_TOPIC:
        return complete_behind(r, read->rest, LUMAT_TOPICS);
    case REPL_DEVICE:
        return complete_behind(r, read->rest, LUMAT_DEVICES);
    case REPL_MATRIX:
        return complete_lua(r, read, LUMAT_SHOWN);
    case REPL_KERNEL:
        return complete_lua(r, read, LUMAT_KERNELS);
    default:
        return complete_lua(r, read, LUMAT_ANYTHING);
    }
}

static lumat_completion complete_command(const request *r,
                                         const command_line *read)
{
    lumat_completion place = {.start = read->name};
    if (read->rest > r->point)
        offer_commands(r->line + read->name, r->point - read->name, r->each,
                       r->data);
    else if (read->command != NULL)
        return complete_argument(r, read);
    else
        place.start = r->point;
    return place;
}

/* Offers the programs of a folder that begin as typed; none of one that cannot
 * be read to its end. */
static void offer_programs(const request *r, const char *folder,
                           const char *typed, size_t length)
{
    struct dirent **all = NULL;
    struct stat found;
    int count = scandir(folder, &all, NULL, NULL);
    int at = count > 0 ? open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    for (int i = 0; i < count; i++) {
        const char *name = all[i]->d_name;
        if (at >= 0 && strncmp(name, typed, length) == 0 && name[0] != '.' &&
            fstatat(at, name, &found, 0) == 0 && S_ISREG(found.st_mode) &&
            (found.st_mode & 0111) != 0)
            r->each(r->data, name, "");
        free(all[i]);
    }
    if (at >= 0)
        close(at);
    free(all);
}

/* Behind ! a program of $PATH, or a file; behind that files. */
static lumat_completion complete_shell(const request *r, size_t mark)
{
    int words = 0;
    lumat_completion place = file_place(r, mark, NULL, &words);
    const char *typed = r->line + place.start, *path = getenv("PATH");
    size_t length = r->point - place.start;
    char folder[PATH_MAX];
    if (words > 0 || length == 0 || memchr(typed, '/', length) != NULL)
        return place;
    place.files = NULL;
    for (; path != NULL && *path != '\0'; path += *path == ':') {
        size_t n = strcspn(path, ":");
        if (n > 0 && n < sizeof folder) {
            memcpy(folder, path, n);
            folder[n] = '\0';
            offer_programs(r, folder, typed, length);
        }
        path += n;
    }
    return place;
}

/* As lumat_complete, and commands, their arguments, and topics of the help. */
static lumat_completion complete_line(lua_State *L, const char *line,
                                      size_t point, lumat_name_fn *each,
                                      void *data)
{
    request r = {L, line, point, each, data};
    const char *rest;
    command_line read;
    repl_entry_kind kind = repl_entry_kind_of(line, &rest);
    size_t mark = (size_t)(rest - line);
    if (kind != REPL_SHELL && read_command(line, point, &read))
        return complete_command(&r, &read);
    if (kind == REPL_SHELL && mark <= point)
        return complete_shell(&r, mark);
    if ((kind == REPL_HELP || kind == REPL_SEARCH) && mark > 0 && mark <= point)
        return complete_behind(&r, mark, LUMAT_TOPICS);
    return lumat_complete(L, line, point, LUMAT_ANYTHING, each, data);
}

/* --- the offers, as Readline takes them ----------------------------------- */

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
    if (offers.count == 0 && strcmp(offers.place.files, FOLDERS_ONLY) != 0)
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

static char **complete_word(const char *word, int begin, int end)
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
        complete_line(language, rl_line_buffer, point, add_offer, NULL);
    if (offers.place.files != NULL)
        offer_files(point);
    start = offers.place.start;
    before[0] = start > 0 ? rl_line_buffer[start - 1] : '\0';
    return before;
}

void repl_offers_open(lua_State *L)
{
    language = L;
    rl_attempted_completion_function = complete_word;
    rl_completion_word_break_hook = word_breaks;
    rl_basic_quote_characters = "";
    rl_variable_bind("skip-completed-text", "on"); /* in the middle of words */
}
