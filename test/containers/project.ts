import { execFileSync, spawn } from 'node:child_process';
import { appendFileSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readPage } from '../support/handbook';

const root = join(__dirname, '../..');
const PAGES = ['production', 'backup', 'upgrade', 'faults'] as const;

/** Commands of the handbook that are about containers, as they stand there. */
function commandsOf(page: string): string[] {
  const text = readPage(page);
  const blocks = [...text.matchAll(/^ *```(\w*)\n([^]*?)^ *```/gm)]
    .filter(([, language]) => language === '' || language === 'sh')
    .map(([, , block = '']) => block.replaceAll(/ *\\\n */g, ' '));
  const inline = [...text.replaceAll(/^ *```[^]*?^ *```/gm, '').matchAll(/`([^`\n]+)`/g)].map(
    ([, code = '']) => code.replaceAll(String.raw`\|`, '|'),
  );
  return [...blocks.flatMap((block) => block.split('\n')), ...inline]
    .map((line) => line.replace(/ +#.*/, '').trim())
    .filter(
      (line) =>
        /\bdocker (compose|volume) [\w-]|^(cat|cp|export) .*(pem|env|OPS)/.test(line) &&
        !line.includes('<command>'),
    );
}

export interface Ran {
  readonly code: number;
  readonly out: string;
}

/** A copy of the project, as somebody who deploys it has it, on the machine of the engine. */
export class Project {
  readonly folder = mkdtempSync(join(tmpdir(), 'finance-'));
  readonly #log = join(this.folder, 'commands.log');
  /** Of the person who types the commands. */
  readonly environment: Record<string, string> = {};
  readonly #open = new Set(PAGES.flatMap(commandsOf));
  readonly #known: ReadonlySet<string> = new Set(this.#open);

  constructor() {
    execFileSync(
      'bash',
      [
        '-c',
        'git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$0"',
        this.folder,
      ],
      { cwd: root },
    );
    execFileSync('chmod', ['755', this.folder]);
    // Digests are those of the real images (renovate.json).
    execFileSync('sed', ['-i', 's/@sha256:[0-9a-f]*//', 'docker-compose.yml', 'Dockerfile'], {
      cwd: this.folder,
    });
  }

  /** Runs a command line. */
  async try(line: string): Promise<Ran> {
    const startedAt = Date.now();
    const child = spawn('bash', ['-c', line], {
      cwd: this.folder,
      env: { ...process.env, ...this.environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let [out, all] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => ((out += chunk.toString()), (all += chunk.toString())));
    child.stderr.on('data', (chunk: Buffer) => (all += chunk.toString()));
    const code = await new Promise<number>((resolve) => child.once('close', (it) => resolve(it ?? 1)));
    appendFileSync(this.#log, `$ ${line}\n${all}[${code}, ${Date.now() - startedAt} ms]\n`);
    return { code, out: code === 0 ? out : all };
  }

  /** @returns its standard output. @throws when it fails. */
  async run(line: string): Promise<string> {
    const { code, out } = await this.try(line);
    if (code !== 0) throw new Error(`${line}\nended with ${code}:\n${out.slice(-3_000)}`);
    return out.trim();
  }

  /** Runs a command of the handbook, in its words; `filled` has what stands for an example in it. @throws when no page has it. */
  async page(line: string, filled: Readonly<Record<string, string>> = {}): Promise<string> {
    if (!this.#known.has(line)) throw new Error(`no page of the handbook has this command: ${line}`);
    this.#open.delete(line);
    return this.run(Object.entries(filled).reduce((text, [from, to]) => text.replaceAll(from, to), line));
  }

  /** Commands of the handbook that nobody ran. */
  left = (): string[] => [...this.#open];

  /** A command of `ops`. @returns its answer. */
  async ops<T = Record<string, string>>(line: string): Promise<T> {
    return JSON.parse(await this.run(`docker compose run --rm -T ops ${line} --json`)) as T;
  }

  /** @returns rows of text. */
  async sql(statement: string, database = 'quotes'): Promise<string[]> {
    const out = await this.run(
      `docker compose exec -T postgres psql -U postgres -d ${database} -XAtqc "${statement}"`,
    );
    return out === '' ? [] : out.split('\n');
  }

  write(file: string, text: string, mode = 0o644): void {
    writeFileSync(join(this.folder, file), text, { mode });
  }

  /** Changes a line of `.env`. */
  set(values: Readonly<Record<string, string>>): void {
    const file = join(this.folder, '.env');
    const change = (text: string, [name, value]: [string, string]) =>
      text.replace(new RegExp(`^${name}=.*`, 'm'), `${name}=${value}`);
    writeFileSync(file, Object.entries(values).reduce(change, readFileSync(file, 'utf8')));
  }

  /** Waits until every container that should run does, and is healthy. @returns in how many seconds. */
  async healthy(limitSeconds = 120): Promise<number> {
    const startedAt = Date.now();
    for (;;) {
      const { out } = await this.try(
        `docker compose ps --all --format '{{.Service}} {{.State}} {{.Health}} {{.ExitCode}}'`,
      );
      const bad = out
        .trim()
        .split('\n')
        .filter((line) => !/ running (healthy)? ?0$| exited  0$/.test(line));
      const seconds = Math.round((Date.now() - startedAt) / 100) / 10;
      if (bad.length === 0) return seconds;
      if (seconds > limitSeconds) throw new Error(`not healthy after ${limitSeconds} s: ${bad.join('; ')}`);
      await sleep(300);
    }
  }
}
