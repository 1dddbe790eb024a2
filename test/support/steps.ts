import { rmSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { inspect, parseArgs } from 'node:util';
import { startOutside } from '../containers/partner';
import type { Served } from '../containers/scene';
import type { Handbook } from './handbook';

export type Steps<Scene> = readonly (readonly [string, (scene: Scene) => Promise<unknown>])[];

/**
 * Runs a program that consists of steps, and ends the process: with 0 when all passed. With `--json` the last line has the figures;
 * `--outputFile=FILE` gets a report in the form of Jest's, for .ci/run; `--keep` continues after a failed step.
 * @param diagnose a command line whose output helps to understand a failure
 */
export async function runSteps<Scene extends Served & { readonly project: Handbook }>(
  file: string,
  steps: Steps<Scene>,
  own: Pick<Scene, 'project' | 'figures'>,
  diagnose: string,
): Promise<never> {
  const { values } = parseArgs({
    options: { json: { type: 'boolean' }, outputFile: { type: 'string' }, keep: { type: 'boolean' } },
    strict: false,
  });
  const { project } = own;
  const served = { outside: await startOutside(), credentials: { key: '', serviceKey: '' }, answered: [] };
  const scene = { ...served, ...own } as unknown as Scene;
  const all: Steps<Scene> = [
    ...steps,
    [
      'every command of the pages was run',
      async () => {
        const left = project.left();
        if (left.length > 0) throw new Error(`nobody ran:\n${left.join('\n')}`);
      },
    ],
  ];
  const results: { fullName: string; status: 'passed' | 'failed'; failureMessages: string[] }[] = [];
  const failed = (fullName: string, why: string) =>
    results.push({ fullName, status: 'failed', failureMessages: [why] });
  for (const [title, step] of all) {
    const startedAt = Date.now();
    const error = await step(scene).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    const seconds = Math.round((Date.now() - startedAt) / 1_000);
    console.log(`${error === undefined ? '✓' : '✗'} ${title} (${seconds} s)`);
    if (error === undefined) {
      results.push({ fullName: title, status: 'passed', failureMessages: [] });
      continue;
    }
    failed(title, inspect(error));
    console.error(error);
    // What follows needs what came before.
    console.error((await project.try(diagnose)).out.slice(-12_000));
    if (!values['keep']) break;
  }
  for (const [title] of all.slice(results.length)) failed(title, 'not run');
  const passed = results.every(({ status }) => status === 'passed');
  if (typeof values['outputFile'] === 'string') {
    const report = { name: file, status: passed ? 'passed' : 'failed', assertionResults: results };
    writeFileSync(values['outputFile'], JSON.stringify({ testResults: [report] }));
  }
  if (passed) rmSync(project.folder, { recursive: true });
  else
    console.error(
      `What the commands printed: commands.log in ${basename(project.folder)} below the temporary folder.`,
    );
  if (values['json']) console.log(JSON.stringify(scene.figures));
  process.exit(passed ? 0 : 1);
}
