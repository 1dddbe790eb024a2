import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { APPLICATION_STATES, STORIES, TRANSITIONS } from '../../../domain/application-states';
import { useDatabase } from '../../support/database';

/** What names the states of an application beside domain/application-states.ts, where types do not look. */

const database = useDatabase();
const read = (file: string) => readFileSync(join(__dirname, '../../..', file), 'utf8');
const missingIn = (text: string, quote: string, states: readonly string[]) =>
  states.filter((state) => !text.includes(quote + state + quote));

test('the guide says what each state means and names each story, and the shop has words for each state', () => {
  const guide = read('docs/partner-guide.md');
  const [, means = ''] = /^### What each state means$([\s\S]*?)^### /m.exec(guide) ?? [];
  expect(missingIn(means, '`', APPLICATION_STATES)).toEqual([]);
  const [, stories = ''] = /`story` records([\s\S]*?)\. /.exec(guide) ?? [];
  expect(missingIn(stories, '`', Object.keys(STORIES))).toEqual([]);
  const [, words = ''] = /WORDS = \{([\s\S]*?)\n\}/.exec(read('dev/shop/page/order.js')) ?? [];
  expect(APPLICATION_STATES.filter((state) => !words.includes(`\n  ${state}: '`))).toEqual([]);
});

test('the retention keeps no quote for a state that nothing follows', async () => {
  const [row] = await database.sql`
    select pg_get_functiondef('ids_that_stay(text, text, text)'::regprocedure) as ids_that_stay,
      pg_get_indexdef('credit_applications_open_quote'::regclass) as credit_applications_open_quote`;
  const last = APPLICATION_STATES.filter((state) => TRANSITIONS[state].length === 0);
  for (const [name, text] of Object.entries(row ?? {}))
    expect({ name, missing: missingIn(String(text), "'", last) }).toEqual({ name, missing: [] });
  expect(Object.keys(row ?? {})).toHaveLength(2);
});
