/** What log lines say, as searches and the dashboard read them. */
export { LEVELS, type Level, type Line, type ReadLine, readLine, textOf } from "#core/log-line.ts";
