/* Kernels compiled for elementwise programs that are run often: what they are
 * compiled from, when, where they are kept. This room knows no device, and CUDA
 * as a program beside this one that compiles a text (gpu/cuda/compiler);
 * gpu/cuda includes this, loads what comes of it and runs it.
 *
 * A program in the form that a kernel is made for is looked up with every run.
 * It becomes a kernel in the background: another thread looks for it in the
 * user's cache, then has it compiled. Nothing here fails aloud: where there is
 * no kernel the interpreter does the work. Only the calls that say so are for
 * any thread; the rest are for the one that runs programs. */
#ifndef GPU_CUDA_JIT_H
#define GPU_CUDA_JIT_H

#include "backend.h"
#include "jit_job.h"
#include "program.h"

#include <stddef.h>

/* What a kernel is made for. Its bytes are compared, so what is not used is
 * zero. Constants are not part of it, only how many there are. */
typedef struct jit_form {
    uint8_t compute;  /* GPU_F32 or GPU_F64 */
    uint8_t result;   /* a gpu_dtype */
    uint8_t fold;     /* a gpu_reduction over the results; or 0 */
    uint8_t is_row;   /* all is one row */
    uint8_t is_wide;  /* the result is written 16 bytes at once, or 4; of a
                         reduction: fours are neighbours */
    uint8_t in_place; /* 1 + the input that the result lies where, of which it
                         may keep elements; or 0 */
    uint8_t extras, extra[GPU_MAX_EXTRAS];
    uint8_t inputs, constants, length;
    uint8_t dtype[GPU_MAX_INPUTS], way[GPU_MAX_INPUTS];
    gpu_instruction code[GPU_MAX_CODE];
} jit_form;

/* The form of p, computed in that type, over a result whose rows' neighbours
 * are the nearest, and views; those of one row are rows of one length, too.
 * wide: bit v: all fours of input v, from multiples of four in each row on, may
 * be read at once; JIT_WIDE_RESULT: the same of what is written. Returns 0 of
 * programs that no kernel is made for: without inputs or instructions, with
 * places, or with more than JIT_DRAWS random inputs or some that lie otherwise
 * than the result. */
enum { JIT_WIDE_RESULT = 1 << GPU_MAX_INPUTS };
int jit_fill_form(jit_form *f, const gpu_program *p, gpu_dtype compute,
                  const gpu_view *in, const gpu_view *out, unsigned wide);

/* The same of what reduces p's results, by p's reduction, to elements of out's
 * type: rows are the lines, of whatever length, and programs may have no
 * instruction. JIT_WIDE_RESULT: fours are worked out of neighbours. */
int jit_fill_fold(jit_form *f, const gpu_program *p, gpu_dtype compute,
                  const gpu_view *in, const gpu_view *out, unsigned wide);

/* --- the text of a kernel --------------------------------------------------
 */

enum { JIT_MOST_TEXT = 8 << 10 };

/* How its threads share the work. */
typedef struct jit_shape {
    int quads;   /* fours of elements of each, or, of a reduction, at once */
    int is_long; /* one element after the other; then no map is wide */
    int is_wide;
} jit_shape;
jit_shape jit_shape_of(const jit_form *f);

/* A launch of what is no reduction: so many blocks of width x height threads;
 * across: see jit_job.
 * Returns 0 where there would be too many blocks; or, unless it has to be,
 * where mostly threads would lack some of their elements, which they then work
 * out one by one. */
typedef struct jit_launch {
    unsigned blocks, width, height, across;
} jit_launch;
int jit_plan_launch(const jit_form *f, int64_t rows, int64_t cols, int has_to,
                    jit_launch *l);

/* Writes the kernel `compiled` for f, and returns the bytes. For any thread. */
size_t jit_write_source(const jit_form *f, char text[JIT_MOST_TEXT]);

/* The files that a text includes, and a number that stands for their bytes. */
typedef struct jit_file {
    const char *name, *text;
} jit_file;
enum { JIT_FILES = 11 }; /* JIT_TEXT of the Makefile */
extern const jit_file jit_files[JIT_FILES];
uint64_t jit_hash_files(void);
uint64_t jit_hash(const void *data, size_t bytes, uint64_t before);

/* --- compiling -------------------------------------------------------------
 */

/* A process that compiles; zero: none yet. For one thread at a time, which has
 * SIGPIPE blocked. */
typedef struct jit_compiler {
    int is_open, in, out;
    int process; /* a pid_t */
} jit_compiler;

/* The machine code of a text, malloc's, for that architecture (90 for sm_90),
 * by the program of that path with CUDA's compiler of that version (13000
 * is 13.0), which is started where it is not there; NULL: why has what it says.
 * Waits for it. */
void *jit_compile(jit_compiler *c, const char *program, int version,
                  const char *text, int capability, size_t *bytes, char *why,
                  size_t size);
/* Ends the process, which has nothing to do. */
void jit_close_compiler(jit_compiler *c);
/* All the bytes, or 0 where there are not so many, or no room. */
int jit_read_fully(int fd, void *data, size_t bytes);
int jit_write_fully(int fd, const void *data, size_t bytes);

/* --- kept on disk ----------------------------------------------------------
 */

/* Looks for the folder in the environment: $XDG_CACHE_HOME/lumat, else
 * ~/.cache/lumat. Before the others. */
void jit_find_folder(void);
/* The machine code kept for f, malloc's; NULL: none that is whole, of these
 * versions, and the user's own. For any thread. */
void *jit_recall(const jit_form *f, int capability, int version, size_t *bytes);
/* Keeps it, and removes the oldest of what is more than most_bytes in all. */
void jit_keep(const jit_form *f, int capability, int version, const void *image,
              size_t bytes, size_t most_bytes);
enum { JIT_MOST_KEPT = 64 << 20 };

/* --- kernels ---------------------------------------------------------------
 */

enum { JIT_DEVICES = 16 };

/* A form that was seen, and what became of it. It stays until the next
 * jit_find, which may drop others. */
typedef struct jit_kernel jit_kernel;

/* Begins with the compiler of that path and version; unload ends what
 * jit_loaded has been given, before its image goes. Once is enough. */
void jit_start(const char *compiler, int version,
               void (*unload)(void *loaded, int device));

/* NULL: there is no memory for it. */
jit_kernel *jit_find(const jit_form *f, int capability);

/* Its machine code; NULL: not yet, or never. seconds: by how much this run
 * would be shorter with it; what all runs would have saved decides when it is
 * looked for, and compiled. waits: all that is done at once. */
const void *jit_image(jit_kernel *k, double seconds, int waits);

/* What the caller has loaded of it for a device; NULL at first. Less than
 * JIT_DEVICES. */
void **jit_loaded(jit_kernel *k, int device);
/* It cannot be loaded: it is not asked for again. */
void jit_forsake(jit_kernel *k);

#endif
