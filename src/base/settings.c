/* SPDX-License-Identifier: Apache-2.0
 * settings.c: the environment. secure_getenv gives nothing under AT_SECURE: a setuid program has the defaults only. */
#include "src/base/settings.h"

#include "src/base/support.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUDGET_MS_DEFAULT 0.0

static const char *const known_variables[] = {
    "ATTUNE_ALLOC",  "ATTUNE_BUDGET_MS", "ATTUNE_CACHE_DIR", "ATTUNE_CHECK",  "ATTUNE_COMPILE",  "ATTUNE_DB",
    "ATTUNE_LOG",    "ATTUNE_LOG_FILE",  "ATTUNE_MODE",      "ATTUNE_NVTX",   "ATTUNE_OVERRIDE", "ATTUNE_PROFILE",
    "ATTUNE_SEARCH", "ATTUNE_SKIP",      "ATTUNE_TF32",      "ATTUNE_THREADS"};
static const char *const variables_of_others[] = {"CUDA_VISIBLE_DEVICES", "HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME",
                                                  "XDG_RUNTIME_DIR"};

const char *at_settings_variable(size_t i) {
  const size_t own = AT_COUNT(known_variables);
  if (i < own) return known_variables[i];
  return i - own < AT_COUNT(variables_of_others) ? variables_of_others[i - own] : NULL;
}

/* The documentation is checked against the lists above. */
static __attribute__((unused)) bool is_listed(const char *name) {
  size_t i = 0;
  while (at_settings_variable(i) && strcmp(at_settings_variable(i), name) != 0) i++;
  return at_settings_variable(i) != NULL;
}

/* NULL for an unset and for an empty variable alike. */
static const char *variable(const char *name) {
  assert(is_listed(name));
  const char *value = secure_getenv(name);
  return value && *value ? value : NULL;
}

/* The XDG rule: a relative directory in the environment is ignored. */
static const char *absolute_variable(const char *name) {
  const char *value = variable(name);
  return value && *value == '/' ? value : NULL;
}

/* $NAME when set, else $XDG/tail, else $HOME/home_tail, else "". */
static attune_status read_path(char *out, size_t size, const char *name, const char *xdg, const char *home_tail,
                               const char *tail) {
  size_t at = 0;
  bool fits = true;
  const char *value = variable(name), *base = absolute_variable(xdg), *home = absolute_variable("HOME");
  out[0] = '\0';
  if (value) {
    fits = at_copy_text(out, size, value);
  } else if (base) {
    name = xdg;
    fits = at_append(out, size, &at, "%s/%s", base, tail);
  } else if (home) {
    name = "HOME";
    fits = at_append(out, size, &at, "%s/%s/%s", home, home_tail, tail);
  }
  if (fits) return ATTUNE_OK;
  out[0] = '\0';
  return AT_INVALID("%s is a path of %zu bytes; should have fewer than %zu", name, strlen(secure_getenv(name)), size);
}

static attune_status read_mode(attune_mode *out) {
  static const struct {
    const char *name;
    attune_mode mode;
  } modes[] = {{"off", ATTUNE_MODE_OFF},
               {"cached", ATTUNE_MODE_CACHED},
               {"record", ATTUNE_MODE_RECORD},
               {"tune", ATTUNE_MODE_TUNE}};
  const char *value = variable("ATTUNE_MODE");
  *out = ATTUNE_MODE_CACHED;
  if (!value) return ATTUNE_OK;
  for (size_t i = 0; i < AT_COUNT(modes); i++) {
    if (strcmp(value, modes[i].name) != 0) continue;
    *out = modes[i].mode;
    return ATTUNE_OK;
  }
  return AT_INVALID("ATTUNE_MODE is \"%.100s\"; should be off, cached, record or tune", value);
}

static attune_status read_compile(attune_compile *out) {
  const char *value = variable("ATTUNE_COMPILE");
  *out = value && strcmp(value, "wait") == 0 ? ATTUNE_COMPILE_WAIT : ATTUNE_COMPILE_BACKGROUND;
  if (!value || *out == ATTUNE_COMPILE_WAIT || strcmp(value, "background") == 0) return ATTUNE_OK;
  return AT_INVALID("ATTUNE_COMPILE is \"%.100s\"; should be background or wait", value);
}

static bool parse_milliseconds(double *out, const char *text) {
  return at_parse_decimal(out, text) && *out > 0.0 && *out <= 1e12;
}

static attune_status read_budget(double *out) {
  const char *value = variable("ATTUNE_BUDGET_MS");
  *out = BUDGET_MS_DEFAULT;
  if (!value || parse_milliseconds(out, value)) return ATTUNE_OK;
  *out = BUDGET_MS_DEFAULT;
  return AT_INVALID("ATTUNE_BUDGET_MS is \"%.100s\"; should be a number of milliseconds, such as 12.5, above 0 and at "
                    "most 1000000000000",
                    value);
}

