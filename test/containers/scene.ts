import { deepStrictEqual } from 'node:assert';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Credentials, Outside } from './partner';
import type { Line } from '../model/tools/kept';
import { accordingToModel } from '../model/tools/trace';
import type { Project } from './project';

export const newReckoning = () => ({
  quotes: 0,
  /** Requests of shops that were not answered with 200. */
  quotes_refused: 0,
  /** Answered with 200, and not stored. */
  quotes_lost: 0,
  notifications: 0,
  notifications_lost: 0,
  miscounted: 0,
});

/** What `--json` prints, before the first step. */
export const newFigures = () => ({
  ready_s: 0,
  image_mb: 0,
  ...newReckoning(),
  killed: [] as string[],
  stopped_cleanly: false,
  restored: false,
  transitions: 0,
});

/** What the traffic of shops and lenders needs. */
export interface Served {
  readonly project: Pick<Project, 'sql'>;
  readonly outside: Outside;
  credentials: Credentials;
  /** Ids of quotes that were answered with 200. */
  readonly answered: string[];
  readonly figures: ReturnType<typeof newReckoning>;
}

export interface Scene extends Served {
  readonly project: Project;
  readonly figures: ReturnType<typeof newFigures>;
}

/** Writes what is imported for a shop with one product. */
export function writeShop(project: Pick<Project, 'write'>): void {
  const merchant = { merchant_id: 'M200001', trading_name: 'Example Furniture', fca_authorised: true };
  project.write('merchants.json', JSON.stringify([merchant]));
  const fields =
    'merchant_id,credit_product,lender,number_of_repayments,apr,minimum_loan_amount,maximum_loan_amount';
  project.write(
    'products.csv',
    `${fields}\nM200001,Classic credit 12 months,lender_a,12,9.9,250.00,25000.00\n`,
  );
}

/** Keys of a partner's shop and of a lender's integration. */
export async function issueKeys(project: Pick<Project, 'ops'>): Promise<Credentials> {
  const { key = '' } = await project.ops('keys create --partner P100001 --environment live');
  const { key: serviceKey = '' } = await project.ops(
    'service-keys create --name Gateway --lender lender_a --environment live',
  );
  return { key, serviceKey };
}

/** Lets shops and a lender's integration work during `work`, and reckons. @returns requests of shops that were not answered with 200. */
export async function underTraffic(scene: Served, work: () => Promise<void>): Promise<readonly string[]> {
  const { outside, credentials, answered } = scene;
  const traffic = outside.traffic(credentials);
  const rest = () => sleep(1_500);
  const error = await rest()
    .then(work)
    .then(rest)
    .then(
      () => undefined,
      (reason: unknown) => reason,
    );
  const { ids, lost } = await traffic.stop();
  answered.push(...ids);
  scene.figures.quotes_refused += lost.length;
  if (error !== undefined) throw error;
  await reckon(scene);
  return lost;
}

/** The same for work that may cost nobody an answer. */
export async function unnoticed(scene: Served, work: () => Promise<void>): Promise<void> {
  deepStrictEqual(await underTraffic(scene, work), []);
}

/** Holds what was answered and what arrived against the database: each quote is stored, each notification delivered and counted once. */
export async function reckon({ project, outside, answered, figures }: Served): Promise<void> {
  const open = 'select event_id from notifications where end_state is null';
  for (let tries = 0; (await project.sql(open)).length > 0; tries += 1) {
    if (tries > 240)
      throw new Error(`notifications that do not end: ${(await project.sql(open)).join(', ')}`);
    await sleep(500);
  }
  const stored = new Set(await project.sql('select quote_id from quotes'));
  const notifications = await project.sql('select event_id from notifications');
  figures.quotes = answered.length;
  figures.quotes_lost = answered.filter((id) => !stored.has(id)).length;
  figures.notifications = notifications.length;
  figures.notifications_lost = notifications.filter((id) => !outside.arrived.has(id)).length;
  figures.miscounted = (
    await project.sql(`select * from (select partner_id, environment, event_type, sum(delivered)::int as delivered from monthly_counts group by 1, 2, 3) c
      full join (select partner_id, environment, event_type, count(delivered_at)::int as delivered from notifications group by 1, 2, 3) n
      using (partner_id, environment, event_type) where coalesce(c.delivered, 0) <> coalesce(n.delivered, 0)`)
  ).length;
  const { quotes_lost, notifications_lost, miscounted } = figures;
  if (quotes_lost + notifications_lost + miscounted > 0)
    throw new Error(JSON.stringify({ quotes_lost, notifications_lost, miscounted }));
}

/** Every change of a row since the first day is one that the model has. */
export async function modelled({ project, figures }: Scene): Promise<void> {
  const kept = await project.sql('select to_json(c) from model_changes c order by id');
  const { looked, offenders } = accordingToModel(kept.map((line) => JSON.parse(line) as Line));
  figures.transitions = looked;
  deepStrictEqual(offenders, []);
}
