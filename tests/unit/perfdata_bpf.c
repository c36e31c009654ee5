// SPDX-License-Identifier: GPL-2.0-only
/*
 * BPF programs in a header, made by hand: their names out of types, whole and with each byte
 * changed. tests/cli/perfdata.bats compares those of programs that were loaded with perf's.
 */
#include <linux/bpf.h>

#include "tests/unit/perfdata_build.h"
#include "tests/unit/test.h"

#define DATA_AT 256u /* of the file: perfdata_build.h's header, one id, one attribute */

static void put_types(struct buf *b)
{
	static const char strings[] = "\0int\0outer\0inner";
	size_t at = b->len;

	buf_u32(b, 7); /* id, and the size, below */
	buf_u32(b, 0);
	buf_u32(b, 0xeb9f | 1 << 16);
	buf_u32(b, 24);
	buf_u32(b, 0);
	buf_u32(b, 52);
	buf_u32(b, 52);
	buf_u32(b, sizeof(strings));
	buf_u32(b, 1); /* 1: int */
	buf_u32(b, 1 << 24);
	buf_u32(b, 4);
	buf_u32(b, 32);
	buf_u32(b, 0); /* 2: what returns one */
	buf_u32(b, 13 << 24);
	buf_u32(b, 1);
	for (uint32_t i = 0; i < 2; i++) { /* 3 and 4: functions of that */
		buf_u32(b, 5 + 6 * i);
		buf_u32(b, 12 << 24);
		buf_u32(b, 2);
	}
	buf_add(b, strings, sizeof(strings));
	at += 4;
	memcpy(b->data + at, &(uint32_t){(uint32_t)(b->len - at - 4)}, 4);
}

/* Two functions at 0xffffffffc0000000 and 0x100 behind it. */
static void put_program(struct buf *b, uint32_t id, uint32_t btf_id)
{
	struct bpf_prog_info info = {
		.id = id,
		.btf_id = btf_id,
		.nr_jited_ksyms = 2,
		.nr_jited_func_lens = 2,
		.nr_prog_tags = 2,
		.nr_func_info = 2,
		.func_info_rec_size = 8,
		.jited_func_lens = 16,
		.func_info = 24,
		.prog_tags = 40,
		.name = "program",
	};

	buf_u32(b, sizeof(info));
	buf_u32(b, 56);
	buf_u64(b, 1 << 3 | 1 << 4 | 1 << 5 | 1 << 8);
	buf_add(b, &info, sizeof(info));
	buf_u64(b, 0xffffffffc0000000);
	buf_u64(b, 0xffffffffc0000100);
	buf_u32(b, 20);
	buf_u32(b, 30);
	buf_u64(b, (uint64_t)3 << 32);
	buf_u64(b, 2 | (uint64_t)4 << 32);
	buf_u64(b, 0x0123456789abcdef);
	buf_u64(b, 0xfedcba9876543210);
}

/* A file of nothing but these. *@from: where they begin in it. */
static void make(struct buf *image, size_t *from)
{
	struct build b = {.sample_type = SIMPLE_TYPE, .ids = {1}, .nr_events = 1};
	struct buf programs = {0}, types = {0};
	uint64_t at;

	buf_u32(&programs, 2);
	put_program(&programs, 5, 7);
	put_program(&programs, 6, 0);
	buf_u32(&types, 1);
	put_types(&types);
	build_image(&b, image);
	CHECK_EQ(image->len, DATA_AT);
	image->data[72 + 3] |= 6; /* BPF_PROG_INFO, BPF_BTF */
	*from = at = image->len + 32;
	buf_u64(image, at);
	buf_u64(image, programs.len);
	buf_u64(image, at + programs.len);
	buf_u64(image, types.len);
	buf_add(image, programs.data, programs.len);
	buf_add(image, types.data, types.len);
	buf_free(&programs);
	buf_free(&types);
}

/* The header as text, to be freed. */
static char *header_of(const struct buf *image)
{
	int fd = temp_fd(image->data, image->len);
	struct perfdata_reader *r;
	struct vmprof_err err;
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	CHECK_EQ(open_fd(&r, fd, &err), 0);
	if (r)
		perfdata_reader_print_header(r, f, true);
	fclose(f);
	perfdata_reader_close(r);
	close(fd);
	return text;
}

static void test_names(void)
{
	static const char *const lines[] = {
		"# bpf_prog_info 5:\n"
		"# \tsub_prog 0: bpf_prog_efcdab8967452301_outer addr 0xffffffffc0000000 size 20\n"
		"# \tsub_prog 1: bpf_prog_1032547698badcfe_inner addr 0xffffffffc0000100 size 30\n",
		"# bpf_prog_info 6:\n"
		"# \tsub_prog 0: bpf_prog_efcdab8967452301_F addr 0xffffffffc0000000 size 20\n"
		"# \tsub_prog 1: bpf_prog_1032547698badcfe_F addr 0xffffffffc0000100 size 30\n",
		"# btf info of id 7\n",
	};
	struct buf image;
	size_t from;
	char *text;

	make(&image, &from);
	text = header_of(&image);
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		CHECK(strstr(text, lines[i]));
	free(text);
	buf_free(&image);
}

/* Nothing is read that is not there, and it ends. */
static void test_changed(void)
{
	struct buf image;
	size_t from;

	make(&image, &from);
	for (size_t i = from; i < image.len; i++) {
		const uint8_t old = image.data[i], values[] = {0xff, 0, old ^ 1, old ^ 0x80};

		for (size_t k = 0; k < sizeof(values); k++) {
			image.data[i] = values[k];
			free(header_of(&image));
		}
		image.data[i] = old;
	}
	buf_free(&image);
}

int main(void)
{
	test_names();
	test_changed();
	return test_done();
}
