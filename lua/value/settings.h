/* What can be set while lumat runs: `:set digits 6`, settings{digits = 6}. */
#ifndef LUMAT_SETTINGS_H
#define LUMAT_SETTINGS_H

#include "value.h"

typedef enum lumat_colour {
    LUMAT_COLOUR_AUTO, /* as the terminal and NO_COLOR say */
    LUMAT_COLOUR_ALWAYS,
    LUMAT_COLOUR_NEVER
} lumat_colour;

/* The settings of settings.def by their names, those that are kept here. */
typedef struct lumat_settings {
#define SETTING(name, kind, least, most, otherwise, help) int name;
#define ELSEWHERE(name, kind, otherwise, help)
#define ALSO(name, other)
#include "settings.def"
} lumat_settings;

/* As they are set now; for the program's own options to be written to, too. */
lumat_settings *lumat_settings_now(void);

/* For Tab: calls each(data, name, sentence) for the settings whose name begins
 * with the text of so many bytes. */
void lumat_each_setting(const char *text, size_t length, lumat_name_fn *each,
                        void *data);
/* The same for the words that the setting of that name takes, without a
 * sentence; nothing where there is none of that name. */
void lumat_each_setting_word(const char *name, size_t name_length,
                             const char *text, size_t length,
                             lumat_name_fn *each, void *data);

/* The module lumat.settings, which lua/std/settings_report.lua needs. */
void lumat_open_settings(lua_State *L);

#endif