attune_status at_settings_threads(int *out) {
  const char *value = variable("ATTUNE_THREADS");
  int64_t threads = 0;
  *out = 0;
  if (!value) return ATTUNE_OK;
  if (!at_parse_i64(&threads, value) || threads < 1 || threads > AT_THREADS_MAX)
    return AT_INVALID("ATTUNE_THREADS is \"%.100s\"; should be a whole number of threads, 1 to %d", value,
                      AT_THREADS_MAX);
  *out = (int)threads;
  return ATTUNE_OK;
}

typedef struct level_word {
  const char *word;
  attune_log_level level;
} level_word;
static const level_word level_words[] = {{"off", ATTUNE_LOG_OFF},
                                         {"error", ATTUNE_LOG_ERROR},
                                         {"warning", ATTUNE_LOG_WARNING},
                                         {"info", ATTUNE_LOG_INFO},
                                         {"debug", ATTUNE_LOG_DEBUG}};

/* NULL: no such word. */
static const level_word *find_level(const char *word) {
  for (size_t i = 0; i < AT_COUNT(level_words); i++)
    if (strcmp(word, level_words[i].word) == 0) return &level_words[i];
  return NULL;
}

static attune_status check_log(void) {
  const char *value = variable("ATTUNE_LOG");
  if (!value || find_level(value)) return ATTUNE_OK;
  return AT_INVALID("ATTUNE_LOG is \"%.100s\"; should be off, error, warning, info or debug", value);
}

/* A variable with one word that switches something on and one that does not. */
static attune_status check_switch(const char *name, const char *on, const char *off) {
  const char *value = variable(name);
  if (!value || strcmp(value, on) == 0 || strcmp(value, off) == 0) return ATTUNE_OK;
  return AT_INVALID("%s is \"%.100s\"; should be %s or %s", name, value, on, off);
}

const char *at_settings_visible_devices(void) {
  return secure_getenv("CUDA_VISIBLE_DEVICES");
}

bool at_settings_check_races(void) {
  const char *value = variable("ATTUNE_CHECK");
  return value && strcmp(value, "races") == 0;
}

bool at_settings_nvtx(void) {
  const char *value = variable("ATTUNE_NVTX");
  return value && strcmp(value, "1") == 0;
}

bool at_settings_tf32(void) {
  const char *value = variable("ATTUNE_TF32");
  return value && strcmp(value, "1") == 0;
}

bool at_settings_log_file(char *out, size_t size) {
  const char *value = variable("ATTUNE_LOG_FILE");
  size_t at = 0;
  bool fits = true;
  *out = '\0';
  for (; value && *value && fits; value++) {
    const bool number = value[0] == '%' && value[1] == 'p';
    fits = number ? at_append(out, size, &at, "%ld", (long)getpid()) : at_append(out, size, &at, "%c", *value);
    value += number;
  }
  return fits;
}

static attune_status read_text(char *out, size_t size, const char *name) {
  const char *value = variable(name);
  if (at_copy_text(out, size, value ? value : "")) return ATTUNE_OK;
  *out = '\0';
  return AT_INVALID("%s has %zu bytes; should have fewer than %zu", name, strlen(value), size);
}

static attune_status check_log_file(void) {
  char path[4096];
  if (at_settings_log_file(path, sizeof path)) return ATTUNE_OK;
  return AT_INVALID("ATTUNE_LOG_FILE is a path of %zu bytes; should have fewer than %zu",
                    strlen(variable("ATTUNE_LOG_FILE")), sizeof path);
}

static attune_status read_profile(char *out, size_t size) {
  static const char end[] = ".json";
  const char *value = variable("ATTUNE_PROFILE");
  const size_t length = value ? strlen(value) : 0;
  *out = '\0';
  if (!value) return ATTUNE_OK;
  if (strcmp(value, "stderr") != 0 && (length < sizeof end || strcmp(value + length - (sizeof end - 1), end) != 0))
    return AT_INVALID("ATTUNE_PROFILE is \"%.100s\"; should be stderr or the path of a file that ends in .json", value);
  if (at_copy_text(out, size, value)) return ATTUNE_OK;
  *out = '\0';
  return AT_INVALID("ATTUNE_PROFILE is a path of %zu bytes; should have fewer than %zu", length, size);
}

/* One word of ATTUNE_OVERRIDE. */
static attune_status override_one(at_settings *out, const char *word) {
  const struct {
    const char *word, *variable;
    bool *on;
  } each[] = {{"mode", "ATTUNE_MODE", &out->override_mode},
              {"db", "ATTUNE_DB", &out->override_database},
              {"budget", "ATTUNE_BUDGET_MS", &out->override_budget}};
  for (size_t i = 0; i < AT_COUNT(each); i++) {
    if (strcmp(word, each[i].word) != 0) continue;
    *each[i].on = true;
    if (variable(each[i].variable)) return ATTUNE_OK;
    return AT_INVALID("ATTUNE_OVERRIDE has \"%s\", but %s is not set; set it, or leave the word out", word,
                      each[i].variable);
  }
  return AT_INVALID("ATTUNE_OVERRIDE has \"%.60s\"; should be words of mode, db and budget, separated by commas", word);
}

