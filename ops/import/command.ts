import type { Command } from 'commander';
import type { DbOrTransaction } from '../../db/postgres/connect';
import { handle, type OpsDeps } from '../call';
import { differenceText, printable, type Answer } from '../output';
import { csvFaults, looksLikeCsv, parseCsv, type CsvTypes } from './csv';
import { parseJson, readText } from './files';
import type { importProducts } from './products';
import { ImportRefused, refuseFile } from './rows';
import type { ImportOptions, ImportReport, ReportedChange } from './rows';

interface ImportKind {
  readonly noun: string;
  /** Null: JSON only. */
  readonly csv: CsvTypes | null;
  readonly run: typeof importProducts;
}

export function addImportCommand(parent: Command, deps: OpsDeps, kind: ImportKind): void {
  const { noun, csv, run } = kind;
  const command = parent
    .command('import')
    .argument('<file>', `${csv === null ? 'JSON' : 'JSON or CSV'} file; - for standard input`)
    .description(`Create and change ${noun} from a file: all of it, or nothing when one row is wrong.`)
    .option('--dry-run', 'check everything and say what would happen, but write nothing')
    .addHelpText('after', '\nThe format, with an example: docs/import-format.md.');
  if (csv !== null)
    command.option(
      '--csv',
      'the file is CSV; default: when its name ends in .csv, or it does not begin as JSON does',
    );
  handle<{ csv?: true }>(command, deps, async ({ db, options }, file = '') => {
    const text = await readText(file, deps.stdin);
    const { dryRun = false } = options;
    // A dry run writes no change, so it needs no actor.
    const how = { actor: dryRun ? '' : deps.actor, action: `${noun}.import`, dryRun };
    const isCsv =
      options.csv === true || /\.csv$/i.test(file) || (!/\.json$/i.test(file) && looksLikeCsv(text));
    if (!isCsv) return importAnswer(await run(db, parseJson(text), how), dryRun, 'row');
    if (csv === null)
      return refuseFile(`This looks like CSV; ${noun} are imported from JSON: [ { … }, { … } ].`);
    return importAnswer(await importCsv(db, text, csv, run, how), dryRun, 'line');
  });
}

/** All faults are reported at once: those of the cells, and those of the lines that can be read. */
async function importCsv(
  db: DbOrTransaction,
  text: string,
  types: CsvTypes,
  run: ImportKind['run'],
  how: ImportOptions,
): Promise<ImportReport> {
  const { rows, lines, faults } = parseCsv(text, types);
  const broken = new Set(faults.map(({ row }) => row));
  let more: ImportRefused['faults'] = [];
  try {
    const report = await run(db, rows, { ...how, dryRun: how.dryRun || broken.size > 0 });
    const changes = report.changes.map((one) => ({ ...one, row: lines[one.row - 1] ?? one.row }));
    if (broken.size === 0) return { ...report, changes };
  } catch (error) {
    if (!(error instanceof ImportRefused)) throw error;
    more = error.faults.filter(({ row }) => row === null || !broken.has(row));
  }
  throw new ImportRefused(csvFaults([...faults, ...more], lines, types));
}

/** @param place what a change is found by; null: there is no file. */
export function importAnswer(
  { rows, changes }: ImportReport,
  dryRun: boolean,
  place: 'row' | 'line' | null,
): Answer {
  const created = changes.filter(({ change }) => change === 'created').length;
  const [updated, unchanged] = [changes.length - created, rows - changes.length];
  const counts = `${created} created, ${updated} updated, ${unchanged} unchanged`;
  const where = ({ row, subject }: ReportedChange) =>
    place === null ? printable(subject) : `${place} ${row}, ${printable(subject)}`;
  return {
    json: {
      dry_run: dryRun,
      created,
      updated,
      unchanged,
      changes: changes.map(({ row, ...change }) => ({ ...(place !== null && { [place]: row }), ...change })),
    },
    text: [
      ...changes.flatMap((one) => [
        `${where(one)}: ${one.change}`,
        ...one.fields.map((field) => `    ${differenceText(field)}`),
      ]),
      ...changes.flatMap((one) => (one.warning === null ? [] : [`WARNING: ${where(one)}: ${one.warning}`])),
      dryRun ? `Dry run, nothing was written. It would be: ${counts}.` : `${counts}.`,
    ].join('\n'),
  };
}
