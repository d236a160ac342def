# SPDX-License-Identifier: Apache-2.0
# The page of -o FILE.html, one file: the modules in an order in which each
# comes after those that it imports, without comments and indentation.
HTML := src/output/html
HTML_JS := $(patsubst %,$(HTML)/%.js,trees model errors compare colours canvas timeline flame tables page)
$(O)/html/page.html: $(HTML)/page.html $(HTML)/page.css $(HTML_JS) $(HTML)/html.mk
	@mkdir -p $(@D)
	$(call say,HTML,$@)
	$(Q)sed -e '/^ *\/\*.*\*\/$$/d' -e '/^ *\/\*/,/\*\/$$/d' -e '/^import /d' \
		-e 's/^export //' -e 's/^ *//' $(HTML_JS) >$(@D)/page.js
	$(Q)sed -e '/^\/\*/d' $(HTML)/page.css >$(@D)/page.css
	$(Q)sed -e '/^@CSS@/{r $(@D)/page.css' -e 'd}' \
		-e '/^@JS@/{r $(@D)/page.js' -e 'd}' $< >$@
$(O)/src/output/html.o: $(O)/html/page.html
$(O)/src/output/html.o: WP_CPPFLAGS += -Wa,-I$(O)/html
$(O)/src/output/html.o: COMPILE += -fno-lto
