/* SPDX-License-Identifier: Apache-2.0
 * test_cli_display.c: what the command shows: terminals of any width, hostile names, problems as their callers wrote
 * them, and one table behind help, manual page and completion. */
#include "tests/tools/cli/cli_terminal.h"

#include <errno.h>
#include <fcntl.h>

static char folder[] = "/tmp/attune-test-display-XXXXXX";
static char database[64], workload[64];

FIXTURE(fresh) {
  unlink(database);
  return 0;
}

TEST_WITH(tables_fit_the_terminal, fresh, NULL) {
  write_file(workload, "name,dtype,m,n,k\na name that is longer than most names are,f32,64,64,64\nb,f64,50,60,70\n");
  terminal(80, "$A tune $W --db $D --device host");
  assert_int_equal(code, 0);
  assert_in_range(longest_line(), 1, 80);
  const char *const lines[] = {"$A show --db $D", "$A devices", "$A devices --problem 'gemm f32 nn 8x8x8'",
                               "$A show --all --db $D"};
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
    terminal(80, lines[i]);
    assert_int_equal(code, 0);
    if (longest_line() > 80) fail_msg("%s: a line of %d in 80 columns: %s", lines[i], longest_line(), text);
  }
  terminal(80, "$A show --db $D");
  expect("--wide prints");
  expect("speedup");
  expect_none("spread");
  terminal(80, "$A show --db $D --wide");
  expect("spread");
  expect_none("--wide");
  assert_in_range(longest_line(), 81, 2000);
  shell("$A show --db $D | cat");
  expect("spread");
  terminal(20, "$A show --db $D"); /* narrower than anything fits: it ends, and says something */
  assert_int_equal(code, 0);
  expect("speedup");
}

/* Without a name of its own a row is told by its problem: whole but on a terminal. */
TEST_WITH(long_problems_are_told_apart, fresh, NULL) {
#define LONG "gemm f32 nn 1x2x3 strict lda=1000000 ldb=1000000 ldd=1000000 align=4 workspace=100000"
  write_file(workload, "problem\n" LONG "1\n" LONG "2\n");
  shell("$A tune $W --db $D --device host --problem-budget 20 | cat");
  expect(LONG "1 ");
  expect(LONG "2 ");
  shell("$A tune $W --db $D --device host --problem-budget 20 | grep -cE 'host_[a-z]+ [a-z]+( |$)'"); /* without = */
  expect("0\n");
  terminal(80, "$A tune $W --db $D --device host --wide");
  expect(LONG "1 ");
  expect(LONG "2 ");
  terminal(80, "$A tune $W --db $D --device host");
  expect_none(LONG);
#undef LONG
}

