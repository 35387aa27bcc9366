/* JPEG by libjpeg, whose way out of an error is a jump: none leaves this file,
 * and nothing that has to be freed lies above one. */
#include "data_formats.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int lumat_jpeg_is(const unsigned char *bytes, size_t length)
{
    return length > 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0;
}

#ifdef LUMAT_JPEG
#include <jpeglib.h>

/* What libjpeg is called with. */
typedef struct reader {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jmp_buf out;
    char *error;
    size_t size;
} reader;

static void note(reader *r)
{
    char text[JMSG_LENGTH_MAX];
    r->jpeg.err->format_message((j_common_ptr)&r->jpeg, text);
    snprintf(r->error, r->size, "is damaged, in row %u of %u: %s",
             r->jpeg.output_scanline + 1, r->jpeg.image_height, text);
}

static void leave(j_common_ptr jpeg)
{
    reader *r = jpeg->client_data;
    note(r);
    longjmp(r->out, 1);
}

/* A warning, which is below 0, tells of data that are missing or wrong. */
static void hear(j_common_ptr jpeg, int level)
{
    if (level < 0)
        leave(jpeg);
}

static void begin(reader *r, const void *bytes, size_t length, char *error,
                  size_t size)
{
    r->error = error;
    r->size = size;
    r->jpeg.err = jpeg_std_error(&r->errors);
    r->jpeg.client_data = r;
    r->errors.error_exit = leave;
    r->errors.emit_message = hear;
    jpeg_create_decompress(&r->jpeg);
    r->jpeg.client_data = r;
    jpeg_mem_src(&r->jpeg, bytes, length);
    jpeg_read_header(&r->jpeg, TRUE);
}

int lumat_jpeg_open(lumat_image *image, const void *bytes, size_t length,
                    char *error, size_t size)
{
    reader *r = calloc(1, sizeof *r);
    *image = (lumat_image){.most = 255};
    if (r == NULL) {
        snprintf(error, size, "needs more memory than there is");
        return 0;
    }
    volatile int done = 0;
    if (setjmp(r->out) == 0) {
        begin(r, bytes, length, error, size);
        image->rows = r->jpeg.image_height;
        image->cols = r->jpeg.image_width;
        image->channels = r->jpeg.num_components == 1 ? 1 : 3;
        done = r->jpeg.num_components == 1 || r->jpeg.num_components == 3;
        if (!done)
            snprintf(error, size,
                     "has %d channels (CMYK); grey and RGB are "
                     "read",
                     r->jpeg.num_components);
    }
    jpeg_destroy_decompress(&r->jpeg);
    free(r);
    if (done && !lumat_image_is_modest(image, length)) {
        snprintf(error, size, "claims %lldx%lld pixels, too many for its bytes",
                 (long long)image->rows, (long long)image->cols);
        done = 0;
    }
    return done;
}

/* Row after row; 0: one was told to stop. */
static int read_rows(reader *r, const lumat_image *image, uint16_t *samples)
{
    size_t across = (size_t)image->cols * (size_t)image->channels;
    JSAMPARRAY row = r->jpeg.mem->alloc_sarray(
        (j_common_ptr)&r->jpeg, JPOOL_IMAGE, (JDIMENSION)across, 1);
    while (r->jpeg.output_scanline < r->jpeg.output_height) {
        jpeg_read_scanlines(&r->jpeg, row, 1);
        for (size_t i = 0; i < across; i++)
            *samples++ = row[0][i];
        if (image->goes_on != NULL && !image->goes_on(across))
            return 0;
    }
    jpeg_finish_decompress(&r->jpeg);
    return 1;
}

int lumat_jpeg_read(const lumat_image *image, const void *bytes, size_t length,
                    uint16_t *samples, char *error, size_t size)
{
    reader *r = calloc(1, sizeof *r);
    if (r == NULL) {
        snprintf(error, size, "needs more memory than there is");
        return 0;
    }
    volatile int done = 0;
    if (setjmp(r->out) == 0) {
        begin(r, bytes, length, error, size);
        r->jpeg.out_color_space =
            image->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
        jpeg_start_decompress(&r->jpeg);
        *error = '\0';
        done = r->jpeg.output_height == image->rows &&
               r->jpeg.output_width == image->cols &&
               r->jpeg.output_components == image->channels &&
               read_rows(r, image, samples);
    }
    jpeg_destroy_decompress(&r->jpeg);
    free(r);
    return done;
}

#else

int lumat_jpeg_open(lumat_image *image, const void *bytes, size_t length,
                    char *error, size_t size)
{
    (void)image, (void)bytes, (void)length;
    snprintf(error, size,
             "is a JPEG file, and lumat was built without JPEG: "
             "with libjpeg-dev there, make builds it in");
    return 0;
}

int lumat_jpeg_read(const lumat_image *image, const void *bytes, size_t length,
                    uint16_t *samples, char *error, size_t size)
{
    (void)samples;
    lumat_image none = *image;
    return lumat_jpeg_open(&none, bytes, length, error, size);
}

#endif
