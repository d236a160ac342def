/* SPDX-License-Identifier: Apache-2.0 */
/* library.c - see library.h. */
#include "library.h"

#include <dlfcn.h>
#include <string.h>

bool wp_library_load(const char *soname, const char *const *names, size_t n,
		     void *ret)
{
	void *library = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
	bool is_whole = library;

	for (size_t i = 0; i < n && is_whole; i++) {
		void *function = dlsym(library, names[i]);

		memcpy((char *)ret + i * sizeof(function), &function,
		       sizeof(function));
		is_whole = function;
	}
	return is_whole;
}
