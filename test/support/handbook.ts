import { spawn } from 'node:child_process';
import { appendFileSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** @returns the text of a page of the operations handbook. */
const readPage = (page: string) => readFileSync(join(__dirname, `../../docs/operations/${page}.md`), 'utf8');

/** Lines of a page that a shell runs, as they stand there: of its blocks of commands, and in its sentences. */
function linesOf(page: string): string[] {
  const text = readPage(page);
  const blocks = [...text.matchAll(/^ *```(\w*)\n([^]*?)^ *```/gm)]
    .filter(([, language]) => language === '' || language === 'sh')
    .map(([, , block = '']) => block.replaceAll(/ *\\\n */g, ' '));
  const inline = [...text.replaceAll(/^ *```[^]*?^ *```/gm, '').matchAll(/`([^`\n]+)`/g)].map(
    ([, code = '']) => code.replaceAll(String.raw`\|`, '|'),
  );
  return [...blocks.flatMap((block) => block.split('\n')), ...inline].map((line) =>
    line.replace(/ +#.*/, '').trim(),
  );
}

/** Commands of pages, which a program of steps has to run. @param isCommand which of their lines are commands */
export const commandsOf = (pages: readonly string[], isCommand: (line: string) => boolean) =>
  pages.flatMap(linesOf).filter(isCommand);

/** A YAML file that a page shows, found by a text in it. */
export function fileOfPage(page: string, has: string): string {
  const blocks = [...readPage(page).matchAll(/^```yaml\n([^]*?)^```/gm)].map(([, block = '']) => block);
  const found = blocks.find((block) => block.includes(has));
  if (found === undefined) throw new Error(`${page}.md shows no file with ${has}`);
  return found;
}

export interface Ran {
  readonly code: number;
  readonly out: string;
}

/** Somebody who follows pages of the handbook, in a folder of their own. */
export class Handbook {
  readonly folder = mkdtempSync(join(tmpdir(), 'finance-'));
  readonly #log = join(this.folder, 'commands.log');
  /** Of the person who types the commands. */
  readonly environment: Record<string, string> = {};
  readonly #open: Set<string>;
  readonly #known: ReadonlySet<string>;

  /** @param commands of the pages */
  constructor(commands: readonly string[]) {
    this.#open = new Set(commands);
    this.#known = new Set(commands);
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

  /** @returns a command of the handbook, in its words; `filled` has what stands for an example in it. @throws when no page has it. */
  words(line: string, filled: Readonly<Record<string, string>> = {}): string {
    if (!this.#known.has(line)) throw new Error(`no page of the handbook has this command: ${line}`);
    this.#open.delete(line);
    return Object.entries(filled).reduce((text, [from, to]) => text.replaceAll(from, to), line);
  }

  /** Runs a command of the handbook. */
  page = (line: string, filled: Readonly<Record<string, string>> = {}): Promise<string> =>
    this.run(this.words(line, filled));

  /** Commands of the handbook that nobody ran. */
  left = (): string[] => [...this.#open];

  write(file: string, text: string, mode = 0o644): void {
    writeFileSync(join(this.folder, file), text, { mode });
  }
}
