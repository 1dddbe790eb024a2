/**
 * Loaded into a process with --require: at each SIGUSR2 it writes to TOUR_FILE which of our files had a function called since the last
 * one, as V8 counted them. A workflow's code is one script made of many files, each of which begins with a comment of webpack's.
 */
const { renameSync, writeFileSync } = require('node:fs');
const { Session } = require('node:inspector');
const { fileURLToPath } = require('node:url');

const root = `${process.cwd()}/`;
/** What compilers add: the getter of an export. */
const ADDED = /^(\(\)\s*=>\s*\(?(\/\*.*?\*\/)?\s*[\w.[\]]+\)?|function \(\) \{ return [\w.]+; \})$/;
const MODULE = /^\/\*\*\*\/ "\.\/([^"]+)"/gm;

const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Debugger.enable');
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });

function sourceOf(scriptId) {
  let source = '';
  session.post('Debugger.getScriptSource', { scriptId }, (_error, found) => (source = found.scriptSource));
  return source;
}

function calledFiles({ url, scriptId, functions }) {
  const path = url.startsWith('file://') ? fileURLToPath(url) : url;
  const bundle = path === process.env.WORKFLOW_BUNDLE;
  if (!bundle && (!path.startsWith(root) || path.includes('/node_modules/'))) return [];
  const source = sourceOf(scriptId);
  // The function at 0 is the file itself, which runs when it is loaded.
  const starts = functions
    .map(({ ranges: [range] }) => range)
    .filter(
      ({ count, startOffset: from, endOffset }) =>
        count > 0 && from > 0 && !ADDED.test(source.slice(from, endOffset)),
    )
    .map(({ startOffset }) => startOffset);
  if (!bundle) return starts.length > 0 ? [path.slice(root.length)] : [];
  const modules = [...source.matchAll(MODULE)];
  return starts.map((start) => modules.findLast(({ index }) => index < start)?.[1] ?? '');
}

process.on('SIGUSR2', () => {
  session.post('Profiler.takePreciseCoverage', (_error, taken) => {
    const files = new Set(taken.result.flatMap(calledFiles));
    writeFileSync(`${process.env.TOUR_FILE}.part`, JSON.stringify([...files]));
    renameSync(`${process.env.TOUR_FILE}.part`, process.env.TOUR_FILE);
  });
});
