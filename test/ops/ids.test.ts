import { Argument, type Command, type Option } from 'commander';
import { IDS, idKindOf, type IdKind } from '../../ops/arguments';
import { buildProgram } from '../../ops/program';
import { createOpsUnderTest, OTHER_DEPS, type OpsUnderTest } from './run';

/** Where an id is expected: `ops notifications list --partner`. */
interface Expected {
  readonly command: readonly string[];
  readonly name: string;
  readonly kind: IdKind;
  /** The arguments with this id. */
  readonly call: (id: string) => string[];
}

/** Required beside the id. */
const REQUIRED: Readonly<Record<string, string>> = {
  '--environment': 'live',
  '--name': 'Example',
  '--url': 'https://partner.example/hooks',
  '--format': '[A-Z]{2}',
};
const UNKNOWN: Readonly<Partial<Record<IdKind, string>>> = {
  partner: 'P999999',
  merchant: 'M999999',
  change: '999999999',
  event: '999999999',
};
/** What is neither an id nor read by a parser of its own: names, texts of partners and lenders, files, decimal numbers. */
const FREE_TEXT = [
  'applications list --reference',
  'applications list --merchant-reference',
  'changes list --action',
  'deployments ramp build-id',
  'deployments set-current build-id',
  'lenders add --format',
  'lenders add --name',
  'lenders set --format',
  'lenders set --name',
  'merchants create --deposit-floor-amount',
  'merchants create --deposit-floor-percent',
  'merchants create --trading-name',
  'merchants import file',
  'merchants set --deposit-floor-amount',
  'merchants set --deposit-floor-percent',
  'merchants set --trading-name',
  'notifications list --merchant-reference',
  'partners create --name',
  'products activate credit-product',
  'products deactivate credit-product',
  'products import file',
  'products show credit-product',
  'quotes list --merchant-reference',
  'service-keys create --name',
  'webhooks register --url',
];

const leaves = (command: Command, path: readonly string[] = []): [readonly string[], Command][] =>
  command.commands.length === 0
    ? [[path, command]]
    : command.commands.flatMap((one) => leaves(one, [...path, one.name()]));

const program = buildProgram({
  ...OTHER_DEPS,
  connect: () => {
    throw new Error('nothing is run here');
  },
  out: () => undefined,
  err: () => undefined,
  stdin: process.stdin,
  actor: 'tester',
  now: () => new Date(),
});
const parameters = leaves(program).flatMap(([command, { options, registeredArguments }]) =>
  [...options, ...registeredArguments].map((parameter) => ({
    command,
    options,
    registeredArguments,
    parameter,
  })),
);
const nameOf = (parameter: Option | Argument) =>
  parameter instanceof Argument ? parameter.name() : (parameter.long ?? '');

const expected: Expected[] = parameters.flatMap(({ command, options, registeredArguments, parameter }) => {
  const kind = idKindOf(parameter.parseArg);
  if (kind === null) return [];
  const required = options
    .filter((one) => one.mandatory && one !== parameter)
    .flatMap(({ long = '' }) => [long, REQUIRED[long ?? ''] ?? '']);
  const operands = (id: string) =>
    registeredArguments
      .filter((one) => one.required || one === parameter)
      .map((one) => (one === parameter ? id : one.parseArg === undefined ? 'x' : 'M300001'));
  const option = (id: string) => (parameter instanceof Argument ? [] : [nameOf(parameter), id]);
  const call = (id: string) => [...command, ...required, ...option(id), '--', ...operands(id)];
  return [{ command, name: nameOf(parameter), kind, call }];
});

let ops: OpsUnderTest;
beforeAll(async () => {
  ops = await createOpsUnderTest();
  await ops.json('merchants', 'create', 'M300001', '--trading-name', 'Example Shop');
});
afterAll(() => ops.close());

test('each argument and option takes an id that is looked up, has a parser of its own, or is free text', () => {
  const free = parameters.filter(
    ({ parameter }) =>
      parameter.parseArg === undefined &&
      parameter.argChoices === undefined &&
      (parameter instanceof Argument || parameter.required || parameter.optional),
  );
  expect(free.map(({ command, parameter }) => [...command, nameOf(parameter)].join(' ')).toSorted()).toEqual(
    FREE_TEXT.toSorted(),
  );
  expect(expected.length).toBeGreaterThan(50);
});

test.each(expected)('$command $name: one that is mistyped is wrong usage, 2', async ({ kind, call }) => {
  const outcome = await ops.run(call(' ?'));
  expect(outcome).toMatchObject({
    code: 2,
    out: '',
    err: expect.stringContaining(`It must be an id such as ${IDS[kind].like} (`),
  });
});

test.each(expected)('$command $name: one that nothing has is an error that says so, 2', async (one) => {
  const { kind, call } = one;
  const id = UNKNOWN[kind] ?? `${IDS[kind].like.split('_')[0]}_nobody`;
  const outcome = await ops.run(call(id));
  expect(outcome).toMatchObject({ code: 2, out: '' });
  expect(outcome.err).toContain(`error: ${IDS[kind].noun} ${id} does not exist`);
});

test('what is not named by an id is found or is an error as well: a product, a build', async () => {
  expect(await ops.run(['products', 'show', 'M300001', 'Typo'])).toMatchObject({ code: 2, out: '' });
  ops.deployment = {
    describe: async () => ({
      kind: 'done',
      value: { current: 'one', ramping: null, builds: [{ buildId: 'one', status: 'current' }] },
    }),
    setCurrent: async () => ({ kind: 'refused', why: 'no such version' }),
    ramp: async () => ({ kind: 'refused', why: 'no workers poll it' }),
  };
  expect(await ops.run(['deployments', 'set-current', 'two'])).toMatchObject({
    code: 2,
    err: expect.stringContaining('Build two does not exist'),
  });
  expect(await ops.run(['deployments', 'ramp', 'one', '--percent', '5'])).toMatchObject({ code: 1 });
});
