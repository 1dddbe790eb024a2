import { execFile, execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { demand } from '../../../test/support/on-demand';

const PACKAGE = join(__dirname, '..');
const tsc = join(PACKAGE, 'node_modules/typescript/lib/tsc.js');

/** Compiles the package into a folder, in both forms, for all test files of a run. */
export function buildPackage(outDir: string): void {
  const commonJs = join(outDir, 'cjs');
  compile(['-p', join(PACKAGE, 'tsconfig.json'), '--outDir', outDir]);
  compile(['-p', join(PACKAGE, 'tsconfig.cjs.json'), '--outDir', commonJs]);
  writeFileSync(join(commonJs, 'package.json'), '{"type":"commonjs"}');
}

/** Lays the package out in a folder of its own as npm would; scripts there import it by name. */
export async function installPackage(folder: string): Promise<void> {
  const installed = join(folder, 'node_modules/partner-finance-client');
  mkdirSync(installed, { recursive: true });
  cpSync(join(PACKAGE, 'package.json'), join(installed, 'package.json'));
  cpSync((await demand<{ built: string }>('client')).built, join(installed, 'dist'), { recursive: true });
  const commands = join(folder, 'node_modules/.bin');
  mkdirSync(commands, { recursive: true });
  chmodSync(join(installed, 'dist/listen.js'), 0o755);
  symlinkSync('../partner-finance-client/dist/listen.js', join(commands, 'partner-finance'));
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
}

/**
 * Type-checks a partner's code against the package.
 * @param form how the partner's project reads modules
 * @returns what the compiler said; empty when it is content
 */
export function typeCheck(
  folder: string,
  code: string,
  form = ['--module', 'nodenext'],
  file = 'partner.ts',
): string {
  writeFileSync(join(folder, file), code);
  const options = ['--noEmit', '--strict', '--skipLibCheck', '--target', 'es2022', ...form];
  try {
    compile([...options, '--lib', 'es2023,dom', join(folder, file)], folder);
    return '';
  } catch (error) {
    return String((error as { stdout?: Buffer }).stdout ?? error);
  }
}

/** Runs a partner's script; it gets `input` as `process.env.INPUT` in JSON, and prints one JSON value. */
export async function runScript(
  folder: string,
  code: string,
  input: unknown,
  caFile: string,
): Promise<unknown> {
  const file = join(folder, 'partner.mjs');
  writeFileSync(file, code);
  const env = { ...process.env, INPUT: JSON.stringify(input), NODE_EXTRA_CA_CERTS: caFile };
  const { stdout } = await promisify(execFile)(process.execPath, [file], { cwd: folder, env });
  return JSON.parse(stdout);
}

function compile(args: readonly string[], cwd = PACKAGE): void {
  execFileSync(process.execPath, [tsc, ...args], { cwd, stdio: 'pipe' });
}