TEST_WITH(names_cannot_command_the_terminal, fresh, NULL) {
  write_file(workload, "name,dtype,m,n,k\nred\xe2\x80\xae"
                       "der,f32,8,8,8\nzero\xe2\x80\x8bwidth,f32,9,8,8\n\xff\xfe,f32,10,8,8\n");
  shell("LC_ALL=C.UTF-8 $A tune $W --db $D --device host 2>&1");
  assert_int_equal(code, 0);
  expect("red\\u202eder");
  expect("zero\\u200bwidth");
  expect("\\xff\\xfe");
  expect_none("\xe2\x80\xae");
  shell("LC_ALL=C.UTF-8 $A explain \"$(printf 'gemm f32 nn \\033[31m8x8x8')\" --device host 2>&1");
  assert_int_equal(code, 2);
  expect_none("\033");
  shell("$A show --db \"$(printf '/no\\033[31mwhere')\" 2>&1");
  assert_int_equal(code, 2);
  expect("\\x1b[31m");
  expect_none("\033");
  static const char *const words[] = {"--no\\033[31mne", "--no\\033[31mne=1", "-\\033", "--device=x --no\\033[31mne",
                                      "\\033[31m"};
  static const char *const commands[] = {"", "show", "tune -"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    for (size_t j = 0; j < sizeof commands / sizeof commands[0];
         j++) { /* of options that there are not, and of words that are too many */
      char line[256];
      (void)snprintf(line, sizeof line, "$A %s \"$(printf -- '%s')\" 2>&1", commands[j], words[i]);
      shell(line);
      assert_int_equal(code, 2);
      if (i < 2) expect("\\x1b[31m");
      expect_none("\033");
    }
  write_file(workload, "name,dtype,m,n,k\nna\033[31mme,f32,8,8,8\n"); /* a reader refuses those */
  shell("$A tune $W --db $D --device host 2>&1");
  assert_int_equal(code, 2);
}

TEST_WITH(accuracy_may_be_left_out, fresh, NULL) {
  shell("$A explain 'gemm f64 nn 16x16x16' --device host --json");
  assert_int_equal(code, 0);
  expect("\"gemm f64 nn 16x16x16 strict\"");
  shell("$A explain 'gemm f64 nn 16x16x16 beta' --device host --json");
  assert_int_equal(code, 0);
  expect("\"gemm f64 nn 16x16x16 strict beta\"");
  shell("$A explain 'gemm f64 nn 16x16x16 sloppy' --device host 2>&1");
  assert_int_equal(code, 2);
  expect("word 5");
  expect("strict, equivalent or reduced, or one of");
  shell("$A explain 'gemm f64 nn' --device host 2>&1");
  assert_int_equal(code, 2);
}

TEST_WITH(row_major_is_shown_as_written, fresh, NULL) {
  shell("$A explain gemm f32 nt 10x20x30 row-major --device host");
  assert_int_equal(code, 0);
  expect("gemm f32 nt 10x20x30 row-major on host");
  expect("gemm f32 tn 20x10x30 strict");
  write_file(workload, "dtype,layout,transb,m,n,k\nf32,row-major,t,10,20,30\n");
  shell("$A tune $W --db $D --device host");
  assert_int_equal(code, 0);
  expect("gemm f32 nt 10x20x30 strict row-major");
  shell("$A explain 'gemm f32 nt 10x20x30 row-major' --device host --db $D");
  expect("measured winner");
}

TEST(help_to_a_full_disk_fails) {
  if (access("/dev/full", W_OK) != 0) skip();
  const char *const lines[] = {"$A --help",  "$A tune --help",     "$A --version",
                               "$A --usage", "$A completion bash", "$A devices"};
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
    char line[128];
    snprintf(line, sizeof line, "%s 2>&1 >/dev/full", lines[i]);
    shell(line);
    if (code != 1) fail_msg("%s to a full disk ends with %d", lines[i], code);
    expect("standard output cannot be written");
  }
}

TEST(manual_page_is_of_the_table) {
  shell("$A --manual >\"$W\" && sed -n '/attune --manual: begin/,/attune --manual: end/{//!p}' \"" AT_SOURCE_DIR
        "/docs/attune.1\" | diff - \"$W\"");
  if (code != 0) fail_msg("docs/attune.1 is not what `attune --manual' prints: %s", text);
  shell("$A --manual | grep -c .");
  assert_true(atoi(text) > 40);
}

TEST(completion_knows_commands_and_options) {
  if (access("/bin/bash", X_OK) != 0) skip();
  shell(
      "bash -c 'source <($A completion bash); COMP_WORDS=(attune t); COMP_CWORD=1; _attune; echo \"${COMPREPLY[*]}\"'");
  assert_string_equal(text, "tune\n");
  shell("bash -c 'source <($A completion bash); COMP_WORDS=(attune tune --pro); COMP_CWORD=2; _attune; echo "
        "\"${COMPREPLY[*]}\"'");
  assert_string_equal(text, "--problem-budget\n");
  shell("bash -c 'source <($A completion bash); COMP_WORDS=(attune show --device h); COMP_CWORD=3; _attune; echo "
        "\"${COMPREPLY[*]}\"'");
  assert_string_equal(text, "host\n");
  shell("bash -c 'source <($A completion bash); COMP_WORDS=(attune help ver); COMP_CWORD=2; _attune; echo "
        "\"${COMPREPLY[*]}\"'");
  assert_string_equal(text, "verify version\n");
  shell("$A completion csh 2>&1");
  assert_int_equal(code, 2);
  expect("SHELL is \"csh\"; should be bash, zsh or fish");
}

