/* How a program of the machine is run: looked up in its PATH, and when that fails, why, in words. */
#pragma once
#include "say.h"

enum { PROT_READ = 1, PROT_WRITE = 2, MAP_PRIVATE = 2, MAP_ANONYMOUS = 32, SIG_BLOCK = 0, SIG_SETMASK = 2, SIGCHLD = 17, TIOCSPGRP = 0x5410, EACCES = 13, ENOENT = 2 };

static void broken(const char *why) {
  say("hangar: ");
  say(why);
  say("\n");
  leave(126);
}

static void *memory(word bytes) {
  long p = call6(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p < 0 && p > -4096) broken("no memory for a process");
  return (void *)p;
}

static const char *path_of(char **variables) {
  for (; *variables; variables++) {
    const char *v = *variables;
    if (v[0] == 'P' && v[1] == 'A' && v[2] == 'T' && v[3] == 'H' && v[4] == '=') return v + 5;
  }
  return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
}

/* Looks the program up in its own PATH. Answers only when it cannot be run: the reason. */
static long run(char **words, char **variables) {
  const char *name = words[0];
  for (const char *c = name; *c; c++)
    if (*c == '/') return call(SYS_execve, name, words, variables, 0);
  const char *path = path_of(variables);
  char *file = memory(length(path) + length(name) + 2);
  long worst = -ENOENT;
  while (*path) {
    word n = 0;
    while (*path && *path != ':') file[n++] = *path++;
    if (*path == ':') path++;
    if (n > 0) file[n++] = '/';
    for (const char *c = name; *c; c++) file[n++] = *c;
    file[n] = 0;
    long r = call(SYS_execve, file, words, variables, 0);
    if (r != -ENOENT) worst = r;
  }
  return worst;
}

/* Becomes the program, or says why not and ends as a shell would. */
static void run_or_leave(char **words, char **variables) {
  long r = run(words, variables);
  say("hangar: cannot run ");
  say(words[0]);
  say(r == -ENOENT ? ": there is no such program in the image\n" : r == -EACCES ? ": it may not be executed\n" : ": it is no program of this machine\n");
  leave(r == -ENOENT ? 127 : 126);
}

/* What a shell would say of how a process ended. */
static int code_of(int status) { return status & 0x7f ? 128 + (status & 0x7f) : (status >> 8) & 0xff; }
