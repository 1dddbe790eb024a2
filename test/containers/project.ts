import { execFileSync } from 'node:child_process';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { commandsOf, Handbook } from '../support/handbook';

const root = join(__dirname, '../..');

/** A copy of the project, as somebody who deploys it has it, on the machine of the engine. */
export class Project extends Handbook {
  static readonly commands = commandsOf(
    ['production', 'backup', 'upgrade', 'faults'],
    (line) =>
      /\bdocker (compose|volume) [\w-]|^(cat|cp|export) .*(pem|env|OPS)/.test(line) &&
      !line.includes('<command>'),
  );

  constructor() {
    super(Project.commands);
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
    // What the test writes beside the files would have the next release built again, for two minutes.
    appendFileSync(
      join(this.folder, '.dockerignore'),
      ['', '*.js', '*.csv', 'merchants.json', 'order.json', 'docker-compose*.yml', 'ipv6.yml', ''].join('\n'),
    );
  }

  /** A command of `ops`. @returns its answer. */
  async ops<T = Record<string, string>>(line: string): Promise<T> {
    return JSON.parse(await this.run(`docker compose run --rm -T ops ${line} --json`)) as T;
  }

  /** @returns rows of text. */
  async sql(statement: string, database = 'quotes'): Promise<string[]> {
    const out = await this.run(
      `docker exec finance-postgres-1 psql -U postgres -d ${database} -XAtqc "${statement}"`,
    );
    return out === '' ? [] : out.split('\n');
  }

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
      // Compose needs a second of a core for the same.
      const { out } = await this.try(`docker ps --all --format '{{.Names}}: {{.Status}}'`);
      const bad = out
        .trim()
        .split('\n')
        .filter((line) => !/: (Up [^(]*(\(healthy\))?|Exited \(0\).*)$/.test(line));
      const seconds = Math.round((Date.now() - startedAt) / 100) / 10;
      if (bad.length === 0) return seconds;
      if (seconds > limitSeconds) throw new Error(`not healthy after ${limitSeconds} s: ${bad.join('; ')}`);
      await sleep(1_000);
    }
  }
}
