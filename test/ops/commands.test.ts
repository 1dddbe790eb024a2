import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runDirectory } from '../../testbed/temporary-directory';
import { openDatabaseAt } from '../support/database';
import { needs } from '../support/needs';
import { OTHER_DEPS, PRODUCT_ROW, runWith, useOps } from './run';

const ops = useOps();
test('partners: creates, lists, shows, switches off and on, and writes it down', async () => {
  const partner = { partner_id: 'P100001', name: 'Example Checkout', state: 'active' };
  expect(await ops.json('partners create --name', partner.name)).toMatchObject(partner);
  expect(await ops.json('partners list')).toMatchObject([partner]);
  expect(await ops.json('partners disable P100001')).toMatchObject({ state: 'inactive', changed: true });
  expect(await ops.json('partners disable P100001')).toMatchObject({ changed: false });
  expect(await ops.json('partners enable P100001')).toMatchObject({ state: 'active', changed: true });
  expect(await ops.text('partners show P100001')).toContain('Example Checkout');
  const off = await ops.json('partners disable-recovery P100001');
  expect(off).toMatchObject({ state: 'active', recovery: 'disabled', changed: true });
  expect(await ops.json('partners disable-recovery P100001')).toMatchObject({ changed: false });
  expect(await ops.json('partners enable-recovery P100001')).toMatchObject({ recovery: 'enabled' });
  const verbs = ['enable-recovery', 'disable-recovery', 'enable', 'disable', 'create'];
  expect(await ops.actionsOn('P100001')).toEqual(verbs.map((verb) => `partners.${verb}`));
});

test('a second partner of one name is made, and said to be the second', async () => {
  const args = ['Example checkout', '--id', 'P999999'];
  expect(await ops.text('partners create --name', ...args)).toMatch(/\nP100001 has this name too\.$/m);
});

test.each([
  ['keys', 'keys create --partner P100001', /^sk_live_/, { partner_id: 'P100001' }],
  [
    'service-keys',
    'service-keys create --lender lender_a --name Gateway',
    /^svc_/,
    { lender: 'lender_a', name: 'Gateway' },
  ],
])('%s: shows a key once, rotates, switches, revokes, and keeps every key out of the log', async (...row) => {
  const [noun, create, form, binding] = row;
  const created = await ops.json(`${create} --environment live --expires-in 90d`);
  const of = { ...binding, environment: 'live' };
  const notice = expect.stringContaining('shown once');
  expect(created).toMatchObject({ ...of, key: expect.stringMatching(form), notice });
  const rotated = await ops.json(`${noun} rotate --overlap 2d`, created.key_id);
  const replaced = { key_id: created.key_id, replaced_by: rotated.key_id };
  expect(rotated).toMatchObject({ ...of, replaced });
  for (const [verb, state] of [
    ['disable', 'inactive'],
    ['enable', 'active'],
    ['revoke', 'revoked'],
  ])
    expect(await ops.json(`${noun} ${verb}`, rotated.key_id)).toMatchObject({ state, changed: true });
  expect(await ops.json(`${noun} revoke`, rotated.key_id)).toMatchObject({ changed: false });
  const verbs = ['revoke', 'enable', 'disable', 'rotate'].map((verb) => `${noun}.${verb}`);
  expect(await ops.actionsOn(rotated.key_id)).toEqual(verbs);
  const details = await ops.column('details', 'changes list --subject', created.key_id);
  expect(details.at(-1)).toMatchObject(of);
  const listed = await ops.text(`${noun} list`);
  for (const text of [created.last_four, 'live', 'revoked']) expect(listed).toContain(text);
  const everything = listed + JSON.stringify([await ops.json('changes list'), await ops.json(noun, 'list')]);
  for (const { key } of [created, rotated]) expect(everything).not.toContain(key.slice(8));
});

test('keys of one environment alone are listed', async () => {
  const { key_id: sandbox } = await ops.json('keys create --partner P100001 --environment sandbox');
  const listed = await ops.column('key_id', 'keys list --environment sandbox');
  expect(listed).toContain(sandbox);
  expect(await ops.column('environment', 'keys list --environment live')).not.toContain('sandbox');
});

test('a rotated key has a successor with the same life, or the one that is said', async () => {
  const issue = (...more: string[]) => ops.json('keys create --partner P100001 --environment live', ...more);
  const days = ({ created_at: from, expires_at: to }: { created_at: string; expires_at: string }) =>
    (Date.parse(to) - Date.parse(from)) / 86_400_000;
  const yearly = await issue('--expires-in', '365d');
  // Rotated late in its life, it does not hand on what is left of that, but the whole.
  await ops.database.sql`update api_keys set created_at = created_at - interval '360 days',
    expires_at = expires_at - interval '360 days' where key_id = ${yearly.key_id}`;
  const next = await ops.json('keys rotate', yearly.key_id);
  expect(Math.round(days(next) * 1_000) / 1_000).toBe(365);
  const shorter = await ops.json('keys rotate', next.key_id, '--expires-in', '30d');
  expect(Math.round(days(shorter) * 1_000) / 1_000).toBe(30);
  const endless = await ops.text('keys rotate', shorter.key_id, '--expires-in', 'never');
  expect(endless).toMatch(/\n {2}sk_live_\w{32}\n\nThis key is shown once/);
  expect(endless).toContain('It does not expire.');
  const without = await issue();
  expect((await ops.json('keys rotate', without.key_id)).expires_at).toBeNull();
});

