/* SPDX-License-Identifier: Apache-2.0
 * test_settings.c: the environment: defaults, each variable, and what is refused. */
#include "tests/support/check.h"

#include "src/base/settings.h"

#include "src/base/support.h"

#include <unistd.h>

FIXTURE(clean_environment) {
  static const char *const names[] = {
      "ATTUNE_DB",       "ATTUNE_MODE",    "ATTUNE_BUDGET_MS", "ATTUNE_CACHE_DIR", "ATTUNE_LOG",     "ATTUNE_THREADS",
      "XDG_DATA_HOME",   "XDG_CACHE_HOME", "ATTUNE_PROFILE",   "ATTUNE_CHECK",     "ATTUNE_NVTX",    "ATTUNE_COMPILE",
      "ATTUNE_LOG_FILE", "ATTUNE_SEARCH",  "ATTUNE_SKIP",      "ATTUNE_TF32",      "ATTUNE_OVERRIDE"};
  for (size_t i = 0; i < AT_COUNT(names); i++) unsetenv(names[i]);
  return setenv("HOME", "/home/ada", 1);
}

TEST(defaults) {
  at_settings s;
  assert_int_equal(at_settings_read(&s), ATTUNE_OK);
  assert_string_equal(s.database, "/home/ada/.local/share/attune/tuning.db");
  assert_string_equal(s.cache_dir, "/home/ada/.cache/attune");
  assert_int_equal(s.mode, ATTUNE_MODE_CACHED);
  assert_true(s.budget_ms == 0.0);
  assert_int_equal(s.threads, 0);
  assert_int_equal(at_settings_log_level(), ATTUNE_LOG_ERROR);
}

TEST(bad_log_levels_are_named) {
  static const char *const good[] = {"off", "error", "warning", "info", "debug", ""};
  static const char *const bad[] = {"verbose", "INFO", "1", "info ", "warn"};
  at_settings s;
  for (size_t i = 0; i < AT_COUNT(good); i++) {
    setenv("ATTUNE_LOG", good[i], 1);
    assert_int_equal(at_settings_read(&s), ATTUNE_OK);
  }
  for (size_t i = 0; i < AT_COUNT(bad); i++) {
    setenv("ATTUNE_LOG", bad[i], 1);
    FAILS_SAYING(at_settings_read(&s), ATTUNE_INVALID_ARGUMENT, "ATTUNE_LOG");
    assert_non_null(strstr(attune_last_message(), "should be off, error, warning, info or debug"));
    assert_int_equal(at_settings_log_level(), ATTUNE_LOG_ERROR);
  }
}

TEST(compiling_takes_one_word) {
  at_settings s;
  OK(at_settings_read(&s));
  assert_int_equal(s.compile, ATTUNE_COMPILE_BACKGROUND);
  setenv("ATTUNE_COMPILE", "wait", 1);
  OK(at_settings_read(&s));
  assert_int_equal(s.compile, ATTUNE_COMPILE_WAIT);
  setenv("ATTUNE_COMPILE", "background", 1);
  OK(at_settings_read(&s));
  assert_int_equal(s.compile, ATTUNE_COMPILE_BACKGROUND);
  setenv("ATTUNE_COMPILE", "later", 1);
  FAILS_SAYING(at_settings_read(&s), ATTUNE_INVALID_ARGUMENT,
               "ATTUNE_COMPILE is \"later\"; should be background or wait");
}

TEST(overrides_name_what_is_set) {
  at_settings s;
  OK(at_settings_read(&s));
  assert_false(s.override_mode || s.override_database || s.override_budget);
  setenv("ATTUNE_MODE", "off", 1);
  setenv("ATTUNE_BUDGET_MS", "5", 1);
  setenv("ATTUNE_OVERRIDE", "budget,mode", 1);
  OK(at_settings_read(&s));
  assert_true(s.override_mode && s.override_budget && !s.override_database);
  setenv("ATTUNE_OVERRIDE", " budget,, mode ,", 1);
  OK(at_settings_read(&s));
  assert_true(s.override_mode && s.override_budget && !s.override_database);
  setenv("ATTUNE_OVERRIDE", "mode,db", 1);
  FAILS_SAYING(at_settings_read(&s), ATTUNE_INVALID_ARGUMENT, "ATTUNE_OVERRIDE has \"db\", but ATTUNE_DB is not set");
  setenv("ATTUNE_OVERRIDE", "all", 1);
  FAILS_SAYING(at_settings_read(&s), ATTUNE_INVALID_ARGUMENT,
               "ATTUNE_OVERRIDE has \"all\"; should be words of mode, db and budget");
}

