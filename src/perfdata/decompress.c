// SPDX-License-Identifier: GPL-2.0-only
/*
 * COMPRESSED and COMPRESSED2 bodies are pieces of one zstd stream; what comes out of it is walked
 * as records like the file's own. A record may begin in one body and end in the next.
 */
#include <errno.h>
#include <string.h>

#include "perfdata/reader_impl.h"

#if HAVE_LIBZSTD
#include <zstd.h>

#define ROOM (256u * 1024)

static int decompress(struct perfdata_reader *r, const uint8_t *body, size_t n, uint64_t offset)
{
	ZSTD_inBuffer in = {body, n, 0};
	struct source *s = &r->decomp;
	bool full = false;

	if (!r->zstd)
		r->zstd = ZSTD_createDStream();
	if (!r->zstd)
		return damaged(r, offset, "compressed data: zstd cannot be started");
	/* as long as there is input, or output that did not fit */
	while (in.pos < in.size || full) {
		ZSTD_outBuffer out;
		size_t left;
		int ret;

		source_add_room(r, s, ROOM / 2);
		s->cur->offset = s->cur->len ? s->cur->offset : offset;
		out = (ZSTD_outBuffer){s->cur->buf, s->cur->cap, s->cur->len};
		left = ZSTD_decompressStream(r->zstd, &out, &in);
		if (ZSTD_isError(left))
			return damaged(r, offset, "compressed data is damaged: %s",
				       ZSTD_getErrorName(left));
		full = out.pos == out.size;
		s->cur->len = (uint32_t)out.pos;
		ret = walk_source(r, s);
		if (ret)
			return ret;
	}
	return 0;
}

void decompress_free(struct perfdata_reader *r)
{
	ZSTD_freeDStream(r->zstd);
	r->zstd = NULL;
}
#else
static int decompress(struct perfdata_reader *r, const uint8_t *body, size_t n, uint64_t offset)
{
	return damaged(r, offset,
		       "the file is compressed, and this vmprof was built without libzstd");
}

void decompress_free(struct perfdata_reader *r)
{
}
#endif

int decompress_record(struct perfdata_reader *r, const struct perf_event_header *h,
		      const uint8_t *record, uint64_t offset)
{
	size_t head = sizeof(*h), n = h->size - sizeof(*h);
	uint64_t size;

	if (h->type == PERFDATA_COMPRESSED2) {
		/* the body's size comes first, since the record is padded */
		if (n < sizeof(size))
			return damaged(r, offset, "a compressed record of %u bytes", h->size);
		memcpy(&size, record + head, sizeof(size));
		if (r->swap)
			swap_words(&size, sizeof(size));
		head += sizeof(size);
		n -= sizeof(size);
		if (size > n)
			return damaged(r, offset,
				       "a compressed record of %u bytes that claims to hold %llu",
				       h->size, (unsigned long long)size);
		n = (size_t)size;
	}
	if (!n) {
		r->stats.empty_compressed++;
		return 0;
	}
	return decompress(r, record + head, n, offset);
}
