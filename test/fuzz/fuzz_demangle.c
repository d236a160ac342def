/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_demangle.c - symbols' names to what a person wrote, by libiberty.
 *
 * Layer: symbols.
 */
#include "../../symbols/demangle.h"
#include "fuzz.h"

static void demangle(const char *symbol, size_t size)
{
	/* Exactly as much room as is said. */
	char *buf = malloc(size);

	if (!buf)
		return;
	memset(buf, 0x5a, size);
	wp_demangle(symbol, buf, size);
	FUZZ_CHECK(memchr(buf, '\0', size));
	/* A name stays a name, if there is room for one. */
	FUZZ_CHECK(size < 2 || !*symbol || *buf);
	free(buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *symbol = malloc(size + 1);

	if (!symbol)
		return 0;
	memcpy(symbol, data, size);
	symbol[size] = '\0';
	demangle(symbol, 16384);
	demangle(symbol, size + 1);
	demangle(symbol, 24);
	demangle(symbol, 1);
	free(symbol);
	return 0;
}