TEST(switches_take_one_word) {
  at_settings s;
  assert_false(at_settings_check_races());
  assert_false(at_settings_nvtx());
  setenv("ATTUNE_CHECK", "races", 1);
  setenv("ATTUNE_NVTX", "1", 1);
  assert_int_equal(at_settings_read(&s), ATTUNE_OK);
  assert_true(at_settings_check_races());
  assert_true(at_settings_nvtx());
  setenv("ATTUNE_CHECK", "off", 1);
  setenv("ATTUNE_NVTX", "0", 1);
  assert_int_equal(at_settings_read(&s), ATTUNE_OK);
  assert_false(at_settings_check_races());
  assert_false(at_settings_nvtx());
  setenv("ATTUNE_CHECK", "race", 1);
  FAILS_SAYING(at_settings_read(&s), ATTUNE_INVALID_ARGUMENT, "ATTUNE_CHECK is \"race\"; should be races or off");
  unsetenv("ATTUNE_CHECK");
  setenv("ATTUNE_NVTX", "yes", 1);
  FAILS_SAYING(at_settings_read(&s), ATTUNE_INVALID_ARGUMENT, "ATTUNE_NVTX is \"yes\"; should be 1 or 0");
  assert_false(at_settings_nvtx());
}

TEST(profiles_go_to_stderr_or_json) {
  static const char *const good[] = {"stderr", "x.json", "/tmp/a-%p.json"};
  static const char *const bad[] = {"stdrr", "stdout", "1", ".json", "file.json.gz"};
  static char long_path[5000];
  at_settings s;
  assert_int_equal(at_settings_read(&s), ATTUNE_OK);
  assert_string_equal(s.profile, "");
  for (size_t i = 0; i < AT_COUNT(good); i++) {
    setenv("ATTUNE_PROFILE", good[i], 1);
    assert_int_equal(at_settings_read(&s), ATTUNE_OK);
    assert_string_equal(s.profile, good[i]);
  }
  for (size_t i = 0; i < AT_COUNT(bad); i++) {
    setenv("ATTUNE_PROFILE", bad[i], 1);
    FAILS_SAYING(at_settings_read(&s), ATTUNE_INVALID_ARGUMENT, "ATTUNE_PROFILE is \"");
  }
  memset(long_path, 'x', sizeof long_path - 6);
  memcpy(long_path + sizeof long_path - 6, ".json", 6);
  setenv("ATTUNE_PROFILE", long_path, 1);
  assert_int_equal(at_settings_read(&s), ATTUNE_INVALID_ARGUMENT);
}

TEST(directories_of_the_desktop) {
  at_settings s;
  setenv("XDG_DATA_HOME", "/data", 1);
  setenv("XDG_CACHE_HOME", "/cache", 1);
  assert_int_equal(at_settings_read(&s), ATTUNE_OK);
  assert_string_equal(s.database, "/data/attune/tuning.db");
  assert_string_equal(s.cache_dir, "/cache/attune");
  setenv("XDG_DATA_HOME", "data", 1); /* relative: ignored */
  setenv("XDG_CACHE_HOME", "", 1);
  assert_int_equal(at_settings_read(&s), ATTUNE_OK);
  assert_string_equal(s.database, "/home/ada/.local/share/attune/tuning.db");
  assert_string_equal(s.cache_dir, "/home/ada/.cache/attune");
}

TEST(no_home) {
  at_settings s;
  unsetenv("HOME");
  assert_int_equal(at_settings_read(&s), ATTUNE_OK);
  assert_string_equal(s.database, "");
  assert_string_equal(s.cache_dir, "");
}

