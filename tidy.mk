include Makefile
tidyfiles: ; clang-tidy --quiet $(shell cat /tmp/w/codefiles) -- $(BASE) $(TEST_INCLUDES)
cppfiles: ; cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 --suppress=missingIncludeSystem --enable=warning,portability -Icommon $(TEST_INCLUDES) $(shell cat /tmp/w/codefiles)
