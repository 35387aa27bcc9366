/* The command line: one table gives the options, their help, and the guess
 * at what a misspelt one meant. */
#include "repl.h"

#include "commands.h"

#include <ctype.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Options without a letter get a number past every character. */
enum {
    DEVICE = 256,
    COLOUR,
    NO_INIT,
    SAFE,
    SAFE_LANGUAGE,
    MEMORY,
    TIME,
    STRICT,
    BYTECODE,
    MANUAL,
    SPMD,
    SPMD_CHECK
};

static const struct row {
    int key;
    const char *name, *argument, *help;
} rows[] = {
    {'e', NULL, "code", "run code; may be repeated, and mixed with -p"},
    {'p', NULL, "expr", "print the value of an expression"},
    {'i', NULL, NULL, "prompt afterwards"},
    {'q', "quiet", NULL, "no banner"},
    {DEVICE, "device", "name",
     "cpu, cuda or cuda:N; else a GPU if there is one"},
    {COLOUR, "color", "when", "auto, always or never"},
    {NO_INIT, "no-init", NULL, "leave the init file alone"},
    {SAFE, "safe", "[dirs]",
     "scripts have files below these alone (DIR[:ro],…), no net"},
    {SAFE_LANGUAGE, "safe-language", "[dirs]",
     "the same without the kernel's fences: weaker"},
    {MEMORY, "memory", "size",
     "most that Lua and matrices on the CPU hold: 512M, 4G"},
    {TIME, "time", "seconds", "most that a script or an entry takes"},
    {STRICT, "strict", NULL, "a global that was never set is an error"},
    {BYTECODE, "bytecode", NULL, "let load take precompiled chunks"},
    {SPMD, "spmd", NULL, "run the script on all processes of mpirun or srun"},
    {SPMD_CHECK, "spmd-check", "[seconds]",
     "the same; calls that differ, or 60 s late, end it"},
    {MANUAL, "manual", "form", "print the manual: text, markdown or roff"},
    {'v', "version", NULL, "print the version"},
    {'h', "help", NULL, "print this"},
    {0, NULL, NULL, NULL},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static const char *option_name(int i)
{
    for (const struct row *row = rows; row->key != 0; row++)
        if (row->name != NULL && i-- == 0)
            return row->name;
    return NULL;
}

static int wrong(const char *format, ...)
{
    va_list values;
    char message[1024];
    va_start(values, format);
    vsnprintf(message, sizeof message, format, values);
    va_end(values);
    lumat_print_visible(stderr, "lumat: %s", message);
    fputs("\n  lumat --help lists the options\n", stderr);
    return REPL_USAGE;
}

int repl_refuse_options(const char *message)
{
    return wrong("%s", message);
}

static int unknown(const char *word)
{
    char typed[64];
    const char *near = NULL;
    snprintf(typed, sizeof typed, "%.*s", (int)strcspn(word, "="), word);
    if (typed[1] == '-')
        near = repl_nearest(typed + 2, option_name);
    if (near == NULL)
        return wrong("unknown option '%s'", typed);
    return wrong("unknown option '%s'; did you mean --%s?", typed, near);
}

static int lacks_value(int key)
{
    for (const struct row *row = rows; row->key != 0; row++)
        if (row->key == key && key < DEVICE)
            return wrong("-%c lacks its %s", key, row->argument);
        else if (row->key == key)
            return wrong("--%s lacks its %s: %s", row->name, row->argument,
                         row->help);
    return REPL_USAGE;
}

static int is_device(const char *name)
{
    if (strcmp(name, "cpu") == 0 || strcmp(name, "cuda") == 0)
        return 1;
    if (strncmp(name, "cuda:", 5) != 0 || name[5] == '\0')
        return 0;
    return name[5 + strspn(name + 5, "0123456789")] == '\0';
}

static int set_device(repl_options *options, const char *name)
{
    if (!is_device(name))
        return wrong("--device takes cpu, cuda or cuda:N, not '%s'", name);
    options->language.device = name;
    return 0;
}

static int set_colour(repl_options *options, const char *when)
{
    if (strcmp(when, "auto") == 0)
        options->colour = LUMAT_COLOUR_AUTO;
    else if (strcmp(when, "always") == 0)
        options->colour = LUMAT_COLOUR_ALWAYS;
    else if (strcmp(when, "never") == 0)
        options->colour = LUMAT_COLOUR_NEVER;
    else
        return wrong("--color takes auto, always or never, not '%s'", when);
    return 0;
}

static int set_manual(repl_options *options, const char *form)
{
    if (strcmp(form, "text") != 0 && strcmp(form, "markdown") != 0 &&
        strcmp(form, "roff") != 0)
        return wrong("--manual takes text, markdown or roff, not '%s'", form);
    options->manual = form;
    return 0;
}

/* Two lists would leave it open which of them holds. */
static int set_safe(repl_options *options, int fenced)
{
    if (options->language.safe != LUMAT_UNSAFE)
        return wrong("--safe was given twice: --safe=DIR,DIR:ro names all "
                     "folders");
    options->language.safe = fenced ? LUMAT_SAFE : LUMAT_SAFE_LANGUAGE;
    options->language.folders = optarg;
    return 0;
}

/* "512M", "4G", "100K", or bytes. */
static int set_memory(repl_options *options, const char *text)
{
    static const char units[] = "KMGT";
    char *end;
    double size = strtod(text, &end);
    const char *unit = *end != '\0' ? strchr(units, toupper(*end)) : NULL;
    if (unit != NULL) {
        size = ldexp(size, 10 * (int)(unit - units + 1));
        end++;
    }
    if (end == text || *end != '\0' || !(size >= 1 << 20) || size > 1e18)
        return wrong("--memory takes a size from 1M on, as 512M or 4G, not "
                     "'%s'",
                     text);
    options->language.memory = (size_t)size;
    return 0;
}

static int read_seconds(const char *option, const char *text, double *seconds)
{
    char *end;
    double n = strtod(text, &end);
    if (end == text || *end != '\0' || !(n >= 1e-3) || n > 1e9)
        return wrong("%s takes seconds, as 60 or 0.5, not '%s'", option, text);
    *seconds = n;
    return 0;
}

static int set_check(repl_options *options, const char *text)
{
    options->spmd = 1;
    return read_seconds("--spmd-check", text ? text : "60",
                        &options->check_seconds);
}

static int add_chunk(repl_options *options, int print)
{
    repl_chunk *chunk = &options->chunks[options->chunk_count++];
    chunk->code = optarg;
    chunk->print = print;
    return 0;
}

static int take(repl_options *options, int key, int *flag)
{
    switch (key) {
    case 'e':
    case 'p':
        return add_chunk(options, key == 'p');
    case DEVICE:
        return set_device(options, optarg);
    case COLOUR:
        return set_colour(options, optarg);
    case MANUAL:
        return set_manual(options, optarg);
    case MEMORY:
        return set_memory(options, optarg);
    case TIME:
        return read_seconds("--time", optarg, &options->seconds);
    case SPMD_CHECK:
        return set_check(options, optarg);
    case SAFE:
    case SAFE_LANGUAGE:
        return set_safe(options, key == SAFE);
    default:
        *flag = 1;
        return 0;
    }
}

/* Where an option that is only on or off is kept. */
static int *flag_of(repl_options *options, int key)
{
    switch (key) {
    case 'i':
        return &options->interactive;
    case 'q':
        return &options->quiet;
    case 'v':
        return &options->version;
    case NO_INIT:
        return &options->no_init;
    case STRICT:
        return &options->language.strict;
    case BYTECODE:
        return &options->language.bytecode;
    case SPMD:
        return &options->spmd;
    default:
        return &options->help;
    }
}

/* The table in getopt's form. The letters start with '+', to stop at the
 * first word that is no option, and ':', to tell a lacking value apart. */
static void describe(struct option *longs, char *letters)
{
    *letters++ = '+';
    *letters++ = ':';
    for (const struct row *row = rows; row->key != 0; row++) {
        int takes = row->argument == NULL     ? no_argument
                    : row->argument[0] == '[' ? optional_argument
                                              : required_argument;
        if (row->name != NULL)
            *longs++ = (struct option){row->name, takes, NULL, row->key};
        if (row->key >= DEVICE)
            continue;
        *letters++ = (char)row->key;
        if (takes == required_argument)
            *letters++ = ':';
    }
    *letters = '\0';
    *longs = (struct option){NULL, 0, NULL, 0};
}

/* The word getopt stumbled on: a whole long option, or one letter that may
 * stand among others. */
static int reject(char **argv)
{
    char letter[3] = {'-', (char)optopt, '\0'};
    int is_letter = optopt > 0 && optopt < DEVICE;
    return unknown(is_letter ? letter : argv[optind - 1]);
}

/* Whether the word before the first one that is no option is "--", after
 * which - is a file's name. */
static int after_end(char **argv, int first)
{
    return first > 1 && strcmp(argv[first - 1], "--") == 0;
}

int repl_parse_options(int argc, char **argv, repl_options *options)
{
    struct option longs[ROWS];
    char letters[2 * ROWS + 3];
    int key, failed = 0;
    memset(options, 0, sizeof *options);
    options->chunks = calloc((size_t)argc + 1, sizeof *options->chunks);
    if (options->chunks == NULL)
        return wrong("not enough memory");
    describe(longs, letters);
    opterr = 0;
    while (!failed &&
           (key = getopt_long(argc, argv, letters, longs, NULL)) != -1)
        if (key == ':')
            failed = lacks_value(optopt);
        else if (key == '?')
            failed = reject(argv);
        else
            failed = take(options, key, flag_of(options, key));
    if (!failed && options->language.bytecode &&
        options->language.safe != LUMAT_UNSAFE)
        failed = wrong("--bytecode: --safe takes no precompiled chunks, which "
                       "could do anything");
    options->script = optind;
    options->standard_input = !failed && optind < argc &&
                              strcmp(argv[optind], "-") == 0 &&
                              !after_end(argv, optind);
    return failed;
}

enum { FORM = 32 };

/* "=name", " code", "[=dirs]" */
static void write_argument(const struct row *row, char *end)
{
    if (row->argument[0] == '[')
        sprintf(end, "[=%s", row->argument + 1);
    else
        sprintf(end, "%c%s", row->name != NULL ? '=' : ' ', row->argument);
}

/* "-q, --quiet", "--device=name" */
static void write_form(const struct row *row, char form[FORM])
{
    char *end = form;
    if (row->key < DEVICE)
        end += sprintf(end, "-%c", row->key);
    if (row->name != NULL)
        end += sprintf(end, "%s--%s", row->key < DEVICE ? ", " : "", row->name);
    if (row->argument != NULL)
        write_argument(row, end);
}

const lumat_row *repl_option_rows(void)
{
    static char forms[ROWS][FORM];
    static lumat_row lines[ROWS + 2];
    lumat_row *line = lines;
    for (int i = 0; rows[i].key != 0; i++) {
        write_form(&rows[i], forms[i]);
        *line++ = (lumat_row){forms[i], "", rows[i].help};
    }
    *line++ = (lumat_row){"-", "", "run standard input as a script"};
    *line++ = (lumat_row){"--", "", "what follows is a file"};
    return lines;
}

void repl_print_usage(void)
{
    puts("usage: lumat [options] [file.lua [arguments]]\n"
         "A GPU matrix calculator. Without a file or code: a prompt.\n");
    for (const lumat_row *line = repl_option_rows(); line->name != NULL; line++)
        printf("  %-24s%s\n", line->name, line->help);
    puts("\nexit codes: 0 done, 1 script error, 2 wrong command line, 3 no "
         "usable GPU\n"
         "though asked for, 4 out of memory, 130 interrupted");
}
