import { Argument, type Option } from 'commander';
import type { OpsDeps } from '../../ops/call';
import { IDS, idNameOf, type IdName } from '../../ops/ids';
import { buildProgram } from '../../ops/program';
import { leaves, useOps } from './run';

/** Required beside the id. */
const REQUIRED: Readonly<Record<string, string>> = {
  '--environment': 'live',
  '--name': 'Example',
  '--url': 'https://partner.example/hooks',
  '--reference-format': '[A-Z]{2}',
  '--since': '1h',
};
const UNKNOWN: Readonly<Partial<Record<IdName, string>>> = {
  partner: 'P999999',
  merchant: 'M999999',
  change: '999999999',
  event: '999999999',
};
/** What is neither an id nor read by a parser of its own: names, references, files, decimal numbers. */
const FREE_TEXT =
  '--action --deposit-floor-amount --deposit-floor-percent --lender-reference --merchant-reference --name ' +
  '--product --reference-format --trading-name --url build-id credit-product file';

// Nothing is run here.
const commands = leaves(buildProgram({} as OpsDeps));
const parameters = commands.flatMap(([words, command]) =>
  [...command.options, ...command.registeredArguments].map((parameter) => ({ words, command, parameter })),
);
const nameOf = (parameter: Option | Argument) =>
  parameter instanceof Argument ? parameter.name() : (parameter.long ?? '');

/** Where an id is expected: `ops notifications list --partner`. `call` has the arguments with this id. */
const expected = parameters.flatMap(({ words, command, parameter }) => {
  const kind = idNameOf(parameter.parseArg);
  if (kind === undefined) return [];
  const required = command.options
    .filter((one) => one.mandatory && one !== parameter)
    .flatMap(({ long = '' }) => [long, REQUIRED[long ?? ''] ?? '']);
  const operands = (id: string) =>
    command.registeredArguments
      .filter((one) => one.required || one === parameter)
      .map((one) => (one === parameter ? id : one.parseArg === undefined ? 'x' : 'M300001'));
  const option = (id: string) => (parameter instanceof Argument ? [] : [nameOf(parameter), id]);
  const call = (id: string) => [...words, ...required, ...option(id), '--', ...operands(id)];
  return [{ command: words, name: nameOf(parameter), kind, call }];
});

const ops = useOps({ merchants: ['M300001'] });
test('each argument and option takes an id that is looked up, has a parser of its own, or is free text', () => {
  const free = parameters
    .map(({ parameter }) => parameter)
    .filter(({ parseArg, argChoices }) => parseArg === undefined && argChoices === undefined)
    .filter((one) => one instanceof Argument || one.required || one.optional);
  expect([...new Set(free.map(nameOf))].toSorted().join(' ')).toBe(FREE_TEXT);
  expect(expected.length).toBeGreaterThan(50);
});

test.each(['M1234567', 'AB-1C2D-3E4F-5G6H'])(
  'the merchant id %s is one, as in a quote request',
  async (id) => {
    await ops.json(`merchants create ${id} --trading-name`, 'Example Shop');
    expect(await ops.json(`merchants show ${id}`)).toMatchObject({ merchant_id: id });
  },
);

test.each(expected)(
  '$command $name: one that is mistyped or unknown is an error that says so, 2',
  async ({ kind, call }) => {
    const { like, noun } = IDS[kind];
    await ops.refuses(2, `It must be an id such as ${like} [(]`, ...call(' ?'));
    const id = UNKNOWN[kind] ?? `${like.split('_')[0]}_nobody`;
    await ops.refuses(2, `error: ${noun} ${id} does not exist`, ...call(id));
  },
);
