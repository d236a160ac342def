/* SPDX-License-Identifier: Apache-2.0 */
/* symbolize - what the resolver makes of addresses in a file.
 *
 * symbolize [-n] [-r ROOT]... [-p PATH] [-m PERFMAP] FILE
 *
 * For every svma (hexadecimal) on standard input one line per level, innermost
 * first, then an empty line: function, system name, file:line and start line,
 * separated by tabs.  -n: names only.  -r: look for debug files under ROOT.
 * -p: FILE's name in the target.  At the end, on standard error: what the
 * module has, and the highest resident memory in KiB.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wallprof/elf_image.h"
#include "wallprof/symbols.h"

enum { ROOTS_MAX = 8 };

/* Segments are put where their svma says, so that avma is svma and the bias 0. */
static int add_segments(struct wp_symbols *symbols, const char *path,
			struct wp_elf_image *image)
{
	for (uint32_t i = 0; i < image->nloads; i++) {
		const struct wp_elf_load *load = &image->loads[i];
		uint64_t lead = load->off & 4095;
		struct wp_symbol_module module = {
			.start_avma = load->svma - lead,
			.end_avma = load->svma + load->memsz,
			.off = load->off - lead,
			.path = path,
			.image = image,
		};
		int rc = wp_symbols_add(symbols, i + 1, &module);

		if (rc)
			return rc;
	}
	return 0;
}

static uint32_t segment_of(const struct wp_elf_image *image, uint64_t svma)
{
	for (uint32_t i = 0; i < image->nloads; i++)
		if (svma >= image->loads[i].svma &&
		    svma - image->loads[i].svma < image->loads[i].memsz)
			return i + 1;
	return 0;
}

static int print_all(struct wp_symbols *symbols,
		     const struct wp_elf_image *image)
{
	char text[64];

	while (fgets(text, sizeof(text), stdin)) {
		uint64_t svma = strtoull(text, NULL, 16);
		const struct wp_symbol_line *lines;
		int n = wp_symbols_resolve(symbols, segment_of(image, svma),
					   svma, &lines);

		if (n < 0)
			return n;
		for (int i = 0; i < n; i++)
			printf("%s\t%s\t%s:%" PRIu32 "\t%" PRIu32 "\n",
			       lines[i].function, lines[i].system_name,
			       lines[i].file, lines[i].line,
			       lines[i].start_line);
		putchar('\n');
	}
	return 0;
}

static void print_has(const struct wp_symbols *symbols,
		      const struct wp_elf_image *image)
{
	static const char *const losses[] = {
		[WP_DWARF_WHOLE] = "",
		[WP_DWARF_SPLIT] = " dwarf_split",
		[WP_DWARF_CUT] = " dwarf_cut",
		[WP_DWARF_LACKS_SHARED] = " dwarf_lacks_shared",
		[WP_DWARF_UNREADABLE] = " dwarf_unreadable",
		[WP_DWARF_TOO_LARGE] = " dwarf_too_large",
	};
	struct wp_symbol_has all = { 0 };

	for (uint32_t i = 0; i < image->nloads; i++) {
		struct wp_symbol_has has = wp_symbols_has(symbols, i + 1);

		wp_symbols_add_has(&all, &has);
	}
	fprintf(stderr, "has%s%s%s%s%s%s\n", all.functions ? " functions" : "",
		all.filenames ? " filenames" : "",
		all.line_numbers ? " line_numbers" : "",
		all.inline_frames ? " inline_frames" : "",
		all.debug_file ? " debug_file" : "", losses[all.dwarf_loss]);
}

static void print_peak(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "VmHWM:", 6))
			fprintf(stderr, "peak %ld KiB\n",
				strtol(line + 6, NULL, 10));
	if (f)
		fclose(f);
}

static int run(const struct wp_symbol_options *options, const char *file,
	       const char *path)
{
	struct wp_elf_image image = WP_ELF_IMAGE_INIT;
	struct wp_symbols *symbols = NULL;
	struct wp_err err = WP_ERR_INIT;
	int fd = open(file, O_RDONLY | O_CLOEXEC), rc = 2;

	if (fd < 0 || wp_elf_image_open(&image, fd, &err)) {
		fprintf(stderr, "symbolize: %s: %s\n", file,
			fd < 0 ? strerror(errno) : err.msg);
		return 2;
	}
	if (!wp_symbols_new(&symbols, options) &&
	    !add_segments(symbols, path ? path : file, &image) &&
	    !print_all(symbols, &image)) {
		print_has(symbols, &image);
		rc = 0;
	}
	wp_symbols_free(symbols);
	wp_elf_image_clear(&image);
	print_peak();
	return rc;
}

int main(int argc, char **argv)
{
	struct wp_symbol_options options = { .perf_map_fd = -1 };
	const char *roots[ROOTS_MAX], *path = NULL;
	int opt;

	while ((opt = getopt(argc, argv, "nr:p:m:")) != -1) {
		if (opt == 'n')
			options.names_only = true;
		else if (opt == 'r' && options.nroots < ROOTS_MAX)
			roots[options.nroots++] = optarg;
		else if (opt == 'p')
			path = optarg;
		else if (opt == 'm')
			options.perf_map_fd = open(optarg,
						   O_RDONLY | O_CLOEXEC);
		else
			return 64;
	}
	if (optind + 1 != argc)
		return 64;
	options.roots = roots;
	return run(&options, argv[optind], path);
}
