import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';

/** Versions fixed here: a run of the same seed finds the same. They need Python 3.10 or later. */
const PACKAGES = ['schemathesis==4.32.5', 'openapi-spec-validator==0.9.0'];

/**
 * The folder of the virtual environment's programs: in the user's cache, outside of the repository. Made on the first
 * run, which takes a minute.
 * @throws when there is no Python, or PyPI cannot be reached.
 */
export function pythonPrograms(): string {
  const cache = process.env['XDG_CACHE_HOME'] ?? (homedir() === '/' ? tmpdir() : join(homedir(), '.cache'));
  const venv = join(cache, 'pfqs-fuzz', PACKAGES.join('_').replaceAll('==', '-'));
  const programs = join(venv, 'bin');
  // Written last: what an interrupted run left behind is made anew.
  const complete = join(venv, 'complete');
  if (existsSync(complete)) return programs;
  console.log(`fuzz: installing ${PACKAGES.join(', ')} into ${venv}`);
  mkdirSync(venv, { recursive: true });
  const run = (program: string, args: string[]) => execFileSync(program, args, { stdio: 'inherit' });
  try {
    run('python3', ['-m', 'venv', '--clear', venv]);
    run(join(programs, 'pip'), ['install', '--quiet', '--disable-pip-version-check', ...PACKAGES]);
  } catch (error) {
    throw new Error('fuzz: needs python3 (3.10 or later, with its module venv) and PyPI on the first run', {
      cause: error,
    });
  }
  writeFileSync(complete, '');
  return programs;
}

/** Runs a program in `cwd`, shows what it prints, and waits for its end. @returns whether it ended with 0. */
export async function succeeds(
  program: string,
  args: readonly string[],
  options: { cwd: string; environment?: Record<string, string> },
): Promise<boolean> {
  const child = spawn(program, args, {
    cwd: options.cwd,
    // No .pyc beside hooks.py.
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1', ...options.environment },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return code === 0;
}