/* Every command and every option that its help lists, in each shell: what is missing is printed. */
#define COMMANDS "$($A --help | sed -n \"/^Commands:/,/^\\$/s/^  \\([a-z]*\\) .*/\\1/p\")"
#define OPTIONS "$($A $c --help | grep -oE \"^  (-., |    )--[a-z-]+\" | grep -oE -e \"--[a-z-]+\")"
#define LETTERS "$($A $c --help | grep -oE \"^  -[a-zA-Z]\" | grep -oE -e \"-[a-zA-Z]\")"

TEST(completion_is_complete_in_bash) {
  if (access("/bin/bash", X_OK) != 0) skip();
  shell(
      "bash -c 'source <($A completion bash); number=0\n"
      "at() { COMP_WORDS=(attune \"${@:2}\"); COMP_CWORD=$#; COMP_CWORD=$((COMP_CWORD-1)); _attune; (( number++ ))\n"
      "  [[ \" ${COMPREPLY[*]} \" == *\" $1 \"* ]] || echo \"$*: ${COMPREPLY[*]}\"; }\n"
      "for c in " COMMANDS "; do at $c $c; for o in " OPTIONS " " LETTERS "; do at $o $c $o; done; done\n"
      "at --version --v; at --help --; at host show --device = h; at host show --device =; at host tune -d h\n"
      "at strict eval --contract s; at equivalent eval --contract = e; at recorded tune rec; at recorded show r\n"
      "at runtime bench --suite r; at otava export --format o; at bf16 eval --dtype = b; at google= bench --export go\n"
      "echo $(( number > 150 ))'");
  assert_string_equal(text, "1\n");
}

TEST(completion_is_complete_in_fish) {
  shell("command -v fish");
  if (code != 0) skip();
  shell("A=$A bash -c 'for c in " COMMANDS "; do echo at $c $c; for o in " OPTIONS "; do echo at $o $c $o; done; "
        "for o in " LETTERS "; do echo at $o $c -; done; done' >$D.fish; cat >>$D.fish <<END\n"
        "at --version --v; at host show --device h; at --device=host show --device=h; at strict eval --contract s\n"
        "at recorded tune rec; at recorded show r; at runtime bench --suite r; at otava export --format o\n"
        "at bf16 eval --dtype b; at google= bench --export go\nEND\n"
        "HOME=${D%%/*} fish --no-config -c 'source ($A completion fish | psub); set -g number 0\n"
        "function at; set -g number (math $number + 1)\n"
        "  set -l found (complete -C \"attune $argv[2..-1]\" | string replace -r \"\\t.*\" \"\")\n"
        "  contains -- $argv[1] $found; or echo $argv: $found; end\n"
        "source $argv[1]; test $number -gt 150; and echo 1' $D.fish 2>&1; rm $D.fish");
  assert_string_equal(text, "1\n");
}

/* zsh's own completion asks for a terminal: its script's text is looked at. */
TEST(completion_is_complete_in_zsh) {
  if (access("/bin/bash", X_OK) != 0) skip();
  shell(
      "A=$A bash -c 'script=$($A completion zsh); number=0\n"
      "for c in " COMMANDS "; do part=$(sed -n \"/^    $c)\\$/,/;;\\$/p\" <<< \"$script\"); [[ $part ]] || echo $c\n"
      "  for o in " OPTIONS
      "; do (( number++ )); [[ $part == *$o[=\\[\\}]* || $part == *$o\\}* ]] || echo \"$c $o\"; done\n"
      "  for o in " LETTERS
      "; do [[ $part == *\"{$o\"[,+]* || $part == *,$o\\}* || $part == *\"$o\"[,}]* ]] || echo \"$c $o\"; done; done\n"
      "for w in recorded \"strict equivalent reduced\" runtime otava bf16; do [[ $script == *\"$w\"* ]] || echo "
      "\"$w\"; done\n"
      "echo $(( number > 100 ))'");
  assert_string_equal(text, "1\n");
}
#undef COMMANDS
#undef OPTIONS
#undef LETTERS

