# SPDX-License-Identifier: Apache-2.0
# doxygen_filter.awk: a public header as Doxygen wants it. Its comments are plain ones: one at the start of a line describes
# what follows, one behind a declaration describes that, the first one describes the file.
NR == 1 && /^\/\* SPDX/ {
  print "/** @file"
  next
}
NR == 2 { sub(/^ \* [a-z_]+\.h: /, " * ") }
/^ *\/\* / { sub(/\/\* /, "/** ") }
/[;,{] *\/\* / || /[^ ].* \/\* / { if ($0 !~ /^ *\/\*\*/) sub(/\/\* /, "/**< ") }
{
  # An enumerator without a comma before its comment, and the last member, need nothing more. Marks of Doxygen in the text are none.
  gsub(/%p/, "%%p")
  print
}
