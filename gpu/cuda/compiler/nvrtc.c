/* A program that compiles kernels: see compiler_words.h. It loads NVRTC,
 * CUDA's compiler as a library, where that is there, and of the version that
 * the kernels of this build were compiled with. Then the two give the same code
 * for the same text and options: they share the compiler and the library of
 * mathematical functions (compared: the PTX of all operations of ops.def is
 * equal, byte for byte). */
#include "compiler_words.h"
#include "jit.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct nvrtc_program *program;

/* Those of nvrtc.h that are called; a result of 0 is a success. */
static struct {
    int (*Version)(int *major, int *minor);
    int (*CreateProgram)(program *p, const char *text, const char *name,
                         int headers, const char *const *texts,
                         const char *const *names);
    int (*DestroyProgram)(program *p);
    int (*CompileProgram)(program p, int options, const char *const *list);
    int (*GetCUBINSize)(program p, size_t *bytes);
    int (*GetCUBIN)(program p, char *image);
    int (*GetProgramLogSize)(program p, size_t *bytes);
    int (*GetProgramLog)(program p, char *log);
} nvrtc;

static int find_functions(void *library)
{
    static const struct {
        const char *name;
        void *function; /* where its address goes */
    } functions[] = {
        {"nvrtcVersion", &nvrtc.Version},
        {"nvrtcCreateProgram", &nvrtc.CreateProgram},
        {"nvrtcDestroyProgram", &nvrtc.DestroyProgram},
        {"nvrtcCompileProgram", &nvrtc.CompileProgram},
        {"nvrtcGetCUBINSize", &nvrtc.GetCUBINSize},
        {"nvrtcGetCUBIN", &nvrtc.GetCUBIN},
        {"nvrtcGetProgramLogSize", &nvrtc.GetProgramLogSize},
        {"nvrtcGetProgramLog", &nvrtc.GetProgramLog},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *address = dlsym(library, functions[i].name);
        if (!address)
            return 0;
        memcpy(functions[i].function, &address, sizeof address);
    }
    return 1;
}

/* It stays loaded, of whatever version it is. */
static int load_from(const char *path, int version)
{
    int major, minor;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return library && find_functions(library) &&
           nvrtc.Version(&major, &minor) == 0 &&
           major * 1000 + minor * 10 == version;
}

/* Where the loader finds it, else where CUDA's toolkit is put. */
static int load_compiler(int version)
{
    char path[128];
    int major = version / 1000, minor = version % 1000 / 10;
    snprintf(path, sizeof path, "libnvrtc.so.%d", major);
    if (load_from(path, version))
        return 1;
    snprintf(path, sizeof path, "/usr/local/cuda-%d.%d/lib64/libnvrtc.so.%d",
             major, minor, major);
    if (load_from(path, version))
        return 1;
    snprintf(path, sizeof path, "/usr/local/cuda/lib64/libnvrtc.so.%d", major);
    return load_from(path, version);
}

/* --- answers ---------------------------------------------------------------
 */

static void answer(int is_code, const void *data, size_t bytes)
{
    jit_answer head = {bytes, (uint64_t)is_code};
    if (!jit_write_fully(STDOUT_FILENO, &head, sizeof head) ||
        !jit_write_fully(STDOUT_FILENO, data, bytes))
        _exit(1); /* nobody listens */
}

static void refuse(const char *why)
{
    answer(0, why, strlen(why));
}

static void give_code(program p)
{
    size_t bytes;
    char *image = NULL;
    if (nvrtc.GetCUBINSize(p, &bytes) == 0 && bytes > 0)
        image = malloc(bytes);
    if (image && nvrtc.GetCUBIN(p, image) == 0)
        answer(1, image, bytes);
    else
        refuse("NVRTC gives no code");
    free(image);
}

static void give_log(program p)
{
    size_t bytes = 0;
    char *log = NULL;
    if (nvrtc.GetProgramLogSize(p, &bytes) == 0 && bytes > 0)
        log = malloc(bytes);
    if (log && nvrtc.GetProgramLog(p, log) == 0)
        answer(0, log, bytes - 1);
    else
        refuse("NVRTC does not say why");
    free(log);
}

/* --- questions -------------------------------------------------------------
 */

/* -fmad=false as in the Makefile: no product is rounded together with a sum,
 * neither of one operation's words nor of two operations. */
static void compile(const char *text, int capability)
{
    const char *texts[JIT_FILES], *names[JIT_FILES];
    char architecture[32];
    const char *options[] = {architecture, "-std=c++20", "-fmad=false"};
    program p;
    snprintf(architecture, sizeof architecture, "-arch=sm_%d", capability);
    for (int i = 0; i < JIT_FILES; i++) {
        texts[i] = jit_files[i].text;
        names[i] = jit_files[i].name;
    }
    if (nvrtc.CreateProgram(&p, text, "program.cu", JIT_FILES, texts, names) !=
        0) {
        refuse("NVRTC takes no text");
        return;
    }
    if (nvrtc.CompileProgram(p, sizeof options / sizeof *options, options) == 0)
        give_code(p);
    else
        give_log(p);
    nvrtc.DestroyProgram(&p);
}

enum { MOST_SECONDS = 60 };

/* why: NULL, or what keeps it from compiling. */
static void take_questions(const char *why)
{
    static char text[JIT_MOST_TEXT + 1];
    jit_question question;
    while (fread(&question, sizeof question, 1, stdin) == 1 &&
           question.bytes <= JIT_MOST_TEXT &&
           fread(text, 1, (size_t)question.bytes, stdin) == question.bytes) {
        text[question.bytes] = '\0';
        alarm(MOST_SECONDS);
        if (why)
            refuse(why);
        else
            compile(text, (int)question.capability);
        alarm(0);
    }
}

/* At the end nothing of NVRTC's is put in order. */
int main(int argc, char **argv)
{
    char hash[24];
    const char *why = NULL;
    if (argc != 3)
        return 2;
    snprintf(hash, sizeof hash, "%llx", (unsigned long long)jit_hash_files());
    if (nice(5) == -1) /* who waits for other work comes first */
        errno = 0;
    if (strcmp(hash, argv[2]) != 0)
        why = "the compiler is of another build";
    else if (!load_compiler(atoi(argv[1])))
        why = "there is no NVRTC of this version";
    take_questions(why);
    _exit(0);
}
