/* What may stand where the cursor is, by what stands before it. */
#include "command_completion.h"

#include "command_list.h"
#include "commands.h"
#include "entry.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
                 command->argument != REPL_NOTHING ? " " : "");
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
                                            ? REPL_FOLDERS
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

/* The words of a command; behind the name of a setting, what it may be. */
static lumat_completion complete_choice(const request *r,
                                        const command_line *read)
{
    const char *typed = r->line + read->rest;
    const char *words = read->command->choices;
    size_t name = strcspn(typed, " \t="), start = read->rest;
    if (strcmp(read->command->name, "set") == 0 && start + name < r->point) {
        start += name + strspn(typed + name, " \t=");
        words = lumat_setting_words(typed, name);
    }
    if (start > r->point)
        start = r->point;
    offer_words(words, r->line + start, r->point - start, r->each, r->data);
    return (lumat_completion){.start = start};
}

static lumat_completion complete_argument(const request *r,
                                          const command_line *read)
{
    lumat_completion place = {.start = read->rest};
    const repl_command *command = read->command;
    switch (command->argument) {
    case REPL_NOTHING:
        place.start = r->point;
        return place;
    case REPL_CHOICE:
        return complete_choice(r, read);
    case REPL_FILE:
    case REPL_FOLDER:
    case REPL_FILE_NAMES:
        return complete_file(r, read);
    case REPL_VARIABLE:
        return complete_lua(r, read, LUMAT_VARIABLES);
    case REPL_TOPIC:
        return complete_behind(r, read->rest, LUMAT_TOPICS);
    case REPL_DEVICE:
        return complete_behind(r, read->rest, LUMAT_DEVICES);
    case REPL_MATRIX:
        return complete_lua(r, read, LUMAT_MATRICES);
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

lumat_completion repl_complete(lua_State *L, const char *line, size_t point,
                               lumat_name_fn *each, void *data)
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