test('merchants: creates, changes, shows what is missing, lists', async () => {
  await ops.json('merchants create M300001 --trading-name', 'Example Shop');
  const shown = await ops.json('merchants show M300001');
  expect(shown).toMatchObject({ complete: false, missing_fields: ['fca_authorised', 'products'] });
  expect(await ops.text('merchants show M300001')).toContain('INCOMPLETE');
  const floor = ['--deposit-floor-percent', '10', '--deposit-floor-amount', '50.00'];
  const access = ['--partner-access', 'restricted', '--partners', 'P100001'];
  const flags = ['--fca-authorised', 'yes', '--show-products', 'no'];
  await ops.json('merchants set M300001', ...flags, ...floor, ...access);
  expect(await ops.json('merchants show M300001')).toMatchObject({
    trading_name: 'Example Shop',
    fca_authorised: true,
    show_products: false,
    deposit_floor: { percent: '10', amount: '50.00' },
    partners: ['P100001'],
  });
  const without = await ops.json('merchants set M300001 --no-deposit-floor');
  expect(without).toMatchObject({ change: 'changed: deposit_floor' });
  expect(await ops.json('merchants set M300001')).toMatchObject({ change: 'unchanged' });
  expect(await ops.json('merchants list --partner P100001')).toMatchObject([
    { merchant_id: 'M300001', active_products: 0 },
  ]);
  await ops.json('partners create --name', 'Without merchants', '--id', 'P100009');
  expect(await ops.json('merchants list --partner P100009')).toEqual([]);
  expect(await ops.text('merchants list --limit 1')).toContain('--limit 1 --after M300001');
  expect(await ops.json('merchants list --after M300001')).toEqual([]);
  const [details] = await ops.column('details', 'changes list --subject M300001');
  const from = { percent: '10', amount: '50.00' };
  expect(details).toEqual({ change: 'updated', fields: [{ field: 'deposit_floor', from, to: null }] });
});

test('products: switches off and on, and writes it down', async () => {
  expect((await ops.import('products', [PRODUCT_ROW])).json()).toMatchObject({ created: 1 });
  const deactivated = await ops.json('products disable M300001', 'Classic 12');
  expect(deactivated).toMatchObject({ active: false, changed: true });
  expect(await ops.text('products list --merchant M300001')).toContain('no: inactive');
  const activated = await ops.json('products enable M300001', 'Classic 12');
  expect(activated).toMatchObject({ active: true, changed: true, version: 1 });
  const verbs = ['enable', 'disable', 'import'].map((verb) => `products.${verb}`);
  expect(await ops.actionsOn(activated.product_id)).toEqual(verbs);
});

/** @param url null: no address is known. */
const runAgainst = (url: string | null) => {
  const connect = () => {
    if (url === null) throw new Error('no database: set DATABASE_URL');
    return openDatabaseAt(url);
  };
  return runWith({ ...OTHER_DEPS, connect }, ['partners', 'list']);
};
const otherDatabase = (name: string) => new URL(`/${name}`, ops.database.url).href;

describe('exit codes', () => {
  // An id that does not exist is tried in each place that takes one in ids.test.ts.
  test.each([
    [0, 'help of a command', 'keys rotate --help'],
    [2, 'an endpoint that is not there', 'webhooks disable --partner P100001 --environment live'],
    [1, 'an endpoint that is half named', 'webhooks show --partner P100001'],
    [2, 'a product that is not there', 'products show M300001 Typo'],
    [1, 'an id that is taken', 'partners create --name x --id P100001'],
    [1, 'a merchant that is there', 'merchants create M300001'],
    [1, 'a fault', 'merchants create M300077 --deposit-floor-percent x'],
    [2, 'no command', ''],
    [2, 'no verb of a group within a group', 'webhooks secrets'],
    [2, 'an unknown command', 'kyes'],
    [2, 'an unknown option', 'keys list --colour'],
    [2, 'a day that no calendar has', 'quotes list --since 2026-09-31T00:00Z'],
    [2, 'a missing option', 'service-keys create --name Nobody --lender lender_a'],
    [2, 'a missing operand', 'keys revoke'],
    [2, 'a wrong value', 'keys rotate key_x --overlap soon'],
    [2, 'a wrong choice', 'keys create --partner P100001 --environment moon'],
    [2, 'a wrong month', 'usage --partner P100001 --month 2026-13'],
    [2, 'a wrong state', 'notifications list --state failed,lost'],
    [1, 'a moment that is too long ago', 'notifications list --since 2020-01-01'],
    [1, 'a moment that is still to come', 'changes list --since 2199-01-01'],
  ])('%i for %s: ops %s', async (code, _, line) => {
    const args = line.split(' ').filter((word) => word !== '');
    const human = await ops.run(args);
    expect(human.code).toBe(code);
    expect(human.err).not.toMatch(/\n\s+at /);
    if (code === 0) expect([human.out.startsWith('Usage: '), human.err]).toEqual([true, '']);
    else {
      const scripted = await ops.run(['--json', ...args]);
      expect(scripted).toMatchObject({ code, out: '' });
      expect(JSON.parse(scripted.err)).toEqual({
        error: expect.objectContaining({ code: expect.any(String), message: expect.any(String) }),
      });
    }
  });

  test('3 for a database that cannot be reached, has no known address, or refuses the login', async () => {
    const err = 'error: no database: set DATABASE_URL\n';
    expect(await runAgainst(null)).toMatchObject({ code: 3, err });
    expect(await runAgainst('postgres://postgres@127.0.0.1:1/x')).toMatchObject({ code: 3 });
    expect(await runAgainst(otherDatabase('no_such_database'))).toMatchObject({ code: 3 });
  });

  test('1 with a hint for a database without our tables', async () => {
    const err = expect.stringContaining('start the service once');
    expect(await runAgainst(otherDatabase('postgres'))).toMatchObject({ code: 1, err });
  });
});