static attune_status read_override(at_settings *out) {
  char copy[64], *rest = copy;
  out->override_mode = out->override_database = out->override_budget = false;
  attune_status status = read_text(copy, sizeof copy, "ATTUNE_OVERRIDE");
  for (char *word; status == ATTUNE_OK && rest && (word = strtok_r(rest, ", ", &rest));)
    status = override_one(out, word);
  return status;
}

attune_status at_settings_read(at_settings *out) {
  attune_status status =
      read_path(out->database, sizeof out->database, "ATTUNE_DB", "XDG_DATA_HOME", ".local/share", "attune/tuning.db");
  if (status != ATTUNE_OK) return status;
  out->database_named = variable("ATTUNE_DB") != NULL;
  status = read_path(out->cache_dir, sizeof out->cache_dir, "ATTUNE_CACHE_DIR", "XDG_CACHE_HOME", ".cache", "attune");
  if (status != ATTUNE_OK) return status;
  status = read_mode(&out->mode);
  if (status == ATTUNE_OK) status = read_compile(&out->compile);
  if (status == ATTUNE_OK) status = at_settings_threads(&out->threads);
  if (status == ATTUNE_OK) status = check_log();
  if (status == ATTUNE_OK) status = check_switch("ATTUNE_CHECK", "races", "off");
  if (status == ATTUNE_OK) status = check_switch("ATTUNE_NVTX", "1", "0");
  if (status == ATTUNE_OK) status = check_switch("ATTUNE_TF32", "1", "0");
  if (status == ATTUNE_OK) status = check_log_file();
  if (status == ATTUNE_OK) status = read_text(out->search, sizeof out->search, "ATTUNE_SEARCH");
  if (status == ATTUNE_OK) status = read_override(out);
  if (status == ATTUNE_OK) status = read_text(out->skip, sizeof out->skip, "ATTUNE_SKIP");
  if (status == ATTUNE_OK) status = read_profile(out->profile, sizeof out->profile);
  if (status != ATTUNE_OK) return status;
  return read_budget(&out->budget_ms);
}

attune_status at_settings_meeting_places(at_meeting_places *out) {
  char own[32];
  size_t at = 0;
  (void)at_append(own, sizeof own, &at, "/run/user/%lu", (unsigned long)geteuid());
  const char *run_time = absolute_variable("XDG_RUNTIME_DIR");
  at = 0;
  if (!at_append(out->folder[0], sizeof out->folder[0], &at, "%s/attune", run_time ? run_time : own))
    out->folder[0][0] = '\0';
  return read_path(out->folder[1], sizeof out->folder[1], "ATTUNE_CACHE_DIR", "XDG_CACHE_HOME", ".cache", "attune");
}

attune_status at_settings_alloc(char *out, size_t size) {
  const char *value = variable("ATTUNE_ALLOC");
  if (at_copy_text(out, size, value ? value : "")) return ATTUNE_OK;
  return AT_INVALID("ATTUNE_ALLOC has %zu bytes; should have fewer than %zu", strlen(value), size);
}

attune_log_level at_settings_log_level(void) {
  const char *value = variable("ATTUNE_LOG");
  const level_word *found = value ? find_level(value) : NULL;
  return found ? found->level : ATTUNE_LOG_ERROR;
}

/* --- variables that attune does not know --- */

/* Letters to put in, take out or change. */
static int letters_apart(const char *a, size_t length, const char *b) {
  enum { MOST = 48 };
  int row[MOST + 1];
  const int columns = (int)strlen(b);
  if (length > MOST || columns > MOST) return MOST;
  for (int j = 0; j <= columns; j++) row[j] = j;
  for (int i = 1; i <= (int)length; i++) {
    int corner = row[0];
    row[0] = i;
    for (int j = 1; j <= columns; j++) {
      const int other = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1, change = corner + (a[i - 1] != b[j - 1]);
      corner = row[j];
      row[j] = change < other ? change : other;
    }
  }
  return row[columns];
}

static void tell_unknown(const char *name, size_t length) {
  const char *nearest = known_variables[0];
  for (size_t i = 0; i < AT_COUNT(known_variables); i++) {
    if (strlen(known_variables[i]) == length && strncmp(name, known_variables[i], length) == 0) return;
    if (letters_apart(name, length, known_variables[i]) < letters_apart(name, length, nearest))
      nearest = known_variables[i];
  }
  at_log(ATTUNE_LOG_WARNING, "attune does not know the environment variable %.*s; did you mean %s?",
         (int)(length < 100 ? length : 100), name, nearest);
}

void at_settings_tell_unknown(void) {
  static atomic_bool told;
  if (atomic_exchange(&told, true) || !environ) return;
  for (char **entry = environ; *entry; entry++) {
    if (strncmp(*entry, "ATTUNE_", 7) != 0 || strncmp(*entry + 7, "TEST_", 5) == 0) continue;
    tell_unknown(*entry, strcspn(*entry, "="));
  }
}
