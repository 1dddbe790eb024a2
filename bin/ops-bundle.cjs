/**
 * `npm run ops` as one file. To compile and load 500 files takes most of a second of every call, so they are bundled once, with the
 * compiler of tsx, into node_modules/.cache, and again when one of them has changed. Built-ins alone until then.
 */
const { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } = require('fs');
const { createRequire } = require('module');
const { dirname, join } = require('path');

/** Loaded by few commands, and too large to be compiled with each. */
const EXTERNAL = ['@temporalio/*'];

/**
 * @param {string} root
 * @returns {string | null} the file to load; null when it cannot be written, or the source cannot be compiled, which tsx explains.
 */
function opsBundle(root) {
  const file = join(root, 'node_modules', '.cache', 'ops', 'ops.cjs');
  try {
    if (!isCurrent(root, file)) build(root, file);
    return file;
  } catch {
    return null;
  }
}

/** Its first line names what it was made of, with size and time of change. */
function isCurrent(root, file) {
  try {
    const [first] = readFileSync(file, 'utf8').split('\n', 1);
    return JSON.parse(first.slice(3)).every(([path, stamp]) => stampOf(root, path) === stamp);
  } catch {
    return false;
  }
}

function stampOf(root, path) {
  const { mtimeMs, size } = statSync(join(root, path));
  return `${mtimeMs} ${size}`;
}

function build(root, file) {
  // Not a dependency of ours: the one that tsx would compile the same files with.
  const esbuild = createRequire(require.resolve('tsx', { paths: [root] }))('esbuild');
  const { metafile, outputFiles } = esbuild.buildSync({
    absWorkingDir: root,
    entryPoints: ['bin/ops.ts'],
    bundle: true,
    platform: 'node',
    target: 'node20',
    external: EXTERNAL,
    metafile: true,
    write: false,
    logLevel: 'silent',
  });
  const inputs = Object.keys(metafile.inputs).map((path) => [path, stampOf(root, path)]);
  mkdirSync(dirname(file), { recursive: true });
  // In one step: another call may load the one before at this moment.
  const fresh = `${file}.${process.pid}`;
  writeFileSync(fresh, `// ${JSON.stringify(inputs)}\n${outputFiles[0].text}`);
  renameSync(fresh, file);
}

module.exports = { opsBundle };
