import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { freePort } from '../../dev/ports';
import { until } from '../../testbed/until';
import { answersOk } from '../../testbed/http-call';
import { onPath } from '../support/needs';
import { startProgram } from '../../testbed/project-process';
import { runDirectory } from '../../testbed/temporary-directory';
import { RULES_FILE } from './rules';

export type Programs = Awaited<ReturnType<typeof openPrograms>>;
export const RUNBOOKS = 'https://handbook.example/operations';

/** Prometheus and its exporters, as the system's packages bring them, until `close`. */
export async function openPrograms() {
  const directory = runDirectory('prometheus');
  const closers: (() => Promise<unknown> | void)[] = [];

  /** @returns its address, once it answers. */
  async function start(program: string, ...args: string[]): Promise<string> {
    const url = `http://127.0.0.1:${await freePort()}`;
    const listens = `--web.listen-address=${url.slice('http://'.length)}`;
    const running = startProgram([onPath(program) ?? program, listens, ...args], { stdio: 'ignore' });
    closers.push(() => running.end('SIGKILL'));
    await until(() => answersOk(`${url}/`), `${program} answers`);
    return url;
  }

  /** With the time that a backup wrote. */
  async function startNodeExporter(...args: string[]): Promise<string> {
    const texts = join(directory, 'metrics');
    await mkdir(texts);
    const now = Math.round(Date.now() / 1_000);
    await writeFile(join(texts, 'backup.prom'), `pfqs_backup_completed_timestamp_seconds ${now}\n`);
    return start(
      'prometheus-node-exporter',
      '--collector.disable-defaults',
      '--collector.filesystem',
      '--collector.textfile',
      `--collector.textfile.directory=${texts}`,
      ...args,
    );
  }

  /** Prometheus with our alerts, which scrapes these addresses every second. @returns what asks it. */
  async function startPrometheus(jobs: Readonly<Record<string, string>>) {
    const config = join(directory, 'prometheus.yml');
    const scrape_configs = Object.entries(jobs).map(([job_name, url]) => ({
      job_name,
      static_configs: [{ targets: [new URL(url).host] }],
    }));
    const global = {
      scrape_interval: '1s',
      evaluation_interval: '1s',
      external_labels: { runbooks: RUNBOOKS },
    };
    await writeFile(config, stringify({ global, rule_files: [RULES_FILE], scrape_configs }));
    const storage = `--storage.tsdb.path=${join(directory, 'data')}`;
    const url = await start('prometheus', `--config.file=${config}`, storage);
    /** @param time of the answer, in Unix seconds. @throws when Prometheus refuses the query. */
    return async (query: string, time = Date.now() / 1_000) => {
      const body = new URLSearchParams({ query, time: String(time) });
      const answer = await fetch(`${url}/api/v1/query`, { method: 'POST', body });
      const { data, error } = (await answer.json()) as {
        data?: { result: { metric: Record<string, string>; value: [number, string] }[] };
        error?: string;
      };
      if (data === undefined) throw new Error(`${query}: ${error}`);
      return data.result;
    };
  }

  return {
    start,
    startNodeExporter,
    startPrometheus,
    closers,
    async close() {
      for (const close of closers.toReversed()) await close();
    },
  };
}