/* Completions of the line `words` in fish. */
static void fish(const char *words) {
  char line[256];
  snprintf(line, sizeof line,
           "HOME=${D%%/*} fish --no-config -c 'source ($A completion fish | psub); complete -C \"%s\"'", words);
  shell(line);
  assert_int_equal(code, 0);
}

TEST(completion_works_in_fish) {
  shell("command -v fish");
  if (code != 0) skip();
  fish("attune tu");
  assert_string_equal(text, "tune\tmeasure, verify and store the winners of a workload\n");
  fish("attune tune --pro");
  expect("--problem-budget");
  fish("attune show --pro");
  assert_string_equal(text, "");
  fish("attune show --device cuda:");
  expect("cuda:0");
  fish("attune help hist");
  expect("history");
  fish("attune tune /etc/pass");
  expect("/etc/passwd");
  fish("attune show --db /etc/pass");
  expect("/etc/passwd");
  fish("attune history --");
  expect("Result file written by `attune bench --save'; required");
}

/* zsh reads it and knows whose it is; its own completion asks for a terminal. */
TEST(completion_is_read_by_zsh) {
  shell("command -v zsh");
  if (code != 0) skip();
  shell("zsh -fc 'autoload -U compinit && compinit -u -D; source <($A completion zsh); echo $_comps[attune]; "
        "for command in ${(f)\"$($A completion zsh | sed -n \"s/^    \\([a-z]*\\))$/\\1/p\")\"}; do echo $command; "
        "done'");
  expect("_attune\ndevices\ntune\n");
  expect("\nversion\n");
  shell("$A completion zsh | zsh -n");
  assert_int_equal(code, 0);
  assert_string_equal(text, "");
}

FIXTURE(make_folder) {
  if (!mkdtemp(folder)) return -1;
  snprintf(database, sizeof database, "%s/tuning.db", folder);
  snprintf(workload, sizeof workload, "%s/workload.csv", folder);
  return setenv("A", AT_COMMAND, 1) | setenv("D", database, 1) | setenv("W", workload, 1);
}

FIXTURE(remove_folder) {
  shell("rm -r \"${D%/*}\"");
  return code;
}

/* A line for each device a round below a head, objects with --json, an end by its number or by Ctrl-C. */
TEST_WITH(devices_are_watched, fresh, NULL) {
  shell("$A devices --watch --rounds 3 --interval 0.01 | grep -c '^host  *[-0-9]'");
  assert_string_equal(text, "3\n");
  shell("$A devices --watch --rounds 1");
  assert_int_equal(code, 0);
  expect("device    busy  mem-busy    memory GiB");
  shell("$A devices --watch --rounds 2 --interval 0.01 --json | grep -c '^{.*\"busy_percent\":.*\"slowdown\":.*}$'");
  assert_true(strtol(text, NULL, 10) >= 2);
  shell("$A devices --watch --interval 1000 > $D.out & p=$!; until grep -q ^host $D.out; do sleep 0.01; done; "
        "kill -INT $p; wait $p; echo ended $?; rm $D.out");
  assert_string_equal(text, "ended 0\n");
  static const char *const wrong[] = {"--interval 1",         "--rounds 2",
                                      "--watch --rounds 0",   "--watch --rounds 1.5",
                                      "--watch --interval x", "--watch --problem 'gemm f32 nn 8x8x8'"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    char line[200];
    snprintf(line, sizeof line, "$A devices %s 2>&1", wrong[i]);
    shell(line);
    assert_int_equal(code, 2);
  }
}

int main(void) {
  return RUN_TESTS(make_folder, remove_folder);
}