test.each([
  ['the name of a file that is missing', ['merchants import', 'gone\u001b]0;title\u0007\u009b2J\u202E.json']],
  ['the same in a second line', ['merchants import', 'gone\nerror: none\r.json']],
  ['an unknown command', ['part\u001b[2Jners']],
  ['an unknown option', ['partners list', '--al\u001b[2Jl']],
  ['an argument too many', ['partners list', 'more\u001b[2J']],
  ['a value that is none', ['notifications list', '--since', '\u001b[2J\u202E']],
  ['an id that does not exist', ['partners show', 'P1\u001b[2J\u202E']],
  ['a choice that is none', ['keys create --partner P100001 --environment', 'li\u001b[2Jve']],
])('%s is echoed without its control characters', async (_name, args) => {
  for (const form of [[], ['--json']]) {
    const { code, out, err } = await ops.run([...args, ...form]);
    expect([code === 0, out]).toEqual([false, '']);
    expect(err.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}\u2028\u2029]/u);
    expect(err.split('\n').filter((line) => line.startsWith('error: '))).toHaveLength(
      form.length === 0 ? 1 : 0,
    );
  }
});

describe('what a shell completes', () => {
  const folder = runDirectory('completion');
  async function script(name: string): Promise<string> {
    const file = join(folder, name);
    writeFileSync(file, await ops.text('completion', name));
    return file;
  }
  const shell = (program: string, ...args: string[]) =>
    execFileSync(program, args, {
      encoding: 'utf8',
      timeout: 30_000,
      env: { ...process.env, TERM: 'vt100' },
    });

  const CASES: readonly (readonly [string, readonly string[]])[] = [
    ['ops pro', ['products']],
    ['ops partners e', ['enable', 'enable-recovery']],
    ['ops webhooks secrets r', ['rotate']],
    ['ops keys create --environment ', ['sandbox', 'live']],
    ['ops keys create --environment live --par', ['--partner']],
    ['ops keys create --wi', ['--wide']],
    ['ops completion ba', ['bash']],
  ];

  test.each(CASES)('bash: %s', async (line, words) => {
    const text = `source ${await script('bash')}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _ops ops "\${!#}"; echo "\${COMPREPLY[@]}"`;
    expect(shell('bash', '-c', text, 'bash', ...line.split(' ')).trim()).toBe(words.join(' '));
  });

  needs('fish')('fish', () => {
    test.each(CASES)('%s', async (line, words) => {
      const text = `source ${await script('fish')}; complete -C ${JSON.stringify(line)}`;
      expect(shell('fish', '-N', '-c', text).trim().split('\n').toSorted()).toEqual(words.toSorted());
    });
  });

  /** Types into an interactive shell, and reads until it has completed. */
  const TYPED = `zmodload zsh/zpty; zpty -b p zsh -f -i
  read_until() { for i in {1..200}; do zpty -r -t p part && got+=$part; [[ $got == *$1* ]] && return; sleep 0.05; done; }
  zpty -w p "PS1='> '; source $1; echo REA''DY"; read_until READY
  zpty -w -n p $2$'\\t'; read_until $3; print -r -- $got; zpty -d p`;

  needs('zsh')('zsh', () => {
    test.each(CASES.filter(([, words]) => words.length === 1))('%s', async (line, [word = '']) => {
      const shown = shell('zsh', '-f', '-c', TYPED, 'zsh', await script('zsh'), line, word);
      expect(shown).toContain(`${line.slice(0, line.lastIndexOf(' '))} ${word}`);
    });
  });
});