TEST(meeting_places) {
  at_meeting_places places;
  char expected[64];
  setenv("XDG_RUNTIME_DIR", "/run/ada", 1);
  assert_int_equal(at_settings_meeting_places(&places), ATTUNE_OK);
  assert_string_equal(places.folder[0], "/run/ada/attune");
  assert_string_equal(places.folder[1], "/home/ada/.cache/attune");
  unsetenv("XDG_RUNTIME_DIR"); /* a job without a session meets those with one */
  unsetenv("HOME");
  snprintf(expected, sizeof expected, "/run/user/%lu/attune", (unsigned long)geteuid());
  assert_int_equal(at_settings_meeting_places(&places), ATTUNE_OK);
  assert_string_equal(places.folder[0], expected);
  assert_string_equal(places.folder[1], "");
}

TEST(own_variables) {
  at_settings s;
  setenv("ATTUNE_DB", "here/my.db", 1);
  setenv("ATTUNE_CACHE_DIR", "/fast", 1);
  setenv("ATTUNE_MODE", "tune", 1);
  setenv("ATTUNE_BUDGET_MS", "12.5", 1);
  setenv("ATTUNE_THREADS", "4096", 1);
  assert_int_equal(at_settings_read(&s), ATTUNE_OK);
  assert_string_equal(s.database, "here/my.db");
  assert_string_equal(s.cache_dir, "/fast");
  assert_int_equal(s.mode, ATTUNE_MODE_TUNE);
  assert_true(s.budget_ms == 12.5);
  assert_int_equal(s.threads, 4096);
  setenv("ATTUNE_DB", "", 1); /* empty is unset */
  setenv("ATTUNE_MODE", "off", 1);
  setenv("ATTUNE_BUDGET_MS", "", 1);
  assert_int_equal(at_settings_read(&s), ATTUNE_OK);
  assert_string_equal(s.database, "/home/ada/.local/share/attune/tuning.db");
  assert_int_equal(s.mode, ATTUNE_MODE_OFF);
  assert_true(s.budget_ms == 0.0);
}

static void refuse(const char *name, const char *value) {
  at_settings s;
  setenv(name, value, 1);
  FAILS_SAYING(at_settings_read(&s), ATTUNE_INVALID_ARGUMENT, name);
  assert_non_null(strstr(attune_last_message(), "should"));
  if (strlen(value) < 50) assert_non_null(strstr(attune_last_message(), value));
  unsetenv(name);
}

TEST(wrong_values_are_named) {
  static const char *const budgets[] = {
      "0", "-1", "fast", "1e3", "0x10", "inf", "nan", "1.2.3", ".", " 5", "5ms", "0.000", "99999999999999999999"};
  for (size_t i = 0; i < AT_COUNT(budgets); i++) refuse("ATTUNE_BUDGET_MS", budgets[i]);
  assert_non_null(strstr(attune_last_message(), "at most 1000000000000"));
  static const char *const threads[] = {"0", "-1", "4097", "two", "2 ", " 2", "1.5", "0x2", "99999999999999999999"};
  for (size_t i = 0; i < AT_COUNT(threads); i++) refuse("ATTUNE_THREADS", threads[i]);
  refuse("ATTUNE_MODE", "always");
  refuse("ATTUNE_MODE", "TUNE");
  refuse("ATTUNE_MODE", "tune ");
}

TEST(long_paths_are_refused) {
  at_settings s;
  char path[5000];
  memset(path, 'a', sizeof path - 1);
  path[0] = '/';
  path[sizeof path - 1] = '\0';
  refuse("ATTUNE_DB", path);
  refuse("ATTUNE_CACHE_DIR", path);
  refuse("XDG_DATA_HOME", path);
  path[4095] = '\0'; /* as long as fits */
  setenv("ATTUNE_DB", path, 1);
  assert_int_equal(at_settings_read(&s), ATTUNE_OK);
  assert_string_equal(s.database, path);
}

TEST(log_levels) {
  static const struct {
    const char *text;
    attune_log_level level;
  } levels[] = {{"off", ATTUNE_LOG_OFF},   {"error", ATTUNE_LOG_ERROR}, {"warning", ATTUNE_LOG_WARNING},
                {"info", ATTUNE_LOG_INFO}, {"INFO", ATTUNE_LOG_ERROR},  {"", ATTUNE_LOG_ERROR}};
  for (size_t i = 0; i < AT_COUNT(levels); i++) {
    setenv("ATTUNE_LOG", levels[i].text, 1);
    assert_int_equal(at_settings_log_level(), levels[i].level);
  }
}

int main(void) {
  return RUN_TESTS_EACH(clean_environment, NULL, NULL, NULL);
}
