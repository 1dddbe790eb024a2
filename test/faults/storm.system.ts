import { failures } from '../storm/finding';
import { runStorm } from '../storm/run';
import { fileNeeds } from '../support/needs';

fileNeeds('Temporal');

test('kill -9 of API, workers, Temporal and Postgres while 60 applications are told: every invariant holds', async () => {
  const said: string[] = [];
  const { findings, report } = await runStorm({
    partners: 4,
    apis: 1,
    // Each that is killed is a quarter of them.
    workers: 4,
    applications: 60,
    lenders: 6,
    kills: { api: 2, worker: 4, temporal: 2, postgres: 2 },
    pauseMs: 500,
    seed: 20_261_121,
    timeoutMs: 120_000,
    say: (text) => said.push(text),
  });
  const broken = failures(findings);
  expect({ broken, report, said }).toMatchObject({ broken: [] });
  expect(findings).toHaveLength(16);
  expect(report).not.toContain('not tried');
}, 600_000);
